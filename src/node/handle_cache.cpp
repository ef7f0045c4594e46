// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/handle_cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace accord::node {

Status HandleCache::open(device::DeviceRuntime& runtime, int device, const PeerMemory& memory,
                         void*& start) {
  const Key key{&runtime, device, memory.process, memory.base, memory.buffer_id};
  const std::lock_guard lock(mutex_);
  if (reuse_locked(key, start)) return {};
  ++counters_.misses;
  Mapping mapping{nullptr, memory.size_bytes, 1};
  Status status;
  if (mappings_.size() >= limits_.handles ||
      memory.size_bytes > limits_.mapped_bytes - mapped_bytes_) {
    status = {StatusCode::unsupported, "node: enough memory of other processes is open"};
  } else {
    const device::ExportedMemory exported{.bytes = {memory.handle.begin(), memory.handle.end()},
                                          .file_descriptor = memory.descriptor};
    status = runtime.open_memory(device, exported, mapping.start);
  }
  ++(status.ok() ? counters_.opens : counters_.refusals);
  ACCORD_TRY(status);
  mapped_bytes_ += mapping.size_bytes;
  start = mapping.start;
  mappings_.emplace(key, mapping);
  return {};
}

bool HandleCache::reuse(device::DeviceRuntime& runtime, int device, const PeerMemory& memory,
                        void*& start) {
  const std::lock_guard lock(mutex_);
  return reuse_locked({&runtime, device, memory.process, memory.base, memory.buffer_id}, start);
}

bool HandleCache::reuse_locked(const Key& key, void*& start) {
  const auto known = mappings_.find(key);
  if (known == mappings_.end()) return false;
  ++counters_.hits;
  ++known->second.users;
  start = known->second.start;
  return true;
}

Status HandleCache::close(void* start) {
  const std::lock_guard lock(mutex_);
  const auto mapping = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const auto& known) { return known.second.start == start; });
  if (mapping == mappings_.end())
    return {StatusCode::invalid_argument, fmt::format("node: {} is not open", start)};
  if (--mapping->second.users > 0) return {};
  device::DeviceRuntime& runtime = *mapping->first.runtime;
  mapped_bytes_ -= mapping->second.size_bytes;
  mappings_.erase(mapping);
  ++counters_.closes;
  return runtime.close_memory(start);
}

HandleCache::Counters HandleCache::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::size_t HandleCache::handles() const {
  const std::lock_guard lock(mutex_);
  return mappings_.size();
}

std::size_t HandleCache::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return mapped_bytes_;
}

// Never destroyed: the driver may be gone when static objects are.
HandleCache& handle_cache() {
  static HandleCache& instance = *new HandleCache;
  return instance;
}

}  // namespace accord::node
