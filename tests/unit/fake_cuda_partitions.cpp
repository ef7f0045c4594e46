// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_cuda_partitions.h"

#include <algorithm>
#include <atomic>
#include <span>

namespace accord::device::cuda {
namespace {

void store(std::uint32_t& word, std::uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}
bool all_hold(std::span<std::uint32_t> words, std::uint32_t round) {
  return std::ranges::all_of(words, [&](std::uint32_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire) == round;
  });
}

void tell_all(std::uint32_t* const* words, int ranks, std::size_t word, std::uint32_t round) {
  for (int rank = 0; rank < ranks; ++rank) store(words[rank][word], round);
}

void reduce(const FunctionHandle& kernel, const PartitionSchedule& schedule, int partition,
            int share) {
  const PartitionReduction& reduction = schedule.reduction;
  const std::size_t first = static_cast<std::size_t>(share) * schedule.share;
  ReduceArguments arguments{};
  arguments.count = std::min<std::uint64_t>(schedule.share, reduction.count - first);
  arguments.source_count = arguments.target_count = static_cast<std::uint32_t>(reduction.ranks);
  const std::size_t offset = (static_cast<std::size_t>(partition) * reduction.count + first) *
                             element_bytes(kernel.element);
  for (int rank = 0; rank < reduction.ranks; ++rank) {
    arguments.sources[rank] = static_cast<const std::byte*>(reduction.sources[rank]) + offset;
    arguments.targets[rank] = static_cast<std::byte*>(reduction.targets[rank]) + offset;
  }
  run(kernel, arguments);
}

}  // namespace

bool can_run(const PartitionSchedule& schedule, Element element) {
  const PartitionReduction& reduction = schedule.reduction;
  const std::size_t bytes =
      static_cast<std::size_t>(reduction.partitions) * reduction.count * element_bytes(element);
  const auto reaches = [&](const void* pointer, std::size_t size_bytes) {
    return kernel_can_address(pointer, size_bytes, current());
  };
  for (int rank = 0; rank < reduction.ranks; ++rank) {
    const auto start = reinterpret_cast<std::uintptr_t>(reduction.targets[0]);
    for (const void* pointer :
         {reduction.sources[rank], static_cast<const void*>(reduction.targets[rank])}) {
      const auto address = reinterpret_cast<std::uintptr_t>(pointer);
      if (!reaches(pointer, bytes) ||
          (schedule.aligned != 0 && address % element_alignment(element) != 0) ||
          (schedule.vectors != 0 && (address - start) % kReduceVectorBytes != 0))
        return false;
    }
    if (!reaches(reduction.words[rank], partition_memory_bytes(reduction))) return false;
  }
  return reaches(schedule.arrived, partition_host_words(reduction.partitions) * 4);
}

void run(const FunctionHandle& kernel, const PartitionSchedule& schedule) {
  const PartitionReduction& reduction = schedule.reduction;
  const int ranks = reduction.ranks;
  std::uint32_t* const own = reduction.words[reduction.rank];
  const int shares = shares_of(reduction.count, schedule.share);
  const auto words = [&](std::size_t first, int count) {
    return std::span(own + first, static_cast<std::size_t>(count));
  };
  for (int partition = 0; partition < reduction.partitions; ++partition) {
    const int share = share_of(reduction.rank, ranks, partition);
    const std::size_t done = own_words(ranks, reduction.partitions) +
                             2 * static_cast<std::size_t>(reduction.partitions + 1) +
                             static_cast<std::size_t>(partition) * schedule.slices;
    if (share < shares && own[done] != schedule.round &&
        all_hold(words(ready_word(ranks, partition, 0), ranks), schedule.round)) {
      reduce(kernel, schedule, partition, share);
      own[done] = schedule.round;
      tell_all(reduction.words, ranks, landed_word(ranks, reduction.partitions, partition, share),
               schedule.round);
    }
    if (all_hold(words(landed_word(ranks, reduction.partitions, partition, 0), shares),
                 schedule.round))
      store(schedule.arrived[partition], schedule.round);
  }
  store(*schedule.left, schedule.launch);
}

void run(const PartitionMarks& marks) {
  for (std::uint32_t i = 0; i < marks.count; ++i)
    tell_all(marks.words, marks.ranks, ready_word(marks.ranks, marks.partitions[i], marks.rank),
             marks.round);
}

}  // namespace accord::device::cuda
