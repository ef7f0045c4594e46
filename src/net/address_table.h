// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a worker keeps of each worker that it has connected to, found by that one's address. A job
// may connect a rank to every other one, so a look-up must not take longer the more there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accord::net {

template <class Value>
class AddressTable {
 public:
  using Address = std::span<const std::byte>;

  // Null: nothing has been added for it. Good until the next one is added.
  Value* find(Address address) {
    const auto [first, last] = by_hash_.equal_range(hash_of(address));
    for (auto at = first; at != last; ++at) {
      auto& [known, value] = entries_[at->second];
      ++comparisons_;
      if (std::ranges::equal(known, address)) return &value;
    }
    return nullptr;
  }
  void add(Address address, Value value) {
    by_hash_.emplace(hash_of(address), entries_.size());
    entries_.emplace_back(std::vector(address.begin(), address.end()), std::move(value));
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [address, value] : entries_) visit(value);
  }
  void clear() noexcept {
    by_hash_.clear();
    entries_.clear();
  }

  // Addresses that find has compared so far: for tests.
  std::uint64_t comparisons() const noexcept { return comparisons_; }

 private:
  static std::size_t hash_of(Address address) {
    const std::string_view bytes(reinterpret_cast<const char*>(address.data()), address.size());
    return std::hash<std::string_view>{}(bytes);
  }

  std::vector<std::pair<std::vector<std::byte>, Value>> entries_;
  std::unordered_multimap<std::size_t, std::size_t> by_hash_;  // numbers of entries
  std::uint64_t comparisons_ = 0;
};

}  // namespace accord::net
