// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Direct work (device/direct_work.h) by the threads of a kernel, a unit each. Elements of 8 bytes
// are read and written whole, since programs may look at them meanwhile.
#pragma once

#include "device/cuda/inbox_units.h"

namespace accord::device::cuda {

// Whether a unit of that length, here, is one word of 8 bytes.
__device__ inline bool is_word(const char* address, unsigned length) {
  return length == 8 && reinterpret_cast<std::uintptr_t>(address) % 8 == 0;
}

__device__ inline uint4 load_whole(const char* address, unsigned length) {
  if (!is_word(address, length)) return load_unit(address, length);
  const std::uint64_t word = *reinterpret_cast<const volatile std::uint64_t*>(address);
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32), 0, 0};
}

__device__ inline void store_whole(char* address, unsigned length, uint4 value) {
  if (!is_word(address, length)) return store_unit(address, length, value);
  *reinterpret_cast<volatile std::uint64_t*>(address) = std::uint64_t{value.y} << 32 | value.x;
}

__device__ inline unsigned direct_units(std::uint32_t size_bytes) {
  return (size_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes;
}

// A unit of a run.
struct DirectUnit {
  const char* src;
  char* dst;
  unsigned length;
};

__device__ inline DirectUnit unit_of_run(std::uint64_t dst, std::uint64_t src,
                                         std::uint32_t size_bytes, unsigned unit) {
  const unsigned offset = unit * static_cast<unsigned>(kInboxUnitBytes);
  return {reinterpret_cast<const char*>(src) + offset, reinterpret_cast<char*>(dst) + offset,
          min(static_cast<unsigned>(kInboxUnitBytes), size_bytes - offset)};
}

struct OneRun {
  const DirectCommand& command;
  __device__ unsigned count() const { return direct_units(command.size_bytes); }
  __device__ DirectUnit operator[](unsigned number) const {
    return unit_of_run(command.dst, command.src, command.size_bytes, number);
  }
};

struct ManyRuns {
  const InboxPiece* pieces;
  unsigned piece_count;
  __device__ unsigned count() const { return pieces[piece_count - 1].send_end; }
  __device__ DirectUnit operator[](unsigned number) const {
    unsigned low = 0;  // the first that ends behind it is in [low, high]
    unsigned high = piece_count - 1;
    while (low < high) {
      const unsigned middle = (low + high) / 2;
      if (pieces[middle].send_end > number)
        high = middle;
      else
        low = middle + 1;
    }
    const unsigned before = low == 0 ? 0 : pieces[low - 1].send_end;
    return unit_of_run(pieces[low].dst, pieces[low].src, pieces[low].send_bytes, number - before);
  }
};

// Several units at once, so that their loads are under way together.
template <unsigned kUnits, class Runs>
__device__ void copy_units(const Runs& runs, Units units) {
  DirectUnit unit[kUnits];
  uint4 data[kUnits];
#pragma unroll
  for (unsigned i = 0; i < kUnits; ++i) {
    unit[i] = runs[units[i]];
    data[i] = load_whole(unit[i].src, unit[i].length);
  }
#pragma unroll
  for (unsigned i = 0; i < kUnits; ++i) store_whole(unit[i].dst, unit[i].length, data[i]);
}

template <class Runs>
__device__ void copy_runs(const Runs& runs) {
  constexpr unsigned kAtOnce = 4;
  const unsigned step = gridDim.x * blockDim.x;
  const unsigned count = runs.count();
  unsigned unit = blockIdx.x * blockDim.x + threadIdx.x;
  for (; unit + (kAtOnce - 1) * step < count; unit += kAtOnce * step)
    copy_units<kAtOnce>(runs, {unit, step});
  for (; unit < count; unit += step) copy_units<1>(runs, {unit, step});
}

__device__ inline bool is_same(uint4 left, uint4 right) {
  return left.x == right.x && left.y == right.y && left.z == right.z && left.w == right.w;
}

__device__ inline void update_unit(const DirectCommand& command, unsigned number) {
  const DirectUnit unit = unit_of_run(command.dst, command.src, command.size_bytes, number);
  const auto offset = number * kInboxUnitBytes;
  const bool changes = command.src != 0;
  const bool compares = command.compare != 0;
  const uint4 before = load_whole(unit.dst, unit.length);
  uint4 operand = {};
  uint4 expected = before;
  if (changes) operand = load_whole(unit.src, unit.length);
  if (compares) expected = load_whole(reinterpret_cast<const char*>(command.compare), unit.length);
  if (command.result != 0)
    store_whole(reinterpret_cast<char*>(command.result) + offset, unit.length, before);
  if (!changes || !is_same(before, expected)) return;
  const unsigned code = static_cast<unsigned>(command.op) << 8 | command.element;
  store_whole(unit.dst, unit.length,
              command.op == 0 ? operand : combine_units(code, before, operand));
}

// By all threads of all blocks.
__device__ inline void do_direct_work(const DirectCommand& command, const InboxPiece* pieces) {
  if (command.kind == DirectKind::copy) return copy_runs(OneRun{command});
  if (command.kind == DirectKind::pieces) return copy_runs(ManyRuns{pieces, command.piece_count});
  const unsigned count = direct_units(command.size_bytes);
  for (unsigned unit = blockIdx.x * blockDim.x + threadIdx.x; unit < count;
       unit += gridDim.x * blockDim.x)
    update_unit(command, unit);
}

}  // namespace accord::device::cuda
