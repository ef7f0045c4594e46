// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/inter/transports.h"

#include <array>

#include "coll/select/selection.h"

namespace accord::coll {

NetWay between_nodes(const CollArgs& args, const core::Placement& placement) {
  if (!args.host.make_transport) return {NetWay::Way::staged};
  NetWay way = args.ways.between;
  if (way == NetWay())
    way = transport_by_network(placement.adapters, args.exchange->kind, args.exchange->block_bytes);
  const bool lacks_core =
      args.ways.spares_cores && args.host.has_idle_core && !args.host.has_idle_core();
  return lacks_core ? without_core(way) : way;
}

std::unique_ptr<Transport> make_transport(const NetWay& between, const CollArgs& args,
                                          core::Wire& wire) {
  if (between.way != NetWay::Way::design) return nullptr;
  return args.host.make_transport(between.design, wire);
}

const char* path_of(bool by_pairs, const NetWay& between) noexcept {
  struct Paths {
    const char* by_levels;
    const char* by_pairs;
  };
  static constexpr std::array kByDesign{
#define DESIGN(name) Paths{"two-level-" #name, "two-level-pairs-" #name},
#include "net/designs.def"
#undef DESIGN
  };
  const Paths& paths = between.way == NetWay::Way::design ? kByDesign[between.design]
                                                          : Paths{"two-level", "two-level-pairs"};
  return by_pairs ? paths.by_pairs : paths.by_levels;
}

}  // namespace accord::coll
