// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Ranks on several nodes, all in this process over the embedded host runtime, that make two-level
// collectives: they move on in a random order, over wires that deliver late and read what is sent
// as late as they may. As soon as a rank's call is complete its send buffer is overwritten, and its
// next call begins.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "board_transport.h"
#include "board_wire.h"
#include "coll/inter/exchange.h"
#include "coll/pairs/two_level_pairs.h"
#include "core/team.h"
#include "node_world.h"

namespace accord::test {

using node::Kind;

// Until one fails; below 0: none does.
inline long reductions_left = -1;

inline int add_bytes(const void* in, void* inout, std::size_t length_bytes) {
  if (reductions_left >= 0 && reductions_left-- == 0) return 1;
  const auto* const from = static_cast<const unsigned char*>(in);
  auto* const to = static_cast<unsigned char*>(inout);
  for (std::size_t i = 0; i < length_bytes; ++i)
    to[i] = static_cast<unsigned char>(to[i] + from[i]);
  return 0;
}

inline unsigned char value(int rank, std::size_t call, std::size_t at) {
  return static_cast<unsigned char>(static_cast<std::size_t>(rank) * 37 + call * 11 + at % 251 + 1);
}

// A communicator of ranks on several nodes, and a row of calls of one kind.
class Nodes {
 public:
  Nodes(const std::vector<std::uint64_t>& node_numbers, Kind kind, std::size_t block_bytes,
        unsigned seed, int failing = -1, long fails_at = BoardWire::kNever)
      : placement_(core::Placement::of(node_numbers)),
        kinds_{kind},
        block_bytes_(block_bytes),
        board_(seed),
        offers_(seed),
        random_(seed) {
    for (int node = 0; node < placement_.nodes(); ++node)
      worlds_.push_back(std::make_unique<NodeWorld>(static_cast<int>(placement_.on(node).size()),
                                                    64 << 10, seed));
    for (int rank = 0; rank < placement_.ranks(); ++rank) {
      auto one = std::make_unique<Rank>();
      NodeWorld& world = *worlds_[static_cast<std::size_t>(placement_.node(rank))];
      one->team.regions.placement = placement_;
      one->team.nodes.local.group = world.shared_group(placement_.local_rank(rank));
      one->team.nodes.wire =
          std::make_shared<BoardWire>(board_, rank, rank == failing ? fails_at : BoardWire::kNever);
      ranks_.push_back(std::move(one));
    }
  }

  Nodes& in_place() {
    in_place_ = true;
    return *this;
  }
  // Equal blocks, too.
  Nodes& pair_by_pair() {
    pair_by_pair_ = true;
    return *this;
  }
  // What goes between nodes is offered, where it is long enough.
  Nodes& by_transport() {
    by_transport_ = true;
    return *this;
  }
  // The same as the rule says where all adapters are such.
  Nodes& by_rule_with(device::AdapterReach adapters) {
    by_rule_ = true;
    for (auto& rank : ranks_) rank->team.regions.placement.adapters = adapters;
    return by_transport();
  }
  // Where it reaches its receiver, which is so now and then.
  Nodes& by_transport_or_not() {
    offers_.reach_now_and_then();
    return by_transport();
  }
  const OfferBoard& offers() const { return offers_; }
  Nodes& parcels_of(std::size_t parcel_bytes) {
    parcel_bytes_ = parcel_bytes;
    return *this;
  }
  // This pair sends something else than its receiver expects, which gets an error for it, as the
  // sender may.
  void run_with_a_mistake(int from, int to, std::size_t size_bytes) {
    wrong_ = {from, to};
    wrong_bytes_ = size_bytes;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) begin(static_cast<int>(rank));
    std::vector<bool> ended(ranks_.size());
    for (std::size_t polls = 0; std::ranges::count(ended, true) < std::ssize(ended); ++polls) {
      ASSERT_LT(polls, 2000000u) << "the call does not end";
      const auto index = random_() % ranks_.size();
      if (ended[index]) continue;
      const auto rank = static_cast<int>(index);
      bool done = false;
      const Status status = ranks_[index]->now->exchange->advance(done);
      ended[index] = done;
      if (!done) {
        ASSERT_OK(status);
        continue;
      }
      EXPECT_EQ(rank != to, status.ok()) << status.message();
      Bytes wanted = expected(rank, 0);
      for (int peer = 0; peer < placement_.ranks(); ++peer)
        if (pair_bytes(peer, rank, kind_of(0)) != 0) {
          EXPECT_EQ(rank != to || peer != from, ranks_[index]->now->exchange->has_block_of(peer));
        }
      const std::size_t at = static_cast<std::size_t>(from) * block_bytes_;
      if (rank == to)
        std::fill_n(wanted.begin() + static_cast<std::ptrdiff_t>(at), block_bytes_, kUntouched);
      EXPECT_EQ(ranks_[index]->now->out.read(total_bytes()), wanted) << "rank " << rank;
    }
    EXPECT_EQ(board_.unfinished(), 0u);
    EXPECT_EQ(offers_.unfinished(), 0u);
  }
  // In all calls.
  Nodes& with_a_mistake(int from, int to, std::size_t size_bytes) {
    wrong_ = {from, to};
    wrong_bytes_ = size_bytes;
    return *this;
  }
  // No pair is without bytes.
  Nodes& dense() {
    least_ = 1;
    return *this;
  }

