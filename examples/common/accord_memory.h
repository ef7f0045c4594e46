// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The functions of accord.h, if libaccord is in this process: the applications are not linked with
// it, since they run over any MPI.
#pragma once

#include <accord/accord.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

struct AccordMemory {
  decltype(&accord_malloc) allocate = find<decltype(&accord_malloc)>("accord_malloc");
  decltype(&accord_free) release = find<decltype(&accord_free)>("accord_free");
  decltype(&accord_memcpy) copy = find<decltype(&accord_memcpy)>("accord_memcpy");
  decltype(&accord_set_device) set_device = find<decltype(&accord_set_device)>("accord_set_device");
  decltype(&accord_device_count) device_count =
      find<decltype(&accord_device_count)>("accord_device_count");
  decltype(&accord_runtime_name) runtime_name =
      find<decltype(&accord_runtime_name)>("accord_runtime_name");
  decltype(&accord_last_error) last_error = find<decltype(&accord_last_error)>("accord_last_error");

  static bool is_there() { return dlsym(RTLD_DEFAULT, "accord_malloc") != nullptr; }
  void check(int result, const char* call) const {
    if (result != ACCORD_OK) throw std::runtime_error(std::string(call) + ": " + last_error());
  }
  // Ranks take the devices in turns.
  void use_device_of(int rank_in_node) const {
    if (device_count() == 0) throw std::runtime_error("Accord has no device");
    check(set_device(rank_in_node % device_count()), "accord_set_device");
  }

 private:
  template <class Function>
  static Function find(const char* symbol) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, symbol));
  }
};
