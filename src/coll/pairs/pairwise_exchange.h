// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective that goes pair by pair (pair.h), within a node. Each sender decides for each pair
// whether the receiver reaches into its user's buffer or finds the bytes, chunk by chunk, in a lane
// of its exchange region (node/pairs.h): a host buffer or irregular type costs the other pairs
// nothing. What lies in nested equal steps, as subarrays do, goes from one layout to the other in
// one copy. Receivers fetch, what is lent in one batch. Pairs of no bytes take no part. A rank
// whose call differs from what its peer expects gets an error at the end of the call, which does
// its other pairs all the same; so does a sender, unless what it sends lies in its region and it
// need not wait for the receiver.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/stages.h"
#include "coll/coll_args.h"
#include "coll/exchange.h"
#include "coll/pairs/pair.h"
#include "node/group.h"

namespace accord::coll {

class PairwiseExchange final : public Exchange {
 public:
  // The ends outlive the exchange. Pairs of fewer bytes than `from_bytes`, on which both their
  // ranks agree, go another way.
  PairwiseExchange(std::shared_ptr<node::Group> group, const CollArgs& args,
                   std::size_t from_bytes = 1);
  // Instead of an exchange, by a rank that has no pair for it.
  static void pass(node::Group& group);

  Status advance(bool& done) override;
  void stop(bool& done) override;

  bool has_block_of(int peer) const override {
    return incoming_[static_cast<std::size_t>(peer)].size_bytes != 0;
  }

  const char* path() const noexcept override { return "node-pairs"; }

  // What this process has sent its peers: pairs of which they fetched the bytes from the user's own
  // buffer, and pairs through an exchange region.
  struct Counters {
    std::uint64_t lent = 0;
    std::uint64_t through_region = 0;
  };
  static Counters counters() noexcept;
  // Says them to those who listen at level info.
  static void report();

 private:
  using Direction = core::CallEnd::Direction;

  struct Pair : coll::Pair {
    bool announced = false;  // its parcel is written, or has been read
    bool is_lent = false;    // else through a lane:
    node::Place place;
    device::Steps runs;  // no bytes: one
    std::byte* lane = nullptr;
    std::size_t lane_bytes = 0;
    std::size_t chunk_bytes = 0;
    std::size_t begun = 0;  // chunks that this rank has begun to move (1: what is lent),
    std::size_t moved = 0;  // and has moved

    std::size_t chunks() const noexcept {
      return chunk_bytes == 0 ? 0 : (size_bytes + chunk_bytes - 1) / chunk_bytes;
    }
    void give_up() noexcept {
      size_bytes = begun = moved = 0;
      is_lent = false;
    }
    bool is_moved() const noexcept { return is_lent ? begun != 0 : moved == chunks(); }
  };
  // A chunk each of some pairs, on its way.
  struct Batch {
    device::CopyTicket ticket;
    std::vector<Pair*> pairs;
  };

  std::vector<Pair> pairs_of(const core::CallEnd& end) const;
  void choose_ways();
  // `end`: args_.in without blocks; becomes that of the pair alone.
  bool lend(Pair& pair, core::CallEnd& end) const;
  void announce();
  void look();
  void read(Pair& pair, const node::Parcel& parcel);
  void refuse(Pair& pair, Status why);
  Status fetch_lent();
  Status fetch(const core::CopyBatch& batch);
  Status move(Batch& batch, std::vector<Pair>& pairs, Direction direction, bool& moved);
  bool may_fill(Pair& pair);
  bool may_pull(const Pair& pair) const;
  void add_chunk(const Pair& pair, Direction direction, core::CopyBatch& batch) const;
  bool region_is_free();
  Status has_received(bool& received);
  bool has_sent();
  bool has_fetched(Pair& pair);
  void learn_refused(Pair& pair);
  void settle();
  static void settle(node::Group& group, std::uint64_t call, std::uint64_t base);
  Status poll(device::CopyTicket& ticket, bool& done);
  stages::Stage stage() const noexcept;

  int rank() const noexcept { return group_->rank(); }
  // Not all ranks begin with the same peer.
  Pair& turn(std::vector<Pair>& pairs, std::size_t step) const {
    return pairs[(static_cast<std::size_t>(rank()) + step) % pairs.size()];
  }
  node::Board& board(int peer) const { return group_->offers().board(peer); }
  bool has_settled(int peer) const {
    return board(peer).settled.load(std::memory_order_acquire) > call_;
  }
  static bool all_announced(const std::vector<Pair>& pairs);

  std::shared_ptr<node::Group> group_;
  const CollArgs& args_;
  std::size_t from_bytes_;
  std::uint64_t call_;
  std::uint64_t base_;  // of the numbers of chunks that stand for the whole region
  std::vector<Pair> outgoing_;
  std::vector<Pair> incoming_;
  bool began_ = false;
  bool arrived_ = false;  // all that this rank sends is announced
  bool region_is_free_ = false;
  bool settled_ = false;
  bool ended_ = false;
  Batch filling_;
  Batch pulling_;
  std::vector<device::CopyTicket> fetches_;  // of what is lent
  Status mistake_;                           // of the program
};

}  // namespace accord::coll
