// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One reduction of all ranks of a node to all of them, or a broadcast from one to all others, cut
// into partitions that become ready one by one. Each partition is cut into shares, and each share
// has an owner among the ranks: once all ranks have marked the partition ready, the owner's kernel
// reads that share from all ranks' buffers, combines them in rank order, and stores the result into
// all ranks' buffers. What ranks tell each other are words in their device memory that hold the
// number of a round: they say yes for that round and no for any other, so nothing is reset between
// rounds. Who marks waits for no other rank, and the kernels wait only for those who mark, so
// nobody waits in a circle. A source may be the same rank's target: an owner alone reads and writes
// its share, element by element. Of a broadcast only its root marks, and an owner stores its share
// of what the root has with all others. Short partitions are not shared out but go by packets: each
// rank writes what it has of one into all others' memory, and reduces all of it itself; there the
// ranks need not tell each other. Knows no MPI. Included by kernels too, hence no more than the
// standard library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/reduction.h"

namespace accord::device {

constexpr int kPartitionRanksMax = 32;

// As this rank's device reaches it all. Every rank has the same but for the addresses.
struct PartitionReduction {
  int rank = 0;
  int ranks = 0;
  int partitions = 0;
  std::size_t count = 0;  // elements of a partition, above zero
  ReduceOp op = ReduceOp::none;
  Element element = Element::none;
  bool by_packets = false;
  static constexpr int kNoRoot = -1;
  int root = kNoRoot;  // else of a broadcast
  // By rank. Partitions lie one after the other.
  const void* sources[kPartitionRanksMax] = {};
  void* targets[kPartitionRanksMax] = {};
  // Of so many words each (partition_words), zero before the first round.
  std::uint32_t* words[kPartitionRanksMax] = {};
};

// Who gives anything: so many ranks from that one on. The others have marked all partitions once
// they have started, so that nobody writes to one that has not.
ACCORD_HOST_DEVICE constexpr int first_giver(const PartitionReduction& reduction) {
  return reduction.root == PartitionReduction::kNoRoot ? 0 : reduction.root;
}
ACCORD_HOST_DEVICE constexpr int givers(const PartitionReduction& reduction) {
  return reduction.root == PartitionReduction::kNoRoot ? reduction.ranks : 1;
}
ACCORD_HOST_DEVICE constexpr bool gives(const PartitionReduction& reduction) {
  return reduction.root == PartitionReduction::kNoRoot || reduction.root == reduction.rank;
}
// Whose targets are written: so many, number 0 to the last one for this rank. Each begins with
// itself or a rank behind it, so that not all write to one at a time.
ACCORD_HOST_DEVICE constexpr int getters(const PartitionReduction& reduction) {
  return reduction.root == PartitionReduction::kNoRoot ? reduction.ranks : reduction.ranks - 1;
}
ACCORD_HOST_DEVICE constexpr int getter(const PartitionReduction& reduction, int number) {
  const int which = (reduction.rank + number) % getters(reduction);
  return reduction.root == PartitionReduction::kNoRoot
             ? which
             : (reduction.root + 1 + which) % reduction.ranks;
}

// Words of a rank's memory. First, by partition and rank, whether that rank has marked it ready.
ACCORD_HOST_DEVICE constexpr std::size_t ready_word(int ranks, int partition, int rank) {
  return static_cast<std::size_t>(partition) * static_cast<std::size_t>(ranks) +
         static_cast<std::size_t>(rank);
}
// Then, by partition and share, whether the result of that share lies in this rank's target.
ACCORD_HOST_DEVICE constexpr std::size_t landed_word(int ranks, int partitions, int partition,
                                                     int share) {
  return ready_word(ranks, partitions + partition, share);
}
// Then what its own kernel has done: by partition and slice of the rank's share, and how many
// slices of each are through, two words each, and how many blocks have left.
ACCORD_HOST_DEVICE constexpr std::size_t own_words(int ranks, int partitions) {
  const std::size_t shared = ready_word(ranks, 2 * partitions, 0);
  return shared + shared % 2;
}
ACCORD_HOST_DEVICE constexpr std::size_t partition_words(int ranks, int partitions, int slices) {
  return own_words(ranks, partitions) + 2 * (static_cast<std::size_t>(partitions) + 1) +
         static_cast<std::size_t>(partitions) * static_cast<std::size_t>(slices);
}

// By packets: after all these, by partition and slice, whether this rank's packets have been
// written; then, aligned, the packets themselves. Each half of one is written and read at once, so
// who finds the round in it has its data, and nothing is told or waited for besides.
struct alignas(16) PartitionPacket {
  static constexpr std::size_t kDataBytes = 8;
  std::uint32_t low;
  std::uint32_t low_round;
  std::uint32_t high;
  std::uint32_t high_round;
};
ACCORD_HOST_DEVICE constexpr std::size_t given_words(int ranks, int partitions, int slices) {
  return partition_words(ranks, partitions, slices);
}
ACCORD_HOST_DEVICE constexpr std::size_t packet_words(int ranks, int partitions, int slices) {
  const std::size_t before =
      given_words(ranks, partitions, slices) +
      static_cast<std::size_t>(partitions) * static_cast<std::size_t>(slices);
  return (before + 3) / 4 * 4;
}
ACCORD_HOST_DEVICE constexpr std::size_t packets_of(std::size_t count, std::size_t element_bytes) {
  return (count * element_bytes + PartitionPacket::kDataBytes - 1) / PartitionPacket::kDataBytes;
}
// A rank begins a round once it has all packets of the one before, which the others begin once they
// have those of the one before that. So these places are free again; and of three rounds in a row
// no two have the same, also where they wrap (there is no round 0).
constexpr std::uint32_t kPacketTurns = 3;
// The first packet of a partition, counted from the first of all.
ACCORD_HOST_DEVICE constexpr std::size_t first_packet(int ranks, int partitions,
                                                      std::size_t packets, std::uint32_t round,
                                                      int from, int partition) {
  const std::size_t place =
      static_cast<std::size_t>(round % kPacketTurns) * static_cast<std::size_t>(ranks) +
      static_cast<std::size_t>(from);
  return (place * static_cast<std::size_t>(partitions) + static_cast<std::size_t>(partition)) *
         packets;
}

// Shares begin at multiples of a line, so that no two ranks write to the same one where a partition
// does; short partitions have fewer shares than there are ranks.
constexpr std::size_t kShareLineBytes = 128;
ACCORD_HOST_DEVICE constexpr std::size_t share_elements(std::size_t count, int ranks,
                                                        std::size_t bytes) {
  const std::size_t line = kShareLineBytes % bytes == 0 ? kShareLineBytes / bytes : 1;
  const std::size_t even =
      (count + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
  return (even + line - 1) / line * line;
}
ACCORD_HOST_DEVICE constexpr int shares_of(std::size_t count, std::size_t share) {
  return static_cast<int>((count + share - 1) / share);
}
// The share of this partition that a rank owns, if it is one of those that there are: the first
// shares of different partitions belong to different ranks.
ACCORD_HOST_DEVICE constexpr int share_of(int rank, int ranks, int partition) {
  return (rank + ranks - partition % ranks) % ranks;
}

// Blocks of a kernel at most: enough to keep the links busy, and half of a device.
constexpr int kPartitionBlocksMax = 128;

// How many slices a rank's share of each partition is cut into, each for a block. Half as long they
// are no quicker for short shares, and long ones take a quarter more (2 H200). Where there are
// several partitions two may be worked on at a time.
constexpr std::size_t kPartitionSliceBytes = 16 << 10;
constexpr unsigned kPacketsPerSlice = 512;
constexpr int partition_slices(const PartitionReduction& reduction) {
  const std::size_t bytes = element_bytes(reduction.element);
  if (reduction.by_packets)
    return static_cast<int>((packets_of(reduction.count, bytes) + kPacketsPerSlice - 1) /
                            kPacketsPerSlice);
  const int most = reduction.partitions > 1 ? kPartitionBlocksMax / 2 : kPartitionBlocksMax;
  const std::size_t slices =
      share_elements(reduction.count, reduction.ranks, bytes) * bytes / kPartitionSliceBytes;
  if (slices < 1) return 1;
  return slices < static_cast<std::size_t>(most) ? static_cast<int>(slices) : most;
}

// In host memory that the device reaches, zero at first: a word for each partition, which holds the
// number of the round once its result is in this rank's target, and one of the reducer's own.
constexpr std::size_t partition_host_words(int partitions) {
  return static_cast<std::size_t>(partitions) + 1;
}

// The memory of PartitionReduction::words.
constexpr std::size_t partition_memory_bytes(const PartitionReduction& reduction) {
  const int slices = partition_slices(reduction);
  if (!reduction.by_packets)
    return partition_words(reduction.ranks, reduction.partitions, slices) * sizeof(std::uint32_t);
  const std::size_t packets = packets_of(reduction.count, element_bytes(reduction.element));
  return packet_words(reduction.ranks, reduction.partitions, slices) * sizeof(std::uint32_t) +
         packets * static_cast<std::size_t>(reduction.partitions) *
             static_cast<std::size_t>(reduction.ranks) * kPacketTurns * sizeof(PartitionPacket);
}

// Whether packets are the faster way: they take twice the bytes, to each of the others, but one way
// from rank to rank instead of three (marks, what is read, results), each of some microseconds. And
// whether they are no more than a device may well give for it.
constexpr std::size_t kPacketBytesMax = 256 << 10;  // of all partitions, to all others
constexpr std::size_t kPacketMemoryMax = 16 << 20;
constexpr bool suits_packets(PartitionReduction reduction,
                             std::size_t bytes_max = kPacketBytesMax) {
  const std::size_t bytes = static_cast<std::size_t>(reduction.partitions) * reduction.count *
                            element_bytes(reduction.element);
  reduction.by_packets = true;
  return reduction.ranks > 1 && reduction.root == PartitionReduction::kNoRoot &&
         bytes <= bytes_max / static_cast<std::size_t>(reduction.ranks - 1) &&
         partition_slices(reduction) <= kPartitionBlocksMax &&
         partition_memory_bytes(reduction) <= kPacketMemoryMax;
}

}  // namespace accord::device
