// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What kernels of inbox exchanges (device/inbox.h) have in common: time, the loads and stores of
// units and words, and the arithmetic. Everything that others write while a kernel runs (doorbells,
// the program's buffers, words of the inbox) is loaded past the L1 cache.
#pragma once

#include <cstring>

#include "device/cuda/inbox_kernel.h"
#include "device/inbox.h"
#include "device/reduce_functions.h"

namespace accord::device::cuda {

__device__ inline std::uint64_t now_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// What the host and the peers did before is seen after it: cheaper than a fence (0.7 us, H200).
__device__ inline std::uint64_t load_acquire(const std::uint64_t* address) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

__device__ inline void store_release(std::uint64_t* address, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

// After what the block wrote to its own device, but not after what it sent: peers see that by
// itself, and to wait for it would take most of a microsecond.
__device__ inline void store_after_device(std::uint64_t* address, std::uint64_t value) {
  __threadfence();
  asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

__device__ inline uint4 load_past_l1(const void* address) {
  uint4 value;
  asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address)
               : "memory");
  return value;
}

__device__ inline void store_word(void* address, std::uint32_t low, std::uint32_t high,
                                  std::uint32_t epoch) {
  asm volatile("st.volatile.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(address), "r"(low), "r"(epoch), "r"(high), "r"(epoch)
               : "memory");
}

// The bytes of a unit one by one, which takes a microsecond for each few of them.
static __device__ __noinline__ uint4 load_bytes(const char* address, unsigned length) {
  std::uint32_t words[4] = {};
#pragma unroll
  for (unsigned at = 0; at < kInboxUnitBytes; ++at) {
    if (at < length) {
      const auto byte = *reinterpret_cast<const volatile unsigned char*>(address + at);
      words[at / 4] |= static_cast<std::uint32_t>(byte) << (at % 4 * 8);
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

// Up to a unit of the program's memory, at any address. Loads do not wait for one another.
__device__ inline uint4 load_unit(const char* address, unsigned length) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  if (bits % kInboxUnitBytes == 0 && length == kInboxUnitBytes) return load_past_l1(address);
  if (bits % 4 != 0 || length % 4 != 0) return load_bytes(address, length);
  std::uint32_t words[4] = {};
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (i * 4 < length) words[i] = reinterpret_cast<const volatile std::uint32_t*>(address)[i];
  }
  return {words[0], words[1], words[2], words[3]};
}

__device__ inline void store_unit(char* address, unsigned length, uint4 value) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  if (bits % kInboxUnitBytes == 0 && length == kInboxUnitBytes) {
    *reinterpret_cast<uint4*>(address) = value;
    return;
  }
  const std::uint32_t words[4] = {value.x, value.y, value.z, value.w};
  const bool whole_words = bits % 4 == 0 && length % 4 == 0;
#pragma unroll
  for (unsigned at = 0; at < kInboxUnitBytes; ++at) {
    if (at >= length) continue;
    if (!whole_words) address[at] = static_cast<char>(words[at / 4] >> (at % 4 * 8));
    if (whole_words && at % 4 == 0) *reinterpret_cast<std::uint32_t*>(address + at) = words[at / 4];
  }
}

template <class T, ReduceOp op>
__device__ inline uint4 combine_as(uint4 left, uint4 right) {
  constexpr unsigned kElements = kInboxUnitBytes / sizeof(T);
  T a[kElements];
  T b[kElements];
  memcpy(a, &left, sizeof a);
  memcpy(b, &right, sizeof b);
#pragma unroll
  for (unsigned i = 0; i < kElements; ++i) a[i] = combine<op>(a[i], b[i]);
  memcpy(&left, a, sizeof a);
  return left;
}

__device__ constexpr unsigned code_of(ReduceOp op, Element element) {
  return static_cast<unsigned>(op) << 8 | static_cast<unsigned>(element);
}

// Not inlined: there is one of these in the kernel, with a case for each pair.
static __device__ __noinline__ uint4 combine_units(unsigned code, uint4 left, uint4 right) {
  switch (code) {
#define ACCORD_CASE(element, type, op)          \
  case code_of(ReduceOp::op, Element::element): \
    return combine_as<type, ReduceOp::op>(left, right);
    ACCORD_REDUCTIONS(ACCORD_CASE)
#undef ACCORD_CASE
    default:
      return left;
  }
}

__device__ inline unsigned units_of(const InboxCommand& command) {
  return (command.block_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes;
}

__device__ inline unsigned length_of(const InboxCommand& command, unsigned unit) {
  return min(static_cast<unsigned>(kInboxUnitBytes),
             command.block_bytes - unit * static_cast<unsigned>(kInboxUnitBytes));
}

// Where the first word of a unit is; the second lies lane_bytes behind it.
__device__ inline char* words_of(char* inbox, const InboxCommand& command, int rank,
                                 unsigned unit) {
  const unsigned turn = (command.flags & kInboxSecondLanes) != 0 ? 1 : 0;
  return inbox + inbox_word_offset(inbox_lane(rank, turn), command.lane_bytes, unit, 0);
}

// The next rank of a set, taken out of it. Starts behind this rank, so that not all write to the
// same one at once.
__device__ inline int take_peer(std::uint64_t& ranks, int after) {
  const std::uint64_t later = ranks & ~((std::uint64_t{2} << after) - 1);
  const int rank = __ffsll(static_cast<long long>(later != 0 ? later : ranks)) - 1;
  ranks &= ~(std::uint64_t{1} << rank);
  return rank;
}

// A thread's units lie `step` apart; several are handled at once, so that their loads are under way
// together: each takes most of a microsecond.
struct Units {
  unsigned first;
  unsigned step;
  __device__ unsigned operator[](unsigned i) const { return first + i * step; }
};

__device__ inline const char* source_of(const InboxCommand& command, int peer, unsigned unit) {
  const std::size_t stride = (command.flags & kInboxSendStride) != 0 ? command.block_bytes : 0;
  return reinterpret_cast<const char*>(command.src) + static_cast<std::size_t>(peer) * stride +
         unit * kInboxUnitBytes;
}

}  // namespace accord::device::cuda
