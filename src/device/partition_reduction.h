// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective among the ranks of a node, cut into partitions that become ready one by one, as the
// kernel of one rank does it. What a rank is to do with each partition is a share of it: once the
// ranks that give to it have marked the partition ready, and those that get from it have started,
// its kernel reads the share from the givers' buffers, combines it in rank order, stores the result
// into the getters' buffers, and says so. Who gives and who gets makes the collective
// (device/partition_shape.h); the kernel does not know which one it is. Where all ranks get the
// same they cut each partition into shares among them, else a rank's share is its own block.
// What ranks tell each other are words in their device memory that hold the number of a round: they
// say yes for that round and no for any other, so nothing is reset between rounds. Who marks waits
// for no other rank, and the kernels wait only for those who mark and start, so nobody waits in a
// circle. A rank is through with a partition once the shares have landed that it gives to or gets
// from: so no rank begins the next round while another one still looks at its words of this one. A
// source may be the same rank's target where an owner alone reads and writes it, element by
// element. Short partitions of what all give and all get may go by packets instead: each rank
// writes what it has of one into all others' memory, and reduces all of it itself; there the ranks
// need not tell each other. Knows no MPI. Included by kernels too, hence no more than the standard
// library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/reduction.h"

namespace accord::device {

constexpr int kPartitionRanksMax = 32;

// As this rank's device reaches it all, and made for this rank.
struct PartitionReduction {
  int rank = 0;
  int ranks = 0;
  int partitions = 0;
  std::size_t count = 0;  // elements of a partition; of pairs, of the longest one
  ReduceOp op = ReduceOp::none;
  Element element = Element::none;
  bool by_packets = false;
  bool shared = true;        // the ranks share each partition out
  bool tells_start = false;  // some rank, maybe this one, waits until this one has started
  // So many from that one on.
  struct Ranks {
    int first = 0;
    int count = 0;
    constexpr bool has(int rank) const noexcept { return rank >= first && rank < first + count; }
  };
  Ranks givers;    // who has to have marked a partition
  Ranks starters;  // who has to have started, where that does not follow from marks
  Ranks awaited;   // the shares, by number, without which a partition is not through
  // What is read, in the order in which it is combined, and where the result goes, a partition
  // behind the other. Pairs are not combined: each source goes to the target of its number.
  int source_count = 0;
  int target_count = 0;
  int pairs = 0;  // 0: no pairs
  const void* sources[kPartitionRanksMax] = {};
  void* targets[kPartitionRanksMax] = {};
  std::size_t counts[kPartitionRanksMax] = {};  // of pairs
  // Of all ranks, so many words each (partition_words), zero before the first round.
  std::uint32_t* words[kPartitionRanksMax] = {};
};

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
// Then, by rank, whether it has started.
ACCORD_HOST_DEVICE constexpr std::size_t started_word(int ranks, int partitions, int rank) {
  return ready_word(ranks, 2 * partitions, rank);
}
// Then what its own kernel has done: by partition and slice of the rank's share, and how many
// slices of each are through, two words each, and how many blocks have left.
ACCORD_HOST_DEVICE constexpr std::size_t own_words(int ranks, int partitions) {
  const std::size_t shared = started_word(ranks, partitions, ranks);
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
// The numbers of shares are below this one, and this rank's is that one.
constexpr int share_count(const PartitionReduction& reduction) {
  if (!reduction.shared) return reduction.ranks;
  return shares_of(reduction.count, share_elements(reduction.count, reduction.ranks,
                                                   element_bytes(reduction.element)));
}
ACCORD_HOST_DEVICE constexpr int own_share(const PartitionReduction& reduction, int partition) {
  return reduction.shared ? share_of(reduction.rank, reduction.ranks, partition) : reduction.rank;
}

// Blocks of a kernel at most: enough to keep the links busy, and half of a device.
constexpr int kPartitionBlocksMax = 128;

// How many slices a rank's share of each partition is cut into, each for a block. Half as long they
// are no quicker for short shares, and long ones take a quarter more (2 H200). Where there are
// several partitions two may be worked on at a time. Each pair has as many of its own.
constexpr std::size_t kPartitionSliceBytes = 16 << 10;
constexpr unsigned kPacketsPerSlice = 512;
constexpr int partition_slices(const PartitionReduction& reduction) {
  const std::size_t bytes = element_bytes(reduction.element);
  if (reduction.by_packets)
    return static_cast<int>((packets_of(reduction.count, bytes) + kPacketsPerSlice - 1) /
                            kPacketsPerSlice);
  const int pairs = reduction.pairs > 0 ? reduction.pairs : 1;
  const int most =
      (reduction.partitions > 1 ? kPartitionBlocksMax / 2 : kPartitionBlocksMax) / pairs;
  const std::size_t share =
      reduction.shared ? share_elements(reduction.count, reduction.ranks, bytes) : reduction.count;
  const std::size_t slices = share * bytes / kPartitionSliceBytes;
  if (slices < 1) return pairs;
  return pairs * (slices < static_cast<std::size_t>(most) ? static_cast<int>(slices) : most);
}

// In host memory that the device reaches, zero at first: a word for each partition, which holds the
// number of the round once its result is in this rank's target, and one of the reducer's own.
constexpr std::size_t partition_host_words(int partitions) {
  return static_cast<std::size_t>(partitions) + 1;
}

// Of the sources and targets of this number, all partitions.
constexpr std::size_t place_bytes(const PartitionReduction& reduction, int number) {
  const std::size_t count = reduction.pairs > 0 ? reduction.counts[number] : reduction.count;
  return static_cast<std::size_t>(reduction.partitions) * count * element_bytes(reduction.element);
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

// What of a rank's words others write.
constexpr std::size_t shared_memory_bytes(const PartitionReduction& reduction) {
  return reduction.by_packets
             ? partition_memory_bytes(reduction)
             : own_words(reduction.ranks, reduction.partitions) * sizeof(std::uint32_t);
}

// Whether packets are the faster way: they take twice the bytes, to each of the others, but one way
// from rank to rank instead of three (marks, what is read, results), each of some microseconds. And
// whether they are no more than a device may well give for it. For what all give and all get.
constexpr std::size_t kPacketBytesMax = 256 << 10;  // of all partitions, to all others
constexpr std::size_t kPacketMemoryMax = 16 << 20;
constexpr bool suits_packets(PartitionReduction reduction,
                             std::size_t bytes_max = kPacketBytesMax) {
  const std::size_t bytes = static_cast<std::size_t>(reduction.partitions) * reduction.count *
                            element_bytes(reduction.element);
  reduction.by_packets = true;
  return reduction.ranks > 1 &&
         bytes <= bytes_max / static_cast<std::size_t>(reduction.ranks - 1) &&
         partition_slices(reduction) <= kPartitionBlocksMax &&
         partition_memory_bytes(reduction) <= kPacketMemoryMax;
}

}  // namespace accord::device
