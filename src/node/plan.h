// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a collective moves through the exchange regions of a node, one chunk after the other: what a
// rank puts into its own region, which part of all regions it reduces, what it fetches from whose
// region. Pure arithmetic on what is equal on all ranks, so all ranks come to the same chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/reduction.h"

namespace accord::node {

// As numbers they are part of a call's key (core/agreement.h): never reorder.
enum class Kind : std::uint32_t {
  bcast = 1,
  reduce,
  allreduce,
  allgather,
  alltoall,
  gather,
  scatter,
  reduce_scatter_block,
  scan,
  exscan,
  reduce_scatter,
  allgatherv,
  gatherv,
  scatterv,
  alltoallv,
  alltoallw,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
};

// No size of such a call is common to all ranks: it goes pair by pair (pairs.h).
constexpr bool goes_by_pairs(Kind kind) noexcept { return kind >= Kind::gatherv; }
// Between neighbours of a topology; any two ranks may be so several times.
constexpr bool is_among_neighbours(Kind kind) noexcept { return kind >= Kind::neighbor_allgather; }

// So that filling and fetching overlap; see plan.cpp.
std::size_t chunk_bytes_wanted(std::size_t block_bytes) noexcept;

// Bytes [packed, packed + length) of the packed form of a user's buffer, at `offset` of a slot of
// the region of `peer`.
struct Move {
  int peer = 0;
  std::size_t offset_bytes = 0;
  std::size_t packed_bytes = 0;
  std::size_t length_bytes = 0;
};

// The part of a chunk that one rank reduces: at `offset` in every rank's slot, to `result` in its
// own.
struct Share {
  std::size_t offset_bytes = 0;
  std::size_t result_bytes = 0;
  std::size_t length_bytes = 0;
};

struct Call {
  Kind kind = Kind::bcast;
  int size = 1;
  int root = 0;
  // Of one block: the whole message of bcast, reduce, allreduce and scans; else what one rank sends
  // another.
  std::size_t block_bytes = 0;
  // By rank, where blocks differ (reduce_scatter, allgatherv); block_bytes then is the longest.
  std::vector<std::size_t> blocks_bytes = {};
  bool fits_regions = true;  // long enough to be worth a way through exchange regions
  device::ReduceOp op = device::ReduceOp::none;  // reductions only
  device::Element element = device::Element::none;
  // Allreduce and reduce up to here in one shot: who needs the result reduces all of it.
  std::size_t one_shot_bytes = 0;
  // Blocks from here on are moved by copy engines where kernels would do it too.
  std::size_t engine_bytes = 0;
  // Reductions of at least so many bytes a rank are spread by copy engines (spread_plan.h).
  std::size_t spread_bytes = SIZE_MAX;
};

class Plan {
 public:
  Plan() = default;
  // `slot_bytes`: room for one chunk in a region.
  Plan(const Call& call, std::size_t slot_bytes);

  // The least room a chunk of any collective among `size` ranks needs.
  static std::size_t slot_bytes_min(int size) noexcept;
  // Room beyond which a slot is of no use to `call`.
  static std::size_t slot_bytes_max(const Call& call) noexcept;

  std::size_t chunks() const noexcept { return chunks_; }
  bool reduces() const noexcept;
  // Reductions: a rank's share of the result is for nobody else, so it may reduce straight into its
  // user's buffer.
  bool result_is_own() const noexcept;

  // What `rank` puts into its slot; `in_place`: its contribution lies in the receive buffer
  // (allgather, at the place of its block) or need not be moved (gather, scatter).
  std::vector<Move> fills(int rank, bool in_place, std::size_t chunk) const;
  // What `rank` fetches. In reductions from results, else from what peers have filled.
  std::vector<Move> pulls(int rank, bool in_place, std::size_t chunk) const;
  // Reductions only.
  Share share(int rank, std::size_t chunk) const;
  // Whose slots `rank` reduces its share of: those of so many ranks, from rank 0 on.
  int sources(int rank) const noexcept;
  // Whether a rank sends itself a block as it does the others (alltoall, reduce_scatter): where
  // that begins in its packed buffer, and which move of fills() it is. Not where blocks differ:
  // there a result in place may overlap the block that it is reduced from.
  bool has_own_block() const noexcept;
  std::size_t own_block_bytes(int rank, std::size_t chunk) const {
    return block(rank) + first(chunk);
  }
  std::size_t first_bytes(std::size_t chunk) const { return first(chunk); }

 private:
  std::size_t first(std::size_t chunk) const { return chunk * chunk_bytes_; }
  // Of the block of `rank`; 0 where a longer one has more chunks.
  std::size_t length(int rank, std::size_t chunk) const;
  std::size_t block(int rank) const;
  bool scatters_result() const noexcept;
  std::size_t lane(int rank) const { return static_cast<std::size_t>(rank) * lane_bytes_; }

  std::size_t round_up(std::size_t bytes) const {
    return (bytes + granule_bytes_ - 1) / granule_bytes_ * granule_bytes_;
  }

  Call call_;
  std::vector<std::size_t> blocks_;  // where each begins in the packed form, if they differ
  std::size_t granule_bytes_ = 1;    // chunks and shares are whole ones
  std::size_t chunk_bytes_ = 0;      // of each block, in all chunks but the last
  std::size_t lane_bytes_ = 0;       // from one block of a slot to the next
  std::size_t chunks_ = 0;
  bool one_shot_ = false;  // who needs the result reduces all of it, and no shares are exchanged
};

}  // namespace accord::node
