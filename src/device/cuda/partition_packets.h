// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitions that go by packets (device/partition_reduction.h), for the kernels of
// cuda/partition_kernels.cu: each block has a slice of the partitions of its team. It writes what
// this rank has of that slice to the others as soon as this rank has marked the partition, and
// reduces it as soon as it has come from all of them.
#pragma once

#include <cstring>

#include "device/cuda/partition_words.h"
#include "device/cuda/reduce_units.h"

namespace accord::device::cuda {

// Of a thread at once: a slice is one block's.
constexpr unsigned kPacketsPerThread = kPacketsPerSlice / kPartitionThreads;
static_assert(kPacketsPerThread * kPartitionThreads == kPacketsPerSlice);

// How often a block looks for packets before it looks for what else there is to do.
constexpr int kPacketLooks = 4;

__device__ inline void store_packet(PartitionPacket* packet, std::uint64_t data,
                                    std::uint32_t round) {
  asm volatile("st.volatile.v4.u32 [%0], {%1, %3, %2, %3};"
               :
               : "l"(packet), "r"(static_cast<std::uint32_t>(data)),
                 "r"(static_cast<std::uint32_t>(data >> 32)), "r"(round)
               : "memory");
}
__device__ inline bool load_packet(const PartitionPacket* packet, std::uint32_t round,
                                   std::uint64_t& data) {
  PartitionPacket here;
  asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(here.low), "=r"(here.low_round), "=r"(here.high), "=r"(here.high_round)
               : "l"(packet)
               : "memory");
  data = static_cast<std::uint64_t>(here.high) << 32 | here.low;
  return here.low_round == round && here.high_round == round;
}

// The elements of a packet; the last one of a partition may have fewer.
template <class T>
struct PacketData {
  static constexpr unsigned kElements = PartitionPacket::kDataBytes / sizeof(T);
  T elements[kElements];

  __device__ explicit PacketData(std::uint64_t raw) { memcpy(elements, &raw, sizeof raw); }
  __device__ std::uint64_t raw() const {
    std::uint64_t value;
    memcpy(&value, elements, sizeof value);
    return value;
  }
  __device__ PacketData(const char* address, std::size_t count, bool aligned) : PacketData(0) {
#pragma unroll
    for (unsigned i = 0; i < kElements; ++i)
      if (i < count)
        elements[i] = aligned ? Scalar<T>::load(address + i * sizeof(T)).value
                              : Bytes<T>::load(address + i * sizeof(T)).value;
  }
  __device__ void store(char* address, std::size_t count, bool aligned) const {
#pragma unroll
    for (unsigned i = 0; i < kElements; ++i) {
      if (i >= count) continue;
      if (aligned) {
        Scalar<T>{elements[i]}.store(address + i * sizeof(T));
      } else {
        Bytes<T>{elements[i]}.store(address + i * sizeof(T));
      }
    }
  }
};

// A block's part of a partition.
struct PacketSlice {
  const PartitionSchedule& schedule;
  int partition;
  std::uint32_t slice;
  std::size_t packets;  // of the whole partition

  __device__ std::size_t packet(unsigned i) const {
    return std::size_t{slice} * kPacketsPerSlice + i * kPartitionThreads + threadIdx.x;
  }
  __device__ PartitionPacket* at(int to, int from) const {
    const PartitionReduction& reduction = schedule.reduction;
    auto* const all = reinterpret_cast<PartitionPacket*>(
        reduction.words[to] +
        packet_words(reduction.ranks, reduction.partitions, static_cast<int>(schedule.slices)));
    return all + first_packet(reduction.ranks, reduction.partitions, packets, schedule.round, from,
                              partition);
  }
  // Where the elements of a packet are in a buffer, and how many it has.
  template <class T>
  __device__ std::size_t offset_bytes(std::size_t packet) const {
    return static_cast<std::size_t>(partition) * schedule.reduction.count * sizeof(T) +
           packet * PartitionPacket::kDataBytes;
  }
  template <class T>
  __device__ std::size_t count(std::size_t packet) const {
    return schedule.reduction.count - packet * PacketData<T>::kElements;
  }
};

template <class T>
__device__ PacketData<T> own_data(const PacketSlice& slice, std::size_t packet) {
  const PartitionReduction& reduction = slice.schedule.reduction;
  return PacketData<T>(
      static_cast<const char*>(reduction.sources[reduction.rank]) + slice.offset_bytes<T>(packet),
      slice.count<T>(packet), slice.schedule.aligned != 0);
}

template <class T>
__device__ void give(const PacketSlice& slice) {
  const PartitionReduction& reduction = slice.schedule.reduction;
  for (unsigned i = 0; i < kPacketsPerThread; ++i) {
    const std::size_t packet = slice.packet(i);
    if (packet >= slice.packets) return;
    const std::uint64_t data = own_data<T>(slice, packet).raw();
    for (int distance = 1; distance < reduction.ranks; ++distance) {
      const int to = (reduction.rank + distance) % reduction.ranks;
      store_packet(slice.at(to, reduction.rank) + packet, data, slice.schedule.round);
    }
  }
}

