// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "exclusions.h"

namespace accord::conformance {

void require(const Run& run, const char* feature) {
  if (const char* const reason = known_defect(run.flavour(), feature); reason != nullptr)
    throw Skip{std::string(feature) + ": " + reason};
}

bool works(const Run& run, const char* feature) {
  return known_defect(run.flavour(), feature) == nullptr;
}

}  // namespace accord::conformance
