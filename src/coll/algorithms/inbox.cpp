// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Short calls within a node: kernels write into the peers' inboxes (inbox_exchange.h; pair by pair
// coll/pairs/inbox_pairs.h).
#include "device/inbox.h"

#include "base/config.h"
#include "coll/algorithm.h"
#include "coll/coll_args.h"
#include "coll/intra/inbox_exchange.h"
#include "coll/pairs/inbox_pairs.h"
#include "core/team.h"

namespace accord::coll {
namespace {

constexpr NamedVariant kVariants[] = {{"inbox", {.algorithm = &algorithms::inbox}}};

// Of inboxes for such a call; 0: it does not fit.
std::size_t lane_bytes(const Question& question) {
  const bool units = device::kInboxUnitBytes % question.element_bytes == 0;
  if (!question.equal_blocks || !units) return 0;
  if (question.ranks > device::kInboxRanksMax || question.ranks < 2) return 0;
  const std::size_t share_bytes =
      config().inbox_bytes / static_cast<std::size_t>(question.ranks - 1);
  const std::size_t whole_bytes = share_bytes / device::kInboxUnitBytes * device::kInboxUnitBytes;
  return question.longest_bytes <= whole_bytes ? whole_bytes : 0;
}

bool offer(const Question& question, const Asked& asked, DeviceWays& ways) {
  // Pairs go by inboxes and regions or not at all.
  const bool lacks_regions = node::goes_by_pairs(question.kind) && !ways.regions;
  ways.lane_bytes = asked.for_regions() || lacks_regions ? 0 : lane_bytes(question);
  // A table is for calls that come again and again, and making inboxes takes milliseconds.
  const bool is_wanted = asked.is(algorithms::inbox) || asked.is(algorithms::packets);
  const bool now = is_wanted && asked.origin != Origin::table;
  ways.inbox_calls = now ? 1 : static_cast<std::uint64_t>(config().inbox_calls);
  return ways.lane_bytes != 0;
}

std::unique_ptr<Exchange> make(core::Team& team, const CollArgs& call, Company) {
  if (!node::goes_by_pairs(call.exchange->kind))
    return std::make_unique<InboxExchange>(team.inboxes.group, call);
  return std::make_unique<InboxPairs>(team.inboxes.group, team.regions.group, call);
}

const node::Group* copier(core::Team& team, const CollArgs& call) {
  return node::goes_by_pairs(call.exchange->kind) ? team.regions.group.get() : nullptr;
}

}  // namespace

constinit const Algorithm algorithms::inbox{
    .name = "inbox",
    .variants = kVariants,
    .has = [](node::Kind) { return true; },
    .offer = offer,
    .takes = [](const Situation& s) { return s.inboxes && (s.regions || !s.by_pairs()); },
    .make = make,
    .copier = copier,
    .goes_at_once = [](core::Team& team,
                       const CollArgs& call) { return copies_ends_of(copier(team, call), call); },
    .what =
        "A kernel that lingers on the device takes the call. It writes this rank's data into an "
        "inbox on every peer's device, each 4 bytes beside a 4-byte sequence number, and reduces "
        "or "
        "copies what arrives there. The host only begins the call and waits for its end.",
    .steps = "one: write to all peers, then read what they have written",
    .bytes =
        "twice the data, as half of each word is its number; an allreduce sends all of it to "
        "each peer",
    .where = "within a node of at most 64 ranks; up to ACCORD_INBOX_BYTES to all peers together"};

}  // namespace accord::coll
