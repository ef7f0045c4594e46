// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// An MPI that behaves as badly as the standard allows, between Accord's shim and the real one: its
// PMPI_X are what the shim finds, and call those of the next library. Here: settings, chance,
// pauses, faults and the counts of what was done. Used by the other sources of this folder.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace accord::adversary {

// The real MPI's function: of the next library that has it.
template <class Function>
Function real_function(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  return reinterpret_cast<Function>(found);
}
#define REAL(name)                                                                    \
  (*[] {                                                                              \
    static const auto found = real_function<decltype(&::PMPI_##name)>("PMPI_" #name); \
    return found;                                                                     \
  }())

enum class Often { never, half, always };

struct Settings {
  std::uint64_t seed = 1;  // ACCORD_TEST_ADVERSARY_SEED
  unsigned looks_max =
      24;  // ACCORD_TEST_ADVERSARY_LOOKS: refused in a row, eight times as many of few
  unsigned pause_percent = 3;             // ACCORD_TEST_ADVERSARY_PAUSES: of calls; 0: none
  Often synchronous_sends = Often::half;  // ACCORD_TEST_ADVERSARY_SENDS, else by the seed
  bool synchronous_collectives = false;   // ACCORD_TEST_ADVERSARY_COLLECTIVES, else by the seed
};
const Settings& settings();

// Of this thread: by the seed, the rank and the number of the thread.
std::uint64_t draw();
inline std::uint64_t below(std::uint64_t bound) { return draw() % bound; }
inline bool percent(unsigned chance) { return below(100) < chance; }

struct Counts {
  std::atomic<std::uint64_t> looks{0};      // told "not yet" without looking
  std::atomic<std::uint64_t> reordered{0};  // a request before one that stands before it
  std::atomic<std::uint64_t> withheld{0};   // requests that Testsome did not tell of
  std::atomic<std::uint64_t> probes{0};     // told "no message" without looking
  std::atomic<std::uint64_t> sends{0};      // made synchronous
  std::atomic<std::uint64_t> barriers{0};   // before collectives that need none
  std::atomic<std::uint64_t> pauses{0};     // yields and sleeps
  std::atomic<std::uint64_t> phases{0};     // in which the rank was slow
  std::atomic<std::uint64_t> faults{0};     // reported
};
Counts& counts();
void report();

// Now and then this rank yields, sleeps, or begins to be slow for a while.
void linger();

// The failure that was asked for, once: `name` without MPI_. A call that cannot report it as it
// returns leaves it to the next one.
enum class Asked { anyhow, by_name };
bool fault_is_due(std::string_view name, Asked asked = Asked::anyhow);
// Reports it on `comm` as an MPI does.
int fail(MPI_Comm comm, const char* name);

// A request is under way on `comm`; what is not is never lied about. Where `fails`, its completion
// reports a failure.
void begin(MPI_Request request, MPI_Comm comm, bool fails);
// A persistent request: begins when it is started.
void remember(MPI_Request request, MPI_Comm comm);
// A receive on `comm` (or some communicator) may take what a probe has found.
void take_message(MPI_Comm comm);
void take_message();

// Where the call failed, nothing begins.
inline void begin_if(int code, const MPI_Request* request, MPI_Comm comm, const char* name) {
  if (code == MPI_SUCCESS) begin(*request, comm, fault_is_due(name));
}
inline int end_call(int code, MPI_Comm comm, const char* name) {
  linger();
  return code == MPI_SUCCESS && fault_is_due(name) ? fail(comm, name) : code;
}

template <class Handle>
std::uint64_t to_bits(Handle handle) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &handle, sizeof handle);
  return bits;
}

}  // namespace accord::adversary

// For programs that ask for a failure in mid-run: of the `nth` call from now on, of any function
// where `function` is null. 0: none any more. And how many were reported.
extern "C" __attribute__((visibility("default"))) void accord_adversary_fail(std::uint64_t nth,
                                                                             const char* function);
extern "C" __attribute__((visibility("default"))) std::uint64_t accord_adversary_faults();
