// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which pair comes next. There may be as many as ranks, and as many pieces: none of these functions
// takes steps as there are pairs for each piece.
#include <algorithm>

#include "coll/pairs/far_pairs.h"

namespace accord::coll {

// They are in the order of their rounds.
const FarPairs::Pair* FarPairs::find(const std::vector<Pair>& pairs, int peer) const noexcept {
  const auto round_of = [this](const Pair& pair) { return round_with(pair.peer); };
  const auto found = std::ranges::lower_bound(pairs, round_with(peer), {}, round_of);
  return found == pairs.end() || found->peer != peer ? nullptr : &*found;
}

// From the first that is short, or is not, and is not all begun.
std::span<FarPairs::Pair> FarPairs::left(bool sends, bool is_short) noexcept {
  const std::span<Pair> pairs = sends ? outgoing_ : incoming_;
  Left& all_left = sends ? outgoing_left_ : incoming_left_;
  std::size_t& first = is_short ? all_left.of_short : all_left.of_long;
  const std::size_t before = first;
  while (first < pairs.size() &&
         (pairs[first].is_short != is_short || pairs[first].begun_bytes == pairs[first].size_bytes))
    ++first;
  looks_.fetch_add(first - before + 1, std::memory_order_relaxed);
  return pairs.subspan(first);
}

// Whose next piece comes next.
FarPairs::Pair* FarPairs::next(bool sends) noexcept {
  const std::span<Pair> of_short = left(sends, true);
  const std::span<Pair> of_long = left(sends, false);
  const std::span<Pair> longer = of_short.size() > of_long.size() ? of_short : of_long;
  return longer.empty() ? nullptr : longer.data();
}

// Not all of it is begun any more.
void FarPairs::begin_again(const Pair& pair) noexcept {
  const auto before = [&pair](const std::vector<Pair>& pairs, Left& all_left) {
    if (&pair < pairs.data() || &pair >= pairs.data() + pairs.size()) return;
    const auto place = static_cast<std::size_t>(&pair - pairs.data());
    all_left.of_short = std::min(all_left.of_short, place);
    all_left.of_long = std::min(all_left.of_long, place);
  };
  before(outgoing_, outgoing_left_);
  before(incoming_, incoming_left_);
}

}  // namespace accord::coll
