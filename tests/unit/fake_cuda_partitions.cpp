// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_cuda_partitions.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

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

void reduce(const FunctionHandle& kernel, const PartitionSchedule& schedule, int partition) {
  const PartitionReduction& reduction = schedule.reduction;
  if (reduction.target_count == 0) return;
  const bool pairs = reduction.pairs > 0;
  const auto share = static_cast<std::size_t>(own_share(reduction, partition));
  const std::size_t first = reduction.shared ? share * schedule.share : 0;
  const int together = pairs ? 1 : std::max(reduction.source_count, reduction.target_count);
  for (int only = 0; only < std::max(reduction.pairs, 1); ++only) {
    const std::size_t count = pairs ? reduction.counts[only] : reduction.count;
    const std::size_t offset =
        (static_cast<std::size_t>(partition) * count + first) * element_bytes(kernel.element);
    ReduceArguments arguments{};
    arguments.count = std::min<std::uint64_t>(schedule.share, count - first);
    arguments.source_count = static_cast<std::uint32_t>(pairs ? 1 : reduction.source_count);
    arguments.target_count = static_cast<std::uint32_t>(pairs ? 1 : reduction.target_count);
    for (int i = 0; i < together; ++i) {
      if (only + i < reduction.source_count)
        arguments.sources[i] = static_cast<const std::byte*>(reduction.sources[only + i]) + offset;
      if (only + i < reduction.target_count)
        arguments.targets[i] = static_cast<std::byte*>(reduction.targets[only + i]) + offset;
    }
    run(kernel, arguments);
  }
}

// Of partitions that go by packets.
class Packets {
 public:
  Packets(const PartitionSchedule& schedule, Element element)
      : schedule_(schedule),
        bytes_(schedule.reduction.count * element_bytes(element)),
        packets_(packets_of(schedule.reduction.count, element_bytes(element))) {}

  void give(int partition) const {
    const PartitionReduction& reduction = schedule_.reduction;
    const auto* const from = static_cast<const std::byte*>(reduction.sources[reduction.rank]) +
                             static_cast<std::size_t>(partition) * bytes_;
    for (int to = 0; to < reduction.ranks; ++to) {
      if (to == reduction.rank) continue;
      PartitionPacket* const packets = at(to, reduction.rank, partition);
      for (std::size_t i = 0; i < packets_; ++i) {
        std::uint32_t data[2] = {};
        std::memcpy(data, from + i * sizeof data, std::min(sizeof data, bytes_ - i * sizeof data));
        packets[i].low = data[0];
        packets[i].high = data[1];
        store(packets[i].low_round, schedule_.round);
        store(packets[i].high_round, schedule_.round);
      }
    }
  }
  bool have_come(int partition) const {
    const PartitionReduction& reduction = schedule_.reduction;
    for (int from = 0; from < reduction.ranks; ++from) {
      if (from == reduction.rank) continue;
      PartitionPacket* const packets = at(reduction.rank, from, partition);
      for (std::size_t i = 0; i < packets_; ++i)
        if (!all_hold({&packets[i].low_round, 1}, schedule_.round) ||
            !all_hold({&packets[i].high_round, 1}, schedule_.round))
          return false;
    }
    return true;
  }
  void reduce(const FunctionHandle& kernel, int partition) const {
    const PartitionReduction& reduction = schedule_.reduction;
    const std::size_t offset = static_cast<std::size_t>(partition) * bytes_;
    std::vector<std::vector<std::uint32_t>> came;
    ReduceArguments arguments{};
    arguments.count = reduction.count;
    arguments.source_count = static_cast<std::uint32_t>(reduction.ranks);
    arguments.target_count = 1;
    arguments.targets[0] = static_cast<std::byte*>(reduction.targets[0]) + offset;
    for (int from = 0; from < reduction.ranks; ++from) {
      if (from == reduction.rank) {
        arguments.sources[from] = static_cast<const std::byte*>(reduction.sources[from]) + offset;
        continue;
      }
      auto& data = came.emplace_back();
      const PartitionPacket* const packets = at(reduction.rank, from, partition);
      for (std::size_t i = 0; i < packets_; ++i)
        data.insert(data.end(), {packets[i].low, packets[i].high});
      arguments.sources[from] = data.data();
    }
    run(kernel, arguments);
  }

