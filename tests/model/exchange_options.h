// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a modelled job has for collectives through exchange regions, and what its devices refuse.
#pragma once

#include <cstddef>

namespace accord::model {

struct ExchangeOptions {
  std::size_t node_bytes = 0;  // calls of at least this block size take this way; 0: none
  std::size_t region_bytes = 12288;
  std::size_t one_shot_bytes = 0;
  bool direct = false;  // straight between users' buffers where these are used again
  // Of exports and openings that fail, and of allocations that kernels cannot address.
  unsigned refused_percent = 0;
  unsigned kernels_percent = 100;  // of ranks whose device can reduce

  bool operator==(const ExchangeOptions&) const = default;
};

}  // namespace accord::model
