// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The table behind the exported functions MPI_X and PMPI_X (trampolines.S). Each is one indirect
// jump through its row's `target`, so arguments and return value pass untouched whatever the
// prototype, which depends on the ABI of an MPI not yet known. At first a target points to a stub
// that calls accord_resolve. Used by bind.cpp, which fills the targets, and visibility.cpp. Knows
// no MPI.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

namespace accord::preload {

// One exported function; trampolines.S lays these out.
struct Trampoline {
  std::atomic<void*> target;  // where a call goes
  const char* name;           // "MPI_Send", "PMPI_Send", ...
  void* code;                 // the exported function itself
  void* chooser;              // IFUNC resolver for it: accord_symbol_address(this row)
  void* unbound_target;       // what `target` is until it is bound

  bool bound() const noexcept { return target.load(std::memory_order_relaxed) != unbound_target; }
};
static_assert(sizeof(Trampoline) == 40 && sizeof(std::atomic<void*>) == 8 &&
              std::atomic<void*>::is_always_lock_free);

extern "C" {
[[gnu::visibility("hidden")]] extern Trampoline accord_trampolines[];
[[gnu::visibility("hidden")]] extern Trampoline accord_trampolines_end[];

// Called by the stub of an unbound trampoline, `caller` being the address that the program's call
// returns to. Returns 0 when the trampoline is bound now, else the error code that the call is to
// return.
[[gnu::visibility("hidden")]] int accord_resolve(Trampoline* trampoline, const void* caller);

// What the dynamic linker gets for this symbol: its code, or null where the process has no such
// function.
[[gnu::visibility("hidden")]] void* accord_symbol_address(const Trampoline* trampoline);
}

// All rows: MPI_X at even places, its PMPI_X right behind it.
inline std::span<Trampoline> trampolines() { return {accord_trampolines, accord_trampolines_end}; }

}  // namespace accord::preload
