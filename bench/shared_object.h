// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Finding functions of libraries that this program is not linked to. A library stays loaded to the
// end.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace accord::bench {

// The first of `names` that can be loaded, in local scope so that it shadows nothing; null and the
// loader's words in `error` otherwise. Empty names are left out.
inline void* open_first(std::initializer_list<std::string> names, std::string& error) {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    error = dlerror();
  }
  return nullptr;
}

// Sets `function` to `name` of `handle`; null when it is not there.
template <class Function>
bool find_function(void* handle, const std::string& name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name.c_str()));
  return function != nullptr;
}

}  // namespace accord::bench
