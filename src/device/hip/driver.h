// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// HIP, found at run time, in the form of CUDA's driver: the table of functions over which the
// files of cuda/ work. Most of HIP's functions are CUDA's under another name (hip/driver.def);
// what has other parameters, and contexts, which HIP has not, are made up here. A context stands
// for a device. Called by hip/runtime.cpp.
#pragma once

#include "base/status.h"
#include "device/cuda/driver.h"

namespace accord::device::hip {

// What hipPointerGetAttributes tells: our own declaration, held against hip_runtime_api.h by
// tests/hip/hip_abi_test.cpp.
struct PointerFacts {
  unsigned type;  // numbered anew in HIP 6
  int device;
  void* on_device;
  void* on_host;
  int is_managed;
  unsigned flags;
};

enum class CopyKind : unsigned { by_address = 4 };  // hipMemcpyDefault

// HIP, where this process has loaded it or ACCORD_RUNTIME=hip asks for it; else null. HIP
// initialises itself at whatever it is asked first, so it is neither loaded nor asked for those who
// do not use it.
const cuda::Driver* driver() noexcept;

// Loads it where this machine has a GPU for it, too.
const cuda::Driver* open_driver() noexcept;

// Whether this process may come to use HIP.
bool may_be_used() noexcept;

// Whether there is a GPU, and a library for it.
bool device_exists() noexcept;

// Whether the environment does not hide it.
bool device_is_visible() noexcept;

// Why there is a GPU but no device of it; ok where nothing is amiss.
Status problem();

}  // namespace accord::device::hip
