// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "stream.h"

#include <dlfcn.h>

#include <utility>

namespace accord::fake {
namespace {

struct Functions {
  int (*enqueue)(void* stream, void (*work)(void*), void (*drop)(void*), void* argument) = nullptr;
  void* (*bytes_of)(const void* pointer) = nullptr;

  Functions() {
    find("libamdhip64.so.6", "accord_test_hip_enqueue", "accord_test_hip_bytes_of");
    find("libSynapse.so", "accord_test_synapse_enqueue", "accord_test_synapse_bytes_of");
  }
  void find(const char* name, const char* enqueue_name, const char* bytes_of_name) {
    void* library = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return;
    enqueue = reinterpret_cast<decltype(enqueue)>(::dlsym(library, enqueue_name));
    bytes_of = reinterpret_cast<decltype(bytes_of)>(::dlsym(library, bytes_of_name));
  }
};

const Functions& functions() {
  static const Functions found;
  return found;
}

}  // namespace

bool has_streams() { return functions().enqueue != nullptr && functions().bytes_of != nullptr; }

bool enqueue(void* stream, std::function<void()> work) {
  using Work = std::function<void()>;
  const auto call = [](void* argument) { (*static_cast<Work*>(argument))(); };
  const auto drop = [](void* argument) { delete static_cast<Work*>(argument); };
  return functions().enqueue(stream, call, drop, new Work(std::move(work))) == 0;
}

void* bytes_of(const void* pointer) { return functions().bytes_of(pointer); }

}  // namespace accord::fake
