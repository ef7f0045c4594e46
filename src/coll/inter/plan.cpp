// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/inter/plan.h"

#include <algorithm>
#include <climits>
#include <numeric>

namespace accord::core {
namespace {

using node::Kind;

// Where shares begin in a message: whole lines of whole elements.
constexpr std::size_t kLineBytes = 256;
// Chunks of a message that is long enough, so that both levels overlap; none of parcels so short
// that their messages take as long as empty ones.
constexpr std::size_t kChunksWanted = 4;
constexpr std::size_t kParcelBytesMin = std::size_t{128} << 10;
// Where ranks take turns on a device each chunk takes as long as the copies of half a megabyte.
constexpr std::size_t kParcelBytesMinInTurns = std::size_t{1} << 20;
// A parcel is cut into a message for each node, and these into pieces of each block: where there
// are many it grows, up to a length, so that none gets short (of 256 KiB: 32 KiB a message, 2 KiB a
// piece, which copy engines like).
constexpr std::size_t kMessagesOfParcel = 8;
constexpr std::size_t kPiecesOfParcel = 128;
constexpr std::size_t kGrownParcelBytesMax = std::size_t{4} << 20;

std::size_t divided(std::size_t bytes, std::size_t by) { return (bytes + by - 1) / by; }
std::size_t rounded(std::size_t bytes, std::size_t granule) {
  return divided(bytes, granule) * granule;
}

std::size_t granule_of(const node::Call& call) {
  const std::size_t element_bytes = device::element_bytes(call.element);
  return element_bytes == 0 ? kLineBytes : std::lcm(kLineBytes, element_bytes);
}

// Joins what follows one another, which is fewer copies, and leaves out what is empty.
void append(TwoLevelPlan::Parts& parts, TwoLevelPlan::Part part) {
  if (part.length_bytes == 0) return;
  if (!parts.empty()) {
    auto& last = parts.back();
    const bool joins = last.nowhere() ? part.nowhere()
                                      : !part.nowhere() && last.first_bytes + last.length_bytes ==
                                                               part.first_bytes;
    if (joins) {
      last.length_bytes += part.length_bytes;
      return;
    }
  }
  parts.push_back(part);
}

TwoLevelPlan::Part nowhere(std::size_t length_bytes) {
  return {TwoLevelPlan::Part::kNowhere, length_bytes};
}

}  // namespace

bool TwoLevelPlan::exists(Kind kind) noexcept { return !node::goes_by_pairs(kind); }

TwoLevelPlan::Shape TwoLevelPlan::shape_of(Kind kind) noexcept {
  const bool whole = kind == Kind::bcast || kind == Kind::reduce || kind == Kind::allreduce;
  if (whole) return Shape::whole;
  if (kind == Kind::scan || kind == Kind::exscan) return Shape::prefixes;
  return kind == Kind::alltoall ? Shape::pairs : Shape::blocks;
}

bool TwoLevelPlan::fits(const node::Call& call, const Placement& placement, int leaders_max,
                        std::size_t message_bytes_min) {
  // With 4 MiB, of four ranks on two nodes, an allreduce gains, with 1 MiB it loses.
  constexpr std::size_t kTimesInTurns = 64;
  const std::size_t least_bytes =
      message_bytes_min * (placement.shares_devices ? kTimesInTurns : 1);
  const TwoLevelPlan plan(call, placement, 0, false, leaders_max, 1);
  // What comes before a rank has to be what other nodes have, all of it or nothing.
  if (shape_of(call.kind) == Shape::prefixes && !placement.in_order()) return false;
  return plan.volume() <= INT_MAX / plan.granule_bytes_ && plan.message_bytes() >= least_bytes;
}

TwoLevelPlan::TwoLevelPlan(const node::Call& call, const Placement& placement, int rank,
                           bool in_place, int leaders_max, std::size_t parcel_bytes)
    : call_(call),
      placement_(placement),
      rank_(rank),
      node_(placement.node(rank)),
      local_rank_(placement.local_rank(rank)),
      in_place_(in_place),
      leaders_(std::min(leaders_max, placement.fewest())),
      blocks_(call.blocks_bytes.size()),
      granule_bytes_(granule_of(call)) {
  std::exclusive_scan(call.blocks_bytes.begin(), call.blocks_bytes.end(), blocks_.begin(),
                      std::size_t{0});
  const auto leaders = static_cast<std::size_t>(leaders_);
  const std::size_t parcels_bytes = call.block_bytes * volume() / leaders;
  const std::size_t most_bytes = parcel_bytes_max(placement.parcel_bytes(parcel_bytes));
  const std::size_t least_bytes =
      placement.shares_devices ? kParcelBytesMinInTurns : kParcelBytesMin;
  const std::size_t wanted_bytes =
      std::min(most_bytes, std::max(least_bytes, divided(parcels_bytes, kChunksWanted)));
  share_bytes_ =
      std::max(granule_bytes_, wanted_bytes / volume() / granule_bytes_ * granule_bytes_);
  chunks_ = divided(call.block_bytes, share_bytes_ * leaders);
}

std::size_t TwoLevelPlan::parcel_bytes_max(std::size_t parcel_bytes) const {
  const auto nodes = static_cast<std::size_t>(placement_.nodes());
  const std::size_t times =
      std::max(divided(nodes, kMessagesOfParcel), divided(volume(), kPiecesOfParcel));
  const std::size_t grown_bytes = std::min(kGrownParcelBytesMax, parcel_bytes * times);
  return std::min<std::size_t>(INT_MAX, std::max(parcel_bytes, grown_bytes));
}

std::size_t TwoLevelPlan::volume() const {
  const auto ranks = static_cast<std::size_t>(placement_.ranks());
  switch (shape_of(call_.kind)) {
    case Shape::whole:
      return 1;
    case Shape::pairs:
      return ranks * static_cast<std::size_t>(placement_.most());
    case Shape::prefixes:
      return static_cast<std::size_t>(placement_.most()) + 1;
    case Shape::blocks:
      break;
  }
  return ranks;
}

std::size_t TwoLevelPlan::message_bytes() const {
  const auto leaders = static_cast<std::size_t>(leaders_);
  const auto nodes = static_cast<std::size_t>(placement_.nodes());
  // The nodes are a chain, which is worth it with as many chunks as nodes.
  if (shape_of(call_.kind) == Shape::prefixes) return call_.block_bytes / leaders / nodes;
  return call_.block_bytes * volume() / leaders / nodes;
}

// The last chunk is shared out evenly, too.
TwoLevelPlan::Cut TwoLevelPlan::cut(std::size_t chunk, int leader) const {
  const auto leaders = static_cast<std::size_t>(leaders_);
  const std::size_t first = chunk * share_bytes_ * leaders;
  const std::size_t left = call_.block_bytes - first;
  const std::size_t share = std::min(share_bytes_, rounded(divided(left, leaders), granule_bytes_));
  const std::size_t low = first + static_cast<std::size_t>(leader) * share;
  return {low, low + share};
}

std::size_t TwoLevelPlan::length(int block, Cut cut) const {
  const std::size_t block_bytes = call_.blocks_bytes.empty()
                                      ? call_.block_bytes
                                      : call_.blocks_bytes[static_cast<std::size_t>(block)];
  return std::min(block_bytes, cut.high) - std::min(block_bytes, cut.low);
}

std::size_t TwoLevelPlan::length_on(int node, Cut cut) const {
  std::size_t sum = 0;
  for (const int rank : placement_.on(node)) sum += length(rank, cut);
  return sum;
}

std::size_t TwoLevelPlan::length_before(int node, Cut cut) const {
  std::size_t sum = 0;
  for (int before = 0; before < node; ++before) sum += length_on(before, cut);
  return sum;
}

TwoLevelPlan::Part TwoLevelPlan::piece(int block, Cut cut) const {
  const auto index = static_cast<std::size_t>(block);
  const std::size_t first = blocks_.empty() ? index * call_.block_bytes : blocks_[index];
  return {first + cut.low, length(block, cut)};
}

TwoLevelPlan::Chunk TwoLevelPlan::chunk(std::size_t number) const {
  Chunk made;
  made.up = up(number);
  made.down = down(number);
  if (is_leader()) made.rounds = rounds(number, made.parcel_bytes);
  return made;
}

TwoLevelPlan::Local TwoLevelPlan::up(std::size_t chunk) const {
  switch (call_.kind) {
    case Kind::bcast:
    case Kind::scatter:
      return is_on_root_node() ? spread_up(chunk) : Local();
    case Kind::allgather:
    case Kind::allgatherv:
    case Kind::gather:
      return shown_up(chunk);
    case Kind::alltoall:
      return pairs_up(chunk);
    case Kind::scan:
    case Kind::exscan:
      return prefixes_up(chunk);
    default:
      return reduced_up(chunk);
  }
}

// Of blocks for the ranks, leaders get those of one node after those of another, as they send them.
TwoLevelPlan::Local TwoLevelPlan::reduced_up(std::size_t chunk) const {
  Local made{.reduces = true, .blocks_bytes = {}, .in = {}, .out = {}};
  made.blocks_bytes.resize(placement_.on(node_).size());
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    std::size_t& block_bytes = made.blocks_bytes[static_cast<std::size_t>(leader)];
    if (shape_of(call_.kind) == Shape::whole) {
      append(made.in, piece(0, its));
      block_bytes = length(0, its);
    } else {
      for (const auto& ranks : placement_.members) {
        for (const int rank : ranks) append(made.in, piece(rank, its));
      }
      block_bytes = length_of_all(its);
    }
  }
  if (is_leader()) append(made.out, {0, made.blocks_bytes[static_cast<std::size_t>(local_rank_)]});
  return made;
}

