// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels of the library, compiled for the CPU.
#include "driver_kernels_cpu.h"

#include <cstddef>

#include "device/pack.h"
#include "device/reduce_functions.h"
#include "opencl_on_cpu.h"

#define ACCORD_KERNELS(X) ACCORD_REDUCTIONS(X) ACCORD_ODD_REDUCTIONS(X)
#define ACCORD_INBOX_KERNELS(X) ACCORD_REDUCTIONS(X)
#include "device/launched_inbox_kernels.clcpp"
#include "device/launched_inbox_reduce_kernels.clcpp"
#include "device/level_zero/pack_kernels.clcpp"
#include "device/level_zero/reduce_kernels.clcpp"

namespace accord::test::level_zero {
namespace {

struct Code {
  std::string_view name;
  KernelOnCpu* kernel;
};

template <class Parameters, void (*kernel)(const Parameters*)>
void call(const void* argument, std::size_t id, std::size_t count) {
  work_item = {.id = id, .count = count};
  kernel(static_cast<const Parameters*>(argument));
}

// One that answers in what it is given.
template <void (*kernel)(device::launched::InboxParameters*)>
void call_inbox(const void* argument, std::size_t id, std::size_t count) {
  work_item = {.id = id, .count = count};
  kernel(static_cast<device::launched::InboxParameters*>(const_cast<void*>(argument)));
}

using device::PackArguments;
using device::launched::InboxParameters;
using device::level_zero::ReduceParameters;

constexpr Code kCodes[] = {
#define ACCORD_ENTRY(element, type, op) \
  {"accord_reduce_" #element "_" #op,   \
   call<ReduceParameters, device::level_zero::accord_reduce_##element##_##op>},
    ACCORD_KERNELS(ACCORD_ENTRY)
#undef ACCORD_ENTRY
#define ACCORD_ENTRY(bytes)                                                \
  {"accord_pack_" #bytes "_narrow",                                        \
   call<PackArguments, device::level_zero::accord_pack_##bytes##_narrow>}, \
      {"accord_pack_" #bytes "_wide",                                      \
       call<PackArguments, device::level_zero::accord_pack_##bytes##_wide>},
        ACCORD_ENTRY(1) ACCORD_ENTRY(2) ACCORD_ENTRY(4) ACCORD_ENTRY(8) ACCORD_ENTRY(16)
#undef ACCORD_ENTRY
            {"accord_inbox_send", call<InboxParameters, device::launched::accord_inbox_send>},
    {"accord_inbox_receive", call_inbox<device::launched::accord_inbox_receive>},
#define ACCORD_ENTRY(element, type, op) \
  {"accord_inbox_" #element "_" #op, call_inbox<device::launched::accord_inbox_##element##_##op>},
    ACCORD_INBOX_KERNELS(ACCORD_ENTRY)
#undef ACCORD_ENTRY
};

}  // namespace

KernelOnCpu* kernel_on_cpu(std::string_view name) {
  for (const Code& code : kCodes) {
    if (code.name == name) return code.kernel;
  }
  return nullptr;
}

}  // namespace accord::test::level_zero
