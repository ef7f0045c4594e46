/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * What kernels call on partitioned requests, for CUDA and HIP (C++11). Compiled by a C++ compiler
 * for the CPU, the same functions serve threads that stand for kernels on the embedded host
 * runtime. A kernel gets the MPIX_Prequest of MPIX_Prequest_create by value. Nothing here waits for
 * anybody or traps: a wrong use is returned (of several marks of one partition at a time perhaps by
 * the first alone), does nothing else, and becomes an MPI error when the host completes the
 * request.
 */
#ifndef ACCORD_PARTITIONED_CUH
#define ACCORD_PARTITIONED_CUH

#include <stddef.h>

#include "accord/partitioned_layout.h"

#ifndef ACCORD_PARTITIONED_H
typedef struct accord_prequest* MPIX_Prequest;
#endif

#if defined(__CUDACC__) || defined(__HIPCC__)
#define ACCORD_PARTITIONED_GPU 1
#define ACCORD_DEVICE static __device__ __forceinline__
#else
#define ACCORD_PARTITIONED_GPU 0
#define ACCORD_DEVICE static inline
#endif

namespace accord_partitioned {

/* Memory order. The scope is the system wherever the other side may be the host or another device.
 * A release by the first thread of a group covers what the others have written: their barrier comes
 * before it. */
#if defined(__CUDACC__)
ACCORD_DEVICE uint32_t load_acquire(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
ACCORD_DEVICE void store_release(uint32_t* word, uint32_t value) {
  asm volatile("st.release.sys.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}
/* A release that many stores share. */
ACCORD_DEVICE void release_fence() { asm volatile("fence.acq_rel.sys;" : : : "memory"); }
ACCORD_DEVICE void store_released(uint32_t* word, uint32_t value) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}
/* Release and acquire among the threads of this device. */
ACCORD_DEVICE bool exchange(uint64_t* word, uint64_t* expected, uint64_t wanted) {
  uint64_t found;
  asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
               : "=l"(found)
               : "l"(word), "l"(*expected), "l"(wanted)
               : "memory");
  const bool done = found == *expected;
  *expected = found;
  return done;
}
ACCORD_DEVICE uint64_t add_one(uint64_t* word) {
  uint64_t before;
  asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(word) : "memory");
  return before;
}
#elif defined(__HIPCC__)
ACCORD_DEVICE uint32_t load_acquire(const uint32_t* word) {
  return __hip_atomic_load(word, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
ACCORD_DEVICE void store_release(uint32_t* word, uint32_t value) {
  __hip_atomic_store(word, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
ACCORD_DEVICE void release_fence() { __threadfence_system(); }
ACCORD_DEVICE void store_released(uint32_t* word, uint32_t value) {
  __hip_atomic_store(word, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
ACCORD_DEVICE bool exchange(uint64_t* word, uint64_t* expected, uint64_t wanted) {
  return __hip_atomic_compare_exchange_strong(word, expected, wanted, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
}
ACCORD_DEVICE uint64_t add_one(uint64_t* word) {
  return __hip_atomic_fetch_add(word, uint64_t{1}, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
}
#else
ACCORD_DEVICE uint32_t load_acquire(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
ACCORD_DEVICE void store_release(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
ACCORD_DEVICE void release_fence() {}
ACCORD_DEVICE void store_released(uint32_t* word, uint32_t value) { store_release(word, value); }
ACCORD_DEVICE bool exchange(uint64_t* word, uint64_t* expected, uint64_t wanted) {
  return __atomic_compare_exchange_n(word, expected, wanted, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}
ACCORD_DEVICE uint64_t add_one(uint64_t* word) {
  return __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
}
#endif

/* Words of which nothing is read afterwards that another side has written: what follows from them
 * are writes, which no device does before it knows that it shall. So two such loads from host
 * memory, a microsecond each, are under way at once. */
#if ACCORD_PARTITIONED_GPU
template <class Word>
ACCORD_DEVICE Word load_early(const Word* word) {
  return *static_cast<const volatile Word*>(word);
}
#else
template <class Word>
ACCORD_DEVICE Word load_early(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
#endif

/* The threads that make a partition ready together. */
struct Thread {
  ACCORD_DEVICE unsigned rank() { return 0; }
  ACCORD_DEVICE unsigned size() { return 1; }
  ACCORD_DEVICE void sync() {}
  ACCORD_DEVICE bool any(bool mine) { return mine; }
};
#if ACCORD_PARTITIONED_GPU
struct Warp {
  ACCORD_DEVICE unsigned thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  ACCORD_DEVICE unsigned rank() { return thread() % warpSize; }
  /* The last warp of a block may be smaller. */
  ACCORD_DEVICE unsigned size() {
    const unsigned width = warpSize;
    const unsigned left = blockDim.x * blockDim.y * blockDim.z - thread() / width * width;
    return left < width ? left : width;
  }
#if defined(__HIPCC__)
  ACCORD_DEVICE void sync() { __builtin_amdgcn_wave_barrier(); }
  ACCORD_DEVICE bool any(bool mine) { return __any(mine) != 0; }
#else
  ACCORD_DEVICE unsigned mask() { return size() == 32 ? 0xffffffffu : (1u << size()) - 1u; }
  ACCORD_DEVICE void sync() { __syncwarp(mask()); }
  ACCORD_DEVICE bool any(bool mine) { return __any_sync(mask(), mine) != 0; }
#endif
};
struct Block {
  ACCORD_DEVICE unsigned rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  ACCORD_DEVICE unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  ACCORD_DEVICE void sync() { __syncthreads(); }
  ACCORD_DEVICE bool any(bool mine) { return __syncthreads_or(mine ? 1 : 0) != 0; }
};
#else
typedef Thread Warp; /* a thread of the CPU is a whole warp or block */
typedef Thread Block;
#endif

ACCORD_DEVICE int fail(const accord_prequest* preq, uint32_t error) {
  if (load_acquire(&preq->control->error) == 0) store_release(&preq->control->error, error);
  return static_cast<int>(error);
}

/* Where the fields of a request are now. */
struct View {
  const accord_prequest* fields;
  bool connected;
  bool on_node; /* a collective that kernels of the library do */
};
ACCORD_DEVICE View view(MPIX_Prequest preq) {
  View seen = {preq, false, false};
  uint32_t state = load_acquire(&preq->state);
  if (state == ACCORD_PARTITION_STATE_ELSEWHERE) {
    seen.fields = preq->image;
    state = load_acquire(&seen.fields->state);
  }
  seen.connected = state >= ACCORD_PARTITION_STATE_CONNECTED;
  seen.on_node = state == ACCORD_PARTITION_STATE_ON_NODE;
  return seen;
}

/* Counts one up towards `wanted` in this round; `seen` is what the word held a while ago. What is
 * left from another round counts as nothing: the first one takes its place, the others add to that,
 * since many that compare and exchange hold each other up. Returns the new count, or wanted + 1
 * where it had been reached. */
ACCORD_DEVICE uint32_t count_up(uint64_t* word, uint64_t seen, uint32_t round, uint32_t wanted) {
  while (static_cast<uint32_t>(seen >> 32) != round) {
    if (exchange(word, &seen, static_cast<uint64_t>(round) << 32 | 1)) return 1;
  }
  if (static_cast<uint32_t>(seen) >= wanted) return wanted + 1;
  const uint32_t before = static_cast<uint32_t>(add_one(word));
  return before >= wanted ? wanted + 1 : before + 1;
}

/* For tell_ranks: while a load from host memory is on its way. Covers what the caller has written
 * and what it has learned of, but for the load. */
ACCORD_DEVICE void release_meanwhile(const View& seen) {
  if (seen.on_node) release_fence();
}

/* In a counter of partitions that take several marks: somebody looks for the round. */
#define ACCORD_PARTITION_LOOKING (ACCORD_PARTITION_MARKS_MAX + 1u)

/* By who has found a counter as an earlier round has left it, and has noted there that it looks for
 * the round: counts for itself and for those that come meanwhile, who count that they do. */
ACCORD_DEVICE uint32_t count_all(const accord_prequest* preq, uint64_t* word, uint64_t left,
                                 const uint64_t* started, uint64_t* rounds) {
  const uint64_t before = left >> 32 << 32 | ACCORD_PARTITION_LOOKING;
  uint64_t noted = before | 1;
  uint64_t round = 0;
  bool is_new = false;
  uint64_t next = 0;
  do {
    if (!is_new) *rounds = load_early(started);
    round = static_cast<uint32_t>(*rounds);
    is_new = round != left >> 32;
    next = round << 32 | (is_new ? noted - before : preq->marks);
  } while (!exchange(word, &noted, next));
  if (!is_new) return round == 0 ? 0 : preq->marks + 1;
  const uint32_t marks = static_cast<uint32_t>(noted - before);
  if (marks > preq->marks) fail(preq, ACCORD_PARTITION_TWICE);
  return marks < preq->marks ? marks : preq->marks;
}

/* Of partitions that take several marks: their counter tells of the round under way while some are
 * missing, so that only the first looks into host memory which that is, at a microsecond each, one
 * after the other. Nobody waits for it. Returns the new count, marks + 1 where it had been reached,
 * 0 where no round has been started, or ACCORD_PARTITION_LOOKING where another one counts it. */
ACCORD_DEVICE uint32_t count_with_others(const View& seen_request, int32_t partition,
                                         uint64_t* rounds) {
  const accord_prequest* const preq = seen_request.fields;
  uint64_t* const word = &preq->partition_marks[partition];
  const uint64_t* const started =
      &preq->control->started[partition % ACCORD_PARTITION_LINES].rounds;
  uint64_t seen = load_early(word);
  uint32_t count = static_cast<uint32_t>(seen);
  /* As an earlier round has left it, or before the first one. */
  while (count == 0 || (count >= preq->marks && count < ACCORD_PARTITION_LOOKING)) {
    const uint64_t left = seen;
    if (exchange(word, &seen, left >> 32 << 32 | ACCORD_PARTITION_LOOKING | 1)) {
      const uint32_t counted = count_all(preq, word, left, started, rounds);
      if (counted == preq->marks) release_meanwhile(seen_request);
      return counted;
    }
    count = static_cast<uint32_t>(seen);
  }
  const uint64_t before = add_one(word);
  count = static_cast<uint32_t>(before);
  if (count >= ACCORD_PARTITION_LOOKING) return ACCORD_PARTITION_LOOKING;
  *rounds = before >> 32;
  if (count >= preq->marks) return preq->marks + 1;
  /* The last one looks, too: the host may have marked the partition itself meanwhile. */
  if (count + 1 == preq->marks) {
    *rounds = load_early(started);
    release_meanwhile(seen_request);
  }
  return count + 1;
}

ACCORD_DEVICE int32_t partitions_of_transfer(const accord_prequest* preq, int32_t transfer) {
  const int32_t first = transfer * preq->transfer_partitions;
  const int32_t left = preq->partitions - first;
  return left < preq->transfer_partitions ? left : preq->transfer_partitions;
}

/* Counts one mark of a partition in the round that is started, which it tells; `seen_marks` is what
 * its counter held a while ago. `complete`: its whole transfer is ready now. */
ACCORD_DEVICE int mark(const View& seen, int32_t partition, uint64_t seen_marks, uint64_t* rounds,
                       bool* complete) {
  const accord_prequest* const preq = seen.fields;
  uint32_t counted = preq->marks > 1 ? count_with_others(seen, partition, rounds) : 0;
  if (counted == ACCORD_PARTITION_LOOKING) return 0;
  const uint32_t round = static_cast<uint32_t>(*rounds);
  if (round == 0) return fail(preq, ACCORD_PARTITION_NOT_STARTED);
  const int32_t of = partition / preq->transfer_partitions;
  if (static_cast<uint32_t>(*rounds >> 32) == round && load_acquire(&preq->ready[of]) == round)
    return fail(preq, ACCORD_PARTITION_TWICE);
  if (preq->marks == 1) counted = count_up(&preq->partition_marks[partition], seen_marks, round, 1);
  if (counted > preq->marks) return fail(preq, ACCORD_PARTITION_TWICE);
  if (counted < preq->marks) return 0;
  const uint32_t wanted = static_cast<uint32_t>(partitions_of_transfer(preq, of));
  uint64_t* const together = &preq->transfer_marks[of];
  *complete = wanted == 1 || count_up(together, load_early(together), round, wanted) == wanted;
  return 0;
}

ACCORD_DEVICE uint64_t bytes_of_transfer(const accord_prequest* preq, int32_t transfer) {
  return static_cast<uint64_t>(partitions_of_transfer(preq, transfer)) * preq->partition_bytes;
}

/* Whether a group of so many threads shall move a transfer itself, where it can. */
ACCORD_DEVICE bool may_move(const View& seen, uint64_t size_bytes, unsigned threads) {
  return size_bytes <= seen.fields->kernel_bytes &&
         size_bytes / threads <= seen.fields->thread_bytes && seen.connected &&
         seen.fields->link.peer != NULL;
}

/* Some loads at once: a compiler that has to take the two for the same memory does not move a load
 * before a store, and each takes most of a microsecond. */
template <class Unit>
ACCORD_DEVICE void copy_units(unsigned char* dst, const unsigned char* src, uint64_t size_bytes,
                              unsigned first, unsigned step) {
  const unsigned kAtOnce = 4;
  Unit* const to = reinterpret_cast<Unit*>(dst);
  const Unit* const from = reinterpret_cast<const Unit*>(src);
  const uint64_t units = size_bytes / sizeof(Unit);
  const uint64_t pace = step;
  uint64_t i = first;
  for (; i + (kAtOnce - 1) * pace < units; i += kAtOnce * pace) {
    Unit held[kAtOnce];
    for (unsigned k = 0; k < kAtOnce; ++k) held[k] = from[i + k * pace];
    for (unsigned k = 0; k < kAtOnce; ++k) to[i + k * pace] = held[k];
  }
  for (; i < units; i += pace) to[i] = from[i];
}

struct alignas(16) Wide {
  uint64_t words[2];
};

template <class Group>
ACCORD_DEVICE void copy(unsigned char* dst, const unsigned char* src, uint64_t size_bytes,
                        Group group) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(dst) | reinterpret_cast<uintptr_t>(src);
  uint64_t done = 0;
  if (bits % sizeof(Wide) == 0) {
    copy_units<Wide>(dst, src, size_bytes, group.rank(), group.size());
    done = size_bytes / sizeof(Wide) * sizeof(Wide);
  } else if (bits % sizeof(uint32_t) == 0) {
    copy_units<uint32_t>(dst, src, size_bytes, group.rank(), group.size());
    done = size_bytes / sizeof(uint32_t) * sizeof(uint32_t);
  }
  copy_units<unsigned char>(dst + done, src + done, size_bytes - done, group.rank(), group.size());
}

/* Tells all ranks of a node that this one has made a partition ready: after release_meanwhile. */
ACCORD_DEVICE void tell_ranks(const accord_prequest* preq, int32_t partition, uint32_t round) {
  const uint32_t ranks = preq->node.ranks;
  const size_t word = static_cast<size_t>(partition) * ranks;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    store_released(preq->node.ready[rank] + word, round);
}

/* What the first thread of a group does: counts, and where a transfer is ready has the host move
 * it, unless the group can, which it can only once the receiver has started the round. */
ACCORD_DEVICE int lead(const View& seen, int32_t partition, unsigned threads, uint32_t* round,
                       bool* moves) {
  const accord_prequest* const preq = seen.fields;
  if ((preq->sides & ACCORD_PARTITION_SENDS) == 0) return fail(preq, ACCORD_PARTITION_OTHER_SIDE);
  if (partition < 0 || partition >= preq->partitions)
    return fail(preq, ACCORD_PARTITION_OUT_OF_RANGE);
  const int32_t transfer = partition / preq->transfer_partitions;
  const bool may = may_move(seen, bytes_of_transfer(preq, transfer), threads);
  const int32_t line = partition % ACCORD_PARTITION_LINES;
  const uint32_t* const peer_ready = &preq->link.peer_ready[line].round;
  const bool is_only = preq->marks == 1;
  uint32_t receiver_round = may && is_only ? load_early(peer_ready) : 0;
  uint64_t rounds = is_only ? load_early(&preq->control->started[line].rounds) : 0;
  const uint64_t seen_marks = is_only ? load_early(&preq->partition_marks[partition]) : 0;
  bool complete = false;
  if (is_only) release_meanwhile(seen);
  const int error = mark(seen, partition, seen_marks, &rounds, &complete);
  *round = static_cast<uint32_t>(rounds);
  if (complete && may && !is_only) receiver_round = load_early(peer_ready);
  *moves = complete && may && receiver_round == *round;
  if (complete && !*moves) {
    if (seen.on_node) {
      tell_ranks(preq, partition, *round);
    } else {
      store_release(&preq->ready[transfer], *round);
    }
  }
  return error;
}

/* All threads of the group have written what is theirs of the partition and call this. */
template <class Group>
ACCORD_DEVICE int ready(int32_t partition, MPIX_Prequest request, Group group) {
  int error = 0;
  uint32_t round = 0;
  bool moves = false;
  View seen = {request, false, false};
  group.sync();
  const bool leads = group.rank() == 0;
  if (leads) {
    seen = view(request);
    error = lead(seen, partition, group.size(), &round, &moves);
  }
  if (!group.any(moves)) return error;
  const bool is_elsewhere = group.any(seen.fields != request);
  group.sync(); /* what the first thread knows of, the others see */
  const accord_prequest* const preq = is_elsewhere ? request->image : request;
  const int32_t transfer = partition / preq->transfer_partitions;
  const uint64_t first = static_cast<uint64_t>(transfer) * preq->link.transfer_bytes;
  copy(preq->link.peer + first, preq->buffer + first, bytes_of_transfer(preq, transfer), group);
  group.sync();
  if (leads) store_release(&preq->link.arrived[transfer], round);
  return error;
}

}  // namespace accord_partitioned

/* Marks a partition of a send request ready, as MPI_Pready does: what the calling thread has
 * written of it is there. A partition is ready after as many calls as the info key "accord_marks"
 * says (1); of _warp and _block, which all threads of a warp or block must call together, a whole
 * warp or block makes one. The larger the group, the more threads there are to move the data.
 * Called once the request has been started. Returns 0 or one of ACCORD_PARTITION_*, of _warp and
 * _block to its first thread. */
ACCORD_DEVICE int MPIX_Pready_thread(int partition, MPIX_Prequest preq) {
  return accord_partitioned::ready(partition, preq, accord_partitioned::Thread());
}
ACCORD_DEVICE int MPIX_Pready_warp(int partition, MPIX_Prequest preq) {
  return accord_partitioned::ready(partition, preq, accord_partitioned::Warp());
}
ACCORD_DEVICE int MPIX_Pready_block(int partition, MPIX_Prequest preq) {
  return accord_partitioned::ready(partition, preq, accord_partitioned::Block());
}
ACCORD_DEVICE int MPIX_Pready(int partition, MPIX_Prequest preq) {
  return MPIX_Pready_thread(partition, preq);
}

/* The same of all partitions from `low` to `high`, both included. */
ACCORD_DEVICE int MPIX_Pready_range(int low, int high, MPIX_Prequest preq) {
  int error = 0;
  if (low > high)
    error = accord_partitioned::fail(accord_partitioned::view(preq).fields,
                                     ACCORD_PARTITION_OUT_OF_RANGE);
  for (int partition = low; partition <= high && error == 0; ++partition)
    error = MPIX_Pready_thread(partition, preq);
  return error;
}

/* Whether a partition of a receive request has arrived in the round under way: 1 or 0. Once it says
 * 1, the calling thread sees the data. Also 0 after a wrong use. */
ACCORD_DEVICE int MPIX_Parrived(int partition, MPIX_Prequest request) {
  using namespace accord_partitioned;
  const View seen = view(request);
  const accord_prequest* const preq = seen.fields;
  uint32_t error = 0;
  if ((preq->sides & ACCORD_PARTITION_RECEIVES) == 0) error = ACCORD_PARTITION_OTHER_SIDE;
  if (partition < 0 || partition >= preq->partitions) error = ACCORD_PARTITION_OUT_OF_RANGE;
  if (error != 0) return fail(preq, error), 0;
  const uint32_t round = static_cast<uint32_t>(
      load_early(&preq->control->started[partition % ACCORD_PARTITION_LINES].rounds));
  if (round == 0 || !seen.connected) return 0;
  const uint64_t low = static_cast<uint64_t>(partition) * preq->partition_bytes;
  uint64_t high = low + preq->partition_bytes;
  if (high > preq->link.total_bytes) high = preq->link.total_bytes;
  const uint64_t transfer_bytes = preq->link.transfer_bytes;
  /* What has no bytes has arrived with all others. */
  const bool is_empty = low >= high;
  const uint64_t first = is_empty ? 0 : low / transfer_bytes;
  const uint64_t end = is_empty ? preq->link.transfers : (high - 1) / transfer_bytes + 1;
  for (uint64_t i = first; i < end; ++i)
    if (load_acquire(&preq->link.arrived[i]) != round) return 0;
  return 1;
}

/* The index of one of these partitions that has arrived, or -1. */
ACCORD_DEVICE int MPIX_Parrived_any(int count, const int partitions[], MPIX_Prequest preq) {
  for (int i = 0; i < count; ++i)
    if (MPIX_Parrived(partitions[i], preq) != 0) return i;
  return -1;
}

/* The number of the round that the host started last, from 1: what a kernel waits for that serves
 * many rounds. */
ACCORD_DEVICE unsigned MPIX_Pround(MPIX_Prequest preq) {
#if ACCORD_PARTITIONED_GPU
  const unsigned line = blockIdx.x % ACCORD_PARTITION_LINES;
#else
  const unsigned line = 0;
#endif
  using namespace accord_partitioned;
  return load_acquire(&view(preq).fields->control->told[line].round);
}

#endif
