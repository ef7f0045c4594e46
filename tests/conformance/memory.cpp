// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "memory.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <type_traits>

namespace accord::conformance {
namespace {

constexpr std::size_t kBoundaryBytes = 256;

template <class F>
void find(const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

const char* memory_name(accord_memory kind) {
  static constexpr const char* kNames[kMemoryKinds] = {"host", "pinned", "managed", "device"};
  return kNames[kind];
}

Memory::Memory() {
  find("accord_malloc", malloc_);
  find("accord_free", free_);
  find("accord_memcpy", memcpy_);
  find("accord_set_device", set_device_);
  find("accord_device_count", device_count_);
  find("accord_runtime_name", runtime_name_);
  find("accord_memory_kind", memory_kind_);
  if (free_ == nullptr || memcpy_ == nullptr || set_device_ == nullptr || device_count_ == nullptr)
    malloc_ = nullptr;
}

Memory::~Memory() {
  release_all();
  for (int kind = 0; kind < kMemoryKinds; ++kind)
    if (arenas_[kind].base != nullptr)
      release(static_cast<accord_memory>(kind), arenas_[kind].base);
}

const char* Memory::runtime_name() const {
  return has_accord() && runtime_name_ != nullptr ? runtime_name_() : "none";
}

int Memory::device_count() const { return has_accord() ? device_count_() : 0; }

void Memory::use_device(int device) {
  if (has_accord() && set_device_(device) != ACCORD_OK)
    throw std::runtime_error("accord_set_device");
  if (std::string_view(runtime_name()) == "cuda") use_driver(device);
}

void Memory::use_driver(int device) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr || memory_kind_ == nullptr) return;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*make_stream)(void**, unsigned) = nullptr;
  Driver found;
  const auto take = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("libcuda has no ") + name);
  };
  take("cuDevicePrimaryCtxRetain", retain);
  take("cuCtxPushCurrent_v2", set_current);
  take("cuStreamCreate", make_stream);
  take("cuMemcpyHtoD_v2", found.write);
  take("cuMemcpyAsync", found.read);
  take("cuStreamSynchronize", found.synchronize);
  constexpr unsigned kNonBlocking = 1;
  void* context = nullptr;
  if (retain(&context, device) != 0 || set_current(context) != 0 ||
      make_stream(&found.stream, kNonBlocking) != 0)
    throw std::runtime_error("no CUDA context");
  driver_ = found;
}

bool Memory::driver_copies(const void* pointer) const {
  accord_memory kind = ACCORD_MEMORY_HOST;
  return driver_.stream != nullptr && memory_kind_(pointer, &kind) == ACCORD_OK &&
         (kind == ACCORD_MEMORY_DEVICE || kind == ACCORD_MEMORY_MANAGED);
}

void Memory::write(void* dst, const void* src, std::size_t size_bytes) const {
  if (size_bytes == 0 || !driver_copies(dst)) return copy(dst, src, size_bytes);
  if (driver_.write(reinterpret_cast<std::uintptr_t>(dst), src, size_bytes) != 0)
    throw std::runtime_error("cuMemcpyHtoD");
}

void Memory::read(void* dst, const void* src, std::size_t size_bytes) const {
  if (size_bytes == 0 || !driver_copies(src)) return copy(dst, src, size_bytes);
  // The program's own copies first, of buffers that MPI was not given; then MPI's, which no default
  // stream waits for.
  if (driver_.synchronize(nullptr) != 0 ||
      driver_.read(reinterpret_cast<std::uintptr_t>(dst), reinterpret_cast<std::uintptr_t>(src),
                   size_bytes, driver_.stream) != 0 ||
      driver_.synchronize(driver_.stream) != 0)
    throw std::runtime_error("cuMemcpyAsync");
}

std::string Memory::prepare(const std::vector<accord_memory>& kinds, std::size_t arena_bytes) {
  for (accord_memory kind : kinds) {
    try {
      arenas_[kind].base = allocate(kind, arena_bytes);
      arenas_[kind].size_bytes = arena_bytes;
    } catch (const std::exception& error) {
      return std::string("cannot allocate ") + memory_name(kind) + " memory: " + error.what();
    }
  }
  return {};
}

std::byte* Memory::allocate(accord_memory kind, std::size_t size_bytes) const {
  if (kind == ACCORD_MEMORY_HOST) {
    void* pointer = std::aligned_alloc(
        kBoundaryBytes, (size_bytes + kBoundaryBytes) / kBoundaryBytes * kBoundaryBytes);
    if (pointer == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(pointer);
  }
  if (!has_accord()) throw std::runtime_error("Accord is not loaded");
  void* pointer = nullptr;
  const int code = malloc_(&pointer, size_bytes, kind);
  if (code != ACCORD_OK) throw std::runtime_error("accord_malloc returned " + std::to_string(code));
  return static_cast<std::byte*>(pointer);
}

void Memory::release(accord_memory kind, std::byte* pointer) const {
  if (kind == ACCORD_MEMORY_HOST)
    std::free(pointer);
  else
    free_(pointer);
}

std::byte* Memory::take(const Request& request) {
  const std::size_t need = request.size_bytes + request.skew_bytes + kBoundaryBytes;
  Arena& arena = arenas_[request.kind];
  if (!request.own_allocation && arena.used_bytes + need <= arena.size_bytes) {
    std::byte* place = arena.base + arena.used_bytes + request.skew_bytes;
    arena.used_bytes += (need + kBoundaryBytes - 1) / kBoundaryBytes * kBoundaryBytes;
    return place;
  }
  std::byte* pointer = allocate(request.kind, need);
  own_.emplace_back(request.kind, pointer);
  return pointer + request.skew_bytes;
}

void Memory::release_all() {
  for (auto [kind, pointer] : own_) release(kind, pointer);
  own_.clear();
  for (Arena& arena : arenas_) arena.used_bytes = 0;
}

void Memory::copy(void* dst, const void* src, std::size_t size_bytes) const {
  if (size_bytes == 0) return;
  if (!has_accord()) {
    std::memcpy(dst, src, size_bytes);
    return;
  }
  const int code = memcpy_(dst, src, size_bytes);
  if (code != ACCORD_OK) throw std::runtime_error("accord_memcpy returned " + std::to_string(code));
}

}  // namespace accord::conformance
