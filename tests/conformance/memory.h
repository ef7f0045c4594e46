// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of every kind for the buffers of a case, through Accord's public C API found in the
// running process. Without Accord everything is plain host memory. Where the devices are CUDA's,
// contents are written and read as programs do it, by the driver's own calls and without waiting
// for more than they do: what is written may land late, and is read on a stream that waits for no
// other. Nothing here or above touches
// memory that is not plain host memory except through copy(). Knows no MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "accord/accord.h"

namespace accord::conformance {

inline constexpr int kMemoryKinds = 4;
const char* memory_name(accord_memory kind);

class Memory {
 public:
  // Finds the accord_* functions in this process and in libaccord.so if it can be opened.
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool has_accord() const { return malloc_ != nullptr; }
  const char* runtime_name() const;
  int device_count() const;

  // Makes `device` the place of this process's later allocations.
  void use_device(int device);

  // Takes the arenas that most buffers live in. Returns an empty string or what went wrong.
  std::string prepare(const std::vector<accord_memory>& kinds, std::size_t arena_bytes);

  // `size_bytes` of the given kind until release_all(), which every case ends with.
  // `own_allocation` asks for an allocation of its own; otherwise it is a piece of an arena at an
  // address that is `align_bytes` plus `skew_bytes`.
  struct Request {
    accord_memory kind = ACCORD_MEMORY_HOST;
    std::size_t size_bytes = 0;
    std::size_t skew_bytes = 0;  // offset from a 256-byte boundary
    bool own_allocation = false;
  };
  std::byte* take(const Request& request);
  void release_all();

  void write(void* dst, const void* src, std::size_t size_bytes) const;
  void read(void* dst, const void* src, std::size_t size_bytes) const;

 private:
  // The program's own part of the CUDA driver, once a device is in use; else empty.
  struct Driver {
    int (*write)(unsigned long long dst, const void* src, std::size_t size_bytes) = nullptr;
    int (*read)(unsigned long long dst, unsigned long long src, std::size_t size_bytes,
                void* stream) = nullptr;
    int (*synchronize)(void* stream) = nullptr;
    void* stream = nullptr;
  };
  void use_driver(int device);
  bool driver_copies(const void* pointer) const;
  void copy(void* dst, const void* src, std::size_t size_bytes) const;

  struct Arena {
    std::byte* base = nullptr;
    std::size_t size_bytes = 0;
    std::size_t used_bytes = 0;
  };
  std::byte* allocate(accord_memory kind, std::size_t size_bytes) const;
  void release(accord_memory kind, std::byte* pointer) const;

  decltype(&accord_malloc) malloc_ = nullptr;
  decltype(&accord_free) free_ = nullptr;
  decltype(&accord_memcpy) memcpy_ = nullptr;
  decltype(&accord_set_device) set_device_ = nullptr;
  decltype(&accord_device_count) device_count_ = nullptr;
  decltype(&accord_runtime_name) runtime_name_ = nullptr;
  decltype(&accord_memory_kind) memory_kind_ = nullptr;
  Driver driver_;
  Arena arenas_[kMemoryKinds];
  std::vector<std::pair<accord_memory, std::byte*>> own_;
};

}  // namespace accord::conformance
