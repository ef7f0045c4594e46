// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The device runtimes of this build (runtimes.def, in order) and the one question asked on every
// MPI call: what is this pointer?
#pragma once

#include <span>

#include "device/device_runtime.h"

namespace accord::device {

// All runtimes that this process may use, in the order of runtimes.def. Made at first use.
std::span<DeviceRuntime* const> runtimes();

// The runtime of accord_malloc: the first that has a device, or the one ACCORD_RUNTIME names.
DeviceRuntime& default_runtime();

// The program shows, before MPI begins, that it takes memory of accord_malloc: it is linked with
// Accord, or has asked for its devices. Where there is no accelerator, ACCORD_RUNTIME=auto means
// the host runtime to such a program. To any other it means that all memory is the host's: it pays
// nothing. Thread-safe.
void want_memory() noexcept;
bool memory_is_wanted() noexcept;

// Classifies one pointer. Costs a few ns while no runtime is active, and for addresses of this
// thread's stack, the program's static data and the brk heap; else one query a runtime (0.1 us on
// CUDA).
PointerInfo classify(const void* pointer) noexcept;

// The same for a buffer that the program has passed to this MPI call: what its synchronous calls
// have put there is there from now on (DeviceRuntime::order_behind_program).
PointerInfo classify_argument(const void* pointer) noexcept;

// The same for a call's two buffers, both classified: asked once where they belong to one context,
// since a driver takes 0.1 us a device to answer.
void order_behind_program(const PointerInfo& first, const PointerInfo& second) noexcept;

// For calls whose buffers were named in an earlier one (MPI_Start, MPI_Pready), or that may be
// anywhere (MPI_BOTTOM).
void order_behind_program() noexcept;

// The hot-path form: whether the host MPI must not be given this pointer.
bool must_stage(const void* pointer) noexcept;

// Whether pointers of any runtime can exist in this process yet. A few ns.
bool any_active() noexcept;

// A runtime whose active() turns true after its first use calls this before it hands out a pointer.
void note_active() noexcept;

// Whether an accelerator may be used by this process at all: a driver is present, or the host
// runtime stands in.
bool accelerator_present();

}  // namespace accord::device
