// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective that goes pair by pair, as one group of a library's messages. Each rank tells each
// other one what it sends and what it expects; a pair that does not agree is an error of these two,
// who leave it out and do the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/library/cargo.h"
#include "coll/pairs/pair.h"

namespace accord::coll {

class CclPairs final : public CclCargo {
 public:
  CclPairs(CclGroup& group, const CollArgs& args) : CclCargo(group), args_(args) {}

  Status pack(device::CopyTicket& ticket) override;
  bool has_to_tell() const override { return true; }
  void tell_peers() override;
  void look_at_peers() override;
  std::vector<ccl::Work> works() const override;
  Status unpack(device::CopyTicket& ticket) override;
  Status mistake() const override { return mistake_; }
  bool has_block_of(int peer) const override {
    return incoming_[static_cast<std::size_t>(peer)].size_bytes != 0;
  }

 private:
  // One message.
  struct Pair : coll::Pair {
    std::byte* place = nullptr;  // where the library finds it
    bool is_direct = false;      // which is where the user has it
  };

  std::vector<Pair> pairs_of(const core::CallEnd& end, bool may_be_direct) const;
  static std::size_t place_elsewhere(std::vector<Pair>& pairs, std::byte* scratch);
  static core::CopyBatch copies(const core::CallEnd& end, const std::vector<Pair>& pairs,
                                core::CallEnd::Direction direction);

  const CollArgs& args_;
  std::vector<Pair> outgoing_;  // by peer
  std::vector<Pair> incoming_;
  Status mistake_;
};

}  // namespace accord::coll
