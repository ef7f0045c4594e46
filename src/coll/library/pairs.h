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
  // What this rank sends one peer, or receives from it: one message, also where several blocks are
  // between the two (neighbours), so it is an end of its own instead of a Pair.
  struct Block {
    core::CallEnd end;
    std::size_t size_bytes = 0;
    std::size_t parts = 0;
    std::uint64_t parts_hash = 0;  // of their sizes
    std::byte* place = nullptr;    // where the library finds it
    bool is_direct = false;        // which is where the user has it

    void add(const core::Segment& part);
    // Equal on both ranks if they agree.
    std::uint64_t told() const noexcept { return parts < 2 ? size_bytes : parts_hash | kSeveral; }
  };
  static constexpr std::uint64_t kSeveral = std::uint64_t{1} << 63;

  std::vector<Block> blocks_of(const core::CallEnd& end, bool may_be_direct) const;
  static std::size_t place_elsewhere(std::vector<Block>& blocks, std::byte* scratch);

  const CollArgs& args_;
  std::vector<Block> outgoing_;  // by peer
  std::vector<Block> incoming_;
  Status mistake_;
};

}  // namespace accord::coll
