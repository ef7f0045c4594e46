// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/pairs.h"

namespace accord::coll {

std::vector<CclPairs::Pair> CclPairs::pairs_of(const core::CallEnd& end, bool may_be_direct) const {
  std::vector<Pair> pairs;
  core::CallEnd alone = without_blocks(end);
  for (int peer = 0; peer < group_.size(); ++peer) {
    Pair& pair = pairs.emplace_back(pair_of(end, peer));
    alone.segment = pair.block;
    pair.is_direct =
        may_be_direct && pair.size_bytes != 0 && pair.is_one_block() && is_direct(alone, 0, 1);
    if (pair.is_direct) pair.place = alone.address(0);
  }
  return pairs;
}

// How many bytes that takes.
std::size_t CclPairs::place_elsewhere(std::vector<Pair>& pairs, std::byte* scratch) {
  std::size_t next = 0;
  for (Pair& pair : pairs) {
    if (pair.is_direct || pair.size_bytes == 0) continue;
    pair.place = scratch + next;
    next += CclGroup::whole_lines(pair.size_bytes);
  }
  return next;
}

core::CopyBatch CclPairs::copies(const core::CallEnd& end, const std::vector<Pair>& pairs,
                                 core::CallEnd::Direction direction) {
  core::CopyBatch batch;
  for (const Pair& pair : pairs) {
    if (!pair.is_direct && pair.size_bytes != 0)
      add_copies(end, pair, direction, 0, pair.size_bytes, pair.place, batch);
  }
  return batch;
}

// In place, what arrives would overwrite what is yet to be sent.
Status CclPairs::pack(device::CopyTicket& ticket) {
  outgoing_ = pairs_of(args_.in, !args_.in_place);
  incoming_ = pairs_of(args_.out, true);
  const std::size_t sent = place_elsewhere(outgoing_, nullptr);
  const std::size_t received = place_elsewhere(incoming_, nullptr);
  if (sent + received == 0) return {};
  std::byte* scratch = nullptr;
  ACCORD_TRY(group_.scratch(sent + received, scratch));
  place_elsewhere(outgoing_, scratch);
  place_elsewhere(incoming_, scratch + sent);
  return begin(copies(args_.in, outgoing_, core::CallEnd::Direction::pack), ticket);
}

namespace {

constexpr std::uint64_t kSeveral = std::uint64_t{1} << 63;

// Equal on both ranks if they agree.
std::uint64_t told_of(const Pair& pair) {
  return pair.is_one_block() ? pair.size_bytes : pair.sizes_hash | kSeveral;
}

Status disagreement(int peer, std::uint64_t sent, std::uint64_t received) {
  if (((sent | received) & kSeveral) != 0) return sends_other_blocks(peer);
  return sends_other(peer, sent, received);
}

}  // namespace

// What this rank sends, and what it expects.
void CclPairs::tell_peers() {
  for (int peer = 0; peer < group_.size(); ++peer)
    group_.tell(peer, {told_of(outgoing_[static_cast<std::size_t>(peer)]),
                       told_of(incoming_[static_cast<std::size_t>(peer)])});
}

void CclPairs::look_at_peers() {
  for (int peer = 0; peer < group_.size(); ++peer) {
    const auto [is_sent, is_expected] = group_.told_by(peer);
    Pair& sent = outgoing_[static_cast<std::size_t>(peer)];
    Pair& received = incoming_[static_cast<std::size_t>(peer)];
    if (is_sent != told_of(received)) {
      keep_first(mistake_, disagreement(peer, is_sent, told_of(received)));
      received.size_bytes = 0;
    }
    if (is_expected != told_of(sent)) {
      keep_first(mistake_, not_received(peer, sent.size_bytes));
      sent.size_bytes = 0;
    }
  }
}

std::vector<ccl::Work> CclPairs::works() const {
  std::vector<ccl::Work> made;
  const auto add = [&](accord_ccl_call call, const Pair& pair, std::size_t peer) {
    if (pair.size_bytes == 0) return;
    std::byte* const place = for_library(pair.place);
    const bool sends = call == ACCORD_CCL_SEND;
    made.push_back({call, ACCORD_CCL_UINT8, ACCORD_CCL_NONE, sends ? place : nullptr,
                    sends ? nullptr : place, pair.size_bytes, static_cast<int>(peer)});
  };
  for (std::size_t peer = 0; peer < outgoing_.size(); ++peer) {
    add(ACCORD_CCL_SEND, outgoing_[peer], peer);
    add(ACCORD_CCL_RECV, incoming_[peer], peer);
  }
  return made;
}

Status CclPairs::unpack(device::CopyTicket& ticket) {
  return begin(copies(args_.out, incoming_, core::CallEnd::Direction::unpack), ticket);
}

}  // namespace accord::coll
