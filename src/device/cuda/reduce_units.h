// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The work of reductions on a device, for the kernels of cuda/kernels.cu and
// cuda/partition_kernels.cu: which threads do which units of it is up to them.
#pragma once

#include <cstring>

#include "device/cuda/kernels.h"
#include "device/reduce_functions.h"

namespace accord::device::cuda {

// The units of one thread: of all threads together that share the work, each takes those that lie
// `step` apart from its first one.
struct ThreadUnits {
  std::uint64_t first;
  std::uint64_t step;
};

// How elements are moved: in vectors, one by one, or byte by byte.

template <class T>
struct Vector {
  static constexpr unsigned kElements = kReduceVectorBytes / sizeof(T);
  static constexpr unsigned kInFlight = kReduceLoadsInFlight;
  uint4 raw;

  __device__ static Vector load(const char* address) {
    return {*reinterpret_cast<const uint4*>(address)};
  }
  __device__ void store(char* address) const { *reinterpret_cast<uint4*>(address) = raw; }

  template <ReduceOp op>
  __device__ void combine_with(const Vector& next) {
    T here[kElements];
    T there[kElements];
    memcpy(here, &raw, sizeof raw);
    memcpy(there, &next.raw, sizeof raw);
#pragma unroll
    for (unsigned i = 0; i < kElements; ++i) here[i] = combine<op>(here[i], there[i]);
    memcpy(&raw, here, sizeof raw);
  }
};

template <class T>
struct Scalar {
  static constexpr unsigned kInFlight = kReduceLoadsInFlight;
  T value;

  __device__ static Scalar load(const char* address) {
    return {*reinterpret_cast<const T*>(address)};
  }
  __device__ void store(char* address) const { *reinterpret_cast<T*>(address) = value; }

  template <ReduceOp op>
  __device__ void combine_with(const Scalar& next) {
    value = combine<op>(value, next.value);
  }
};

// At any address: byte by byte, since a device cannot load a word that is not aligned.
template <class T>
struct Bytes {
  static constexpr unsigned kInFlight = 1;
  T value;

  __device__ static Bytes load(const char* address) {
    Bytes result;
    memcpy(&result.value, address, sizeof(T));
    return result;
  }
  __device__ void store(char* address) const { memcpy(address, &value, sizeof(T)); }

  template <ReduceOp op>
  __device__ void combine_with(const Bytes& next) {
    value = combine<op>(value, next.value);
  }
};

// kBatch units of one thread, `step` units apart: the loads of several sources are issued before
// the first is waited for. Every load of a unit comes before its store, so a target may be one of
// the sources.
template <class Unit, ReduceOp op, unsigned kBatch, class Offset>
__device__ void reduce_batch(const ReduceArguments& arguments, std::uint64_t first,
                             std::uint64_t step, const Offset& offset) {
  constexpr unsigned kAtOnce = Unit::kInFlight > 1 ? kReduceSourcesAtOnce : 1;
  Unit result[kBatch];
  std::uint64_t offsets[kBatch];
#pragma unroll
  for (unsigned k = 0; k < kBatch; ++k) offsets[k] = offset(first + k * step);
#pragma unroll 1
  for (unsigned source = 0; source < arguments.source_count; source += kAtOnce) {
    Unit next[kAtOnce][kBatch];
#pragma unroll
    for (unsigned j = 0; j < kAtOnce; ++j) {
      if (source + j >= arguments.source_count) break;
      const auto* base = static_cast<const char*>(arguments.sources[source + j]);
#pragma unroll
      for (unsigned k = 0; k < kBatch; ++k) next[j][k] = Unit::load(base + offsets[k]);
    }
#pragma unroll
    for (unsigned j = 0; j < kAtOnce; ++j) {
      if (source + j >= arguments.source_count) break;
#pragma unroll
      for (unsigned k = 0; k < kBatch; ++k) {
        if (source + j == 0) {
          result[k] = next[j][k];
        } else {
          result[k].template combine_with<op>(next[j][k]);
        }
      }
    }
  }
#pragma unroll 1
  for (unsigned target = 0; target < arguments.target_count; ++target) {
    auto* base = static_cast<char*>(arguments.targets[target]);
#pragma unroll
    for (unsigned k = 0; k < kBatch; ++k) result[k].store(base + offsets[k]);
  }
}

// This thread's of `units` units; offset(unit) says at which byte one starts.
template <class Unit, ReduceOp op, class Offset>
__device__ void reduce_units(const ReduceArguments& arguments, std::uint64_t units,
                             const ThreadUnits& mine, const Offset& offset) {
  const std::uint64_t step = mine.step;
  std::uint64_t unit = mine.first;
  if constexpr (Unit::kInFlight > 1) {
    for (; unit + (Unit::kInFlight - 1) * step < units; unit += Unit::kInFlight * step) {
      reduce_batch<Unit, op, Unit::kInFlight>(arguments, unit, step, offset);
    }
  }
  for (; unit < units; unit += step) reduce_batch<Unit, op, 1>(arguments, unit, step, offset);
}

// Elements of which no whole number fits a vector.
template <class T, ReduceOp op>
__device__ void reduce_odd(const ReduceArguments& arguments, const ThreadUnits& mine) {
  const auto offset = [](std::uint64_t unit) { return unit * sizeof(T); };
  if (arguments.aligned != 0) {
    reduce_units<Scalar<T>, op>(arguments, arguments.count, mine, offset);
  } else {
    reduce_units<Bytes<T>, op>(arguments, arguments.count, mine, offset);
  }
}

template <class T, ReduceOp op>
__device__ void reduce(const ReduceArguments& arguments, const ThreadUnits& mine) {
  const std::uint64_t head = arguments.head;
  const std::uint64_t in_vectors = arguments.vectors * Vector<T>::kElements;
  const std::uint64_t rest = arguments.count - in_vectors;
  const auto vector_offset = [=](std::uint64_t unit) {
    return head * sizeof(T) + unit * kReduceVectorBytes;
  };
  const auto rest_offset = [=](std::uint64_t unit) {
    return (unit < head ? unit : unit + in_vectors) * sizeof(T);
  };
  if (arguments.vectors > 0) {
    reduce_units<Vector<T>, op>(arguments, arguments.vectors, mine, vector_offset);
  }
  if (arguments.aligned != 0) {
    reduce_units<Scalar<T>, op>(arguments, rest, mine, rest_offset);
  } else {
    reduce_units<Bytes<T>, op>(arguments, rest, mine, rest_offset);
  }
}

}  // namespace accord::device::cuda
