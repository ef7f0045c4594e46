// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which way a call goes once its ranks have voted, and what they join for that. It follows from
// what is equal on all ranks.
#include <algorithm>
#include <iterator>

#include "coll/collective_operation.h"
#include "coll/inter/bundles.h"
#include "coll/inter/plan.h"
#include "coll/intra/joining.h"
#include "coll/library/joining.h"
#include "coll/library/plan.h"

namespace accord::core {

// Whether the ranks have something to join before they know how the call goes.
bool CollectiveOperation::meet() {
  if (CclGroup* const group = ccl_group_to_join()) {
    joining_ = std::make_unique<CclJoining>(*group, *call_.pipeline);
    return true;
  }
  NodeGroup* const group = goes_by_library() ? nullptr : group_to_join();
  if (group == nullptr) return !goes_by_library() && meet_across_nodes();
  const bool inboxes = group == &queue_->inboxes;
  joining_ =
      std::make_unique<Joining>(*group, *call_.pipeline,
                                node::Use{.region_bytes = inboxes ? 0 : wanted_region_bytes(),
                                          .lane_bytes = inboxes ? wanted_lane_bytes() : 0,
                                          .of_one_request = form_ == Form::persistent});
  return true;
}

// A persistent request has said what it needs.
std::size_t CollectiveOperation::wanted_region_bytes() const {
  const Pipeline& pipeline = *call_.pipeline;
  if (form_ == Form::persistent || !pipeline.exchange) return pipeline.region_bytes;
  return std::min(pipeline.region_bytes, node::Group::region_bytes_for(*pipeline.exchange));
}

std::size_t CollectiveOperation::wanted_lane_bytes() const {
  const Pipeline& pipeline = *call_.pipeline;
  const std::size_t short_bytes = node::Group::short_lane_bytes(pipeline.ways.lane_bytes);
  const bool is_short = form_ != Form::persistent && !goes_by_pairs() &&
                        pipeline.exchange->block_bytes <= short_bytes;
  return is_short ? short_bytes : pipeline.ways.lane_bytes;
}

// Of pairs those that are longer than a lane go by regions.
bool CollectiveOperation::fits_inboxes() const {
  const Pipeline& pipeline = *call_.pipeline;
  const node::Group* const inboxes = queue_->inboxes.group.get();
  return pipeline.ways.lane_bytes != 0 && inboxes != nullptr &&
         (goes_by_pairs() || pipeline.exchange->block_bytes <= inboxes->lane_bytes());
}

// First those of each node join, then they get what to send messages by.
bool CollectiveOperation::meet_across_nodes() {
  if (!wants_two_levels() || !joins_) return false;
  Nodes& nodes = queue_->nodes;
  if (!nodes.local.group) {
    constexpr std::size_t kOfLocalGroup = std::end(node::Group::kRegionSizes)[-1];
    joining_ = std::make_unique<Joining>(
        nodes.local, *call_.pipeline,
        node::Use{.region_bytes = std::min(call_.pipeline->region_bytes, kOfLocalGroup),
                  .of_one_request = form_ == Form::persistent},
        &queue_->regions.placement);
    return true;
  }
  if (nodes.wire) return false;
  joining_ = std::make_unique<WireMeeting>(call_.pipeline->issue_wire, nodes.wire);
  return true;
}

bool CollectiveOperation::wants_two_levels() const {
  const Pipeline& pipeline = *call_.pipeline;
  const Placement& placement = queue_->regions.placement;
  const bool may = pipeline.ways.leaders_max != 0 && pipeline.exchange && pipeline.issue_wire &&
                   placement.nodes() > 1 && !queue_->nodes.local.declined;
  if (may && goes_by_pairs())
    return !all_.all_short() || (all_.all_shortest() && Bundles::pay_alone(placement, pipeline));
  return may && TwoLevelPlan::fits(*pipeline.exchange, placement, pipeline.ways.leaders_max,
                                   pipeline.ways.message_bytes_min);
}

bool CollectiveOperation::goes_in_two_levels() const {
  const Nodes& nodes = queue_->nodes;
  if (!wants_two_levels() || !nodes.wire) return false;
  return call_.pipeline->exchange->op == device::ReduceOp::none || nodes.local.reduce;
}

bool CollectiveOperation::wants_library() const {
  return call_.pipeline->ways.library != nullptr && call_.pipeline->exchange.has_value();
}

CclGroup& CollectiveOperation::ccl_group() const {
  return ccl_group_of(*queue_, *call_.pipeline->ways.library);
}

// What the library cannot do needs no group of its own.
CclGroup* CollectiveOperation::ccl_group_to_join() const {
  if (!joins_ || !wants_library() || all_.all_short()) return nullptr;
  CclGroup* const group = ccl_group().to_join();
  if (group == nullptr || !group->is_to_share()) return group;
  return CclPlan::exists(group->library, *call_.pipeline->exchange) ? group : nullptr;
}

bool CollectiveOperation::goes_by_library() const {
  return wants_library() && ccl_group().joined() &&
         CclPlan::exists(ccl_group().library, *call_.pipeline->exchange);
}

NodeGroup* CollectiveOperation::group_to_join() const {
  const Pipeline& pipeline = *call_.pipeline;
  const auto open = [this](const NodeGroup& group, std::size_t wanted_bytes) {
    const bool has_enough = group.group && wanted_bytes <= group.asked_bytes;
    return joins_ && !has_enough && !group.declined && queue_->regions.placement.nodes() <= 1;
  };
  // Pair by pair nobody knows what the others' next call is: who has inboxes has regions too, for
  // pairs that are too long for these.
  if (goes_by_pairs()) {
    if (!pipeline.exchange->fits_regions) return nullptr;
    const bool often = turn_->number >= pipeline.ways.inbox_calls;
    const bool wants_inboxes = pipeline.ways.lane_bytes != 0 && often && !queue_->inboxes.declined;
    const bool wants_regions = wants_inboxes || (often && wants_placement());
    if (all_.all_short() && !wants_regions && !queue_->inboxes.group) return nullptr;
    if (open(queue_->regions, wanted_region_bytes())) return &queue_->regions;
    return wants_inboxes && queue_->regions.group && open(queue_->inboxes, wanted_lane_bytes())
               ? &queue_->inboxes
               : nullptr;
  }
  if (pipeline.ways.lane_bytes != 0) {
    if (turn_->number >= pipeline.ways.inbox_calls && open(queue_->inboxes, wanted_lane_bytes()))
      return &queue_->inboxes;
    if (fits_inboxes()) return nullptr;
  }
  const bool fits = pipeline.exchange && pipeline.exchange->fits_regions;
  return fits && open(queue_->regions, wanted_region_bytes()) ? &queue_->regions : nullptr;
}

// Only who joins regions learns whether there are several nodes.
bool CollectiveOperation::wants_placement() const {
  const Pipeline& pipeline = *call_.pipeline;
  return all_.all_shortest() && pipeline.ways.leaders_max != 0 && pipeline.issue_wire &&
         queue_->regions.placement.ranks() == 0 && pipeline.exchange->size > Bundles::kFarRanksMin;
}

bool CollectiveOperation::goes_by_pairs() const {
  const auto& exchange = call_.pipeline->exchange;
  return exchange && node::goes_by_pairs(exchange->kind);
}

// What the vote has told, and what the ranks have joined.
Situation CollectiveOperation::situation() const {
  const Pipeline& pipeline = *call_.pipeline;
  const bool reduces = pipeline.exchange && pipeline.exchange->op != device::ReduceOp::none;
  const node::Group* const regions = queue_->regions.group.get();
  return {.by_pairs = goes_by_pairs(),
          .all_short = all_.all_short(),
          .library = goes_by_library(),
          .inboxes = fits_inboxes(),
          .regions = pipeline.exchange && pipeline.exchange->fits_regions && regions != nullptr &&
                     (!reduces || regions->reduces()),
          .two_levels = goes_in_two_levels(),
          .chunks = pipeline.issue_chunk != nullptr};
}

const char* CollectiveOperation::why_no_device() const {
  return goes_by_pairs() ? reason::kNoLongPair : reason::kAllHost;
}

// It goes by `algorithm` and not by a better one.
std::string CollectiveOperation::why(const Algorithm& algorithm) const {
  if (!call_.pipeline->exchange) return call_.why_no_exchange;
  if (&algorithm == &algorithms::library) return "";
  if (wants_library())
    return ccl_group().declined ? ccl_group().why_declined : reason::kNotByLibrary;
  if (!algorithm.by_host) return "";
  if (all_.all_short()) {
    const bool declined = queue_->regions.declined || queue_->inboxes.declined;
    return declined ? reason::kNoLongPair : reason::kSeldom;
  }
  const bool fits_regions = call_.pipeline->exchange->fits_regions;
  if (fits_regions && queue_->regions.group) return reason::kNoKernels;
  const NodeGroup& here = fits_regions ? queue_->regions : queue_->inboxes;
  const NodeGroup& group = queue_->nodes.local.declined ? queue_->nodes.local : here;
  return group.why_declined.empty() ? reason::kSeldom
                                    : std::string(reason::kDeclined) + ": " + group.why_declined;
}

}  // namespace accord::core
