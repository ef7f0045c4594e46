// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "exchange.h"

#include <cstring>
#include <deque>
#include <vector>

#include "transfer.h"

namespace accord::fake {
namespace {

std::atomic<long> collectives_begun = 0;
std::atomic<long> messages_begun = 0;

// A call on its way. What comes in is kept apart until all is there: in place, the user's buffer
// is still being sent.
struct Work {
  const Posted& posted;
  std::size_t block_bytes;
  std::size_t incoming = 0;  // blocks, one a rank
  std::vector<std::byte> blocks{};
};

bool is_pair(Kind kind) { return kind == Kind::send || kind == Kind::receive; }
bool gathers_at_root(Kind kind) { return kind == Kind::reduce || kind == Kind::gather; }
bool spreads_from_root(Kind kind) { return kind == Kind::broadcast || kind == Kind::scatter; }
bool has_root(Kind kind) { return gathers_at_root(kind) || spreads_from_root(kind); }
bool is_reduction(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}
// Whether each peer is sent another block.
bool is_sliced(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::all_to_all || kind == Kind::scatter;
}

bool goes_out(int rank, const Call& call, int peer) {
  if (gathers_at_root(call.kind)) return peer == call.peer;
  return !spreads_from_root(call.kind) || rank == call.peer;
}
bool comes_in(int rank, const Call& call, int peer) {
  if (spreads_from_root(call.kind)) return peer == call.peer;
  return !gathers_at_root(call.kind) || rank == call.peer;
}

Header header_of(const Call& call, std::size_t block_bytes) {
  if (is_pair(call.kind)) return {block_bytes, 0};
  const auto kind = 1 + static_cast<std::uint64_t>(call.kind);
  const auto element = static_cast<std::uint64_t>(call.element);
  const auto reduction = is_reduction(call.kind) ? static_cast<std::uint64_t>(call.reduction) : 0;
  const auto root = has_root(call.kind) ? static_cast<std::uint64_t>(call.peer) : 0;
  return {block_bytes, kind << 24 | element << 16 | reduction << 8 | root};
}

std::byte* bytes_of(const void* buffer) {
  return static_cast<std::byte*>(const_cast<void*>(buffer));
}

void begin_pair(const Work& work, Transfers& transfers) {
  const auto& [communicator, call] = work.posted;
  const Header header = header_of(call, work.block_bytes);
  const Segment& segment = *communicator->segment;
  if (call.kind == Kind::send) {
    transfers.add(segment.lane(Traffic::pair, communicator->rank, call.peer),
                  {Way::out, header, bytes_of(call.send)});
  } else {
    transfers.add(segment.lane(Traffic::pair, call.peer, communicator->rank),
                  {Way::in, header, bytes_of(call.receive)});
  }
}

void begin_collective(Work& work, Transfers& transfers) {
  const auto& [communicator, call] = work.posted;
  const Header header = header_of(call, work.block_bytes);
  const Segment& segment = *communicator->segment;
  const int rank = communicator->rank;
  work.blocks.resize(static_cast<std::size_t>(communicator->rank_count) * work.block_bytes);
  for (int peer = 0; peer < communicator->rank_count; ++peer) {
    if (goes_out(rank, call, peer)) {
      const std::size_t slice = is_sliced(call.kind) ? static_cast<std::size_t>(peer) : 0;
      std::byte* block = bytes_of(call.send) + slice * work.block_bytes;
      transfers.add(segment.lane(Traffic::collective, rank, peer), {Way::out, header, block});
    }
    if (comes_in(rank, call, peer)) {
      std::byte* block = work.blocks.data() + work.incoming++ * work.block_bytes;
      transfers.add(segment.lane(Traffic::collective, peer, rank), {Way::in, header, block});
    }
  }
}

void end_collective(const Work& work) {
  const Call& call = work.posted.call;
  const std::size_t size_bytes = work.incoming * work.block_bytes;
  if (size_bytes == 0) return;
  if (is_reduction(call.kind)) {
    reduce(call.element, call.reduction, {work.blocks.data(), size_bytes},
           {bytes_of(call.receive), work.block_bytes});
  } else {
    std::memcpy(call.receive, work.blocks.data(), size_bytes);
  }
}

// Whether this is the call that is to fail: all collectives of the process count, from 1, and all
// messages.
bool is_to_fail(const Posted& posted) {
  const Faults& faults = posted.communicator->faults;
  const bool is_named = is_pair(posted.call.kind) ? ++messages_begun == faults.message
                                                  : ++collectives_begun == faults.call;
  if (!is_named) return false;
  return faults.call_rank < 0 || faults.call_rank == posted.communicator->rank;
}

Outcome mismatch(const Transfer& culprit) {
  const auto text = [](const Header& header) {
    return std::to_string(header[0]) + " bytes of call " + std::to_string(header[1]);
  };
  return fail(Outcome::invalid_usage, "ranks make different calls: " + text(culprit.header()) +
                                          " here, " + text(culprit.seen()) + " there");
}

Outcome trouble_of(std::span<const Posted> calls) {
  for (const Posted& posted : calls) {
    const Outcome seen = posted.communicator->trouble();
    if (seen != Outcome::success) return seen;
  }
  return Outcome::success;
}

Outcome move_all(std::span<const Posted> calls, Transfers& transfers) {
  Patience patience(*calls.front().communicator);
  while (!transfers.complete()) {
    // Asked first: what a rank sent before it failed still comes.
    const Outcome trouble = trouble_of(calls);
    const Advance advance = transfers.advance();
    if (advance == Advance::mismatch) return mismatch(transfers.culprit());
    if (advance == Advance::some) {
      patience.renew();
      continue;
    }
    if (trouble != Outcome::success) return trouble;
    if (!patience.wait()) return fail(Outcome::system_error, "a peer makes no such call");
  }
  return Outcome::success;
}

}  // namespace

Outcome check(const Communicator& communicator, const Call& call) {
  const bool names_peer = has_root(call.kind) || is_pair(call.kind);
  if (names_peer && (call.peer < 0 || call.peer >= communicator.rank_count)) {
    return fail(Outcome::invalid_argument, "no such rank");
  }
  bool sends = call.kind == Kind::send;
  bool receives = call.kind == Kind::receive;
  for (int peer = 0; !is_pair(call.kind) && peer < communicator.rank_count; ++peer) {
    sends = sends || goes_out(communicator.rank, call, peer);
    receives = receives || comes_in(communicator.rank, call, peer);
  }
  const bool lacking = (sends && call.send == nullptr) || (receives && call.receive == nullptr);
  if (lacking && call.count != 0) return fail(Outcome::invalid_argument, "a buffer is missing");
  return Outcome::success;
}

Outcome exchange(std::span<const Posted> calls) {
  std::deque<Work> works;
  Transfers transfers;
  for (const Posted& posted : calls) {
    if (is_to_fail(posted)) return fail(Outcome::internal_error, "told to fail at this call");
    works.push_back({posted, posted.call.count * size_of(posted.call.element)});
    if (is_pair(posted.call.kind)) {
      begin_pair(works.back(), transfers);
    } else {
      begin_collective(works.back(), transfers);
    }
  }
  const Outcome outcome = move_all(calls, transfers);
  for (const Work& work : works) {
    if (outcome == Outcome::success) end_collective(work);
  }
  return outcome;
}

}  // namespace accord::fake
