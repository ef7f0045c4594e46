// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "stream.h"

#include <dlfcn.h>

#include <utility>

namespace accord::fake {
namespace {

struct Functions {
  int (*enqueue)(void* stream, void (*work)(void*), void* argument) = nullptr;
  void* (*bytes_of)(const void* pointer) = nullptr;

  Functions() {
    void* library = ::dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return;
    enqueue = reinterpret_cast<decltype(enqueue)>(::dlsym(library, "accord_test_hip_enqueue"));
    bytes_of = reinterpret_cast<decltype(bytes_of)>(::dlsym(library, "accord_test_hip_bytes_of"));
  }
};

const Functions& functions() {
  static const Functions found;
  return found;
}

}  // namespace

bool has_streams() { return functions().enqueue != nullptr && functions().bytes_of != nullptr; }

// The work is kept for good, since what was captured may be launched at any time.
bool enqueue(void* stream, std::function<void()> work) {
  auto* const kept = new std::function<void()>(std::move(work));
  const auto call = [](void* argument) { (*static_cast<std::function<void()>*>(argument))(); };
  return functions().enqueue(stream, call, kept) == 0;
}

void* bytes_of(const void* pointer) { return functions().bytes_of(pointer); }

}  // namespace accord::fake