// The root's data for all.
TwoLevelPlan::Local TwoLevelPlan::spread_up(std::size_t chunk) const {
  Local made;
  made.blocks_bytes.resize(placement_.on(node_).size());
  std::size_t& shown =
      made.blocks_bytes[static_cast<std::size_t>(placement_.local_rank(call_.root))];
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    const bool whole = shape_of(call_.kind) == Shape::whole;
    const std::size_t share_bytes = whole ? length(0, its) : length_of_all(its);
    shown += share_bytes;
    append(made.out, leader == local_rank_ ? Part{0, share_bytes} : nowhere(share_bytes));
    if (rank_ != call_.root) continue;
    if (whole) append(made.in, piece(0, its));
    for (const auto& ranks : placement_.members) {
      for (const int rank : ranks) {
        if (!whole) append(made.in, piece(rank, its));
      }
    }
  }
  if (!is_leader()) made.out.clear();
  return made;
}

// The block that each rank gives.
TwoLevelPlan::Local TwoLevelPlan::shown_up(std::size_t chunk) const {
  Local made;
  std::size_t place = length_before(node_, cut(chunk, is_leader() ? local_rank_ : 0));
  for (const int rank : placement_.on(node_)) {
    std::size_t shown = 0;
    for (int leader = 0; leader < leaders_; ++leader) {
      const Cut its = cut(chunk, leader);
      const std::size_t share_bytes = length(rank, its);
      shown += share_bytes;
      append(made.out, leader == local_rank_ ? Part{place, share_bytes} : nowhere(share_bytes));
      if (leader == local_rank_) place += share_bytes;
      if (rank == rank_) append(made.in, in_place_ ? piece(rank, its) : Part{its.low, share_bytes});
    }
    made.blocks_bytes.push_back(shown);
  }
  if (!is_leader()) made.out.clear();
  return made;
}

