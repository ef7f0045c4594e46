// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Small messages between the devices of a node: each rank has an inbox in its device memory, with
// two lanes for every rank. Senders write straight into their lane of the receiver's inbox; each
// word carries data and the number of the call, so that the data is its own flag and needs neither
// fence nor counter (the idea of NCCL's LL protocol). What one call of all ranks moves and combines
// is an InboxExchange; an InboxServer (inbox_server.h) runs this rank's part of it. Knows no MPI.
// Included by kernels too, hence no more than the standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/reduction.h"

namespace accord::device {

// Half of a unit: stored and loaded whole, 8 bytes at a time at least, so that data and epoch of a
// half always belong together.
struct alignas(16) InboxWord {
  std::uint32_t low;
  std::uint32_t low_epoch;
  std::uint32_t high;
  std::uint32_t high_epoch;
};
static_assert(sizeof(InboxWord) == 16);

// What is sent and combined at once: two words of a lane.
constexpr std::size_t kInboxUnitBytes = 16;
constexpr std::size_t kInboxWordsPerUnit = 2;
static_assert(sizeof(InboxWord) == kInboxUnitBytes);

// An inbox starts with the addresses of all ranks' inboxes, as this rank's device reaches them.
constexpr int kInboxRanksMax = 64;
constexpr std::size_t kInboxHeaderBytes = kInboxRanksMax * sizeof(std::uint64_t);

// Every rank has two lanes, used in turn: so it may send again before its receivers are through
// with what it sent last.
constexpr int kInboxLanesPerRank = 2;
ACCORD_HOST_DEVICE constexpr int inbox_lane(int rank, unsigned turn) {
  return rank * kInboxLanesPerRank + static_cast<int>(turn);
}

// `lane_bytes` of data fit into a lane: a multiple of kInboxUnitBytes.
ACCORD_HOST_DEVICE constexpr std::size_t inbox_lane_offset(int lane, std::size_t lane_bytes) {
  return kInboxHeaderBytes + static_cast<std::size_t>(lane) * kInboxWordsPerUnit * lane_bytes;
}
// The first words of all units of a lane lie before the second ones, so that threads side by side
// write and read whole lines.
ACCORD_HOST_DEVICE constexpr std::size_t inbox_word_offset(int lane, std::size_t lane_bytes,
                                                           std::size_t unit, std::size_t word) {
  return inbox_lane_offset(lane, lane_bytes) + word * lane_bytes + unit * sizeof(InboxWord);
}

// Where devices store and load 16 bytes as one, a lane may carry packets instead of words: 12 bytes
// of data and the epoch. A bundle is three units in four packets: each of the first three has three
// quarters of one unit, the last has the fourth quarters of all. The units of a bundle lie a third
// of the block apart, its packets a row apart, so that threads side by side access whole lines. What
// a lane carried before may look like the epoch of a word, except in its last quarter.
constexpr std::size_t kInboxUnitsPerBundle = 3;
constexpr std::size_t kInboxPacketsPerBundle = 4;
constexpr std::size_t kInboxLaneBytesOfPackets = 2 * kInboxUnitBytes;  // of data, at least
struct alignas(16) InboxPacket {
  std::uint32_t data[kInboxUnitsPerBundle];
  std::uint32_t epoch;
};
static_assert(sizeof(InboxPacket) == sizeof(InboxWord));

ACCORD_HOST_DEVICE constexpr unsigned inbox_bundles(std::size_t block_bytes) {
  constexpr std::size_t kBytes = kInboxUnitsPerBundle * kInboxUnitBytes;
  return static_cast<unsigned>((block_bytes + kBytes - 1) / kBytes);
}
ACCORD_HOST_DEVICE constexpr std::size_t inbox_packet_offset(int lane, std::size_t lane_bytes,
                                                             std::size_t bundles, std::size_t row,
                                                             std::size_t bundle) {
  return inbox_lane_offset(lane, lane_bytes) + (row * bundles + bundle) * sizeof(InboxPacket);
}
constexpr std::size_t inbox_bytes(int ranks, std::size_t lane_bytes) {
  return inbox_lane_offset(ranks * kInboxLanesPerRank, lane_bytes);
}

constexpr std::uint64_t inbox_bit(int rank) { return std::uint64_t{1} << rank; }

// What of a call is for one rank and from it, where each pair of ranks has lengths of its own. All
// src and dst lie apart, or are the same for each rank.
struct InboxPart {
  const void* src = nullptr;
  void* dst = nullptr;
  std::size_t send_bytes = 0;  // at most lane_bytes, as is:
  std::size_t receive_bytes = 0;
};

// This rank's part of one call. The blocks for several ranks lie one after the other, or are one
// and the same: strides are block_bytes or 0. All blocks received are combined in the order of the
// ranks where there is an operation, else each is put at its place. src and dst may overlap: all is
// sent before anything is received.
struct InboxExchange {
  std::byte* inbox = nullptr;  // this rank's; device memory of the runtime
  std::uint32_t inbox_number =
      0;  // never 0; another one where an inbox comes to lie at an old address
  std::size_t lane_bytes = 0;
  int rank = 0;
  std::uint32_t epoch = 0;  // of the call, never 0; equal on all ranks
  unsigned turn = 0;        // which lanes it goes through; equal on all ranks
  bool in_packets = false;  // equal on all ranks; not with parts
  const void* src = nullptr;
  void* dst = nullptr;
  bool dst_on_host = false;
  std::size_t block_bytes = 0;  // at most lane_bytes
  std::size_t send_stride_bytes = 0;
  std::size_t receive_stride_bytes = 0;
  std::uint64_t send_to = 0;  // inbox_bit of each receiver, this rank possibly among them
  std::uint64_t receive_from = 0;
  ReduceOp op = ReduceOp::none;
  Element element = Element::none;  // its size divides kInboxUnitBytes
  // By rank, where blocks differ by pair: instead of src, dst, block_bytes and strides, and where
  // there is no operation. They stay where they are until the exchange is done.
  std::span<const InboxPart> parts = {};

  // What goes to `peer`, and what comes from it.
  const std::byte* source(int peer) const {
    const auto at = static_cast<std::size_t>(peer);
    return parts.empty() ? static_cast<const std::byte*>(src) + at * send_stride_bytes
                         : static_cast<const std::byte*>(parts[at].src);
  }
  std::byte* destination(int peer) const {
    const auto at = static_cast<std::size_t>(peer);
    return parts.empty() ? static_cast<std::byte*>(dst) + at * receive_stride_bytes
                         : static_cast<std::byte*>(parts[at].dst);
  }
  std::size_t send_bytes(int peer) const {
    return parts.empty() ? block_bytes : parts[static_cast<std::size_t>(peer)].send_bytes;
  }
  std::size_t receive_bytes(int peer) const {
    return parts.empty() ? block_bytes : parts[static_cast<std::size_t>(peer)].receive_bytes;
  }
};

}  // namespace accord::device
