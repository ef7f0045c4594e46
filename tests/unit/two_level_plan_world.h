// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The ranks of a collective over several nodes that carry out its plan on plain memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coll/inter/plan.h"

namespace accord::coll {

using node::Kind;
using Bytes = std::vector<unsigned char>;

inline constexpr unsigned char kUntouched = 0xee;
inline constexpr unsigned char kNothing = 0xdd;

inline unsigned char value(int rank, std::size_t at) {
  return static_cast<unsigned char>(rank * 37 + static_cast<int>(at % 251) + 1);
}

struct Case {
  node::Call call;
  std::vector<std::uint64_t> node_numbers;
  bool in_place = false;
  int leaders_max = INT_MAX;
  std::size_t parcel_bytes = 4096;
  bool keeps_own = false;
};

inline std::string name_of(const Case& c) {
  std::string nodes;
  for (const auto node : c.node_numbers) nodes += " " + std::to_string(node);
  return "kind " + std::to_string(static_cast<int>(c.call.kind)) + " root " +
         std::to_string(c.call.root) + " block " + std::to_string(c.call.block_bytes) + " nodes" +
         nodes + " leaders " + std::to_string(c.leaders_max) + (c.in_place ? " in place" : "") +
         (c.keeps_own ? " keeps own" : "");
}

// All ranks of one call. Reductions add bytes, which is what the sum of uint8 is.
class World {
 public:
  explicit World(const Case& c) : case_(c), placement_(core::Placement::of(c.node_numbers)) {
    for (int rank = 0; rank < size(); ++rank) {
      Bytes in(total_bytes());
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
      Bytes out(in.size(), kUntouched);
      if (gathers() && in_place(rank))
        std::copy_n(in.begin(), length_of(rank), out.begin() + static_cast<long>(first_of(rank)));
      if (c.in_place && c.call.kind == Kind::alltoall) out = in;
      in_.push_back(std::move(in));
      out_.push_back(std::move(out));
      plans_.push_back(std::make_unique<TwoLevelPlan>(c.call, placement_, rank, in_place(rank),
                                                      c.leaders_max, c.parcel_bytes));
      if (c.keeps_own) plans_.back()->keep_own();
    }
  }

  std::size_t chunks() const { return plans_[0]->chunks(); }
  std::size_t kept_bytes() const { return kept_bytes_; }
  void run() {
    for (std::size_t number = 0; number < chunks(); ++number) {
      chunks_.clear();
      parcels_.clear();
      for (const auto& plan : plans_) {
        ASSERT_EQ(plan->chunks(), chunks());
        chunks_.push_back(plan->chunk(number));
        parcels_.emplace_back(chunks_.back().parcel_bytes, kUntouched);
      }
      for (int rank = 0; rank < size(); ++rank) keep(rank);
      for (int node = 0; node < placement_.nodes(); ++node)
        move(placement_.on(node), &TwoLevelPlan::Chunk::up);
      send_rounds();
      for (int node = 0; node < placement_.nodes(); ++node)
        move(placement_.on(node), &TwoLevelPlan::Chunk::down);
    }
  }

  void check() const {
    for (int rank = 0; rank < size(); ++rank) {
      const Bytes wanted = expected(rank);
      const Bytes& out = out_[static_cast<std::size_t>(rank)];
      const auto differ = std::ranges::mismatch(wanted, out);
      ASSERT_TRUE(differ.in1 == wanted.end())
          << name_of(case_) << ": rank " << rank << ", byte " << differ.in1 - wanted.begin();
    }
  }

 private:
  int size() const { return static_cast<int>(case_.node_numbers.size()); }
  bool gathers() const {
    return case_.call.kind == Kind::allgather || case_.call.kind == Kind::allgatherv ||
           case_.call.kind == Kind::gather;
  }
  // What the shim says: gather and scatter are in place at the root alone.
  bool in_place(int rank) const {
    const bool rooted = case_.call.kind == Kind::gather || case_.call.kind == Kind::scatter;
    return case_.in_place && (!rooted || rank == case_.call.root);
  }
  std::size_t length_of(int rank) const {
    const node::Call& call = case_.call;
    return call.blocks_bytes.empty() ? call.block_bytes
                                     : call.blocks_bytes[static_cast<std::size_t>(rank)];
  }
  std::size_t first_of(int rank) const {
    std::size_t first = 0;
    for (int before = 0; before < rank; ++before) first += length_of(before);
    return first;
  }
  std::size_t total_bytes() const { return first_of(size()); }

