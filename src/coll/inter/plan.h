// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective of a communicator that spans nodes, in two levels. Each chunk of it goes up (within
// the node, to its leaders), between the nodes (in messages of leaders of the same number, each
// with its share of the chunk), and down (within the node, to whoever wants it). As many ranks of
// every node are leaders as the smallest node has, or one. Up and down are movements in which every
// rank shows the others a block and takes from theirs what it wants, or, up, reductions of which
// each leader gets its share. Pure arithmetic on what is equal on all ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "core/call_end.h"
#include "core/placement.h"
#include "node/call.h"

namespace accord::coll {

// So many nodes as a grid: the lengths of its lines, by dimension. No more dimensions than it takes
// for no line to be longer than `line_max`, or than the largest prime in the number of nodes.
std::vector<int> grid_of(int nodes, int line_max);

class TwoLevelPlan {
 public:
  using Part = core::CallEnd::Part;
  using Parts = std::vector<Part>;

  // What goes on within this rank's node. No blocks: nothing does.
  struct Local {
    bool reduces = false;
    // By number in the node: what each rank shows, or, where it reduces, gets.
    std::vector<std::size_t> blocks_bytes;
    Parts in;   // what this rank puts in; up: of its buffer, down: of the parcel
    Parts out;  // where it wants what comes out; up: in the parcel, down: in its buffer
  };
  struct Message {
    int peer = 0;  // rank of the communicator
    bool sends = false;
    std::size_t first_bytes = 0;  // in the parcel
    std::size_t length_bytes = 0;
  };
  // All places are in the parcel; what was at the last source may be gone.
  struct Reduction {
    std::vector<std::size_t> sources;  // in the order of the ranks that they come from
    std::size_t result_bytes = 0;
    std::size_t length_bytes = 0;
  };
  // Messages that may all be under way at once; then what came is reduced.
  struct Round {
    std::vector<Message> messages;
    std::vector<Reduction> reductions;  // in this order
  };
  // What a rank has for itself: bytes of what it puts in, and where they go in what it gets out.
  struct Own {
    std::size_t in_bytes = 0;
    std::size_t out_bytes = 0;
    std::size_t length_bytes = 0;
  };
  // Of this rank. The parcel is host memory of a leader.
  struct Chunk {
    Own own;  // goes straight; by the parcel, where there is none
    Local up;
    std::vector<Round> rounds;
    Local down;
    std::size_t parcel_bytes = 0;
  };

  // Whether such calls can go in two levels.
  static bool exists(node::Kind kind) noexcept;
  // The same where the ranks are placed so: whether the smallest chunk fits what one message can
  // carry, and what goes from a leader to another is at least `message_bytes_min`, in all chunks;
  // more where ranks take turns on a device.
  static bool fits(const node::Call& call, const core::Placement& placement, int leaders_max,
                   std::size_t message_bytes_min);

  // `call` is that of all ranks. In place as node::Geometry means it. `leaders_max`: leaders a
  // node; `parcel_bytes`: of a parcel, about, or kParcelBytesAuto; `message_bytes_min`: no more
  // chunks than leave messages so long, where parcels may be as long. They outlive the plan.
  TwoLevelPlan(const node::Call& call, const core::Placement& placement, int rank, bool in_place,
               int leaders_max, std::size_t parcel_bytes, std::size_t message_bytes_min = 0);
  // This rank copies what it has for itself straight to where it ends, where it is alone on its
  // node: down comes only what others have. To be said first, and by that rank alone.
  void keep_own() noexcept;

  std::size_t chunks() const noexcept { return chunks_; }
  int leaders() const noexcept { return leaders_; }
  Chunk chunk(std::size_t number) const;
  // Lengths of blocks that it has asked for so far: for tests.
  std::size_t looks() const noexcept { return looks_; }

 private:
  // Of every block, what one leader has to do with: bytes [low, high), as far as the block goes.
  struct Cut {
    std::size_t low = 0;
    std::size_t high = 0;
  };