  // All pairs have a whole block.
  Nodes& whole() {
    least_ = 3;
    return *this;
  }

  // Pairs have another size in each direction.
  Nodes& lopsided() {
    is_lopsided_ = true;
    return *this;
  }

  // Later calls are of these kinds, in turns.
  Nodes& then(const std::vector<Kind>& kinds) {
    kinds_.insert(kinds_.end(), kinds.begin(), kinds.end());
    return *this;
  }

  // Pairs that go by messages, each of its own or not.
  std::size_t pairs_by_messages() const {
    std::size_t count = 0;
    for (int from = 0; from < placement_.ranks(); ++from) {
      const core::Team& team = ranks_[static_cast<std::size_t>(from)]->team;
      for (int to = 0; to < placement_.ranks(); ++to) {
        const bool is_near = placement_.node(from) == placement_.node(to);
        const bool goes = !is_near || team.nodes.local.group->shares_device();
        count += goes && pair_bytes(from, to, kind_of(0)) != 0 ? 1 : 0;
      }
    }
    return count;
  }
  std::size_t messages() const { return board_.posted(); }
  std::uint64_t chunks_through_region(int rank) const {
    const auto& group = ranks_[static_cast<std::size_t>(rank)]->team.nodes.local.group;
    return group->own_mailbox().filled.load();
  }
  std::size_t far_messages() const { return board_.posted_far(placement_); }

