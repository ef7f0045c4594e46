// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/inter/plan.h"

#include <algorithm>
#include <climits>
#include <span>

#include "base/config.h"
#include "base/rounding.h"

namespace accord::coll {
namespace {

using node::Kind;

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

int line_max() { return static_cast<int>(std::clamp<Count>(config().line_nodes, 2, INT_MAX)); }

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

bool TwoLevelPlan::fits(const node::Call& call, const core::Placement& placement, int leaders_max,
                        std::size_t message_bytes_min) {
  // With 4 MiB, of four ranks on two nodes, an allreduce gains, with 1 MiB it loses.
  constexpr std::size_t kTimesInTurns = 64;
  const std::size_t least_bytes =
      message_bytes_min * (placement.shares_devices ? kTimesInTurns : 1);
  const TwoLevelPlan plan(call, placement, 0, false, leaders_max, 1);
  // What comes before a rank has to be what other nodes have, all of it or nothing.
  if (plan.pattern().is_prefix && !placement.in_order()) return false;
  return plan.volume() <= INT_MAX / plan.granule_bytes_ && plan.message_bytes() >= least_bytes;
}

TwoLevelPlan::TwoLevelPlan(const node::Call& call, const core::Placement& placement, int rank,
                           bool in_place, int leaders_max, std::size_t parcel_bytes,
                           std::size_t message_bytes_min)
    : call_(call),
      placement_(placement),
      rank_(rank),
      node_(placement.node(rank)),
      local_rank_(placement.local_rank(rank)),
      in_place_(in_place),
      leaders_(std::min(leaders_max, placement.fewest())),
      geometry_(call),
      granule_bytes_(node::granule_bytes(call)),
      grid_(goes_by_grid() ? grid_of(placement.nodes(), line_max()) : std::vector<int>()) {
  const auto leaders = static_cast<std::size_t>(leaders_);
  const std::size_t parcels_bytes = call.block_bytes * volume() / leaders;
  const std::size_t most_bytes = parcel_bytes_max(placement.parcel_bytes(parcel_bytes));
  const std::size_t least_bytes =
      std::max(placement.shares_devices ? kParcelBytesMinInTurns : kParcelBytesMin,
               message_bytes_min * messages_of_parcel());
  const std::size_t wanted_bytes =
      std::min(most_bytes, std::max(least_bytes, divide_up(parcels_bytes, kChunksWanted)));
  share_bytes_ =
      std::max(granule_bytes_, wanted_bytes / volume() / granule_bytes_ * granule_bytes_);
  chunks_ = divide_up(call.block_bytes, share_bytes_ * leaders);
}

std::size_t TwoLevelPlan::parcel_bytes_max(std::size_t parcel_bytes) const {
  const auto nodes = static_cast<std::size_t>(placement_.nodes());
  const std::size_t times =
      std::max(divide_up(nodes, kMessagesOfParcel), divide_up(volume(), kPiecesOfParcel));
  const std::size_t grown_bytes = std::min(kGrownParcelBytesMax, parcel_bytes * times);
  return std::min<std::size_t>(INT_MAX, std::max(parcel_bytes, grown_bytes));
}

std::size_t TwoLevelPlan::volume() const {
  const auto ranks = static_cast<std::size_t>(placement_.ranks());
  const auto most = static_cast<std::size_t>(placement_.most());
  if (pattern().is_whole()) return 1;
  if (pattern().is_prefix) return most + 1;
  return of_pairs() ? ranks * most : ranks;
}

// As many as are under way at once with one other node each; the root of a bcast keeps none.
std::size_t TwoLevelPlan::messages_of_parcel() const {
  const auto nodes = static_cast<std::size_t>(placement_.nodes());
  if (goes_by_grid()) return static_cast<std::size_t>(std::ranges::max(grid_));
  return pattern().from_root && pattern().is_whole() ? nodes - 1 : nodes;
}

std::size_t TwoLevelPlan::message_bytes() const {
  const auto leaders = static_cast<std::size_t>(leaders_);
  const auto nodes = static_cast<std::size_t>(placement_.nodes());
  // The shorter ones of later dimensions are few bytes beside those of the first.
  if (goes_by_grid()) return call_.block_bytes / leaders / messages_of_parcel();
  // The nodes are a chain, which is worth it with as many chunks as nodes.
  if (pattern().is_prefix) return call_.block_bytes / leaders / nodes;
  return call_.block_bytes * volume() / leaders / nodes;
}

// The last chunk is shared out evenly, too.
TwoLevelPlan::Cut TwoLevelPlan::cut(std::size_t chunk, int leader) const {
  const auto leaders = static_cast<std::size_t>(leaders_);
  const std::size_t first = chunk * share_bytes_ * leaders;
  const std::size_t left = call_.block_bytes - first;
  const std::size_t share =
      std::min(share_bytes_, round_up(divide_up(left, leaders), granule_bytes_));
  const std::size_t low = first + static_cast<std::size_t>(leader) * share;
  return {low, low + share};
}

std::size_t TwoLevelPlan::length(int block, Cut cut) const {
  ++looks_;
  const std::size_t block_bytes = geometry_.length(block);
  return std::min(block_bytes, cut.high) - std::min(block_bytes, cut.low);
}

std::size_t TwoLevelPlan::length_on(int node, Cut cut) const {
  const std::span<const int> ranks = placement_.on(node);
  if (call_.blocks_bytes.empty()) return ranks.size() * length(0, cut);
  std::size_t sum = 0;
  for (const int rank : ranks) sum += length(rank, cut);
  return sum;
}

std::size_t TwoLevelPlan::length_before(int node, Cut cut) const {
  if (call_.blocks_bytes.empty())
    return static_cast<std::size_t>(placement_.ranks_before(node)) * length(0, cut);
  std::size_t sum = 0;
  for (int before = 0; before < node; ++before) sum += length_on(before, cut);
  return sum;
}

std::vector<node::Range> TwoLevelPlan::blocks_of_nodes(Cut cut) const {
  std::vector<node::Range> made;
  made.reserve(static_cast<std::size_t>(placement_.nodes()));
  std::size_t first = 0;
  for (int node = 0; node < placement_.nodes(); ++node) {
    const std::size_t length = length_on(node, cut);
    made.push_back({first, length});
    first += length;
  }
  return made;
}

TwoLevelPlan::Part TwoLevelPlan::piece(int block, Cut cut) const {
  return {geometry_.first(block) + cut.low, length(block, cut)};
}

// Of the whole message, or of the blocks of all ranks: those of one node after those of another, as
// leaders send them.
void TwoLevelPlan::append_all(Parts& parts, Cut cut) const {
  if (pattern().is_whole()) return append(parts, piece(0, cut));
  for (int node = 0; node < placement_.nodes(); ++node) {
    for (const int rank : placement_.on(node)) append(parts, piece(rank, cut));
  }
}

// The same without what this rank has for itself.
void TwoLevelPlan::append_others(Parts& parts, Cut cut) const {
  for (int node = 0; node < placement_.nodes(); ++node) {
    for (const int rank : placement_.on(node))
      append(parts, rank == rank_ ? nowhere(length(rank, cut)) : piece(rank, cut));
  }
}

// Of a parcel with the blocks of all ranks, those of other nodes.
TwoLevelPlan::Parts TwoLevelPlan::around_own(Cut cut) const {
  const std::size_t before = length_before(node_, cut);
  const std::size_t own = length_on(node_, cut);
  Parts made;
  append(made, {0, before});
  append(made, nowhere(own));
  append(made, {before + own, length_of_all(cut) - before - own});
  return made;
}

void TwoLevelPlan::keep_own() noexcept {
  const node::Pattern& what = pattern();
  const bool has_blocks = what.blocks_in != what.blocks_out && !what.reduces;
  keeps_own_ = has_blocks && placement_.on(node_).size() == 1 && geometry_.moves(rank_, rank_);
}

// In place it is there.
TwoLevelPlan::Own TwoLevelPlan::own(std::size_t chunk) const {
  if (!keeps_own_ || geometry_.keeps_own_block(rank_, in_place_)) return {};
  const Cut its = cut(chunk, 0);
  const std::size_t length_bytes = length(rank_, its);
  if (length_bytes == 0) return {};  // its block ends before
  return {.in_bytes = geometry_.place_in(rank_) + its.low,
          .out_bytes = geometry_.place_out(rank_) + its.low,
          .length_bytes = length_bytes};
}

TwoLevelPlan::Chunk TwoLevelPlan::chunk(std::size_t number) const {
  Chunk made;
  made.own = own(number);
  made.up = up(number);
  made.down = down(number);
  if (is_leader()) made.rounds = rounds(number, made.parcel_bytes);
  return made;
}

TwoLevelPlan::Local TwoLevelPlan::up(std::size_t chunk) const {
  if (pattern().from_root) return is_on_root_node() ? spread_up(chunk) : Local();
  if (of_pairs()) return pairs_up(chunk);
  if (keeps_own_ && pattern().to_root) return {};
  return pattern().reduces && !pattern().is_prefix ? reduced_up(chunk) : shown_up(chunk);
}

TwoLevelPlan::Local TwoLevelPlan::reduced_up(std::size_t chunk) const {
  Local made{.reduces = true, .blocks_bytes = {}, .in = {}, .out = {}};
  made.blocks_bytes.resize(placement_.on(node_).size());
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    append_all(made.in, its);
    made.blocks_bytes[static_cast<std::size_t>(leader)] = length_of_all(its);
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
    const std::size_t share_bytes = length_of_all(its);
    shown += share_bytes;
    if (keeps_own_) {
      made.out = around_own(its);
      append_others(made.in, its);
      continue;
    }
    append(made.out, leader == local_rank_ ? Part{0, share_bytes} : nowhere(share_bytes));
    if (rank_ == call_.root) append_all(made.in, its);
  }
  if (!is_leader()) made.out.clear();
  return made;
}

// The block that each rank gives, where it goes among those of all ranks; of a prefix, those of
// this node's alone.
TwoLevelPlan::Local TwoLevelPlan::shown_up(std::size_t chunk) const {
  Local made;
  const std::size_t own_first =
      geometry_.keeps_own_block(rank_, in_place_) ? geometry_.first(rank_) : 0;
  std::size_t place =
      pattern().is_prefix ? 0 : length_before(node_, cut(chunk, is_leader() ? local_rank_ : 0));
  for (const int rank : placement_.on(node_)) {
    std::size_t shown = 0;
    for (int leader = 0; leader < leaders_; ++leader) {
      const Cut its = cut(chunk, leader);
      const std::size_t share_bytes = length(rank, its);
      shown += share_bytes;
      append(made.out, leader == local_rank_ ? Part{place, share_bytes} : nowhere(share_bytes));
      if (leader == local_rank_) place += share_bytes;
      if (rank == rank_) append(made.in, {own_first + its.low, share_bytes});
    }
    made.blocks_bytes.push_back(shown);
  }
  if (!is_leader()) made.out.clear();
  return made;
}

// Where a leader puts what one rank of its node has for all.
void TwoLevelPlan::append_rows(Parts& parts, Cut cut, std::size_t source) const {
  const std::size_t own = placement_.on(node_).size();
  const std::size_t one = length(0, cut);
  std::size_t to_node = 0;
  for (int node = 0; node < placement_.nodes(); ++node) {
    const std::size_t row = placement_.on(node).size() * one;
    // What stays here lies where it would arrive.
    const std::size_t base = node == node_ ? length_of_all(cut) * own : 0;
    append(parts, {base + to_node + source * row, row});
    to_node += own * row;
  }
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
      const std::size_t all = length_of_all(its);
      shown += all;
      if (leader == local_rank_)
        append_rows(made.out, its, source);
      else
        append(made.out, nowhere(all));
      if (placement_.on(node_)[source] == rank_) append_all(made.in, its);
    }
    made.blocks_bytes.push_back(shown);
  }
  if (!is_leader()) made.out.clear();
  return made;
}

