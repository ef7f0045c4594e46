// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective of any kind on buffers that one rank keeps over calls, so that they are lent: for
// tests of what becomes of calls in which something fails.
#pragma once

#include <algorithm>
#include <vector>

#include "runner.h"
#include "user_buffer.h"

namespace accord::model {

inline constexpr int kAnyRanks = 3;
inline constexpr Collective kAnyKinds[] = {
    Collective::bcast,          Collective::reduce,     Collective::allreduce,
    Collective::allgather,      Collective::alltoall,   Collective::gather,
    Collective::scatter,        Collective::scan,       Collective::exscan,
    Collective::reduce_scatter, Collective::allgatherv, Collective::reduce_scatter_block};

class AnyCollective {
 public:
  // `elements` a block; blocks that may differ by rank do.
  AnyCollective(Collective kind, int rank, std::size_t elements)
      : kind_(kind),
        rank_(static_cast<std::size_t>(rank)),
        elements_(elements),
        send_({Place::device_a}, send_count(), 1),
        recv_({Place::device_a}, recv_count(), 1) {
    args_.kind = kind;
    args_.op = is_reduction(kind) ? Op::sum : Op::none;
    args_.root = has_root(kind) ? static_cast<int>(kRoot) : 0;
    for (std::size_t block = 0; has_uneven_blocks(kind) && block < kRanks; ++block)
      args_.blocks_bytes.push_back(block_of(block) * sizeof(std::int64_t));
    if (sends()) args_.send = send_.argument();
    if (receives()) args_.recv = recv_.argument();
  }

  const CollectiveArgs& args() const { return args_; }

  void fill(int call) {
    call_ = call;
    recv_.poison();
    send_.fill(inputs(rank_));
    if (kind_ == Collective::bcast && rank_ == kRoot) recv_.fill(inputs(rank_));
  }

  // Empty, or what is wrong with the data of a call that has ended without an error.
  std::string difference() const {
    if (kind_ == Collective::exscan && rank_ == 0) return {};
    if (kind_ != Collective::bcast && sends())
      if (std::string wrong = send_.difference(inputs(rank_)); !wrong.empty()) return wrong;
    return receives() ? recv_.difference(expected()) : std::string();
  }

 private:
  static constexpr std::size_t kRanks = kAnyRanks;

  static constexpr std::size_t kRoot = 1;

  bool is_any_of(std::initializer_list<Collective> kinds) const {
    return std::ranges::find(kinds, kind_) != kinds.end();
  }
  bool sends_blocks() const {
    return is_any_of({Collective::alltoall, Collective::scatter, Collective::reduce_scatter,
                      Collective::reduce_scatter_block});
  }
  bool receives_blocks() const {
    return is_any_of(
        {Collective::alltoall, Collective::gather, Collective::allgather, Collective::allgatherv});
  }
  bool sends() const {
    return kind_ != Collective::bcast && (kind_ != Collective::scatter || rank_ == kRoot);
  }
  bool receives() const {
    return rank_ == kRoot || !is_any_of({Collective::reduce, Collective::gather});
  }
  std::size_t block_of(std::size_t rank) const {
    return has_uneven_blocks(kind_) ? elements_ * rank / 2 : elements_;
  }
  std::size_t first_of(std::size_t rank) const {
    std::size_t first = 0;
    for (std::size_t before = 0; before < rank; ++before) first += block_of(before);
    return first;
  }
  std::size_t send_count() const { return sends_blocks() ? first_of(kRanks) : block_of(rank_); }
  std::size_t recv_count() const {
    const bool all = receives_blocks();
    return all ? first_of(kRanks) : block_of(rank_);
  }
  std::vector<std::int64_t> inputs(std::size_t who) const {
    std::vector<std::int64_t> values(sends_blocks() ? first_of(kRanks) : block_of(who));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = value_of(call_, 0, static_cast<int>(who), i) >> 8;
    return values;
  }
  std::vector<std::int64_t> expected() const {
    std::vector<std::int64_t> result;
    if (kind_ == Collective::bcast) return inputs(kRoot);
    const std::size_t end = kind_ == Collective::scan     ? rank_ + 1
                            : kind_ == Collective::exscan ? rank_
                                                          : kRanks;
    for (std::size_t who = 0; who < end; ++who) {
      if (kind_ == Collective::scatter && who != kRoot) continue;
      std::vector<std::int64_t> from = inputs(who);
      if (sends_blocks()) {
        const auto first = from.begin() + static_cast<std::ptrdiff_t>(first_of(rank_));
        from = {first, first + static_cast<std::ptrdiff_t>(block_of(rank_))};
      }
      if (args_.op == Op::none || who == 0) {
        result.insert(result.end(), from.begin(), from.end());
      } else {
        for (std::size_t i = 0; i < result.size(); ++i) result[i] += from[i];
      }
    }
    return result;
  }

  const Collective kind_;
  const std::size_t rank_;
  const std::size_t elements_;
  int call_ = 0;
  UserBuffer send_;
  UserBuffer recv_;
  CollectiveArgs args_{};
};

// Ways for all kinds to go: regions, zero-copy, that in pieces, pair by pair, inboxes.
struct AnyWay {
  const char* name;
  ShimOptions shim;

  // The host MPI makes the call: of what ends one rank's the others learn nothing.
  bool is_by_host(Collective kind) const {
    return shim.exchange.node_bytes == 0 && has_uneven_blocks(kind);
  }
};
inline std::vector<AnyWay> any_ways(std::size_t lane_bytes) {
  const auto with = [](bool direct, bool spread, bool pairs, std::size_t lanes) {
    ShimOptions shim;
    shim.exchange.node_bytes = lanes != 0 && !pairs ? 0 : 1;
    shim.exchange.direct = direct;
    shim.exchange.spread = spread;
    shim.exchange.pairs = pairs;
    shim.exchange.lane_bytes = lanes;
    shim.exchange.shadowed_one_in = 0;
    return shim;
  };
  return {{"regions", with(false, false, false, 0)},
          {"direct", with(true, false, false, 0)},
          {"spread", with(true, true, false, 0)},
          {"pairs", with(false, false, true, 0)},
          {"lent pairs", with(true, false, true, 0)},
          {"inboxes", with(false, false, false, lane_bytes)},
          {"inbox pairs", with(true, false, true, lane_bytes)}};
}

}  // namespace accord::model