 private:
  PartitionPacket* at(int to, int from, int partition) const {
    const PartitionReduction& reduction = schedule_.reduction;
    auto* const all = reinterpret_cast<PartitionPacket*>(
        reduction.words[to] +
        packet_words(reduction.ranks, reduction.partitions, static_cast<int>(schedule_.slices)));
    return all + first_packet(reduction.ranks, reduction.partitions, packets_, schedule_.round,
                              from, partition);
  }

  const PartitionSchedule& schedule_;
  const std::size_t bytes_;  // of a partition
  const std::size_t packets_;
};

// One slice of each stands for all.
void run_by_packets(const FunctionHandle& kernel, const PartitionSchedule& schedule) {
  const PartitionReduction& reduction = schedule.reduction;
  std::uint32_t* const own = reduction.words[reduction.rank];
  std::uint32_t* const given =
      own + given_words(reduction.ranks, reduction.partitions, static_cast<int>(schedule.slices));
  const Packets packets(schedule, kernel.element);
  for (int partition = 0; partition < reduction.partitions; ++partition) {
    const auto first = static_cast<std::size_t>(partition) * schedule.slices;
    std::uint32_t& mark = own[ready_word(reduction.ranks, partition, reduction.rank)];
    if (given[first] != schedule.round && all_hold({&mark, 1}, schedule.round)) {
      packets.give(partition);
      given[first] = schedule.round;
    }
    if (given[first] != schedule.round || schedule.arrived[partition] == schedule.round ||
        !packets.have_come(partition))
      continue;
    packets.reduce(kernel, partition);
    store(schedule.arrived[partition], schedule.round);
  }
  store(*schedule.left, schedule.launch);
}

}  // namespace

bool can_run(const PartitionSchedule& schedule, Element element) {
  const PartitionReduction& reduction = schedule.reduction;
  const auto reaches = [&](const void* pointer, std::size_t size_bytes) {
    return kernel_can_address(pointer, size_bytes, current());
  };
  const auto start = reinterpret_cast<std::uintptr_t>(reduction.targets[0]);
  const auto fits = [&](const void* pointer, int number) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return reaches(pointer, place_bytes(reduction, number)) &&
           (schedule.aligned == 0 || address % element_alignment(element) == 0) &&
           (schedule.vectors == 0 || (address - start) % kReduceVectorBytes == 0);
  };
  for (int i = 0; i < reduction.source_count; ++i)
    if (!fits(reduction.sources[i], i)) return false;
  for (int i = 0; i < reduction.target_count; ++i)
    if (!fits(reduction.targets[i], i)) return false;
  for (int rank = 0; rank < reduction.ranks; ++rank)
    if (!reaches(reduction.words[rank], shared_memory_bytes(reduction))) return false;
  if (!reaches(reduction.words[reduction.rank], partition_memory_bytes(reduction))) return false;
  return reaches(schedule.arrived, partition_host_words(reduction.partitions) * 4);
}

void run(const FunctionHandle& kernel, const PartitionSchedule& schedule) {
  const PartitionReduction& reduction = schedule.reduction;
  if (reduction.by_packets) return run_by_packets(kernel, schedule);
  const int ranks = reduction.ranks;
  std::uint32_t* const own = reduction.words[reduction.rank];
  const auto words = [&](std::size_t first, int count) {
    return std::span(own + first, static_cast<std::size_t>(count));
  };
  if (reduction.tells_start)
    tell_all(reduction.words, ranks, started_word(ranks, reduction.partitions, reduction.rank),
             schedule.round);
  const bool started =
      all_hold(words(started_word(ranks, reduction.partitions, reduction.starters.first),
                     reduction.starters.count),
               schedule.round);
  for (int partition = 0; partition < reduction.partitions; ++partition) {
    const int share = own_share(reduction, partition);
    const std::size_t done = own_words(ranks, reduction.partitions) +
                             2 * static_cast<std::size_t>(reduction.partitions + 1) +
                             static_cast<std::size_t>(partition) * schedule.slices;
    if (share < share_count(reduction) && own[done] != schedule.round && started &&
        all_hold(
            words(ready_word(ranks, partition, reduction.givers.first), reduction.givers.count),
            schedule.round)) {
      reduce(kernel, schedule, partition);
      own[done] = schedule.round;
      tell_all(reduction.words, ranks, landed_word(ranks, reduction.partitions, partition, share),
               schedule.round);
    }
    if (all_hold(words(landed_word(ranks, reduction.partitions, partition, reduction.awaited.first),
                       reduction.awaited.count),
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
