// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The resident kernel of inbox exchanges (device/inbox.h).
#include "device/cuda/inbox_direct.h"
#include "device/cuda/inbox_packets.h"
#include "device/cuda/inbox_units.h"

namespace accord::device::cuda {
namespace {

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

__device__ bool execute_in_packets(Block& block, const InboxPiece*) {
  const InboxCommand command = block.command;
  learn_inboxes(block, command);
  return execute_packets(command, block.inboxes);
}

__device__ bool execute_direct(Block& block, const InboxPiece* pieces) {
  DirectCommand command;
  memcpy(&command, &block.command, sizeof command);
  if (command.kind == DirectKind::pieces) {
    if (threadIdx.x < command.piece_count * kInboxPieceWords)
      reinterpret_cast<std::uint64_t*>(block.pieces)[threadIdx.x] =
          reinterpret_cast<const volatile std::uint64_t*>(pieces)[threadIdx.x];
    __syncthreads();
  }
  do_direct_work(command, block.pieces);
  __syncthreads();
  return true;
}

template <bool (*kExecute)(Block&, const InboxPiece*)>
__device__ void serve(const InboxLaunch& launch, Block& block) {
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
    const bool all = kExecute(block, control.pieces[blockIdx.x]);
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

}  // namespace

extern "C" __global__ void __launch_bounds__(kInboxThreads)
    accord_inbox(const __grid_constant__ InboxLaunch launch) {
  __shared__ Block block;
  serve<execute>(launch, block);
}

// A kernel of its own, so that neither format costs the other registers.
extern "C" __global__ void __launch_bounds__(kInboxThreads)
    accord_inbox_packets(const __grid_constant__ InboxLaunch launch) {
  __shared__ Block block;
  serve<execute_in_packets>(launch, block);
}

extern "C" __global__ void __launch_bounds__(kInboxThreads)
    accord_direct(const __grid_constant__ InboxLaunch launch) {
  __shared__ Block block;
  serve<execute_direct>(launch, block);
}

}  // namespace accord::device::cuda
