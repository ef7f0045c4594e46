// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "device/level_zero/kernels.h"
#include "device/level_zero/modules.h"
#include "device/pack.h"

namespace accord::device::level_zero {
namespace {

constexpr std::uint64_t kGroupsMax = 256;

// The runs of an irregular type go to the device with each copy; so many bytes of them at most, of
// what takes less than its rows one by one.
constexpr std::size_t kRunBytesMax = std::size_t{1} << 20;

std::atomic<std::uint64_t> launches{0};

// Both sides: one may be host memory that is not the driver's.
Status check_memory(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                    const LayoutCopy& copy) {
  const auto [low, high] = copy.bounds();
  ACCORD_TRY(
      check_reach(driver, runtime, index, device, copy.elements + low, copy.elements + high - 1));
  const auto [other_low, other_high] = copy.other_bounds();
  return check_reach(driver, runtime, index, device, copy.other + other_low,
                     copy.other + other_high - 1);
}

Status add_launch(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                  const LayoutCopy& copy, Work& work) {
  ACCORD_TRY(check_memory(driver, runtime, index, device, copy));
  PackArguments arguments = pack_arguments(copy);
  const std::size_t run_bytes = arguments.runs == nullptr ? 0 : arguments.run_count * sizeof(Run);
  if (run_bytes > kRunBytesMax)
    return Status(StatusCode::unsupported, "level_zero pack: too many runs");
  const std::size_t word_bytes = pack_word_bytes(copy, arguments);
  const char* const width = pack_is_narrow(arguments) ? "narrow" : "wide";
  Launch launch;
  ACCORD_TRY(find_kernel(driver, device, "pack",
                         fmt::format("accord_pack_{}_{}", word_bytes, width), launch.kernel));
  const std::uint64_t words = arguments.length_bytes / word_bytes;
  launch.groups = static_cast<std::uint32_t>(
      std::min((words + kKernelThreads - 1) / kKernelThreads, kGroupsMax));
  const Run* const runs = arguments.runs;
  launch.offset_bytes = work.add_parameters(&arguments, sizeof arguments);
  if (runs != nullptr) work.extend_parameters(runs, run_bytes);
  work.launches.push_back(launch);
  launches.fetch_add(1, std::memory_order_relaxed);
  return Status();
}

}  // namespace

std::uint64_t pack_launches() noexcept { return launches.load(std::memory_order_relaxed); }

Status make_batch(const Driver& driver, DeviceRuntime& runtime, int index, const Device& device,
                  const CopyBatch& batch, Work& work) {
  CopyList rows;
  rows.add(batch.plain);
  for (const LayoutCopy& copy : batch.laid_out) {
    if (kernel_pays(copy) && has_kernels(device)) {
      const Status status = add_launch(driver, runtime, index, device, copy, work);
      if (status.ok()) continue;
      // Memory that only copies reach, or no kernel for it.
      const bool other_way = status.code() == StatusCode::unsupported ||
                             status.code() == StatusCode::invalid_argument ||
                             status.code() == StatusCode::no_memory;
      if (!other_way) return status;
    }
    CopyList own;
    own.append_rows(copy);
    rows.add(own);
  }
  work.copies = rows.copies();
  return Status();
}

}  // namespace accord::device::level_zero
