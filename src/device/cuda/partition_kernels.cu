// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels of partitioned reductions within a node (device/partition_reduction.h), one per
// element and operation: accord_partitions_<element>_<op>; and one that marks partitions ready for
// the host. Where a rank has told others something, it first makes all it has written visible to
// the whole system; where it has been told, it looks no earlier than that.
#include "device/cuda/partition_packets.h"
#include "device/cuda/partition_words.h"
#include "device/cuda/reduce_units.h"

namespace accord::device::cuda {
namespace {

// What the threads of a block share.
struct Block {
  ReduceArguments arguments;
  int first;      // of the partitions of the team, all before it are through
  int partition;  // the next to work on; -1: none is ready, -2: none is left
  bool started;   // all ranks that this one waits for
  std::uint64_t waits_since_ns;
};

// By the first warp: finds one of the team's next partitions that is ready and not yet done, each
// thread looking at one of them.
__device__ void look(const PartitionSchedule& schedule, std::uint32_t slice, int team,
                     Block& block) {
  __syncwarp();  // the first thread may just have gone on, and noted one as done
  const PartitionReduction& reduction = schedule.reduction;
  const Words words{reduction};
  const int teams = static_cast<int>(schedule.teams);
  const int lane = static_cast<int>(threadIdx.x);
  const int partition = team + (block.first + lane) * teams;
  const bool exists = partition < reduction.partitions;
  const bool started = block.started || all_hold(words.started() + reduction.starters.first,
                                                 reduction.starters.count, schedule.round);
  bool done = true;
  bool ready = false;
  if (exists) {
    const auto share = static_cast<std::uint32_t>(own_share(reduction, partition));
    done = share >= schedule.shares ||
           load_word(words.done(partition, schedule.slices, slice)) == schedule.round;
    ready = all_hold(words.ready(partition) + reduction.givers.first, reduction.givers.count,
                     schedule.round) &&
            started;
  }
  const unsigned through = __ballot_sync(kAllLanes, done);
  const unsigned open = __ballot_sync(kAllLanes, ready && !done);
  const unsigned any = __ballot_sync(kAllLanes, exists);
  if (open != 0) fence_system();
  if (lane != 0) return;
  block.started = started;
  const int passed = through == kAllLanes ? kWarp : __ffs(static_cast<int>(~through)) - 1;
  if (open != 0) {
    block.partition = team + (block.first + __ffs(static_cast<int>(open)) - 1) * teams;
  } else {
    block.partition = any == 0 ? -2 : -1;
  }
  block.first += passed;
}

// By all threads: what the block is to reduce of a partition.
__device__ void describe(const PartitionSchedule& schedule, std::uint32_t slice,
                         std::size_t element_bytes, Block& block) {
  const PartitionReduction& reduction = schedule.reduction;
  // Of which all are read, or one alone.
  const bool pairs = reduction.pairs > 0;
  const int only = pairs ? static_cast<int>(slice / schedule.slices_together) : 0;
  const std::size_t count = pairs ? reduction.counts[only] : reduction.count;
  const std::size_t first =
      reduction.shared ? own_share(reduction, block.partition) * schedule.share : 0;
  const std::size_t offset_bytes =
      (static_cast<std::size_t>(block.partition) * count + first) * element_bytes;
  ReduceArguments& arguments = block.arguments;
  const int place = static_cast<int>(threadIdx.x);
  if (place < (pairs ? 1 : reduction.source_count))
    arguments.sources[place] =
        static_cast<const char*>(reduction.sources[only + place]) + offset_bytes;
  if (place < (pairs ? 1 : reduction.target_count))
    arguments.targets[place] = static_cast<char*>(reduction.targets[only + place]) + offset_bytes;
  if (place != 0) return;
  const std::size_t left = count - first;
  arguments.count = schedule.share < left ? schedule.share : left;
  arguments.source_count = static_cast<std::uint32_t>(pairs ? 1 : reduction.source_count);
  arguments.target_count = static_cast<std::uint32_t>(pairs ? 1 : reduction.target_count);
  arguments.aligned = schedule.aligned;
  arguments.head = arguments.count;
  arguments.vectors = 0;
  if (schedule.vectors != 0)
    choose_vectors(reinterpret_cast<std::uintptr_t>(reduction.targets[0]) + offset_bytes,
                   element_bytes, arguments);
}

// By one thread, once all of the block are through with their part.
__device__ void tell(const PartitionSchedule& schedule, std::uint32_t slice, int partition) {
  const PartitionReduction& reduction = schedule.reduction;
  const Words words{reduction};
  store_word(words.done(partition, schedule.slices, slice), schedule.round);
  if (schedule.slices > 1 &&
      !counts_last(words.through(partition), schedule.round, schedule.slices))
    return;
  fence_system();
  const std::size_t word = landed_word(reduction.ranks, reduction.partitions, partition,
                                       own_share(reduction, partition));
  for (int rank = 0; rank < reduction.ranks; ++rank)
    store_word(reduction.words[rank] + word, schedule.round);
}

template <class T, ReduceOp op>
__device__ void work(const PartitionSchedule& schedule, Block& block) {
  const auto team = static_cast<int>(blockIdx.x / schedule.slices);
  const std::uint32_t slice = blockIdx.x % schedule.slices;
  for (;;) {
    if (threadIdx.x < kWarp) {
      look(schedule, slice, team, block);
      if (threadIdx.x == 0) {
        if (block.partition >= 0) block.waits_since_ns = 0;
        if (block.partition == -1) {
          const std::uint64_t now = now_ns();
          if (block.waits_since_ns == 0) block.waits_since_ns = now;
          if (now - block.waits_since_ns > schedule.patience_ns) block.partition = -2;
        }
      }
    }
    __syncthreads();
    const int partition = block.partition;
    if (partition == -2) return;
    if (partition >= 0) {
      describe(schedule, slice, sizeof(T), block);
      __syncthreads();
      const std::uint32_t number = blockIdx.x % schedule.slices_together;
      reduce<T, op>(block.arguments, {std::uint64_t{number} * blockDim.x + threadIdx.x,
                                      std::uint64_t{schedule.slices_together} * blockDim.x});
    }
    __syncthreads();
    if (partition >= 0 && threadIdx.x == 0) tell(schedule, slice, partition);
  }
}

__device__ void tell_start(const PartitionReduction& reduction, std::uint32_t round) {
  const std::size_t word = started_word(reduction.ranks, reduction.partitions, reduction.rank);
  const int rank = static_cast<int>(threadIdx.x);
  if (rank < reduction.ranks) store_word(reduction.words[rank] + word, round);
}

// Tells the host of each partition that is through here. A thread looks at one at a time.
__device__ void watch(const PartitionSchedule& schedule) {
  const PartitionReduction& reduction = schedule.reduction;
  const Words words{reduction};
  auto partition = static_cast<int>(threadIdx.x);
  std::uint64_t waits_since_ns = now_ns();
  for (;;) {
    const bool exists = partition < reduction.partitions;
    const bool here = exists && all_hold(words.landed(partition) + reduction.awaited.first,
                                         reduction.awaited.count, schedule.round);
    if (here) {
      fence_system();
      store_word(schedule.arrived + partition, schedule.round);
      partition += static_cast<int>(blockDim.x);
    }
    if (__syncthreads_or(partition < reduction.partitions) == 0) return;
    const std::uint64_t now = now_ns();
    if (__syncthreads_or(here) != 0) waits_since_ns = now;
    if (__syncthreads_or(now - waits_since_ns > schedule.patience_ns) != 0) return;
  }
}

__device__ void leave(const PartitionSchedule& schedule) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  const Words words{schedule.reduction};
  if (!counts_last(words.left(), schedule.launch, gridDim.x)) return;
  fence_system();
  store_word(schedule.left, schedule.launch);
}

template <class T, ReduceOp op>
__device__ void run_by_shares(const PartitionSchedule& schedule) {
  __shared__ Block block;
  if (threadIdx.x == 0) {
    block.first = 0;
    block.started = schedule.reduction.starters.count == 0;
    block.waits_since_ns = 0;
  }
  __syncthreads();
  // The first block is the first one to run where not all find room.
  if (blockIdx.x == 0 && schedule.reduction.tells_start)
    tell_start(schedule.reduction, schedule.round);
  if (blockIdx.x + 1 == gridDim.x) {
    watch(schedule);
  } else {
    work<T, op>(schedule, block);
  }
}

template <class T, ReduceOp op>
__device__ void run(const PartitionSchedule& schedule) {
  if (schedule.reduction.by_packets) {
    __shared__ PacketBlock block;
    work_by_packets<T, op>(schedule, block);
  } else {
    run_by_shares<T, op>(schedule);
  }
  leave(schedule);
}

}  // namespace

#define ACCORD_KERNEL(element, type, op)                                                       \
  extern "C" __global__ void __launch_bounds__(kPartitionThreads, 2)                           \
      accord_partitions_##element##_##op(const __grid_constant__ PartitionSchedule schedule) { \
    run<type, ReduceOp::op>(schedule);                                                         \
  }
ACCORD_PARTITION_REDUCTIONS(ACCORD_KERNEL)
#undef ACCORD_KERNEL

// Each thread tells of one partition. What is marked was there before the launch.
extern "C" __global__ void accord_partitions_mark(const __grid_constant__ PartitionMarks marks) {
  if (threadIdx.x >= marks.count) return;
  fence_system();
  const std::size_t word = ready_word(marks.ranks, marks.partitions[threadIdx.x], marks.rank);
  for (int rank = 0; rank < marks.ranks; ++rank) store_word(marks.words[rank] + word, marks.round);
}

}  // namespace accord::device::cuda