// Whether all of it has come, which then is reduced, in rank order.
template <class T, ReduceOp op>
__device__ bool reduce(const PacketSlice& slice) {
  using Data = PacketData<T>;
  const PartitionReduction& reduction = slice.schedule.reduction;
  std::uint64_t results[kPacketsPerThread];
  bool here = true;
#pragma unroll
  for (unsigned i = 0; i < kPacketsPerThread; ++i) {
    const std::size_t packet = slice.packet(i);
    if (packet >= slice.packets) continue;
    Data result(0);
    for (int from = 0; from < reduction.ranks; ++from) {
      std::uint64_t raw = 0;
      if (from == reduction.rank) {
        raw = own_data<T>(slice, packet).raw();
      } else {
        here =
            load_packet(slice.at(reduction.rank, from) + packet, slice.schedule.round, raw) && here;
      }
      const Data next(raw);
#pragma unroll
      for (unsigned k = 0; k < Data::kElements; ++k)
        result.elements[k] =
            from == 0 ? next.elements[k] : combine<op>(result.elements[k], next.elements[k]);
    }
    results[i] = result.raw();
  }
  if (__syncthreads_and(here ? 1 : 0) == 0) return false;
  auto* const target = static_cast<char*>(reduction.targets[0]);  // the first one is its own
#pragma unroll
  for (unsigned i = 0; i < kPacketsPerThread; ++i) {
    const std::size_t packet = slice.packet(i);
    if (packet < slice.packets)
      Data(results[i])
          .store(target + slice.offset_bytes<T>(packet), slice.count<T>(packet),
                 slice.schedule.aligned != 0);
  }
  __syncthreads();
  return true;
}

// What the threads of a block share.
struct PacketBlock {
  int first;      // of the partitions of the team, all before it are through
  int partition;  // the next to work on; -1: there is none now, -2: none is left
  int last;       // of the partitions of the team, the one that was tried last
  bool gives;     // its packets have yet to be written
  bool moved;     // since the last look
  std::uint64_t waits_since_ns;
};

// By the first warp, each thread looking at one partition: those whose packets can be written come
// first, the others in turns.
__device__ inline void look(const PartitionSchedule& schedule, std::uint32_t slice, int team,
                            PacketBlock& block) {
  __syncwarp();
  const Words words{schedule.reduction};
  const int teams = static_cast<int>(schedule.teams);
  const int lane = static_cast<int>(threadIdx.x);
  const int partition = team + (block.first + lane) * teams;
  const bool exists = partition < schedule.reduction.partitions;
  const auto holds = [&](const std::uint32_t* word) { return load_word(word) == schedule.round; };
  bool done = true;
  bool given = false;
  bool marked = false;
  if (exists) {
    done = holds(words.done(partition, schedule.slices, slice));
    given = holds(words.given(partition, schedule.slices, slice));
    marked = holds(words.ready(partition) + schedule.reduction.rank);
  }
  const unsigned through = __ballot_sync(kAllLanes, done);
  const unsigned to_give = __ballot_sync(kAllLanes, marked && !given && !done);
  const unsigned waiting = __ballot_sync(kAllLanes, given && !done);
  const unsigned any = __ballot_sync(kAllLanes, exists);
  if (to_give != 0) fence_system();
  if (lane != 0) return;
  block.gives = to_give != 0;
  const int tried = block.last - block.first;  // its lane
  const unsigned later = tried < 0 || tried >= kWarp - 1 ? 0 : waiting & (kAllLanes << (tried + 1));
  const unsigned chosen = to_give != 0 ? to_give : later != 0 ? later : waiting;
  if (chosen != 0) {
    block.last = block.first + __ffs(static_cast<int>(chosen)) - 1;
    block.partition = team + block.last * teams;
  } else {
    block.partition = any == 0 ? -2 : -1;
  }
  block.first += through == kAllLanes ? kWarp : __ffs(static_cast<int>(~through)) - 1;
  const std::uint64_t now = now_ns();
  if (block.moved || block.gives) block.waits_since_ns = now;
  block.moved = false;
  if (now - block.waits_since_ns > schedule.patience_ns) block.partition = -2;
}

// By one thread, once all of the block are through with their part: tells the host if all blocks
// are.
__device__ inline void tell_host(const PacketSlice& slice) {
  const PartitionSchedule& schedule = slice.schedule;
  const Words words{schedule.reduction};
  store_word(words.done(slice.partition, schedule.slices, slice.slice), schedule.round);
  if (schedule.slices > 1 &&
      !counts_last(words.through(slice.partition), schedule.round, schedule.slices))
    return;
  fence_system();
  store_word(schedule.arrived + slice.partition, schedule.round);
}

template <class T, ReduceOp op>
__device__ void work_by_packets(const PartitionSchedule& schedule, PacketBlock& block) {
  const auto team = static_cast<int>(blockIdx.x / schedule.slices);
  const std::uint32_t number = blockIdx.x % schedule.slices;
  const bool leads = threadIdx.x == 0;
  if (leads) block = {0, -1, -1, false, true, 0};
  __syncthreads();
  for (;;) {
    if (threadIdx.x < kWarp) look(schedule, number, team, block);
    __syncthreads();
    const int partition = block.partition;
    const bool gives = block.gives;
    if (partition == -2) return;
    if (partition >= 0) {
      const PacketSlice slice{schedule, partition, number,
                              packets_of(schedule.reduction.count, sizeof(T))};
      if (gives) give<T>(slice);
      __syncthreads();
      if (gives && leads)
        store_word(Words{schedule.reduction}.given(partition, schedule.slices, number),
                   schedule.round);
      bool done = false;
      for (int i = 0; i < kPacketLooks && !done; ++i) done = reduce<T, op>(slice);
      if (done && leads) {
        tell_host(slice);
        block.moved = true;
      }
    }
    __syncthreads();
  }
}

}  // namespace accord::device::cuda
