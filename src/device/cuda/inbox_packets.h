// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges in packets (device/inbox.h), for the resident kernel: a packet is stored and
// loaded by one access of 128 bits, which PTX lets be strong from sm_70 on. What a peer sees of it
// over NVLink, or on the same device, is all of it.
#pragma once

#include "device/cuda/inbox_units.h"

namespace accord::device::cuda {

__device__ inline void store_packet(void* address, std::uint32_t first, std::uint32_t second,
                                    std::uint32_t third, std::uint32_t epoch) {
  const std::uint64_t low = std::uint64_t{second} << 32 | first;
  const std::uint64_t high = std::uint64_t{epoch} << 32 | third;
  asm volatile(
      "{\n\t"
      ".reg .b128 packet;\n\t"
      "mov.b128 packet, {%1, %2};\n\t"
      "st.relaxed.sys.global.b128 [%0], packet;\n\t"
      "}"
      :
      : "l"(address), "l"(low), "l"(high)
      : "memory");
}

// Its epoch comes last.
__device__ inline uint4 load_packet(const void* address) {
  std::uint64_t low;
  std::uint64_t high;
  asm volatile(
      "{\n\t"
      ".reg .b128 packet;\n\t"
      "ld.relaxed.sys.global.b128 packet, [%2];\n\t"
      "mov.b128 {%0, %1}, packet;\n\t"
      "}"
      : "=l"(low), "=l"(high)
      : "l"(address)
      : "memory");
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
          static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
}

__device__ inline char* packet_of(char* inbox, const InboxCommand& command, int rank,
                                  unsigned bundles, unsigned row, unsigned bundle) {
  const unsigned turn = (command.flags & kInboxSecondLanes) != 0 ? 1 : 0;
  return inbox +
         inbox_packet_offset(inbox_lane(rank, turn), command.lane_bytes, bundles, row, bundle);
}

// Whether all units are whole, and lie where 16 bytes can be accessed at once: no other than these
// accesses then stands in the loops, which leaves them the registers.
__device__ inline bool is_whole(const InboxCommand& command) {
  return (command.src | command.dst | command.block_bytes) % kInboxUnitBytes == 0;
}

// The units of a bundle; what lies behind the block's last one is 0.
template <bool kWhole>
__device__ inline void load_bundle(const InboxCommand& command, int peer, unsigned bundles,
                                   unsigned bundle, uint4* units) {
  const unsigned count = units_of(command);
#pragma unroll
  for (unsigned i = 0; i < kInboxUnitsPerBundle; ++i) {
    const unsigned unit = i * bundles + bundle;
    units[i] = uint4{};
    if (unit >= count) continue;
    const char* const source = source_of(command, peer, unit);
    units[i] = kWhole ? load_past_l1(source) : load_unit(source, length_of(command, unit));
  }
}

template <bool kWhole>
__device__ inline void store_bundle(const InboxCommand& command, int peer, unsigned bundles,
                                    unsigned bundle, const uint4* units) {
  const std::size_t stride = (command.flags & kInboxReceiveStride) != 0 ? command.block_bytes : 0;
  char* const dst = reinterpret_cast<char*>(command.dst) + static_cast<std::size_t>(peer) * stride;
  const unsigned count = units_of(command);
#pragma unroll
  for (unsigned i = 0; i < kInboxUnitsPerBundle; ++i) {
    const unsigned unit = i * bundles + bundle;
    if (unit >= count) continue;
    char* const to = dst + unit * kInboxUnitBytes;
    if (kWhole) {
      *reinterpret_cast<uint4*>(to) = units[i];
    } else {
      store_unit(to, length_of(command, unit), units[i]);
    }
  }
}

template <bool kWhole, unsigned kBundles>
__device__ void send_packets(const InboxCommand& command, char* const* inboxes, unsigned bundles,
                             Units mine) {
  const bool strided = (command.flags & kInboxSendStride) != 0;
  uint4 units[kBundles][kInboxUnitsPerBundle];
  bool loaded = false;
  for (std::uint64_t left = command.send_to; left != 0;) {
    const int peer = take_peer(left, command.rank);
    if (!loaded || strided) {
#pragma unroll
      for (unsigned i = 0; i < kBundles; ++i)
        load_bundle<kWhole>(command, peer, bundles, mine[i], units[i]);
      loaded = true;
    }
#pragma unroll
    for (unsigned i = 0; i < kBundles; ++i) {
      const auto to = [&](unsigned row) {
        return packet_of(inboxes[peer], command, command.rank, bundles, row, mine[i]);
      };
#pragma unroll
      for (unsigned row = 0; row < kInboxUnitsPerBundle; ++row)
        store_packet(to(row), units[i][row].x, units[i][row].y, units[i][row].z, command.epoch);
      store_packet(to(kInboxUnitsPerBundle), units[i][0].w, units[i][1].w, units[i][2].w,
                   command.epoch);
    }
  }
}

// Bundles as their sender put them into its lane here. False: not all have come in time.
template <unsigned kBundles>
__device__ bool await_packets(const InboxCommand& command, unsigned bundles, const int* peers,
                              const unsigned* mine, std::uint64_t deadline_ns,
                              uint4 (*packets)[kInboxPacketsPerBundle]) {
  char* const inbox = reinterpret_cast<char*>(command.inbox);
  for (bool complete = false; !complete;) {
#pragma unroll
    for (unsigned i = 0; i < kBundles; ++i) {
      if (peers[i] < 0) continue;
#pragma unroll
      for (unsigned row = 0; row < kInboxPacketsPerBundle; ++row)
        packets[i][row] = load_packet(packet_of(inbox, command, peers[i], bundles, row, mine[i]));
    }
    complete = true;
#pragma unroll
    for (unsigned i = 0; i < kBundles; ++i) {
      if (peers[i] < 0) continue;
#pragma unroll
      for (unsigned row = 0; row < kInboxPacketsPerBundle; ++row)
        complete = complete && packets[i][row].w == command.epoch;
    }
    if (!complete && now_ns() > deadline_ns) return false;
  }
  return true;
}

__device__ inline void open_packets(uint4* packets) {
  const uint4 last = packets[kInboxUnitsPerBundle];
  packets[0].w = last.x;
  packets[1].w = last.y;
  packets[2].w = last.z;
}

// Some bundles of each sender, in the order of the ranks, kPeers of them at once. False: some have
// not come in time.
template <bool kWhole, unsigned kBundles, unsigned kPeers>
__device__ bool receive_packets(const InboxCommand& command, unsigned bundles, Units mine,
                                std::uint64_t deadline_ns) {
  constexpr unsigned kAll = kBundles * kPeers;
  const unsigned code = static_cast<unsigned>(command.op) << 8 | command.element;
  const bool own_from_source = (command.flags & kInboxOwnFromSource) != 0;
  uint4 sums[kBundles][kInboxUnitsPerBundle] = {};
  // Under way together with the first packets: in registers of its own, or it would be waited for.
  uint4 own[kBundles][kInboxUnitsPerBundle];
  if (own_from_source) {
#pragma unroll
    for (unsigned i = 0; i < kBundles; ++i)
      load_bundle<kWhole>(command, command.rank, bundles, mine[i], own[i]);
  }
  bool first = true;
  for (std::uint64_t left = command.receive_from; left != 0;) {
    int peers[kAll];    // -1: none left
    int senders[kAll];  // the same, and where nothing is to come from
    unsigned at[kAll];
    uint4 packets[kAll][kInboxPacketsPerBundle];
#pragma unroll
    for (unsigned k = 0; k < kPeers; ++k) {
      const int peer = __ffsll(static_cast<long long>(left)) - 1;
      left &= left - 1;
#pragma unroll
      for (unsigned i = 0; i < kBundles; ++i) {
        peers[k * kBundles + i] = peer;
        senders[k * kBundles + i] = own_from_source && peer == command.rank ? -1 : peer;
        at[k * kBundles + i] = mine[i];
      }
    }
    if (!await_packets<kAll>(command, bundles, senders, at, deadline_ns, packets)) return false;
#pragma unroll
    for (unsigned k = 0; k < kPeers; ++k) {
      if (peers[k * kBundles] < 0) continue;
#pragma unroll
      for (unsigned i = 0; i < kBundles; ++i) {
        uint4* const units = packets[k * kBundles + i];
        if (senders[k * kBundles + i] >= 0) {
          open_packets(units);
        } else {
#pragma unroll
          for (unsigned n = 0; n < kInboxUnitsPerBundle; ++n) units[n] = own[i][n];
        }
        if (command.op == 0) {
          store_bundle<kWhole>(command, peers[k * kBundles + i], bundles, mine[i], units);
          continue;
        }
#pragma unroll
        for (unsigned n = 0; n < kInboxUnitsPerBundle; ++n)
          sums[i][n] = first ? units[n] : combine_units(code, sums[i][n], units[n]);
      }
      first = false;
    }
  }
  if (command.op == 0 || first) return true;
#pragma unroll
  for (unsigned i = 0; i < kBundles; ++i)
    store_bundle<kWhole>(command, 0, bundles, mine[i], sums[i]);
  return true;
}

// All threads of the block; kBundles of a sender, or one of kPeers senders, at once. False where
// data of a peer has not come in time.
template <bool kWhole, unsigned kBundles, unsigned kPeers>
__device__ bool exchange_packets(const InboxCommand& command, char* const* inboxes) {
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned step = gridDim.x * blockDim.x;
  const unsigned count = inbox_bundles(command.block_bytes);
  constexpr unsigned kMore = kBundles - 1;
  if ((command.flags & kInboxSend) != 0) {
    unsigned bundle = first;
    for (; bundle + kMore * step < count; bundle += kBundles * step)
      send_packets<kWhole, kBundles>(command, inboxes, count, {bundle, step});
    for (; bundle < count; bundle += step)
      send_packets<kWhole, 1>(command, inboxes, count, {bundle, step});
  }
  __syncthreads();  // dst may be src
  const std::uint64_t deadline_ns = now_ns() + command.wait_us * 1000u;
  bool all = true;
  unsigned bundle = first;
  for (; all && bundle + kMore * step < count; bundle += kBundles * step)
    all = receive_packets<kWhole, kBundles, 1>(command, count, {bundle, step}, deadline_ns);
  for (; all && bundle < count; bundle += step)
    all = receive_packets<kWhole, 1, kPeers>(command, count, {bundle, step}, deadline_ns);
  return __syncthreads_and(all) != 0;
}

__device__ inline bool execute_packets(const InboxCommand& command, char* const* inboxes) {
  return is_whole(command) ? exchange_packets<true, 2, 2>(command, inboxes)
                           : exchange_packets<false, 1, 1>(command, inboxes);
}

}  // namespace accord::device::cuda
