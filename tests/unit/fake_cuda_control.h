// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What only the fake driver can do, for tests: hold the time that its kernels see, so that they
// linger and wait for exactly as long as a test says, and count their launches.
#pragma once

#include <dlfcn.h>

namespace accord::test {

struct FakeCuda {
  void (*hold_time)() = nullptr;
  void (*pass_time)(unsigned us) = nullptr;  // while it is held
  void (*release_time)() = nullptr;
  // Kernels that have ceased to wait for rings do not get round to saying so.
  void (*hold_departures)(bool held) = nullptr;
  void (*dismiss)(int blocks) = nullptr;  // of a wide kernel that lingers: they have left it then
  unsigned (*departing)() = nullptr;      // blocks that are held so
  unsigned (*launches)() = nullptr;       // of resident kernels, since the process began
  // A kernel of the program's, in a stream that is no default one.
  void (*begin_kernel)() = nullptr;
  void (*end_kernel)() = nullptr;
  unsigned (*residents)() = nullptr;  // that have not left
  unsigned (*blocks)() = nullptr;     // of the resident kernel that was launched last
  unsigned (*slices)() = nullptr;     // of the reduction of partitions that was launched last
  unsigned (*turns)() = nullptr;  // copies and kernels that would wait for one on a shared device
};

// Null where the driver is a real one, or missing.
inline const FakeCuda* fake_cuda() {
  static FakeCuda found;
  static const bool is_fake = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          library == nullptr ? nullptr : dlsym(library, name));
      return function != nullptr;
    };
    return find(found.hold_time, "fake_cuda_hold_time") &&
           find(found.pass_time, "fake_cuda_pass_time") &&
           find(found.release_time, "fake_cuda_release_time") &&
           find(found.hold_departures, "fake_cuda_hold_departures") &&
           find(found.dismiss, "fake_cuda_dismiss") &&
           find(found.departing, "fake_cuda_departing") &&
           find(found.launches, "fake_cuda_launches") &&
           find(found.residents, "fake_cuda_residents") && find(found.blocks, "fake_cuda_blocks") &&
           find(found.slices, "fake_cuda_slices") && find(found.turns, "fake_cuda_turns") &&
           find(found.begin_kernel, "fake_cuda_begin_kernel") &&
           find(found.end_kernel, "fake_cuda_end_kernel");
  }();
  return is_fake ? &found : nullptr;
}

}  // namespace accord::test
