// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// In place of src/node/shared_mapping.cpp where a thread sanitizer is at work, which knows memory
// by its address: all ranks of the modelled job have one mapping of a file.
#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <utility>

#include "node/shared_mapping.h"

namespace accord::node {
namespace {

struct Mapping {
  void* memory = nullptr;
  std::size_t size_bytes = 0;
  int users = 0;
};

struct Mappings {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, Mapping> by_file;
};

// Never destroyed: threads of a host runtime may outlive static objects.
Mappings& mappings() {
  static Mappings& instance = *new Mappings;
  return instance;
}

}  // namespace

void* map_shared(int descriptor, std::size_t size_bytes) noexcept {
  struct stat file {};
  if (::fstat(descriptor, &file) != 0) return nullptr;
  const std::lock_guard lock(mappings().mutex);
  Mapping& mapping = mappings().by_file[{file.st_dev, file.st_ino}];
  if (mapping.users == 0) {
    void* const memory =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
      mappings().by_file.erase({file.st_dev, file.st_ino});
      return nullptr;
    }
    mapping = {memory, size_bytes, 0};
  }
  ++mapping.users;
  return mapping.memory;
}

void unmap_shared(void* memory, std::size_t) noexcept {
  const std::lock_guard lock(mappings().mutex);
  for (auto& [file, mapping] : mappings().by_file) {
    if (mapping.memory != memory) continue;
    if (--mapping.users == 0) {
      ::munmap(mapping.memory, mapping.size_bytes);
      mappings().by_file.erase(file);
    }
    return;
  }
}

}  // namespace accord::node
