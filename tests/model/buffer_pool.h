// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Device memory that a modelled program keeps, as those with a pool of their own do: its buffers
// are cut from allocations that live over calls, lie side by side there, are used again, and now
// and then an allocation that nobody uses is freed and made anew, most likely at the same address.
// What is not in use holds a pattern: whoever writes it is late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "program.h"

namespace accord::model {

// Of one rank. Thread-safe.
class BufferPool {
 public:
  // `random` gives numbers below its argument, `complain` gets what is wrong. `churn_percent`: of
  // buffers that find an allocation which nobody uses and have it made anew.
  BufferPool(std::function<std::uint64_t(std::uint64_t)> random,
             std::function<void(const std::string&)> complain, unsigned churn_percent)
      : random_(std::move(random)), complain_(std::move(complain)), churn_percent_(churn_percent) {}
  ~BufferPool() { clear(); }
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Memory for one buffer of allocation `end.pool`, or null where that is in use and has no room.
  void* take(const End& end, std::size_t size_bytes);
  void give_back(const End& end, void* memory);
  // Frees what there is, once nobody uses it.
  void clear();

 private:
  using Key = std::pair<int, Place>;
  struct Memory {
    std::byte* start = nullptr;
    std::size_t size_bytes = 0;
    std::map<std::size_t, std::size_t> used;  // offset, length
  };

  std::size_t place_for(const Memory& memory, std::size_t size_bytes) const;
  void make(const Key& key, Memory& memory, std::size_t size_bytes);
  void free(Memory& memory);
  void check_idle(const Memory& memory, std::size_t first, std::size_t length);

  const std::function<std::uint64_t(std::uint64_t)> random_;
  const std::function<void(const std::string&)> complain_;
  const unsigned churn_percent_;
  std::mutex mutex_;
  std::map<Key, Memory> memories_;
};

}  // namespace accord::model
