// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/handle_cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace accord::node {

Status HandleCache::open(device::DeviceRuntime& runtime, int device, const MemoryHandle& handle,
                         const Descriptor& descriptor, Opening opening, std::byte*& start) {
  const Key key{&runtime, device, handle.process, handle.base, handle.buffer_id};
  const std::lock_guard lock(mutex_);
  if (const auto known = mappings_.find(key); known != mappings_.end()) {
    ++counters_.hits;
    ++known->second.users;
    start = known->second.start;
    return {};
  }
  if (opening == Opening::no)
    return {StatusCode::unsupported, "node: memory that is not open is not to be opened now"};
  ++counters_.misses;
  void* opened = nullptr;
  Status status;
  if (mappings_.size() >= limits_.handles ||
      handle.size_bytes > limits_.mapped_bytes - mapped_bytes_) {
    status = {StatusCode::unsupported, "node: enough memory of other processes is open"};
  } else {
    const std::span<const std::byte> told = handle.told();
    const device::ExportedMemory exported{.bytes = {told.begin(), told.end()},
                                          .file_descriptor = descriptor.number()};
    status = runtime.open_memory(device, exported, opened);
  }
  ++(status.ok() ? counters_.opens : counters_.refusals);
  ACCORD_TRY(status);
  mapped_bytes_ += handle.size_bytes;
  start = static_cast<std::byte*>(opened);
  mappings_.emplace(key, Mapping{start, handle.size_bytes, 1});
  return {};
}

Status HandleCache::close(std::byte* start) {
  const std::lock_guard lock(mutex_);
  const auto mapping = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const auto& known) { return known.second.start == start; });
  if (mapping == mappings_.end())
    return {StatusCode::invalid_argument, fmt::format("node: {} is not open", fmt::ptr(start))};
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
