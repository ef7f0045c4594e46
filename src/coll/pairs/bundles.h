// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What ranks of several nodes send each other in short blocks, in one message from node to node. A
// rank gives its blocks for the ranks of another node to that rank of its own node which carries
// them (one for each other node, so that all carry); this one sends those of all in one message to
// its like there, and that hands out to each rank of its node what is for it. So the ranks of a
// node begin a message for each other node instead of one for each pair of ranks. Sizes of longer
// blocks, which go by themselves, go along: each rank learns what all others send it.
//
// All messages are lists: sizes first, then the bytes of the blocks that travel in them. All of it
// is in host memory: blocks are packed into the rank's own lists, and unpacked from those that it
// gets. Every rank goes on for the others, too, until nothing is left to do for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coll/coll_args.h"
#include "core/placement.h"
#include "core/wire.h"
#include "device/staging_pool.h"

namespace accord::coll {

class Bundles {
 public:
  // A longer block is more than one message of its own.
  static constexpr std::size_t kBlockBytesMax = std::size_t{64} << 10;
  // Others on other nodes that a rank must have for pay_alone, in the mean.
  static constexpr int kFarRanksMin = 8;

  // What one rank has for another one.
  struct Block {
    std::size_t size_bytes = 0;
    const std::byte* bytes = nullptr;  // where it travels along, here
    bool is_given_up = false;          // its sender has an error, and has not sent it
  };
  // Equal on all ranks, and of this call alone: `in` is of lists that go in to who carries them,
  // and between nodes, `out` of those that these hand out.
  struct Tags {
    int in;
    int out;
  };

  // Whether they are worth it in a call that goes by messages between nodes, or it goes so on their
  // account, however short all blocks are: equal on all ranks.
  static bool pay(const core::Placement& placement, const CollArgs& args);
  static bool pay_alone(const core::Placement& placement, const CollArgs& args);
  // Whether the blocks of `end` are as short as that: of this rank.
  static bool take_all(const core::CallEnd& end, const CollArgs& args);
  // The same of blocks that all are equal: of all ranks.
  static bool take_equal(node::Kind kind, std::size_t block_bytes) noexcept;

  // All outlive it; the runtime's page-locked memory is used.
  Bundles(core::Wire& wire, const core::Placement& placement, device::DeviceRuntime& runtime,
          const CollArgs& args, Tags tags);

  // Whether a block of `size_bytes` between these ranks travels so; equal on all ranks.
  bool takes(int from, int to, std::size_t size_bytes) const;

  // Before all else. `sizes`: what this rank has for each rank of another node, by rank.
  Status begin(std::vector<std::size_t> sizes);
  // Where to pack the block for `peer`, if one travels so: 16-byte aligned.
  std::byte* place(int peer) const { return places_[static_cast<std::size_t>(peer)]; }
  // The list with the block for `peer`, or from there: one allocation.
  int list_of(int peer, bool sends) const;
  // Once all of them are packed.
  void send() noexcept { is_packed_ = true; }
  // After an error: tells the others of what has not been packed. From here on a message that
  // cannot begin at its second try is given up as well, since nobody may wait for this rank without
  // end.
  void give_up() noexcept;
  // To be polled; `moved` is set if something has happened. Goes on with what an error leaves.
  Status advance(bool& moved);
  // From here on `from` tells what each rank of another node has for this one.
  bool has_arrived() const noexcept { return has_arrived_; }
  const Block& from(int peer) const { return arrived_[static_cast<std::size_t>(peer)]; }
  // Nothing is left to do, for this rank or others.
  bool is_done() const noexcept { return is_done_; }

  // Messages that this process has begun, in either direction.
  static std::uint64_t messages() noexcept;

 private:
  using Blocks = std::vector<Block>;
  // One message, or what a rank keeps for itself instead.
  struct List {
    int peer = 0;  // who sends or gets it
    bool sends = false;
    int tag = 0;
    std::vector<int> nodes{};      // of which the blocks are: who gets or has sent them
    std::size_t length_bytes = 0;  // of one that comes: at most
    device::StagingBuffer memory{};
    core::HostRequest request = 0;
    bool is_posted = false;
    bool was_refused = false;  // it could not begin when that was tried
    bool has_ended = false;
    bool has_failed = false;  // what is in memory means nothing

    std::byte* bytes() const noexcept { return static_cast<std::byte*>(memory.data()); }
  };
  using Lists = std::vector<List>;

  class ByPeer;

  std::span<const int> root_on(int node) const;
  std::span<const int> senders(int node) const;
  std::span<const int> receivers(int node) const;
  bool flows(int from_node, int to_node) const;
  int carrier_out(int from_node, int to_node) const;
  int carrier_in(int from_node, int to_node) const;
  std::size_t bytes_max(int from_node, int to_node) const;

  void find_lists();
  Status prepare();
  Status make_room(List& list, std::size_t length_bytes);
  Status unless_stopping(List& list, Status status) const;
  Status begin(List& list);
  Status poll(List& list);
  Status put_head(List& list, const std::vector<std::uint64_t>& words);
  Status lay_out(List& list);
  Status write(List& list, const Blocks& blocks);
  static Blocks read(const List& list, std::size_t count);
  Status poll(Lists& lists, bool& moved);
  void withdraw_receives();
  void keep_own(Lists& sent, Lists& received);
  static bool all_ended(const Lists& lists);
  Status carry();
  Status hand_out();
  void take_in();

  core::Wire& wire_;
  const core::Placement& placement_;
  device::DeviceRuntime& runtime_;
  const int rank_;
  const int node_;
  const Tags tags_;
  const std::size_t block_bytes_max_;
  // Of the call: all ranks, or its root alone.
  const bool only_root_sends_;
  const bool only_root_receives_;
  const std::vector<int> root_;

  std::vector<std::size_t> sizes_;  // what this rank sends, by rank
  std::vector<std::byte*> places_;  // where that is packed
  bool is_prepared_ = false;
  bool is_packed_ = false;
  bool is_given_up_ = false;  // what this rank has for the others
  bool is_stopping_ = false;
  bool has_carried_ = false;
  bool has_handed_out_ = false;
  bool has_arrived_ = false;
  bool is_done_ = false;
  // What a rank gives each carrier; what a carrier gets so from each rank of its node, sends each
  // node, gets from each node, and hands out to each rank of its node; what a rank gets so.
  Lists given_, collected_, sent_, got_, handed_, received_;
  Blocks arrived_;  // by rank
};

}  // namespace accord::coll
