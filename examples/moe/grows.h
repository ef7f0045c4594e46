// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <cstddef>
#include <optional>

namespace moe {

// Memory (app::Array or app::Pinned) that is used again, and replaced where it is too small.
template <class Memory>
class Grows {
 public:
  const Memory& of(std::size_t count) {
    if (!memory_ || memory_->count() < count) {
      memory_.reset();
      memory_.emplace(count + count / 4 + 1);
    }
    return *memory_;
  }

 private:
  std::optional<Memory> memory_;
};

}  // namespace moe
