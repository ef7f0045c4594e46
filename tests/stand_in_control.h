// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a test in the process of a stand-in for a vendor's library speaks with it past its interface:
// what is to fail, and what it holds. A folder of tests/ that has one names it in its
// driver_control.h.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace accord::test {

// What a process could leak: what the library holds, descriptors, and mappings of memory.
struct Held {
  long objects = 0;
  long allocations = 0;
  long descriptors = 0;
  long mappings = 0;
  bool operator==(const Held&) const = default;
};

class StandInControl {
 public:
  struct Names {
    std::string library;  // which has been loaded by now
    std::string prefix;   // of the functions that a stand-in has for tests
    std::string memory;   // of its mappings
  };
  explicit StandInControl(Names names)
      : names_(std::move(names)),
        library_(::dlopen(names_.library.c_str(), RTLD_NOW | RTLD_NOLOAD)) {}

  bool found() const { return library_ != nullptr && own<void()>("fail") != nullptr; }

  template <class Function>
  Function* find(const std::string& name) const {
    return reinterpret_cast<Function*>(::dlsym(library_, name.c_str()));
  }

  // As the variable of the stand-in that ends in _FAIL says it.
  void fail(const std::string& what) const { own<void(const char*)>("fail")(what.c_str()); }

  Held held() const {
    Held all;
    own<void(long*, long*)>("count")(&all.objects, &all.allocations);
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      ++all.descriptors;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(names_.memory) != std::string::npos) ++all.mappings;
    }
    return all;
  }

 private:
  template <class Function>
  Function* own(const std::string& name) const {
    return find<Function>(names_.prefix + name);
  }

  Names names_;
  void* library_;
};

}  // namespace accord::test
