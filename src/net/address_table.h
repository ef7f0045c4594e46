// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a worker keeps of each worker that it has connected to, found by that one's address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace accord::net {

template <class Value>
class AddressTable {
 public:
  using Address = std::span<const std::byte>;

  // Null: nothing has been added for it.
  Value* find(Address address) {
    for (auto& [known, value] : entries_) {
      ++comparisons_;
      if (std::ranges::equal(known, address)) return &value;
    }
    return nullptr;
  }
  void add(Address address, Value value) {
    entries_.emplace_back(std::vector(address.begin(), address.end()), std::move(value));
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [address, value] : entries_) visit(value);
  }
  void clear() noexcept { entries_.clear(); }

  // Addresses that find has compared so far: for tests.
  std::uint64_t comparisons() const noexcept { return comparisons_; }

 private:
  std::vector<std::pair<std::vector<std::byte>, Value>> entries_;
  std::uint64_t comparisons_ = 0;
};

}  // namespace accord::net
