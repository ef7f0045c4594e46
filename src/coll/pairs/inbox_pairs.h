// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective that goes pair by pair (pair.h) within a node, where the ranks have inboxes: what
// fits into a lane goes by these, all in one step, and longer pairs pair by pair behind it
// (pairwise_exchange.h). Both ranks of a pair know which way it goes by its size. Each rank writes
// down what it sends whom, so that ranks which disagree get an error like that of a
// PairwiseExchange instead of waiting; but nobody looks for what comes from a rank of which nothing
// is expected.
#pragma once

#include <optional>
#include <vector>

#include "coll/intra/inbox_exchange.h"
#include "coll/pairs/pairwise_exchange.h"

namespace accord::coll {

class InboxPairs final : public InboxExchange {
 public:
  // `regions`: of the same ranks. The ends outlive the exchange.
  InboxPairs(std::shared_ptr<node::Group> inboxes, std::shared_ptr<node::Group> regions,
             const CollArgs& args);

  Status advance(bool& done) override;
  void stop(bool& done) override;
  bool has_block_of(int peer) const override;
  const char* path() const noexcept override { return long_ ? long_->path() : "inbox"; }

 private:
  using Pairs = std::vector<Pair>;  // by rank

  Pairs pairs_of(const core::CallEnd& end) const;
  void describe();
  bool is_direct(const core::CallEnd& end, const Pairs& pairs) const;
  Status begin() override;
  bool announce() override;
  void look_at_peers() override;
  Status unpack() override;
  Status copy(const core::CallEnd& end, const Pairs& pairs, core::CallEnd::Direction direction,
              device::CopyTicket& ticket);
  void refuse(int peer, std::uint32_t told);

  const Pairs sent_;
  const Pairs received_;
  std::vector<device::InboxPart> parts_;  // by rank; of those that go by inboxes
  std::uint64_t tells_ = 0;               // receivers of anything from this rank, longer pairs too
  std::uint64_t refused_ = 0;             // senders of something else than this rank expects
  bool unpacks_ = false;
  std::optional<PairwiseExchange> long_;
  bool short_done_ = false;
  bool ended_ = false;
  Status mistake_;  // of the program
};

}  // namespace accord::coll
