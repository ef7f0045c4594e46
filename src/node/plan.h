// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a collective moves through the exchange regions of a node, one chunk after the other: what a
// rank puts into its own region, which part of all regions it reduces, what it fetches from whose
// region. Pure arithmetic on what is equal on all ranks (call.h), so all ranks come to the same
// chunks.
#pragma once

#include <cstddef>
#include <vector>

#include "node/call.h"

namespace accord::node {

// So that filling and fetching overlap; see plan.cpp.
std::size_t chunk_bytes_wanted(std::size_t block_bytes) noexcept;

class Plan {
 public:
  // Lanes of a slot, one a block: each begins at a line, as kernels and engines like it; or where
  // the one before it ends, so that a rank's blocks are one copy.
  enum class Lanes { at_lines, dense };

  // `slot_bytes`: room for one chunk in a region.
  Plan(const Call& call, std::size_t slot_bytes, Lanes lanes = Lanes::at_lines);

  // The least room a chunk of any collective among `size` ranks needs.
  static std::size_t slot_bytes_min(int size) noexcept;
  // Room beyond which a slot is of no use to `call`.
  static std::size_t slot_bytes_max(const Call& call) noexcept;

  std::size_t chunks() const noexcept { return chunks_; }
  bool reduces() const noexcept { return geometry_.pattern().reduces; }
  // Reductions: a rank's share of the result is for nobody else, so it may reduce straight into its
  // user's buffer.
  bool result_is_own() const noexcept;

  // What `rank` puts into its own slot; in place as Geometry has it.
  std::vector<Move> fills(int rank, bool in_place, std::size_t chunk) const;
  // What `rank` fetches from slots. In reductions from results, else from what peers have filled.
  std::vector<Move> pulls(int rank, bool in_place, std::size_t chunk) const;
  // Reductions only: from the same place of every rank's slot to its own slot.
  Share share(int rank, std::size_t chunk) const;
  // Whose slots `rank` reduces its share of: those of so many ranks, from rank 0 on.
  int sources(int rank) const noexcept;
  // Whether a rank sends itself a block as it does the others (alltoall, reduce_scatter): where
  // that begins in its packed buffer, and which move of fills() it is. Not where blocks differ:
  // there a result in place may overlap the block that it is reduced from.
  bool has_own_block() const noexcept;
  std::size_t own_block_bytes(int rank, std::size_t chunk) const {
    return geometry_.first(rank) + first(chunk);
  }
  std::size_t first_bytes(std::size_t chunk) const { return first(chunk); }

 private:
  std::size_t first(std::size_t chunk) const { return chunk * chunk_bytes_; }
  // Of the block of `rank`; 0 where a longer one has more chunks.
  std::size_t length(int rank, std::size_t chunk) const {
    return part_of(geometry_.length(rank), chunk, chunk_bytes_).length_bytes;
  }
  std::size_t lanes() const noexcept;
  std::size_t lane(int rank) const { return static_cast<std::size_t>(rank) * lane_bytes_; }

  Call call_;
  Geometry geometry_;
  std::size_t granule_bytes_;    // chunks and shares are whole ones
  std::size_t chunk_bytes_ = 0;  // of each block, in all chunks but the last
  std::size_t lane_bytes_ = 0;   // from one block of a slot to the next
  std::size_t chunks_ = 0;
  bool one_shot_ = false;  // who needs the result reduces all of it, and no shares are exchanged
};

}  // namespace accord::node