  void run(std::size_t calls) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) begin(static_cast<int>(rank));
    std::size_t left = ranks_.size();
    for (std::size_t polls = 0; left > 0; ++polls) {
      ASSERT_LT(polls, 20000000u) << "the calls do not end";
      const auto index = random_() % ranks_.size();
      Rank& one = *ranks_[index];
      if (one.call == calls) continue;
      bool done = false;
      ASSERT_OK(one.now->exchange->advance(done));
      if (!done) continue;
      const auto rank = static_cast<int>(index);
      ASSERT_EQ(one.now->out.read(total_bytes()), expected(rank, one.call))
          << "rank " << rank << ", call " << one.call;
      one.now->in.write(Bytes(total_bytes(), 0xdd));
      if (++one.call == calls) {
        --left;
      } else {
        begin(rank);
      }
    }
    EXPECT_EQ(board_.unfinished(), 0u);
    EXPECT_EQ(offers_.unfinished(), 0u);
  }

  // One call, as far as it goes while nothing of this rank arrives. How much has been sent to it.
  std::size_t run_while_held(int rank) {
    board_.hold_from(rank);
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer) begin(static_cast<int>(peer));
    for (int polls = 0; polls < 20000; ++polls) {
      bool done = false;
      EXPECT_OK(ranks_[random_() % ranks_.size()]->now->exchange->advance(done));
      EXPECT_FALSE(done);
    }
    std::size_t bytes = 0;
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
      bytes += static_cast<int>(peer) == rank ? 0 : board_.bytes_from(static_cast<int>(peer));
    return bytes;
  }

  // One call, in which a rank can send and receive nothing any more after a number of messages: it
  // ends, whatever becomes of the others.
  void run_until_cut_off(int rank, long messages) {
    ranks_[static_cast<std::size_t>(rank)]->team.nodes.wire =
        std::make_shared<BoardWire>(board_, rank, messages, true);
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer) begin(static_cast<int>(peer));
    std::vector<bool> stopping(ranks_.size());
    std::vector<bool> ended(ranks_.size());
    for (std::size_t polls = 0; !ended[static_cast<std::size_t>(rank)]; ++polls) {
      ASSERT_LT(polls, 200000u) << "it does not end";
      const auto index = random_() % ranks_.size();
      if (ended[index]) continue;
      bool done = false;
      if (stopping[index]) {
        ranks_[index]->now->exchange->stop(done);
      } else {
        stopping[index] = !ranks_[index]->now->exchange->advance(done).ok();
      }
      ended[index] = done;
    }
  }

  // Calls, in the first of which a rank stops after so many polls of all, or of itself, or in a
  // later one if it has come so far. The next call of a rank begins as soon as it knows of an
  // error, while it still stops, as a non-blocking one does. How many calls had an error.
  void run_until_all_stop(int first, std::size_t polls_before, long& errors,
                          std::size_t calls = 1) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) begin(static_cast<int>(rank));
    std::list<std::unique_ptr<Call>> stopping;
    std::size_t left = ranks_.size();
    for (std::size_t polls = 0; left > 0 || !stopping.empty(); ++polls) {
      ASSERT_LT(polls, 2000000u) << "the calls do not end";
      stopping.remove_if([this](const std::unique_ptr<Call>& one) {
        bool done = false;
        if (random_() % ranks_.size() == 0) one->exchange->stop(done);
        return done;
      });
      const auto index = random_() % ranks_.size();
      Rank& one = *ranks_[index];
      const auto rank = static_cast<int>(index);
      bool done = false;
      bool stops = polls >= polls_before && rank == first;
      if (one.call == calls) continue;
      const Status status = stops ? Status() : one.now->exchange->advance(done);
      stops = stops || !status.ok();
      if (!done && !stops) continue;
      if (stops) {
        if (rank == first) polls_before = SIZE_MAX;
        ++errors;
        if (!done) one.now->exchange->stop(done);
        if (!done) stopping.push_back(std::move(one.now));
      } else {
        ASSERT_EQ(one.now->out.read(total_bytes()), expected(rank, one.call))
            << "rank " << rank << ", call " << one.call;
      }
      if (++one.call == calls) {
        --left;
      } else {
        begin(rank);
      }
    }
    EXPECT_EQ(board_.unfinished(), 0u);
    EXPECT_EQ(offers_.unfinished(), 0u);
  }

 private:
  static constexpr int kRoot = 1;
  static constexpr unsigned char kUntouched = 0xee;

  // What one rank has for one of its calls.
  struct Call {
    explicit Call(std::size_t size_bytes) : in(size_bytes), out(size_bytes) {}
    Buffer in;
    Buffer out;
    coll::CollArgs args;
    std::unique_ptr<coll::Exchange> exchange;
  };
  struct Rank {
    core::Team team;
    std::unique_ptr<Call> now;
    std::size_t call = 0;
  };

  std::size_t total_bytes() const {
    return block_bytes_ * static_cast<std::size_t>(placement_.ranks());
  }
  Kind kind_of(std::size_t call) const { return kinds_[call % kinds_.size()]; }
  void begin(int rank) {
    Rank& owner = *ranks_[static_cast<std::size_t>(rank)];
    const Kind kind = kind_of(owner.call);
    owner.now = std::make_unique<Call>(total_bytes());
    Call& one = *owner.now;
    Bytes bytes(total_bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(rank, owner.call, i);
    one.in.write(bytes);
    one.out.write(in_place_ ? bytes : Bytes(total_bytes(), kUntouched));
    node::Call call{.kind = kind, .size = placement_.ranks(), .root = kRoot};
    if (!node::goes_by_pairs(kind)) call.block_bytes = block_bytes_;
    if (kind == Kind::allreduce || kind == Kind::scan) {
      call.op = device::ReduceOp::sum;
      call.element = device::Element::uint8;
    }
    one.args = coll::CollArgs();
    one.args.exchange = call;
    one.args.rank = rank;
    one.args.parcel_bytes = parcel_bytes_;
    one.args.ways.leaders_max = INT_MAX;
    one.args.host.reduce_local = add_bytes;
    if (by_transport_) {
      if (!by_rule_) one.args.ways.between = {coll::NetWay::Way::design};
      one.args.ways.offer_bytes = 1;
      one.args.host.make_transport = [this, rank](unsigned, core::Wire&) {
        return std::make_unique<BoardTransport>(offers_, rank);
      };
    }
    const bool is_root = rank == kRoot;
    const bool sends = is_root || (kind != Kind::bcast && kind != Kind::scatter);
    const bool receives = kind == Kind::gather ? is_root : kind != Kind::bcast || !is_root;
    if (sends) one.args.in = one.in.end(total_bytes());
    if (receives) one.args.out = one.out.end(total_bytes());
    if (node::goes_by_pairs(kind)) {
      one.args.in_place = in_place_;
      one.args.out.blocks = blocks(rank, false, kind);
      one.args.in.blocks = blocks(rank, true, kind);
      if (in_place_) one.args.in = one.args.out;
      one.exchange = std::make_unique<coll::TwoLevelPairs>(owner.team, one.args);
    } else if (pair_by_pair_) {
      one.args.in.of_send = !in_place_;
      if (in_place_) one.args.in = one.args.out;
      one.exchange = std::make_unique<coll::TwoLevelPairs>(owner.team, one.args);
    } else {
      one.exchange = std::make_unique<coll::TwoLevelExchange>(owner.team, one.args);
    }
  }
  // None, a part, or all of a block; equal in both directions, unless they are to be lopsided.
  std::size_t pair_bytes(int from, int to, Kind kind) const {
    if (in_place_ && from == to) return 0;
    if (kind == Kind::gatherv && to != kRoot) return 0;
    if (kind == Kind::scatterv && from != kRoot) return 0;
    const auto pair = static_cast<std::size_t>(from + to + from * to + (is_lopsided_ ? to : 0));
    return block_bytes_ * (least_ + pair % (4 - least_)) / 3;
  }
  // Where what a rank sends each other one lies, or what it receives from them.
  std::vector<core::Segment> blocks(int rank, bool sends, Kind kind) const {
    std::vector<core::Segment> made;
    const bool is_of_root = kind == (sends ? Kind::scatterv : Kind::gatherv);
    if (is_of_root && rank != kRoot) return made;
    for (int peer = 0; peer < placement_.ranks(); ++peer) {
      std::size_t size_bytes = sends ? pair_bytes(rank, peer, kind) : pair_bytes(peer, rank, kind);
      if (sends && rank == wrong_.first && peer == wrong_.second) size_bytes = wrong_bytes_;
      const std::size_t at = static_cast<std::size_t>(peer) * block_bytes_;
      made.push_back({core::Typemap::contiguous(1), size_bytes, static_cast<std::ptrdiff_t>(at)});
    }
    return made;
  }
  Bytes expected(int rank, std::size_t call) const {
    const Kind kind = kind_of(call);
    Bytes wanted(total_bytes(), kUntouched);
    for (std::size_t i = 0; in_place_ && i < wanted.size(); ++i) wanted[i] = value(rank, call, i);
    const std::size_t own = static_cast<std::size_t>(rank) * block_bytes_;
    for (int peer = 0; peer < placement_.ranks(); ++peer) {
      for (std::size_t i = 0; i < block_bytes_; ++i) {
        const std::size_t there = static_cast<std::size_t>(peer) * block_bytes_ + i;
        if (kind == Kind::allgather) wanted[there] = value(peer, call, i);
        if (kind == Kind::alltoall) wanted[there] = value(peer, call, own + i);
        if (node::goes_by_pairs(kind) && i < pair_bytes(peer, rank, kind))
          wanted[there] = value(peer, call, own + i);
        if (kind == Kind::gather && rank == kRoot) wanted[there] = value(peer, call, i);
        if (kind == Kind::scatter) wanted[i] = value(kRoot, call, own + i);
        if (kind == Kind::bcast && rank != kRoot) wanted[i] = value(kRoot, call, i);
        if (kind == Kind::allreduce || (kind == Kind::scan && peer <= rank))
          wanted[i] =
              static_cast<unsigned char>((peer == 0 ? 0 : wanted[i]) + value(peer, call, i));
      }
    }
    return wanted;
  }

  core::Placement placement_;
  std::vector<Kind> kinds_;
  bool in_place_ = false;
  bool pair_by_pair_ = false;
  std::size_t parcel_bytes_ = 3000;
  std::size_t least_ = 0;  // of a pair, in thirds of a block
  bool is_lopsided_ = false;
  std::pair<int, int> wrong_{-1, -1};
  std::size_t wrong_bytes_ = 0;
  std::size_t block_bytes_;
  Board board_;
  OfferBoard offers_;
  bool by_transport_ = false;
  bool by_rule_ = false;  // whether, and what
  std::mt19937 random_;
  std::vector<std::unique_ptr<NodeWorld>> worlds_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace accord::test
