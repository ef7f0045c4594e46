// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/registration.h"

#include <functional>
#include <string_view>

#include "node/handle_cache.h"

namespace accord::node {

std::uint64_t MemoryHandle::vendor_of(const device::DeviceRuntime& runtime) {
  return std::hash<std::string_view>{}(runtime.name());
}

Status MemoryHandle::put(std::span<const std::byte> told) {
  if (told.size() > kBytesMax)
    return {StatusCode::unsupported, "node: a memory handle is too long"};
  length_bytes = static_cast<std::uint32_t>(told.size());
  std::ranges::copy(told, bytes);
  return {};
}

Status Registration::make(device::DeviceRuntime& runtime, const device::PointerInfo& memory,
                          std::uint64_t process) {
  *this = {};
  // What lies at its address by now may be another's. Without ids nobody could tell.
  if (memory.buffer_id == 0 || !device::exists(memory))
    return {StatusCode::unsupported, "node: the memory is not there any more"};
  device::ExportedMemory exported;
  ACCORD_TRY(runtime.export_memory(memory.base, exported));
  Descriptor descriptor(exported.file_descriptor);
  ACCORD_TRY(handle_.put(exported.bytes));
  handle_.process = process;
  handle_.vendor = MemoryHandle::vendor_of(runtime);
  handle_.base = reinterpret_cast<std::uint64_t>(memory.base);
  handle_.buffer_id = memory.buffer_id;
  handle_.size_bytes = memory.size_bytes;
  handle_.with_descriptor = descriptor.is_open() ? 1 : 0;
  descriptor_ = std::move(descriptor);
  runtime_ = &runtime;
  return {};
}

bool Registration::exists() const noexcept {
  device::PointerInfo now;
  return is_made() && runtime_->classify(reinterpret_cast<const void*>(handle_.base), now) &&
         is_of(now);
}

namespace {

Status of_another_runtime() {
  return {StatusCode::unsupported, "node: a peer's memory is of another runtime"};
}

}  // namespace

Status PeerMemory::open(device::DeviceRuntime& runtime, int device, const MemoryHandle& handle,
                        const Descriptor& descriptor, Opening opening) {
  if (handle.vendor != MemoryHandle::vendor_of(runtime)) return of_another_runtime();
  device::PointerInfo opened;
  ACCORD_TRY(handle_cache().open(runtime, device, handle, descriptor, opening, opened));
  start_ = {static_cast<std::byte*>(opened.base), Close{true, opened}};
  return {};
}

Status PeerMemory::refer(const device::DeviceRuntime& runtime, const MemoryHandle& handle) {
  if (handle.vendor != MemoryHandle::vendor_of(runtime)) return of_another_runtime();
  start_ = {reinterpret_cast<std::byte*>(handle.base), Close{false, {}}};
  return {};
}

void PeerMemory::Close::operator()(std::byte* /*start*/) const noexcept {
  if (is_mapped) (void)handle_cache().close(memory);
}

}  // namespace accord::node
