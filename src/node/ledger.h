// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What this process has lent of its devices and freed, until no peer has it open any more: so long
// it stays allocated. An allocation counts once in however many communicators. Thread-safe.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace accord::node {

class Ledger {
 public:
  struct Key {
    int device;
    std::uint64_t base;
    std::uint64_t buffer_id;
    auto operator<=>(const Key&) const = default;
  };

  void enter(const Key& key, std::uint64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    Entry& entry = kept_[key];
    entry.size_bytes = size_bytes;
    ++entry.lenders;
  }

  void leave(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto entry = kept_.find(key);
    if (--entry->second.lenders == 0) kept_.erase(entry);
  }

  std::uint64_t bytes(int device) {
    const std::lock_guard lock(mutex_);
    std::uint64_t total_bytes = 0;
    for (const auto& [key, entry] : kept_) {
      if (key.device == device) total_bytes += entry.size_bytes;
    }
    return total_bytes;
  }

 private:
  struct Entry {
    std::uint64_t size_bytes = 0;
    std::size_t lenders = 0;
  };
  std::mutex mutex_;
  std::map<Key, Entry> kept_;
};

// The one of this process. Never destroyed: groups may outlive static objects.
inline Ledger& ledger() {
  static Ledger& instance = *new Ledger;
  return instance;
}

}  // namespace accord::node
