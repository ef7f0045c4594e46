// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a collective goes straight between the users' buffers of a node, whole, in one step a rank:
// either one kernel, which makes a part of the result out of what several ranks contribute and
// stores it where it is wanted, or one batch of copies out of the peers' buffers or into them. Long
// reductions take steps in between (spread_plan.h). Pure arithmetic on what is equal on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node/call.h"

namespace accord::node {

// What all ranks must do alike. As a number it is part of a record (offers.h).
enum class DirectForm : std::uint32_t {
  copies,      // each rank copies what it receives
  pushes,      // each rank copies what it sends
  own_result,  // each rank's kernel makes what it receives
  shares,      // each rank's kernel makes a share and stores it in everybody's receive buffer
  spread,      // each rank's kernel makes a share of what engines have fetched (spread_plan.h)
};

class DirectPlan {
 public:
  // `has_kernels`: all ranks of the group can reduce on their device, and so copy by kernels.
  DirectPlan(const Call& call, int rank, bool has_kernels);

  int size() const noexcept { return call_.size; }
  DirectForm form() const noexcept { return form_; }
  bool by_kernel() const noexcept {
    return form_ == DirectForm::own_result || form_ == DirectForm::shares;
  }
  bool reduces() const noexcept { return geometry_.pattern().reduces; }

  // Whether the buffers of `rank` have a say in how all ranks go.
  bool decides(int rank) const noexcept;
  // Who reaches into this rank's send buffer, or stores into its receive buffer (offers.h): a
  // rank, kEveryone, kNobody.
  int readers_of_in() const noexcept;
  int writers_of_out() const noexcept;
  bool is_touched_by(int peer) const noexcept;
  // Whether it matters how this rank's send or receive buffer can be reached.
  bool needs_in(bool in_place) const noexcept;
  bool needs_out() const noexcept;

  // Where in its packed send buffer this rank's contribution begins, and how long it is.
  Range contribution(bool in_place) const noexcept {
    return geometry_.contribution(rank_, in_place);
  }
  // Its receive buffer begins with what it gets.
  std::size_t result_length_bytes() const noexcept {
    return geometry_.result(rank_, false).length_bytes;
  }

  // The kernel of a rank, if it has one: its share, of whose contributions in the order of the
  // ranks, for whose receive buffers, the nearest first.
  Share share(int rank) const;
  std::vector<int> sources() const;
  std::vector<int> targets() const;
  // Every share of the result is for all ranks.
  bool shares_result() const noexcept { return call_.kind == Kind::allreduce; }
  // Shares that are parts of one result are whole ones of these: whole lines of whole elements.
  std::size_t granule_bytes() const noexcept { return node::granule_bytes(call_); }
  // The copies of this rank: in out of what peers contribute, or out into what they get. It copies
  // its own block too, from one of its buffers to the other.
  std::vector<Move> moves(bool in_place) const;

 private:
  DirectForm choose_form(bool has_kernels) const noexcept;
  bool is_root() const noexcept { return rank_ == call_.root; }
  bool is_spread() const noexcept { return form_ == DirectForm::spread; }
  // What a rank puts in it brings to the others itself.
  bool stores_own() const noexcept {
    return form_ == DirectForm::pushes ||
           (form_ == DirectForm::shares && geometry_.pattern().gathers_to_all());
  }
  bool scatters_result() const noexcept { return geometry_.pattern().scatters_result(); }
  // Bcast, and reduce among more than two: the root leaves the shares to the others. Its links
  // have enough to do with what all send it, or fetch from it. Of a reduce among two it makes all:
  // the other's contribution has to come to it in any case.
  bool spares_root() const noexcept;
  bool burdens_root() const noexcept { return call_.kind == Kind::reduce && call_.size == 2; }
  Share equal_share(int rank) const;
  bool has_result(int rank) const noexcept {
    return geometry_.gets_out(rank) && geometry_.length(rank) > 0;
  }
  bool has_own_move(bool in_place) const noexcept;

  Call call_;
  Geometry geometry_;
  int rank_;
  DirectForm form_;
};

}  // namespace accord::node
