// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/log.h"
#include "device/level_zero/kernels.h"
#include "device/level_zero/modules.h"
#include "device/reduce_functions.h"
#include "device/reduce_on_host.h"

namespace accord::device::level_zero {
namespace {

// Work-groups of a launch at most: they keep the program's kernels waiting.
constexpr std::uint64_t kGroupsMax = 256;

struct Name {
  Element element;
  ReduceOp op;
  const char* module;
  const char* kernel;
};

constexpr Name kNames[] = {
#define ACCORD_KERNEL(element, type, op) \
  {Element::element, ReduceOp::op, #element, "accord_reduce_" #element "_" #op},
    ACCORD_REDUCTIONS(ACCORD_KERNEL) ACCORD_ODD_REDUCTIONS(ACCORD_KERNEL)
#undef ACCORD_KERNEL
};

const Name& name_of(const Reduction& reduction) {
  const Element element = arithmetic_element(reduction.op, reduction.element);
  return *std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& next) {
    return next.element == element && next.op == reduction.op;
  });
}

// Of the sources and then of the targets.
std::vector<std::uint64_t> addresses_of(const Reduction& reduction) {
  std::vector<std::uint64_t> addresses;
  const auto add = [&](const void* pointer) {
    addresses.push_back(reinterpret_cast<std::uintptr_t>(pointer));
  };
  std::ranges::for_each(reduction.sources, add);
  add(reduction.dst);
  std::ranges::for_each(reduction.copies, add);
  return addresses;
}

// Decides how the bytes are moved, from the addresses: as vectors where all are alike modulo the
// size of one.
ReduceParameters parameters_of(const Reduction& reduction,
                               const std::vector<std::uint64_t>& addresses) {
  const std::size_t bytes = element_bytes(reduction.element);
  const std::uint64_t start = addresses[0];
  std::uint64_t any = 0;        // bits that are set in any of the addresses
  std::uint64_t differing = 0;  // bits that they do not have in common
  for (const std::uint64_t address : addresses) {
    any |= address;
    differing |= address ^ start;
  }
  ReduceParameters made{.count = reduction.count,
                        .head = reduction.count,
                        .vectors = 0,
                        .source_count = static_cast<std::uint32_t>(reduction.sources.size()),
                        .target_count = static_cast<std::uint32_t>(1 + reduction.copies.size()),
                        .aligned = any % element_alignment(reduction.element) == 0 ? 1U : 0U};
  const std::size_t head_bytes = (0 - start) % kReduceVectorBytes;
  if (differing % kReduceVectorBytes != 0 || kReduceVectorBytes % bytes != 0 ||
      head_bytes % bytes != 0) {
    return made;
  }
  made.head = std::min<std::uint64_t>(head_bytes / bytes, reduction.count);
  made.vectors = (reduction.count - made.head) * bytes / kReduceVectorBytes;
  return made;
}

Status check_memory(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                    const Reduction& reduction) {
  if (reduction.home != nullptr) return Status();  // kernels have reached all of it before
  const std::size_t bytes = reduction.count * element_bytes(reduction.element);
  const auto check = [&](const void* pointer) {
    return check_reach(driver, runtime, index, device, pointer,
                       static_cast<const std::byte*>(pointer) + bytes - 1);
  };
  ACCORD_TRY(check(reduction.dst));
  for (const void* source : reduction.sources) ACCORD_TRY(check(source));
  for (const void* copy : reduction.copies) ACCORD_TRY(check(copy));
  return Status();
}

// Every step waits: this is for drivers that take the module by which a device was tried, but not
// this one. By then peers count on this rank to reduce.
Status reduce_by_cpu(DeviceRuntime& runtime, int index, const Reduction& reduction) {
  const std::size_t bytes = reduction.count * element_bytes(reduction.element);
  const std::size_t count = reduction.sources.size();
  std::vector<std::byte> staging(bytes * count);
  std::vector<Copy> copies;
  std::vector<const void*> sources;
  for (std::size_t i = 0; i < count; ++i) {
    sources.push_back(&staging[i * bytes]);
    copies.push_back({&staging[i * bytes], reduction.sources[i], bytes});
  }
  ACCORD_TRY(runtime.copy(index, copies));
  reduce_on_host({staging.data(), sources, reduction.count, reduction.op, reduction.element});
  copies = {{reduction.dst, staging.data(), bytes}};
  for (void* copy : reduction.copies) copies.push_back({copy, staging.data(), bytes});
  return runtime.copy(index, copies);
}

}  // namespace

Status make_reduction(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                      const Reduction& reduction, Work& work) {
  ACCORD_TRY(check_memory(driver, runtime, index, device, reduction));
  const Name& name = name_of(reduction);
  Launch launch;
  const Status found = find_kernel(driver, device, name.module, name.kernel, launch.kernel);
  if (found.code() == StatusCode::unsupported) {
    log::debug("{} by the CPU: {}", name.kernel, found.message());
    return reduce_by_cpu(runtime, index, reduction);
  }
  ACCORD_TRY(found);
  const std::vector<std::uint64_t> addresses = addresses_of(reduction);
  const ReduceParameters parameters = parameters_of(reduction, addresses);
  const std::uint64_t units = parameters.vectors > 0 ? parameters.vectors : parameters.count;
  launch.groups = static_cast<std::uint32_t>(
      std::min((units + kKernelThreads - 1) / kKernelThreads, kGroupsMax));
  launch.offset_bytes = work.add_parameters(&parameters, sizeof parameters);
  work.extend_parameters(addresses.data(), addresses.size() * sizeof addresses[0]);
  work.launches.push_back(launch);
  return Status();
}

}  // namespace accord::device::level_zero