// The parcel has what is sent, node by node, and behind it what is received, from node by node; in
// each what is of or for one rank of this node after the other.
TwoLevelPlan::Local TwoLevelPlan::pairs_up(std::size_t chunk) const {
  Local made;
  const std::size_t own = placement_.on(node_).size();
  for (std::size_t source = 0; source < own; ++source) {
    std::size_t shown = 0;
    for (int leader = 0; leader < leaders_; ++leader) {
      const Cut its = cut(chunk, leader);
      const std::size_t one = length(0, its);
      std::size_t to_node = leader == local_rank_ ? 0 : Part::kNowhere;
      for (int node = 0; node < placement_.nodes(); ++node) {
        const std::size_t row = placement_.on(node).size() * one;
        shown += row;
        if (to_node == Part::kNowhere) {
          append(made.out, nowhere(row));
          continue;
        }
        // What stays here lies where it would arrive.
        const std::size_t base = node == node_ ? length_of_all(its) * own : 0;
        append(made.out, {base + to_node + source * row, row});
        to_node += own * row;
      }
      if (placement_.on(node_)[source] != rank_) continue;
      for (const auto& ranks : placement_.members) {
        for (const int rank : ranks) append(made.in, piece(rank, its));
      }
    }
    made.blocks_bytes.push_back(shown);
  }
  if (!is_leader()) made.out.clear();
  return made;
}

