// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Programs make the same small collective again and again. To describe one anew (its layouts, its
// key, who votes and how) takes a microsecond, a sixth of the whole call where it goes through
// inboxes; so a communicator keeps some that did. What may differ from one call to the next is
// asked each time: what memory the buffers are, and whose turn it is to vote.
#pragma once

#include <any>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "coll/run/collective.h"
#include "device/device_runtime.h"

namespace accord::shim {

// Handles of what is not predefined never lead to inboxes, or are not kept, so it does no harm that
// they are reused. Used by the one thread that may make collectives on the communicator.
class RepeatedCalls {
 public:
  // Of its buffers.
  struct Places {
    device::PointerInfo send;
    device::PointerInfo recv;
    bool operator==(const Places&) const = default;
  };

  struct Call {
    std::any shape;
    const char* function = nullptr;  // for errors
    Places places;
    bool stays_in_order = false;  // what the program copies there is there when the call is made
    coll::CollArgs args;
  };

  // Anything that tells calls apart, for the most part.
  using Mark = std::uint64_t;

  template <std::equality_comparable Shape>
  const Call* find(Mark mark, const Shape& shape) const noexcept {
    if (calls_.empty()) return nullptr;
    for (const Call& call : calls_[set_of(mark)]) {
      const auto* const kept = std::any_cast<Shape>(&call.shape);
      if (kept != nullptr && *kept == shape) return &call;
    }
    return nullptr;
  }

  // Whether such a call has been here before. A program that never makes the same one twice shall
  // not pay for keeping them.
  bool comes_again(Mark mark) { return std::exchange(seen_[set_of(mark)], mark) == mark; }

  // Instead of the same call on other memory, or the older of two.
  template <std::equality_comparable Shape>
  void keep(Mark mark, const Shape& shape, Call call) {
    if (calls_.empty()) calls_.resize(kSets);
    Set& set = calls_[set_of(mark)];
    const Call* const same = find(mark, shape);
    if (same != &set[0]) std::swap(set[0], set[1]);
    call.shape = shape;
    set[0] = std::move(call);
  }

 private:
  static constexpr std::size_t kSets = 32;
  using Set = std::array<Call, 2>;
  static std::size_t set_of(Mark mark) { return mark * 0x9e3779b97f4a7c15 >> 59; }
  static_assert(kSets == std::size_t{1} << (64 - 59));

  std::vector<Set> calls_;  // none until one is kept
  std::array<Mark, kSets> seen_{};
};

}  // namespace accord::shim
