// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/handle_cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace accord::node {

namespace {

Status open_memory(device::DeviceRuntime& runtime, int device, const MemoryHandle& handle,
                   const Descriptor& descriptor, device::PointerInfo& memory) {
  const std::span<const std::byte> told = handle.told();
  const device::ExportedMemory exported{.bytes = {told.begin(), told.end()},
                                        .file_descriptor = descriptor.number()};
  void* opened = nullptr;
  ACCORD_TRY(runtime.open_memory(device, exported, opened));
  if (!runtime.classify(opened, memory)) {
    (void)runtime.close_memory(opened);
    return {StatusCode::device_error, "node: what was opened is not known to its runtime"};
  }
  memory.base = opened;
  return {};
}

}  // namespace

Status HandleCache::open(device::DeviceRuntime& runtime, int device, const MemoryHandle& handle,
                         const Descriptor& descriptor, Opening opening,
                         device::PointerInfo& memory) {
  const Key key{&runtime, device, handle.process, handle.base, handle.buffer_id};
  const std::lock_guard lock(mutex_);
  if (const auto known = mappings_.find(key); known != mappings_.end()) {
    if (known->second.lasts(runtime.context_life(device))) {
      ++counters_.hits;
      ++known->second.users;
      memory = known->second.memory;
      return {};
    }
    forget(known);
  }
  if (opening == Opening::no)
    return {StatusCode::unsupported, "node: memory that is not open is not to be opened now"};
  ++counters_.misses;
  Status status;
  if (mappings_.size() >= limits_.handles ||
      handle.size_bytes > limits_.mapped_bytes - mapped_bytes_) {
    status = {StatusCode::unsupported, "node: enough memory of other processes is open"};
  } else {
    status = open_memory(runtime, device, handle, descriptor, memory);
  }
  ++(status.ok() ? counters_.opens : counters_.refusals);
  ACCORD_TRY(status);
  mapped_bytes_ += handle.size_bytes;
  mappings_.emplace(key, Mapping{memory, runtime.context_life(device), handle.size_bytes, 1});
  return {};
}

void HandleCache::forget(Mappings::iterator mapping) {
  mapped_bytes_ -= mapping->second.size_bytes;
  mappings_.erase(mapping);
  ++counters_.closes;
}

// Where the device was reset, other memory may lie there by now.
Status HandleCache::close(const device::PointerInfo& memory) {
  const std::lock_guard lock(mutex_);
  const auto mapping = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const auto& one) { return one.second.memory == memory; });
  if (mapping == mappings_.end())
    return {StatusCode::invalid_argument, fmt::format("node: {} is not open", memory.base)};
  if (--mapping->second.users > 0) return {};
  device::DeviceRuntime& runtime = *mapping->first.runtime;
  const bool lasts = mapping->second.lasts(runtime.context_life(mapping->first.device));
  forget(mapping);
  return lasts ? runtime.close_memory(memory.base) : Status();
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
