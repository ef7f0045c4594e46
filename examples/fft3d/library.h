// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A shared library that is loaded at run time, so that the program builds and starts without it.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace fft3d {

class Library {
 public:
  // The first of these names that the dynamic linker finds. It stays loaded.
  explicit Library(std::initializer_list<const char*> names) : name_(*names.begin()) {
    for (const char* name : names)
      if (handle_ == nullptr) handle_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  }

  explicit operator bool() const { return handle_ != nullptr; }

  template <class Function>
  void find(Function*& function, const char* symbol) const {
    if (handle_ == nullptr) throw std::runtime_error("cannot load " + name_);
    function = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    if (function == nullptr) throw std::runtime_error(name_ + " has no " + symbol);
  }

 private:
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace fft3d