TwoLevelPlan::Local TwoLevelPlan::down(std::size_t chunk) const {
  if (pattern().to_root && !is_on_root_node()) return {};
  if (of_pairs()) return pairs_down(chunk);
  if (keeps_own_ && pattern().from_root) return {};
  if (pattern().is_prefix) return prefixes_down(chunk);
  return pattern().blocks_in ? own_down(chunk) : all_down(chunk);
}

TwoLevelPlan::Local TwoLevelPlan::all_down(std::size_t chunk) const {
  Local made;
  made.blocks_bytes.resize(placement_.on(node_).size());
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    made.blocks_bytes[static_cast<std::size_t>(leader)] = length_of_all(its);
    if (keeps_own_) {
      made.in = around_own(its);
      append_others(made.out, its);
      continue;
    }
    if (leader == local_rank_) append(made.in, {0, length_of_all(its)});
    append_all(made.out, its);
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
  const std::size_t own = placement_.on(node_).size();
  const auto before = static_cast<std::size_t>(local_rank_);
  made.blocks_bytes.resize(own);
  for (int leader = 0; leader < leaders_; ++leader) {
    const Cut its = cut(chunk, leader);
    const std::size_t received = length_of_all(its) * own;
    made.blocks_bytes[static_cast<std::size_t>(leader)] = received;
    if (leader == local_rank_) append(made.in, {received, received});
    for (int node = 0; node < placement_.nodes(); ++node) {
      for (const int source : placement_.on(node)) {
        const Part one = piece(source, its);
        append(made.out, nowhere(before * one.length_bytes));
        append(made.out, one);
        append(made.out, nowhere((own - before - 1) * one.length_bytes));
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

}  // namespace accord::coll
