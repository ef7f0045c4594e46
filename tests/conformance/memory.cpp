// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "memory.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

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

void Memory::use_device(int device) const {
  if (has_accord() && set_device_(device) != ACCORD_OK)
    throw std::runtime_error("accord_set_device");
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
