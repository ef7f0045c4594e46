// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The fake driver's modules and launches: a kernel is known by its name, and done by the CPU.
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "fake_cuda_inbox.h"
#include "fake_cuda_kernels.h"
#include "fake_cuda_partitions.h"
#include "fake_cuda_state.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace accord::device::cuda;

namespace {

Result launch(std::unique_lock<std::mutex>& lock, Stream stream, unsigned blocks,
              const InboxLaunch& arguments, FakeResident kind) {
  if (!usable(stream)) return kInvalidHandle;
  if (const Result result = launch_inbox(stream, blocks, arguments, kind);
      result != Result::success) {
    return result;
  }
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && *blocking != '0') await_residents(lock, *stream);
  return check_context();
}

std::atomic<unsigned> slices_of_last{0};

Result launch_partitions(Function function, unsigned blocks, unsigned threads, Stream stream,
                         const void* parameter) {
  if (function->op == accord::device::ReduceOp::none) {
    if (blocks != 1 || threads != PartitionMarks::kMost) return Result::invalid_value;
    return enqueue(stream,
                   [marks = *static_cast<const PartitionMarks*>(parameter)] { run(marks); });
  }
  const auto& schedule = *static_cast<const PartitionSchedule*>(parameter);
  const unsigned watchers = schedule.reduction.by_packets ? 0 : 1;
  if (threads != kPartitionThreads || blocks != schedule.teams * schedule.slices + watchers)
    return Result::invalid_value;
  if (!can_run(schedule, function->element)) return kIllegalAddress;
  slices_of_last = schedule.slices;
  return enqueue(stream, [kernel = *function, copy = schedule] { run(kernel, copy); });
}

}  // namespace

extern "C" {

unsigned fake_cuda_slices() { return slices_of_last; }

Result cuModuleLoadData(Module* module, const void* image) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  if (std::getenv("FAKE_CUDA_NO_KERNELS") != nullptr) return Result::not_supported;
  if (!is_image(image)) return Result::invalid_value;
  *module = new ModuleHandle{current(), current()->id};
  return Result::success;
}
Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  const std::lock_guard lock(state.mutex);
  if (const Result result = check_unsafe(); result != Result::success) return result;
  if (!usable(module)) return kInvalidHandle;
  *function = find_kernel(*module, name);
  return *function != nullptr ? Result::success : kNotFound;
}
Result cuLaunchKernel(Function function, unsigned blocks, unsigned grid_y, unsigned grid_z,
                      unsigned threads, unsigned block_y, unsigned block_z, unsigned, Stream stream,
                      void** parameters, void** extra) {
  std::unique_lock lock(state.mutex);
  if (const Result result = check_context(); result != Result::success) return result;
  if (!usable(function)) return kInvalidHandle;
  ++state.turns;
  if (function->of_partitions) {
    if (grid_y * grid_z * block_y * block_z != 1 || extra != nullptr) return Result::invalid_value;
    return launch_partitions(function, blocks, threads, stream, parameters[0]);
  }
  if (function->copies_list) {
    if (blocks == 0 || grid_y * grid_z * block_y * block_z != 1 || threads != kPackThreads ||
        extra != nullptr)
      return Result::invalid_value;
    const auto& list = *static_cast<const ListedCopies*>(parameters[0]);
    if (const Result result = check_copies(list, blocks); result != Result::success) return result;
    return enqueue(stream, [copy = list, blocks] { run_copies(copy, blocks); });
  }
  const bool packs = function->pack_word_bytes != 0;
  const bool resident = !packs && function->op == accord::device::ReduceOp::none;
  if (blocks == 0 || grid_y * grid_z * block_y * block_z != 1 ||
      threads != (packs      ? kPackThreads
                  : resident ? kInboxThreads
                             : kReduceThreads) ||
      extra != nullptr) {
    return Result::invalid_value;
  }
  if (resident)
    return launch(lock, stream, blocks, *static_cast<InboxLaunch*>(parameters[0]),
                  function->of_direct_work ? FakeResident::direct : FakeResident::inbox);
  const auto start = [&](const auto& arguments) {
    const Result result = check_arguments(*function, arguments);
    if (result != Result::success) return result;
    return enqueue(stream, [kernel = *function, copy = arguments] { run(kernel, copy); });
  };
  return packs ? start(*static_cast<const accord::device::PackArguments*>(parameters[0]))
               : start(*static_cast<const ReduceArguments*>(parameters[0]));
}

}  // extern "C"
// NOLINTEND