  // Nodes that are as far apart each.
  struct Line {
    int first = 0;
    int step = 1;
    int length = 1;

    int place(int node) const noexcept { return (node - first) / step; }
    int node(int place) const noexcept { return first + place * step; }
  };

  const node::Pattern& pattern() const noexcept { return geometry_.pattern(); }
  Line all_nodes() const noexcept { return {.length = placement_.nodes()}; }
  bool goes_by_grid() const noexcept { return call_.kind == node::Kind::allreduce; }
  bool of_pairs() const noexcept { return pattern().blocks_in && pattern().blocks_out; }
  std::size_t parcel_bytes_max(std::size_t parcel_bytes) const;  // as large as it may grow
  std::size_t volume() const;              // bytes of parcels for each byte of a block
  std::size_t messages_of_parcel() const;  // as many as it is cut into
  std::size_t message_bytes() const;       // between two leaders, of all chunks
  Cut cut(std::size_t chunk, int leader) const;
  std::size_t length(int block, Cut cut) const;
  std::size_t length_on(int node, Cut cut) const;  // of all blocks of its ranks
  std::size_t length_before(int node, Cut cut) const;
  std::size_t length_of_all(Cut cut) const {
    return pattern().is_whole() ? length(0, cut) : length_before(placement_.nodes(), cut);
  }
  Part piece(int block, Cut cut) const;
  void append_all(Parts& parts, Cut cut) const;
  void append_others(Parts& parts, Cut cut) const;
  Parts around_own(Cut cut) const;
  void append_rows(Parts& parts, Cut cut, std::size_t source) const;
  bool is_on_root_node() const { return node_ == placement_.node(call_.root); }
  bool is_leader() const noexcept { return local_rank_ < leaders_; }
  int leader_on(int node) const {
    return placement_.on(node)[static_cast<std::size_t>(local_rank_)];
  }

  Own own(std::size_t chunk) const;
  Local reduced_up(std::size_t chunk) const;
  Local shown_up(std::size_t chunk) const;
  Local spread_up(std::size_t chunk) const;
  Local pairs_up(std::size_t chunk) const;
  Local up(std::size_t chunk) const;
  Local all_down(std::size_t chunk) const;
  Local own_down(std::size_t chunk) const;
  Local pairs_down(std::size_t chunk) const;
  Local prefixes_down(std::size_t chunk) const;
  Local down(std::size_t chunk) const;

  Round reduction(Line line, const std::vector<node::Range>& shares, std::size_t parcel_end) const;
  std::vector<Round> rounds(std::size_t chunk, std::size_t& parcel_bytes) const;
  std::vector<Round> rounds_by_node(Cut own, std::size_t& parcel_bytes) const;
  void pair_up(Round& round, Line line) const;
  std::vector<Round> grid_rounds(std::size_t& parcel_bytes) const;
  std::vector<Round> reduction_rounds(Cut own, std::size_t& parcel_bytes) const;
  std::vector<Round> bcast_rounds(Cut own) const;
  std::vector<Round> pair_rounds(Cut own, std::size_t& parcel_bytes) const;
  std::vector<node::Range> blocks_of_nodes(Cut cut) const;  // by node
  std::vector<Round> block_rounds(Cut own) const;
  std::vector<Round> prefix_rounds(Cut own, std::size_t& parcel_bytes) const;
  void exchange(Round& round, int node, node::Range sent, node::Range received) const;

  const node::Call& call_;
  const core::Placement& placement_;
  int rank_;
  int node_;
  int local_rank_;
  bool in_place_;
  bool keeps_own_ = false;
  int leaders_;
  node::Geometry geometry_;
  std::size_t granule_bytes_;
  std::vector<int> grid_;        // of the nodes, where a call goes by one
  std::size_t share_bytes_ = 0;  // of a leader, of each block, in all chunks but the last
  std::size_t chunks_ = 0;
  mutable std::size_t looks_ = 0;
};

}  // namespace accord::coll
