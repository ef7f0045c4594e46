// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Fortran bindings ask for the attributes of a window by no C function of MPI's: Open MPI's look
// into the window itself, MPICH's call a function of their library's. Libaccord has these names,
// too. The MPI's own goes first; then the shim puts right what it has said of a window of Accord's.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "preload/shim_abi.h"

namespace accord::preload {
namespace {

constexpr int kErrorNoMpi = 16;  // what most MPIs call MPI_ERR_OTHER

std::atomic<WindowAttribute> right_attribute{nullptr};

// By a Fortran function; logicals are false where all their bits are 0.
using GetAttribute = void(const int* window, const int* keyval, std::intptr_t* value, int* flag,
                          int* ierror);
void get_attribute(const char* name, const int* window, const int* keyval, std::intptr_t* value,
                   int* flag, int* ierror) {
  auto* const next = reinterpret_cast<GetAttribute*>(::dlsym(RTLD_NEXT, name));
  if (next == nullptr) {
    *ierror = kErrorNoMpi;
    return;
  }
  next(window, keyval, value, flag, ierror);
  const WindowAttribute right = right_attribute.load(std::memory_order_acquire);
  if (right != nullptr && *ierror == 0 && *flag != 0) right(*window, *keyval, value);
}

}  // namespace

void put_window_attributes_right(WindowAttribute right) noexcept {
  right_attribute.store(right, std::memory_order_release);
}

}  // namespace accord::preload

using accord::preload::get_attribute;

extern "C" {
[[gnu::visibility("default")]] void mpi_win_get_attr_(const int* window, const int* keyval,
                                                      std::intptr_t* value, int* flag,
                                                      int* ierror) {
  get_attribute("mpi_win_get_attr_", window, keyval, value, flag, ierror);
}

[[gnu::visibility("default")]] void pmpi_win_get_attr_(const int* window, const int* keyval,
                                                       std::intptr_t* value, int* flag,
                                                       int* ierror) {
  get_attribute("pmpi_win_get_attr_", window, keyval, value, flag, ierror);
}

// MPICH's, of its three interfaces; C has keyvals of its own.
[[gnu::visibility("default")]] int MPII_Win_get_attr(int window, int keyval, void* value, int* flag,
                                                     int type) {
  using Function = int(int, int, void*, int*, int);
  auto* const next = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "MPII_Win_get_attr"));
  if (next == nullptr) return accord::preload::kErrorNoMpi;
  const int code = next(window, keyval, value, flag, type);
  const auto right = accord::preload::right_attribute.load(std::memory_order_acquire);
  if (right != nullptr && code == 0 && *flag != 0) right(window, keyval, value);
  return code;
}
}