  void keep(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    const TwoLevelPlan::Own& own = chunks_[index].own;
    ASSERT_LE(own.in_bytes + own.length_bytes, in_[index].size());
    ASSERT_LE(own.out_bytes + own.length_bytes, out_[index].size());
    std::copy_n(in_[index].begin() + static_cast<long>(own.in_bytes), own.length_bytes,
                out_[index].begin() + static_cast<long>(own.out_bytes));
    kept_bytes_ += own.length_bytes;
  }

  // What the parts say, of what. Nobody puts what is from nowhere.
  static Bytes taken(const TwoLevelPlan::Parts& parts, const Bytes& from) {
    Bytes bytes;
    for (const auto& part : parts) {
      if (part.nowhere()) {
        bytes.resize(bytes.size() + part.length_bytes, kNothing);
        continue;
      }
      EXPECT_LE(part.first_bytes + part.length_bytes, from.size());
      const auto first = from.begin() + static_cast<long>(part.first_bytes);
      bytes.insert(bytes.end(), first, first + static_cast<long>(part.length_bytes));
    }
    return bytes;
  }
  static void put(const TwoLevelPlan::Parts& parts, const Bytes& bytes, Bytes& into) {
    std::size_t at = 0;
    for (const auto& part : parts) {
      ASSERT_LE(at + part.length_bytes, bytes.size());
      if (!part.nowhere()) {
        ASSERT_LE(part.first_bytes + part.length_bytes, into.size());
        std::memcpy(into.data() + part.first_bytes, bytes.data() + at, part.length_bytes);
      }
      at += part.length_bytes;
    }
  }

  // Where the bytes that go up are: the source of a gather in place is where they end.
  const Bytes& source(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    const bool there = gathers() || case_.call.kind == Kind::alltoall;
    return there && in_place(rank) ? out_[index] : in_[index];
  }
  void move(std::span<const int> ranks, TwoLevelPlan::Local TwoLevelPlan::Chunk::*step) {
    const bool up = step == &TwoLevelPlan::Chunk::up;
    std::vector<Bytes> shown;
    for (const int rank : ranks) {
      const auto index = static_cast<std::size_t>(rank);
      const TwoLevelPlan::Local& local = chunks_[index].*step;
      if (local.blocks_bytes.empty()) return;
      ASSERT_EQ(local.blocks_bytes,
                (chunks_[static_cast<std::size_t>(ranks[0])].*step).blocks_bytes);
      shown.push_back(taken(local.in, up ? source(rank) : parcels_[index]));
      if (!local.reduces) {
        ASSERT_EQ(shown.back().size(), local.blocks_bytes[shown.size() - 1]);
      }
    }
    for (std::size_t number = 0; number < ranks.size(); ++number) {
      const auto index = static_cast<std::size_t>(ranks[number]);
      const TwoLevelPlan::Local& local = chunks_[index].*step;
      const Bytes all = local.reduces ? reduced(shown, local.blocks_bytes, number) : joined(shown);
      const bool wanted = up || receives(ranks[number]);
      if (wanted) put(local.out, all, up ? parcels_[index] : out_[index]);
    }
  }
  static Bytes joined(const std::vector<Bytes>& shown) {
    Bytes all;
    for (const Bytes& one : shown) all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  static Bytes reduced(const std::vector<Bytes>& shown, const std::vector<std::size_t>& blocks,
                       std::size_t number) {
    std::size_t first = 0;
    for (std::size_t before = 0; before < number; ++before) first += blocks[before];
    Bytes sum(blocks[number], 0);
    for (const Bytes& one : shown) {
      EXPECT_LE(first + sum.size(), one.size());
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] = static_cast<unsigned char>(sum[i] + one[first + i]);
    }
    return sum;
  }
  bool receives(int rank) const {
    const Kind kind = case_.call.kind;
    if (kind == Kind::reduce || kind == Kind::gather) return rank == case_.call.root;
    if (kind == Kind::bcast) return rank != case_.call.root;
    if (kind == Kind::exscan) return rank != 0;
    return kind != Kind::scatter || !in_place(rank);
  }

