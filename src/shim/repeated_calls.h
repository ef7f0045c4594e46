// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Programs make the same small collective again and again. To describe one anew (its layouts, its
// key, who votes and how) takes a microsecond, a sixth of the whole call where it goes through
// inboxes; so a communicator keeps the last few that did. What may differ from one call to the next
// is asked each time: what memory the buffers are, and whose turn it is to vote.
#pragma once

#include <any>
#include <array>
#include <concepts>
#include <utility>

#include "core/collective.h"
#include "device/device_runtime.h"

namespace accord::shim {

// Handles of what is not predefined never lead to inboxes, or are not kept, so it does no harm that
// they are reused. Used by the one thread that may make collectives on the communicator.
class RepeatedCalls {
 public:
  struct Call {
    std::any shape;
    device::PointerInfo send;
    device::PointerInfo recv;
    core::Pipeline pipeline;
  };

  template <std::equality_comparable Shape>
  const Call* find(const Shape& shape) const noexcept {
    for (const Call& call : calls_) {
      const auto* const kept = std::any_cast<Shape>(&call.shape);
      if (kept != nullptr && *kept == shape) return &call;
    }
    return nullptr;
  }

  // Instead of the one kept longest, or of the same call on other memory.
  template <std::equality_comparable Shape>
  void keep(const Shape& shape, Call call) {
    call.shape = shape;
    const Call* const old = find(shape);
    const std::size_t at =
        old != nullptr ? static_cast<std::size_t>(old - calls_.data()) : next_++ % calls_.size();
    calls_[at] = std::move(call);
  }

 private:
  std::array<Call, 8> calls_;
  std::size_t next_ = 0;
};

}  // namespace accord::shim
