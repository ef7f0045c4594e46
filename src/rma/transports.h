// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What long puts and gets between nodes go by, from memory to memory, as the job has it: then
// messages only name what is offered (net/transport.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device_runtime.h"
#include "net/transport.h"

namespace accord::rma {

class Transports {
 public:
  // What an operation goes by that goes by messages alone.
  static constexpr std::int32_t kNone = -1;

  virtual ~Transports() = default;
  // The number of the one that so many bytes go by between such memory of this rank and that rank,
  // as far as is known now.
  virtual std::int32_t choose(int rank, std::size_t size_bytes,
                              const device::PointerInfo& where) = 0;
  // The one of that number, which a peer may have told; null: there is none.
  virtual net::Transport* find(std::int32_t number) = 0;
};

}  // namespace accord::rma
