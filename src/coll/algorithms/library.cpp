// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls by a collective library, NCCL or its like (coll/library/exchange.h).
#include "coll/algorithm.h"
#include "coll/library/exchange.h"
#include "core/team.h"

namespace accord::coll {
namespace {

const node::Group* mailboxes(core::Team& team, const CollArgs& call) {
  const CclGroup& group = ccl_group_of(team, *call.ways.library);
  return group.joined() ? &group.mailboxes() : nullptr;
}

std::unique_ptr<Exchange> make(core::Team& team, const CollArgs& call, Company company) {
  return std::make_unique<CclExchange>(
      ccl_group_of(team, *call.ways.library), call,
      company.is_alone ? CclTurn::Company::none : CclTurn::Company::possible,
      company.is_idle ? CclTurn::Process::idle : CclTurn::Process::busy);
}

}  // namespace

constinit const Algorithm algorithms::library{
    .name = "library",
    .variants = {},
    .has = [](node::Kind) { return true; },
    .offer =
        [](const Question&, const Asked& asked, DeviceWays& ways) {
          ways.library = asked.variant.library;
          return ways.library != nullptr;
        },
    .takes = [](const Situation& s) { return s.library; },
    .in_detail =
        [](const Question&, const DeviceWays& ways) {
          return Variant{.algorithm = &algorithms::library, .library = ways.library};
        },
    .make = make,
    .copier = mailboxes,
    .goes_at_once =
        [](core::Team& team, const CollArgs& call) {
          if (call.in_company || call.ways.library == nullptr) return false;
          const node::Group* const group = mailboxes(team, call);
          return group != nullptr && copies_ends_of(group, call);
        },
    .what =
        "Makes one step of the call, or of grouped sends and receives, in the communicator of a "
        "collective library: one that Accord knows, or one of your own.",
    .steps = "one on a stream of its own, once all ranks are at this call",
    .bytes = "the library's",
    .where =
        "where all ranks have loaded the library and it has the operation and type; never by "
        "the built-in rule"};

}  // namespace accord::coll
