// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Units of messages and the words of inboxes that carry them (inbox.h), for kernels in C++ for
// OpenCL. A quarter of a unit is stored and loaded as 8 bytes, data and epoch, by relaxed atomic
// accesses that all devices see: of each a receiver sees all or nothing, and needs no fence.
#pragma once

#include "device/inbox.h"
#include "device/launched_inbox_kernels.h"

namespace accord::device::launched {

constexpr uint kInboxQuarters = kInboxUnitBytes / sizeof(uint);

struct InboxUnit {
  uint data[kInboxQuarters];
};

inline ulong load_quarter(ulong address) {
  return atomic_load_explicit(reinterpret_cast<volatile __global atomic_ulong*>(address),
                              memory_order_relaxed, memory_scope_all_svm_devices);
}

inline void store_quarter(ulong address, ulong value) {
  atomic_store_explicit(reinterpret_cast<volatile __global atomic_ulong*>(address), value,
                        memory_order_relaxed, memory_scope_all_svm_devices);
}

inline bool has_rank(ulong ranks, uint rank) { return (ranks >> rank & 1) != 0; }

inline uint units_of(ulong size_bytes) {
  return static_cast<uint>((size_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes);
}

// How much of a block is in this unit.
inline uint length_in_unit(ulong size_bytes, uint unit) {
  const ulong rest = size_bytes - unit * kInboxUnitBytes;
  return static_cast<uint>(rest < kInboxUnitBytes ? rest : kInboxUnitBytes);
}

// Where data and epoch of a quarter of a unit are, in the lane of `rank`.
inline ulong quarter_of(const InboxCall& call, ulong inbox, uint rank, uint unit, uint quarter) {
  constexpr uint kQuartersPerWord = kInboxQuarters / kInboxWordsPerUnit;
  const int lane = inbox_lane(static_cast<int>(rank), call.turn);
  return inbox + inbox_word_offset(lane, call.lane_bytes, unit, quarter / kQuartersPerWord) +
         quarter % kQuartersPerWord * sizeof(ulong);
}

// Up to a unit of the program's memory, at any address; the rest is 0.
inline InboxUnit load_unit(ulong address, uint length) {
  InboxUnit unit{};
  if (address % sizeof(uint) == 0 && length % sizeof(uint) == 0) {
    const __global uint* const from = reinterpret_cast<const __global uint*>(address);
    for (uint i = 0; i < length / sizeof(uint); ++i) unit.data[i] = from[i];
  } else {
    const __global uchar* const from = reinterpret_cast<const __global uchar*>(address);
    for (uint i = 0; i < length; ++i)
      unit.data[i / sizeof(uint)] |= static_cast<uint>(from[i]) << (i % sizeof(uint) * 8);
  }
  return unit;
}

inline void store_unit(ulong address, uint length, const InboxUnit& unit) {
  if (address % sizeof(uint) == 0 && length % sizeof(uint) == 0) {
    __global uint* const to = reinterpret_cast<__global uint*>(address);
    for (uint i = 0; i < length / sizeof(uint); ++i) to[i] = unit.data[i];
  } else {
    __global uchar* const to = reinterpret_cast<__global uchar*>(address);
    for (uint i = 0; i < length; ++i)
      to[i] = static_cast<uchar>(unit.data[i / sizeof(uint)] >> (i % sizeof(uint) * 8));
  }
}

// A unit of what `sender` has put into its lane here, once all of it is of this call. Looks for it
// as often as there are polls left; false: it has not come.
inline bool await_unit(const InboxCall& call, uint sender, uint unit, uint& polls,
                       InboxUnit& result) {
  for (; polls != 0; --polls) {
    bool complete = true;
    for (uint quarter = 0; quarter < kInboxQuarters; ++quarter) {
      const ulong got = load_quarter(quarter_of(call, call.inbox, sender, unit, quarter));
      result.data[quarter] = static_cast<uint>(got);
      complete = complete && static_cast<uint>(got >> 32) == call.epoch;
    }
    if (complete) return true;
  }
  return false;
}

}  // namespace accord::device::launched
