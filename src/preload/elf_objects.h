// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The shared objects of this process and the symbols each defines by itself, read from their own
// tables. Why not dlsym: it also finds what an object's dependencies define, and must not be called
// while the dynamic linker relocates, which is when visibility.cpp asks. Knows no MPI. Used by
// host_mpi and visibility.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace accord::preload {

// One loaded object. Valid while the object stays loaded; owns nothing.
struct ElfObject {
  const char* path = "";  // "" for the program itself
  ElfW(Addr) base = 0;    // what to add to an address in the file
  const ElfW(Dyn) * dynamic = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const ElfW(Word) * sysv_hash = nullptr;
  const char* soname = "";

  // The symbol of that name that this object itself defines and others can see; null if none.
  const ElfW(Sym) * find(const char* name) const noexcept;
  bool defines(const char* name) const noexcept { return find(name) != nullptr; }

  // The name of its n-th direct dependency, n = 0, 1, ...; null behind the last.
  const char* needed(std::size_t n) const noexcept;
};

// Calls visitor(const ElfObject&) -> bool for each object in load order until it returns true. Also
// sees objects opened in a local scope. Makes no allocation; safe while the dynamic linker holds
// its locks.
template <class Visitor>
bool visit_objects(Visitor&& visitor);

// All of them.
std::vector<ElfObject> loaded_objects();

// The object that `address` lies in; false if none.
bool find_object(const void* address, ElfObject& found) noexcept;

// Implementation of visit_objects.
bool read_object(const dl_phdr_info& info, ElfObject& object) noexcept;

template <class Visitor>
bool visit_objects(Visitor&& visitor) {
  auto callback = [](dl_phdr_info* info, std::size_t, void* data) -> int {
    ElfObject object;
    return read_object(*info, object) && (*static_cast<Visitor*>(data))(object) ? 1 : 0;
  };
  return dl_iterate_phdr(callback, &visitor) != 0;
}

}  // namespace accord::preload