  // Each rank goes on with its rounds as far as there is what it receives.
  void send_rounds() {
    on_the_way_.clear();
    std::vector<std::size_t> rounds(chunks_.size(), 0);
    for (int rank = 0; rank < size(); ++rank) send(rank, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < size(); ++rank) {
        std::size_t& number = rounds[static_cast<std::size_t>(rank)];
        if (!has_all(rank, number)) continue;
        receive(rank, number);
        send(rank, ++number);
        moved = true;
      }
    }
    for (std::size_t rank = 0; rank < chunks_.size(); ++rank)
      ASSERT_EQ(rounds[rank], chunks_[rank].rounds.size()) << name_of(case_);
    for (const auto& [pair, queue] : on_the_way_) EXPECT_TRUE(queue.empty()) << name_of(case_);
  }
  const TwoLevelPlan::Round* round(int rank, std::size_t number) const {
    const auto& rounds = chunks_[static_cast<std::size_t>(rank)].rounds;
    return number < rounds.size() ? &rounds[number] : nullptr;
  }
  bool has_all(int rank, std::size_t number) {
    const TwoLevelPlan::Round* const one = round(rank, number);
    return one != nullptr && std::ranges::all_of(one->messages, [&](const auto& message) {
             return message.sends || !on_the_way_[{message.peer, rank}].empty();
           });
  }
  void send(int rank, std::size_t number) {
    const TwoLevelPlan::Round* const one = round(rank, number);
    if (one == nullptr) return;
    const Bytes& parcel = parcels_[static_cast<std::size_t>(rank)];
    for (const auto& message : one->messages) {
      if (message.sends)
        on_the_way_[{rank, message.peer}].push_back(
            taken({{message.first_bytes, message.length_bytes}}, parcel));
    }
  }
  void receive(int rank, std::size_t number) {
    const TwoLevelPlan::Round& one = *round(rank, number);
    Bytes& parcel = parcels_[static_cast<std::size_t>(rank)];
    for (const auto& message : one.messages) {
      if (message.sends) continue;
      auto& queue = on_the_way_[{message.peer, rank}];
      ASSERT_EQ(queue.front().size(), message.length_bytes);
      put({{message.first_bytes, message.length_bytes}}, queue.front(), parcel);
      queue.pop_front();
    }
    for (const auto& reduction : one.reductions) reduce(reduction, parcel);
  }
  static void reduce(const TwoLevelPlan::Reduction& one, Bytes& parcel) {
    Bytes sum(one.length_bytes, 0);
    for (const std::size_t first : one.sources) {
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] = static_cast<unsigned char>(sum[i] + parcel.at(first + i));
    }
    put({{one.result_bytes, sum.size()}}, sum, parcel);
  }

  unsigned char sum_at(std::size_t at) const { return sum_before(size(), at); }
  static unsigned char sum_before(int end, std::size_t at) {
    int sum = 0;
    for (int rank = 0; rank < end; ++rank) sum += value(rank, at);
    return static_cast<unsigned char>(sum);
  }
  Bytes expected(int rank) const {
    const Kind kind = case_.call.kind;
    Bytes wanted = out_[static_cast<std::size_t>(rank)];
    std::fill(wanted.begin(), wanted.end(), kUntouched);
    if (!receives(rank)) return wanted;
    const std::size_t own = first_of(rank);
    for (int peer = 0; peer < size(); ++peer) {
      for (std::size_t i = 0; i < length_of(peer); ++i) {
        unsigned char& there = wanted[first_of(peer) + i];
        if (gathers()) there = value(peer, i);
        if (kind == Kind::alltoall) there = value(peer, own + i);
      }
    }
    for (std::size_t i = 0; i < case_.call.block_bytes; ++i) {
      if (kind == Kind::bcast) wanted[i] = value(case_.call.root, i);
      if (kind == Kind::reduce || kind == Kind::allreduce) wanted[i] = sum_at(i);
      if (kind == Kind::scan) wanted[i] = sum_before(rank + 1, i);
      if (kind == Kind::exscan) wanted[i] = sum_before(rank, i);
    }
    for (std::size_t i = 0; i < length_of(rank); ++i) {
      if (kind == Kind::scatter) wanted[i] = value(case_.call.root, own + i);
      if (kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block)
        wanted[i] = sum_at(own + i);
    }
    return wanted;
  }

  const Case& case_;
  std::size_t kept_bytes_ = 0;  // of all ranks, what did not go by parcels
  core::Placement placement_;
  std::vector<Bytes> in_;
  std::vector<Bytes> out_;
  std::vector<std::unique_ptr<TwoLevelPlan>> plans_;
  std::vector<TwoLevelPlan::Chunk> chunks_;
  std::vector<Bytes> parcels_;
  std::map<std::pair<int, int>, std::deque<Bytes>> on_the_way_;  // by sender and receiver
};

}  // namespace accord::coll
