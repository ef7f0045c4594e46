// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls through inboxes (inbox.cpp), in packets of 16 bytes instead of words of 8: a third less has
// to go over the links.
#include "base/config.h"
#include "coll/algorithm.h"
#include "coll/coll_args.h"
#include "coll/intra/inbox_exchange.h"
#include "core/team.h"

namespace accord::coll {
namespace {

constexpr NamedVariant kVariants[] = {{"packets", {.algorithm = &algorithms::packets}}};

class PacketExchange final : public InboxExchange {
 public:
  PacketExchange(std::shared_ptr<node::Group> group, const CollArgs& args)
      : InboxExchange(std::move(group), args) {
    ticket_.exchange.in_packets = true;
  }
  const char* path() const noexcept override { return "packets"; }
};

// Where inboxes may take it, which are asked before.
bool offer(const Question& question, const Asked& asked, DeviceWays& ways) {
  const std::size_t packet_bytes = config().packet_bytes;
  const bool is_long = packet_bytes != 0 && question.size_bytes >= packet_bytes;
  return ways.lane_bytes != 0 && (asked.is_automatic() ? is_long : asked.is(algorithms::packets));
}

}  // namespace

constinit const Algorithm algorithms::packets{
    .name = "packets",
    .variants = kVariants,
    .has = [](node::Kind kind) { return !node::goes_by_pairs(kind); },
    .offer = offer,
    .takes = [](const Situation& s) { return s.packets; },
    .make = [](core::Team& team, const CollArgs& call, Company) -> std::unique_ptr<Exchange> {
      return std::make_unique<PacketExchange>(team.inboxes.group, call);
    },
    .goes_at_once = [](core::Team&, const CollArgs& call) { return copies_ends_of(nullptr, call); },
    .what =
        "As inbox, but each 12 bytes travel beside a 4-byte sequence number, in packets of 16 "
        "bytes "
        "that the devices store and load whole.",
    .steps = "one: write to all peers, then read what they have written",
    .bytes = "a third more than the data; an allreduce sends all of it to each peer",
    .where =
        "where inbox is, between NVIDIA GPUs of compute capability 9.0 or later that are linked by "
        "NVLink or are the same; from ACCORD_PACKET_BYTES on"};

}  // namespace accord::coll
