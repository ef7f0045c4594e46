// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The resident kernel of inbox exchanges (device/inbox.h). Everything that others write while it
// runs (doorbells, the program's buffers, words of the inbox) is loaded past the L1 cache.
#include <cstring>

#include "device/cuda/inbox_kernel.h"
#include "device/inbox.h"
#include "device/reduce_functions.h"

namespace accord::device::cuda {
namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// What the host and the peers did before is seen after it: cheaper than a fence (0.7 us, H200).
__device__ std::uint64_t load_acquire(const std::uint64_t* address) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

__device__ void store_release(std::uint64_t* address, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

// After what the block wrote to its own device, but not after what it sent: peers see that by
// itself, and to wait for it would take most of a microsecond.
__device__ void store_after_device(std::uint64_t* address, std::uint64_t value) {
  __threadfence();
  asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

__device__ uint4 load_past_l1(const void* address) {
  uint4 value;
  asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address)
               : "memory");
  return value;
}

__device__ void store_word(void* address, std::uint32_t low, std::uint32_t high,
                           std::uint32_t epoch) {
  asm volatile("st.volatile.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(address), "r"(low), "r"(epoch), "r"(high), "r"(epoch)
               : "memory");
}

// The bytes of a unit one by one, which takes a microsecond for each few of them.
__device__ __noinline__ uint4 load_bytes(const char* address, unsigned length) {
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
__device__ uint4 load_unit(const char* address, unsigned length) {
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

__device__ void store_unit(char* address, unsigned length, uint4 value) {
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
__device__ uint4 combine_as(uint4 left, uint4 right) {
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
__device__ __noinline__ uint4 combine_units(unsigned code, uint4 left, uint4 right) {
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

// What the threads of a block share.
struct Block {
  InboxCommand command;
  bool leaving;
  std::uint32_t inbox_number;  // whose header follows
  char* inboxes[kInboxRanksMax];
  InboxPiece pieces[kInboxRanksMax];  // of the command
};

// By the first warp. False: nobody has rung for the linger time, or other blocks wait for this one
// to leave.
__device__ bool await_command(const InboxDoorbell& doorbell, std::uint64_t launch,
                              std::uint32_t number, std::uint32_t linger_ns, Block& block) {
  const unsigned lane = threadIdx.x;
  const bool has_word = lane < kInboxCommandWords;
  const std::uint64_t* const watched = has_word ? &doorbell.words[lane] : &doorbell.newest_launch;
  const std::uint64_t start_ns = now_ns();
  for (;;) {
    const std::uint64_t word = lane <= kInboxCommandWords ? load_acquire(watched) : launch;
    const bool mine = !has_word || word >> 32 == number;
    if (__all_sync(0xffffffff, mine)) {
      if (has_word)
        reinterpret_cast<std::uint32_t*>(&block.command)[lane] = static_cast<std::uint32_t>(word);
      return true;
    }
    // The same in all threads of the warp, or some would leave the loop alone.
    const bool late = now_ns() - start_ns >= linger_ns || (!has_word && word != launch);
    if (__any_sync(0xffffffff, late)) return false;
  }
}

__device__ unsigned units_of(const InboxCommand& command) {
  return (command.block_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes;
}

__device__ unsigned length_of(const InboxCommand& command, unsigned unit) {
  return min(static_cast<unsigned>(kInboxUnitBytes),
             command.block_bytes - unit * static_cast<unsigned>(kInboxUnitBytes));
}

// Where the first word of a unit is; the second lies lane_bytes behind it.
__device__ char* words_of(char* inbox, const InboxCommand& command, int rank, unsigned unit) {
  const unsigned turn = (command.flags & kInboxSecondLanes) != 0 ? 1 : 0;
  return inbox + inbox_word_offset(inbox_lane(rank, turn), command.lane_bytes, unit, 0);
}

// The next rank of a set, taken out of it. Starts behind this rank, so that not all write to the
// same one at once.
__device__ int take_peer(std::uint64_t& ranks, int after) {
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

__device__ const char* source_of(const InboxCommand& command, int peer, unsigned unit) {
  const std::size_t stride = (command.flags & kInboxSendStride) != 0 ? command.block_bytes : 0;
  return reinterpret_cast<const char*>(command.src) + static_cast<std::size_t>(peer) * stride +
         unit * kInboxUnitBytes;
}

template <unsigned kUnits>
__device__ void send(const InboxCommand& command, char* const* inboxes, Units units) {
  const bool strided = (command.flags & kInboxSendStride) != 0;
  uint4 data[kUnits];
  bool loaded = false;
  for (std::uint64_t left = command.send_to; left != 0;) {
    const int peer = take_peer(left, command.rank);
    if (!loaded || strided) {
#pragma unroll
      for (unsigned i = 0; i < kUnits; ++i)
        data[i] = load_unit(source_of(command, peer, units[i]), length_of(command, units[i]));
      loaded = true;
    }
#pragma unroll
    for (unsigned i = 0; i < kUnits; ++i) {
      char* const words = words_of(inboxes[peer], command, command.rank, units[i]);
      store_word(words, data[i].x, data[i].y, command.epoch);
      store_word(words + command.lane_bytes, data[i].z, data[i].w, command.epoch);
    }
  }
}

// Units as their sender put them into its lane. False: not all have come in time.
template <unsigned kUnits>
__device__ bool await_words(const InboxCommand& command, const char* const* words,
                            const bool* wanted, std::uint64_t deadline_ns, uint4* data) {
  const std::uint32_t epoch = command.epoch;
  const std::size_t lane_bytes = command.lane_bytes;
  uint4 low[kUnits];
  uint4 high[kUnits];
  for (bool complete = false; !complete;) {
#pragma unroll
    for (unsigned i = 0; i < kUnits; ++i) {
      if (!wanted[i]) continue;
      low[i] = load_past_l1(words[i]);
      high[i] = load_past_l1(words[i] + lane_bytes);
    }
    complete = true;
#pragma unroll
    for (unsigned i = 0; i < kUnits; ++i) {
      if (!wanted[i]) continue;
      complete = complete && low[i].y == epoch && low[i].w == epoch && high[i].y == epoch &&
                 high[i].w == epoch;
    }
    if (!complete && now_ns() > deadline_ns) return false;
  }
#pragma unroll
  for (unsigned i = 0; i < kUnits; ++i) {
    if (wanted[i]) data[i] = {low[i].x, low[i].z, high[i].x, high[i].z};
  }
  return true;
}

// Some units of each sender, in the order of the ranks, kPeers of them at once. False: some have
// not come in time.
template <unsigned kUnits, unsigned kPeers>
__device__ bool receive(const InboxCommand& command, Units units, std::uint64_t deadline_ns) {
  constexpr unsigned kAll = kUnits * kPeers;
  char* const inbox = reinterpret_cast<char*>(command.inbox);
  char* const dst = reinterpret_cast<char*>(command.dst);
  const std::size_t stride = (command.flags & kInboxReceiveStride) != 0 ? command.block_bytes : 0;
  const unsigned code = static_cast<unsigned>(command.op) << 8 | command.element;
  const bool own_from_source = (command.flags & kInboxOwnFromSource) != 0;
  uint4 sum[kUnits] = {};
  bool first = true;
  for (std::uint64_t left = command.receive_from; left != 0;) {
    int peers[kPeers];
    const char* words[kAll];
    bool wanted[kAll];
    uint4 data[kAll];
#pragma unroll
    for (unsigned k = 0; k < kPeers; ++k) {
      peers[k] = __ffsll(static_cast<long long>(left)) - 1;  // -1: none left
      left &= left - 1;
      const bool from_source = own_from_source && peers[k] == command.rank;
#pragma unroll
      for (unsigned i = 0; i < kUnits; ++i) {
        wanted[k * kUnits + i] = peers[k] >= 0 && !from_source;
        words[k * kUnits + i] = words_of(inbox, command, peers[k], units[i]);
        if (from_source)
          data[k * kUnits + i] =
              load_unit(source_of(command, peers[k], units[i]), length_of(command, units[i]));
      }
    }
    if (!await_words<kAll>(command, words, wanted, deadline_ns, data)) return false;
#pragma unroll
    for (unsigned k = 0; k < kPeers; ++k) {
      if (peers[k] < 0) continue;
#pragma unroll
      for (unsigned i = 0; i < kUnits; ++i) {
        if (command.op == 0) {
          store_unit(dst + static_cast<std::size_t>(peers[k]) * stride + units[i] * kInboxUnitBytes,
                     length_of(command, units[i]), data[k * kUnits + i]);
        } else {
          sum[i] = first ? data[k * kUnits + i] : combine_units(code, sum[i], data[k * kUnits + i]);
        }
      }
      first = false;
    }
  }
  if (command.op == 0 || first) return true;
#pragma unroll
  for (unsigned i = 0; i < kUnits; ++i)
    store_unit(dst + units[i] * kInboxUnitBytes, length_of(command, units[i]), sum[i]);
  return true;
}

// By all threads of the block, before it uses the inboxes.
__device__ void learn_inboxes(Block& block, const InboxCommand& command) {
  if (block.inbox_number == command.inbox_number) return;
  __syncthreads();
  if (threadIdx.x < kInboxRanksMax)
    block.inboxes[threadIdx.x] = reinterpret_cast<char* volatile*>(command.inbox)[threadIdx.x];
  if (threadIdx.x == 0) block.inbox_number = command.inbox_number;
  __syncthreads();
}

// A unit of a piece.
struct Item {
  const InboxPiece* piece;
  int rank;
  unsigned unit;
};

template <std::uint32_t InboxPiece::*kEnd>
__device__ Item item_of(const InboxPiece* pieces, unsigned number) {
  int rank = 0;
  while (number >= pieces[rank].*kEnd) ++rank;
  return {&pieces[rank], rank, rank == 0 ? number : number - pieces[rank - 1].*kEnd};
}

__device__ uint4 load_item(const Item& item, std::uint32_t size_bytes) {
  const auto offset = item.unit * static_cast<unsigned>(kInboxUnitBytes);
  return load_unit(reinterpret_cast<const char*>(item.piece->src) + offset,
                   min(static_cast<unsigned>(kInboxUnitBytes), size_bytes - offset));
}

__device__ void send_item(const Block& block, unsigned number) {
  const InboxCommand& command = block.command;
  const Item item = item_of<&InboxPiece::send_end>(block.pieces, number);
  const uint4 data = load_item(item, item.piece->send_bytes);
  char* const words = words_of(block.inboxes[item.rank], command, command.rank, item.unit);
  store_word(words, data.x, data.y, command.epoch);
  store_word(words + command.lane_bytes, data.z, data.w, command.epoch);
}

// What this rank gives itself is still in its source. False: it has not come in time.
__device__ bool receive_item(const Block& block, unsigned number, std::uint64_t deadline_ns) {
  const InboxCommand& command = block.command;
  const Item item = item_of<&InboxPiece::receive_end>(block.pieces, number);
  uint4 data = {};
  const bool wanted = item.rank != command.rank;
  if (!wanted) data = load_item(item, item.piece->receive_bytes);
  const char* const words =
      words_of(reinterpret_cast<char*>(command.inbox), command, item.rank, item.unit);
  if (!await_words<1>(command, &words, &wanted, deadline_ns, &data)) return false;
  const auto offset = item.unit * static_cast<unsigned>(kInboxUnitBytes);
  store_unit(reinterpret_cast<char*>(item.piece->dst) + offset,
             min(static_cast<unsigned>(kInboxUnitBytes), item.piece->receive_bytes - offset), data);
  return true;
}

// Where lengths differ by pair. Not inlined, and an item at a time, so that other commands keep
// their registers.
__device__ __noinline__ bool execute_pieces(Block& block, const InboxPiece* pieces) {
  const InboxCommand& command = block.command;
  learn_inboxes(block, command);
  const unsigned last =
      63 - __clzll(static_cast<long long>(command.send_to | command.receive_from));
  if (threadIdx.x < (last + 1) * kInboxPieceWords)
    reinterpret_cast<std::uint64_t*>(block.pieces)[threadIdx.x] =
        reinterpret_cast<const volatile std::uint64_t*>(pieces)[threadIdx.x];
  __syncthreads();
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned step = gridDim.x * blockDim.x;
  const unsigned send_end = (command.flags & kInboxSend) != 0 ? block.pieces[last].send_end : 0;
  for (unsigned number = first; number < send_end; number += step) send_item(block, number);
  __syncthreads();  // a dst may be a src
  const std::uint64_t deadline_ns = now_ns() + command.wait_us * 1000u;
  const unsigned receive_end = block.pieces[last].receive_end;
  bool all = true;
  for (unsigned number = first; all && number < receive_end; number += step)
    all = receive_item(block, number, deadline_ns);
  return __syncthreads_and(all) != 0;
}

constexpr unsigned kUnitsInFlight = 4;
constexpr unsigned kPeersInFlight = 4;

// All threads of the block. False where data of a peer has not come in time.
__device__ bool execute(Block& block, const InboxPiece* pieces) {
  if ((block.command.flags & kInboxInPieces) != 0) return execute_pieces(block, pieces);
  // In registers: what is shared would have to be loaded again after each word that is stored.
  const InboxCommand command = block.command;
  learn_inboxes(block, command);
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned step = gridDim.x * blockDim.x;
  const unsigned count = units_of(command);
  if ((command.flags & kInboxSend) != 0) {
    unsigned unit = first;
    for (; unit + (kUnitsInFlight - 1) * step < count; unit += kUnitsInFlight * step)
      send<kUnitsInFlight>(command, block.inboxes, {unit, step});
    for (; unit < count; unit += step) send<1>(command, block.inboxes, {unit, step});
  }
  __syncthreads();  // dst may be src
  const std::uint64_t deadline_ns = now_ns() + command.wait_us * 1000u;
  bool all = true;
  unsigned unit = first;
  for (; all && unit + (kUnitsInFlight - 1) * step < count; unit += kUnitsInFlight * step)
    all = receive<kUnitsInFlight, 1>(command, {unit, step}, deadline_ns);
  for (; all && unit < count; unit += step)
    all = receive<1, kPeersInFlight>(command, {unit, step}, deadline_ns);
  return __syncthreads_and(all) != 0;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kInboxThreads)
    accord_inbox(const __grid_constant__ InboxLaunch launch) {
  __shared__ Block block;
  InboxControl& control = *launch.control;
  std::uint64_t& answer = control.answers[blockIdx.x];
  std::uint64_t number = 0;  // of the last command; known to the first warp
  auto linger_ns = static_cast<std::uint32_t>(launch.linger_us * 1000);
  if (threadIdx.x == 0) block.inbox_number = 0;
  if (threadIdx.x < 32) number = load_acquire(&answer) >> 1;  // what an earlier launch has answered
  for (;;) {
    ++number;
    if (threadIdx.x < 32) {
      const bool rung = await_command(control.doorbells[blockIdx.x], launch.number,
                                      static_cast<std::uint32_t>(number), linger_ns, block);
      if (threadIdx.x == 0) block.leaving = !rung;
    }
    __syncthreads();
    if (block.leaving) break;
    linger_ns = block.command.linger_us * 1000u;
    const bool all = execute(block, control.pieces[blockIdx.x]);
    if (threadIdx.x == 0) {
      const std::uint64_t word = number << 1 | (all ? 0 : 1);
      if ((block.command.flags & kInboxToHost) != 0) {
        store_release(&answer, word);
      } else {
        store_after_device(&answer, word);
      }
    }
  }
  if (threadIdx.x == 0) store_release(&control.left[blockIdx.x], launch.number);
}

}  // namespace accord::device::cuda
