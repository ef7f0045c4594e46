// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a modelled job has for collectives from device to device, through exchange regions and
// inboxes, and what its devices refuse.
#pragma once

#include <cstddef>
#include <cstdint>

#include "knobs.h"

namespace accord::model {

struct ExchangeOptions {
  std::size_t node_bytes = 0;  // calls of at least this block size go through regions; 0: none
  std::size_t region_bytes = 12288;
  std::size_t one_shot_bytes = 0;
  bool direct = false;         // straight between users' buffers where these are used again
  bool spread = false;         // reductions straight between them by copy engines
  bool pairs = false;          // gather, scatter and alltoall as if sizes differed by pair
  std::size_t lane_bytes = 0;  // and of at most this one through inboxes; 0: none
  std::uint64_t inbox_calls = 1;
  // Of exports and openings that fail, of allocations that kernels cannot address, and of ranks
  // without an inbox server.
  unsigned refused_percent = 0;
  unsigned lending_refused_percent = 0;  // the same of the program's own memory
  unsigned kernels_percent = 100;        // of ranks whose device can reduce
  bool packets = false;                  // through inboxes in packets, where the CPU has these
  unsigned exclusive_percent = 0;        // whose inbox server must be the only one on their device
  bool descriptors = false;              // a handle of device memory needs one
  // Of buffers in device memory, one in so many goes by its whole shadow; 0: none.
  unsigned shadowed_one_in = 6;
  Knobs knobs{};

  bool operator==(const ExchangeOptions&) const = default;
};

}  // namespace accord::model