// What each rank of the node has, one after the other.
TwoLevelPlan::Local TwoLevelPlan::prefixes_up(std::size_t chunk) const {
  Local made;
  std::size_t place = 0;
  for (const int rank : placement_.on(node_)) {
    std::size_t shown = 0;
    for (int leader = 0; leader < leaders_; ++leader) {
      const Cut its = cut(chunk, leader);
      const std::size_t share_bytes = length(0, its);
      shown += share_bytes;
      append(made.out, leader == local_rank_ ? Part{place, share_bytes} : nowhere(share_bytes));
      if (leader == local_rank_) place += share_bytes;
      if (rank == rank_) append(made.in, piece(0, its));
    }
    made.blocks_bytes.push_back(shown);
  }
  if (!is_leader()) made.out.clear();
  return made;
}

TwoLevelPlan::Local TwoLevelPlan::down(std::size_t chunk) const {
  switch (call_.kind) {
    case Kind::reduce:
      return is_on_root_node() ? shares_down(chunk) : Local();
    case Kind::bcast:
    case Kind::allreduce:
      return shares_down(chunk);
    case Kind::gather:
      return is_on_root_node() ? all_down(chunk) : Local();
    case Kind::allgather:
    case Kind::allgatherv:
      return all_down(chunk);
    case Kind::alltoall:
      return pairs_down(chunk);
    case Kind::scan:
    case Kind::exscan:
      return prefixes_down(chunk);
    default:
      return own_down(chunk);
  }
}

TwoLevelPlan::Local TwoLevelPlan::shares_down(std::size_t chunk) const {
  Local made;
  made.blocks_bytes.resize(placement_.on(node_).size());
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    made.blocks_bytes[static_cast<std::size_t>(leader)] = length(0, its);
    if (leader == local_rank_) append(made.in, {0, length(0, its)});
    append(made.out, piece(0, its));
  }
  return made;
}

TwoLevelPlan::Local TwoLevelPlan::all_down(std::size_t chunk) const {
  Local made;
  made.blocks_bytes.resize(placement_.on(node_).size());
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    made.blocks_bytes[static_cast<std::size_t>(leader)] = length_of_all(its);
    if (leader == local_rank_) append(made.in, {0, length_of_all(its)});
    for (const auto& ranks : placement_.members) {
      for (const int rank : ranks) append(made.out, piece(rank, its));
    }
  }
  return made;
}

// To each rank the block that is for it.
TwoLevelPlan::Local TwoLevelPlan::own_down(std::size_t chunk) const {
  Local made;
  made.blocks_bytes.resize(placement_.on(node_).size());
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    made.blocks_bytes[static_cast<std::size_t>(leader)] = length_on(node_, its);
    if (leader == local_rank_) append(made.in, {length_before(node_, its), length_on(node_, its)});
    for (const int rank : placement_.on(node_)) {
      const std::size_t share_bytes = length(rank, its);
      append(made.out, rank == rank_ ? Part{its.low, share_bytes} : nowhere(share_bytes));
    }
  }
  return made;
}

TwoLevelPlan::Local TwoLevelPlan::pairs_down(std::size_t chunk) const {
  Local made;
  const std::vector<int>& own = placement_.on(node_);
  made.blocks_bytes.resize(own.size());
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    const std::size_t received = length_of_all(its) * own.size();
    made.blocks_bytes[static_cast<std::size_t>(leader)] = received;
    if (leader == local_rank_) append(made.in, {received, received});
    for (const auto& sources : placement_.members) {
      for (const int source : sources) {
        for (const int rank : own)
          append(made.out, rank == rank_ ? piece(source, its) : nowhere(length(source, its)));
      }
    }
  }
  return made;
}

// To each rank what comes before it, with its own or without: of the first, then, what the nodes
// before have, which lies behind what the ranks have.
TwoLevelPlan::Local TwoLevelPlan::prefixes_down(std::size_t chunk) const {
  const std::size_t ranks = placement_.on(node_).size();
  const bool with_own = call_.kind == Kind::scan;
  Local made;
  made.blocks_bytes.resize(ranks);
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    const std::size_t share_bytes = length(0, its);
    for (std::size_t number = 0; number < ranks; ++number) {
      if (!with_own && number == 0 && node_ == 0) continue;
      made.blocks_bytes[static_cast<std::size_t>(leader)] += share_bytes;
      const std::size_t place = with_own ? number : number == 0 ? ranks : number - 1;
      if (leader == local_rank_) append(made.in, {place * share_bytes, share_bytes});
      append(made.out,
             placement_.on(node_)[number] == rank_ ? piece(0, its) : nowhere(share_bytes));
    }
  }
  return made;
}

}  // namespace accord::core
