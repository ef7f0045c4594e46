// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a collective goes straight between the users' buffers of a node, whole, in at most two
// steps: what a rank reduces from everybody's send buffer, then what it fetches from whose buffer.
// Pure arithmetic on what is equal on all ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "node/plan.h"

namespace accord::node {

// Bytes [theirs, theirs + length) of what `peer` contributes, or has of the result, to
// [own, own + length) of the own receive buffer; all in packed form.
struct DirectMove {
  int peer = 0;
  std::size_t theirs_bytes = 0;
  std::size_t own_bytes = 0;
  std::size_t length_bytes = 0;
};

// The part that one rank reduces, at the same place of every contribution, and where its result
// goes: into the receive buffer of `target`.
struct DirectShare {
  int target = 0;
  std::size_t source_bytes = 0;
  std::size_t result_bytes = 0;
  std::size_t length_bytes = 0;
};

class DirectPlan {
 public:
  DirectPlan(const Call& call, int rank) : call_(call), rank_(rank) {}

  // Whether such collectives go straight between buffers at all.
  static bool has(Kind kind) noexcept;

  bool reduces() const noexcept { return call_.op != device::ReduceOp::none; }
  // Ranks reduce a share each and then exchange, or hand on, the results.
  bool in_shares() const noexcept { return whole_reduction() && !one_shot(); }
  // The results are fetched from the peers' receive buffers.
  bool exchanges_results() const noexcept { return in_shares() && call_.kind == Kind::allreduce; }

  // Whether this rank's buffers have a say in how all ranks go.
  static bool decides(const Call& call, int rank) noexcept;
  // Who reaches into this rank's send and receive buffer (offers.h): a rank, kEveryone, kNobody.
  int readers_of_in() const noexcept;
  int readers_of_out() const noexcept;
  bool is_read_by(int peer) const noexcept;
  // Whether it matters how this rank's send or receive buffer can be reached.
  bool needs_in(bool in_place) const noexcept;
  bool needs_out() const noexcept { return reduces() && is_receiver(); }
  // A rank fetches its own block too, from one of its buffers to the other.
  bool has_own_move(bool in_place) const noexcept;

  // Where in its packed send buffer this rank's contribution begins.
  std::size_t contribution_bytes(bool in_place) const noexcept;
  std::size_t contribution_length_bytes() const noexcept;

  DirectShare share() const { return share_of(rank_); }
  std::vector<DirectMove> moves(bool in_place) const;

 private:
  bool whole_reduction() const noexcept {
    return call_.kind == Kind::allreduce || call_.kind == Kind::reduce;
  }
  bool one_shot() const noexcept { return call_.block_bytes <= call_.one_shot_bytes; }
  bool is_receiver() const noexcept { return call_.kind != Kind::reduce || rank_ == call_.root; }
  DirectShare share_of(int rank) const;

  Call call_;
  int rank_;
};

}  // namespace accord::node
