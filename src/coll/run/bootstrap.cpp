// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/run/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "coll/inter/plan.h"
#include "coll/intra/joining.h"
#include "coll/library/joining.h"
#include "coll/library/plan.h"
#include "coll/pairs/bundles.h"
#include "coll/pairs/two_level_pairs.h"
#include "coll/select/reasons.h"

namespace accord::coll {

bool Bootstrap::by_pairs() const noexcept {
  return args_.exchange && node::goes_by_pairs(args_.exchange->kind);
}

// A library's messages are worth it from where those of a node are.
bool Bootstrap::are_short(const core::Vote& vote) {
  learn_placement();
  const bool by_library = wants_library() && !library().declined;
  return is_across_nodes() && !by_library ? vote.all_near() : vote.all_short();
}

std::unique_ptr<core::Meeting> Bootstrap::next(const core::Vote& vote, std::uint64_t number) {
  learn_placement();
  if (CclGroup* const group = library_to_join(vote))
    return std::make_unique<CclJoining>(*group, args_);
  if (has_library()) return nullptr;
  core::NodeGroup* const group = group_to_join(vote, number);
  if (group == nullptr) return next_across_nodes(vote, number);
  const bool inboxes = group == &team_.inboxes;
  return std::make_unique<Joining>(*group, args_,
                                   node::Use{.region_bytes = inboxes ? 0 : wanted_region_bytes(),
                                             .lane_bytes = inboxes ? wanted_lane_bytes() : 0,
                                             .of_one_request = owner_ == Owner::request});
}

// A library.

bool Bootstrap::wants_library() const noexcept {
  return args_.ways.library != nullptr && args_.exchange.has_value();
}

CclGroup& Bootstrap::library() const { return ccl_group_of(team_, *args_.ways.library); }

// What the library cannot do needs no group of its own.
CclGroup* Bootstrap::library_to_join(const core::Vote& vote) const {
  if (!joins_ || !wants_library() || vote.all_short()) return nullptr;
  CclGroup* const group = library().to_join();
  if (group == nullptr || !group->is_to_share()) return group;
  return CclPlan::exists(group->library, *args_.exchange) ? group : nullptr;
}

bool Bootstrap::has_library() const {
  return wants_library() && library().joined() &&
         CclPlan::exists(library().library, *args_.exchange);
}

// Inboxes and regions of a node.

std::size_t Bootstrap::wanted_region_bytes() const {
  if (owner_ == Owner::request || !args_.exchange) return args_.region_bytes;
  return std::min(args_.region_bytes, node::Group::region_bytes_for(*args_.exchange));
}

std::size_t Bootstrap::wanted_lane_bytes() const {
  const std::size_t short_bytes = node::Group::short_lane_bytes(args_.ways.lane_bytes);
  const bool is_short =
      owner_ == Owner::call && !by_pairs() && args_.exchange->block_bytes <= short_bytes;
  return is_short ? short_bytes : args_.ways.lane_bytes;
}

bool Bootstrap::is_to_join(const core::NodeGroup& group, std::size_t wanted_bytes) const {
  const bool has_enough = group.group && wanted_bytes <= group.asked_bytes;
  return joins_ && !has_enough && !group.declined && !is_across_nodes();
}

core::NodeGroup* Bootstrap::group_to_join(const core::Vote& vote, std::uint64_t number) const {
  const bool is_often = number >= args_.ways.inbox_calls;
  if (by_pairs()) return group_of_pairs_to_join(vote, is_often);
  if (args_.ways.lane_bytes != 0) {
    if (is_often && is_to_join(team_.inboxes, wanted_lane_bytes())) return &team_.inboxes;
    if (has_inboxes()) return nullptr;
  }
  const bool fits = args_.exchange && (args_.exchange->fits_regions || may_need_host_regions());
  return fits && is_to_join(team_.regions, wanted_region_bytes()) ? &team_.regions : nullptr;
}

// Pair by pair nobody knows what the others' next call is: who has inboxes has regions too, for
// pairs that are too long for these.
core::NodeGroup* Bootstrap::group_of_pairs_to_join(const core::Vote& vote, bool is_often) const {
  if (!args_.exchange->fits_regions) return nullptr;
  const bool wants_inboxes = args_.ways.lane_bytes != 0 && is_often && !team_.inboxes.declined;
  if (vote.all_short() && !wants_inboxes && !team_.inboxes.group) return nullptr;
  if (is_to_join(team_.regions, wanted_region_bytes())) return &team_.regions;
  const bool may = wants_inboxes && team_.regions.group;
  return may && is_to_join(team_.inboxes, wanted_lane_bytes()) ? &team_.inboxes : nullptr;
}

// Of pairs those that are longer than a lane go by regions.
bool Bootstrap::has_inboxes() const {
  const node::Group* const inboxes = team_.inboxes.group.get();
  return args_.ways.lane_bytes != 0 && inboxes != nullptr &&
         (by_pairs() || args_.exchange->block_bytes <= inboxes->lane_bytes());
}

// Who is asked for them, or had no inboxes, maybe since ranks take turns.
bool Bootstrap::may_need_host_regions() const {
  return args_.ways.wants_host_regions(team_.inboxes.declined);
}

bool Bootstrap::has_host_regions() const {
  const node::Group* const regions = team_.regions.group.get();
  return args_.exchange && regions != nullptr && regions->has_host_regions() &&
         args_.ways.wants_host_regions(regions->takes_long_turns());
}

// The call is short, and each step on the device would wait for the other ranks' kernels.
bool Bootstrap::waits_for_turns() const {
  return !args_.ways.in_turns && team_.regions.group->takes_long_turns();
}

bool Bootstrap::has_regions() const {
  const node::Group* const regions = team_.regions.group.get();
  if (!args_.exchange || !args_.exchange->fits_regions || regions == nullptr) return false;
  if (waits_for_turns()) return false;
  return args_.exchange->op == device::ReduceOp::none || regions->reduces();
}

// Several nodes.

// Where there are several, nobody need try to join what is for one.
void Bootstrap::learn_placement() {
  core::Placement& known = team_.regions.placement;
  if (known.ranks() != 0 || !args_.host.placement) return;
  known = args_.host.placement();
  if (known.nodes() <= 1) return;
  for (core::NodeGroup* group : {&team_.regions, &team_.inboxes}) {
    group->declined = true;
    group->why_declined = reason::kSeveralNodes;
  }
}

bool Bootstrap::wants_two_levels(const core::Vote& vote) const {
  const core::Placement& placement = team_.regions.placement;
  const bool may = args_.ways.leaders_max != 0 && args_.exchange && args_.host.issue_wire &&
                   is_across_nodes() && !team_.nodes.local.declined;
  if (may && by_pairs())
    return !vote.all_near() || (vote.all_shortest() && Bundles::pay_alone(placement, args_));
  if (may && args_.ways.only_bundled) return Bundles::pay_alone(placement, args_);
  if (may && TwoLevelPairs::takes(args_.exchange->kind, args_.ways.leaders_max)) return true;
  return may && TwoLevelPlan::fits(*args_.exchange, placement, args_.ways.leaders_max,
                                   args_.ways.message_bytes_min);
}

bool Bootstrap::has_two_levels(const core::Vote& vote) const {
  const core::Nodes& nodes = team_.nodes;
  if (!wants_two_levels(vote) || !nodes.wire || !nodes.local.group) return false;
  return args_.exchange->op == device::ReduceOp::none || nodes.local.reduce;
}

// First they get what to send messages by, then those of each node join. Short blocks alone are
// worth it once they come often.
std::unique_ptr<core::Meeting> Bootstrap::next_across_nodes(const core::Vote& vote,
                                                            std::uint64_t number) {
  if (!wants_two_levels(vote) || !joins_) return nullptr;
  core::Nodes& nodes = team_.nodes;
  const bool are_short = args_.ways.only_bundled || (by_pairs() && vote.all_near());
  if (are_short && number < args_.ways.inbox_calls && !nodes.wire) return nullptr;
  if (!nodes.wire)
    return std::make_unique<core::WireMeeting>(args_.host.issue_wire, nodes.local, nodes.wire);
  if (!nodes.local.group) {
    constexpr std::size_t kOfLocalGroup = std::end(node::Group::kRegionSizes)[-1];
    return std::make_unique<Joining>(
        nodes.local, args_,
        node::Use{.region_bytes = std::min(args_.region_bytes, kOfLocalGroup),
                  .of_one_request = owner_ == Owner::request},
        Joining::Nodes{team_.regions.placement, nodes.wire});
  }
  return nullptr;
}

// What it has come to.

Situation Bootstrap::situation(const core::Vote& vote) const {
  return {.kind = args_.kind,
          .offered = args_.ways.offered,
          .all_short = vote.all_short(),
          .library = has_library(),
          .inboxes = has_inboxes(),
          .packets = has_inboxes() && team_.inboxes.group->takes_packets(),
          .host_regions = has_host_regions(),
          .regions = has_regions(),
          .two_levels = has_two_levels(vote),
          .chunks = args_.host.issue_chunk != nullptr};
}

const char* Bootstrap::why_no_device() const noexcept {
  return by_pairs() ? reason::kNoLongPair : reason::kAllHost;
}

std::string Bootstrap::why(const Algorithm& algorithm, const core::Vote& vote) const {
  if (&algorithm == &algorithms::library) return "";
  if (wants_library()) return library().declined ? library().why_declined : reason::kNotByLibrary;
  if (!algorithm.by_host) return "";
  if (is_across_nodes() ? vote.all_near() : vote.all_short()) {
    const bool declined = team_.regions.declined || team_.inboxes.declined;
    if (!declined) return reason::kSeldom;
    return vote.all_short() ? reason::kNoLongPair : reason::kNoFarPair;
  }
  const bool fits_regions = args_.exchange->fits_regions;
  if (fits_regions && team_.regions.group)
    return waits_for_turns() ? reason::kInTurns : reason::kNoKernels;
  const core::NodeGroup& here = fits_regions ? team_.regions : team_.inboxes;
  const core::NodeGroup& group = team_.nodes.local.declined ? team_.nodes.local : here;
  if (group.why_declined.empty()) return reason::kSeldom;
  return fmt::format("{}: {}", reason::kDeclined, group.why_declined);
}

}  // namespace accord::coll
