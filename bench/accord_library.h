// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The public C API of Accord, found at run time: in this process when Accord is preloaded, else in
// a library opened in local scope, which gives memory of the accelerator and intercepts nothing.
#pragma once

#include <memory>
#include <string>

#include "accord/accord.h"
#include "bench/options.h"

namespace accord::bench {

class AccordLibrary {
 public:
  // Null with the reason in `why_not` when there is none. `path` may be empty: only a preloaded
  // one.
  static std::unique_ptr<AccordLibrary> find(const std::string& path, std::string& why_not);

  // To be called before MPI_Init by who will use device memory: without an accelerator a preloaded
  // Accord then takes the host runtime's for it in all calls, as it does in programs that are
  // linked with it.
  static void want_device_memory();

  // Whether Accord stands between this program and MPI.
  bool intercepts() const { return intercepts_; }

  // Selects the device of rank `local_rank` of this node and returns it.
  int use_device_of(int local_rank);

  // Throw std::runtime_error with Accord's words.
  void* allocate(std::size_t size_bytes, Memory memory);
  void free(void* pointer);
  void copy(void* dst, const void* src, std::size_t size_bytes);

  int device_count() const { return device_count_(); }
  std::string runtime_name() const { return runtime_name_(); }
  std::string info_json() const;
  // The way the last intercepted MPI call of this thread took; "-" where Accord does not say.
  std::string last_path() const;

 private:
  AccordLibrary() = default;
  [[noreturn]] void fail(const char* what) const;

  bool intercepts_ = false;
  decltype(&accord_malloc) malloc_ = nullptr;
  decltype(&accord_free) free_ = nullptr;
  decltype(&accord_memcpy) memcpy_ = nullptr;
  decltype(&accord_set_device) set_device_ = nullptr;
  decltype(&accord_device_count) device_count_ = nullptr;
  decltype(&accord_runtime_name) runtime_name_ = nullptr;
  decltype(&accord_last_error) last_error_ = nullptr;
  decltype(&accord_info_json) info_json_ = nullptr;
  const char* (*last_path_)(void) = nullptr;  // optional
};

}  // namespace accord::bench
