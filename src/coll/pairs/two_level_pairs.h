// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective that goes pair by pair (pair.h) on a communicator that spans nodes: pairs within a
// node from device to device (pairwise_exchange.h), the others by messages (far_pairs.h), both at
// once. Long ones go by a transport where one is asked for (inter/transports.h). Where ranks of the
// node share a device its short pairs go by messages, too: with those for other nodes they are one
// copy from the device and one to it, instead of several for which the ranks take turns. Equal
// blocks of an alltoall go so as well: each is for one rank, and by way of leaders
// (inter/exchange.h) it is copied twice more. So all go that are long, and those that are short
// enough to travel together.
#pragma once

#include <memory>

#include "coll/exchange.h"
#include "coll/pairs/far_pairs.h"
#include "coll/pairs/pairwise_exchange.h"

namespace accord::coll {

class TwoLevelPairs final : public Exchange {
 public:
  // Whether a call of this kind goes so if it goes in two levels, where a node may have so many
  // leaders; equal on all ranks.
  static bool takes(node::Kind kind, int leaders_max) noexcept;

  // They outlive the exchange. The queue has all that it takes: a group on each node, and a wire.
  TwoLevelPairs(core::Team& team, const CollArgs& args);

  Status advance(bool& done) override;
  void stop(bool& done) override;
  bool has_block_of(int peer) const override;
  const char* path() const noexcept override;

  // Says how many of this process have ended; info.
  static void report();

 private:
  void take_ends();
  core::CallEnd near_end(const core::CallEnd& end) const;

  const core::Placement& placement_;
  std::shared_ptr<core::Wire> wire_;
  const NetWay between_;
  std::unique_ptr<Transport> transport_;
  const CollArgs& given_;
  CollArgs args_;                 // the same, with ends whose blocks are those of the ranks
  const std::size_t near_bytes_;  // from which on a pair within the node goes as such
  CollArgs near_args_;            // what goes on within the node, as a call of its ranks
  PairwiseExchange near_;
  FarPairs far_;
  bool began_ = false;
  bool near_is_done_ = false;
  bool far_is_done_ = false;
  Status mistake_;  // of the program
};

}  // namespace accord::coll
