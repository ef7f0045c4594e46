// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/design.h"

#include <array>

namespace accord::net {

#define DESIGN(name) const Design& name##_design();
#include "net/designs.def"
#undef DESIGN

namespace {

const auto& designs() {
  static const std::array all{
#define DESIGN(name) &name##_design(),
#include "net/designs.def"
#undef DESIGN
  };
  return all;
}

}  // namespace

const Design* find_design(std::string_view name) {
  for (const Design* design : designs())
    if (design->name() == name) return design;
  return nullptr;
}

const Design* design_at(unsigned number) {
  return number < designs().size() ? designs()[number] : nullptr;
}

unsigned number_of(const Design& design) {
  unsigned number = 0;
  while (designs()[number] != &design) ++number;
  return number;
}

const Design& fallback_design() { return direct_design(); }

const Design* next_best(const Design& design) {
  if (&design == &fallback_design()) return nullptr;
  return design.spends_core() ? &passive_design() : &fallback_design();
}

}  // namespace accord::net
