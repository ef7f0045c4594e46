// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned collective whose ranks leave it to kernels of theirs: what is left for the
// host is to find out whether they can, to mark what the program marks here, and to see that it is
// done.
#include <algorithm>
#include <utility>

#include "partitioned/collective.h"

namespace accord::partitioned {
namespace {

// Messages say no more than that another rank has given up, and to look for them takes longer than
// the rest of a step.
constexpr unsigned kStepsPerPoll = 32;

// The blocks of an area by the rank that has to do with each, of one that is for all the same
// each time; false where kernels cannot use one. What is only moved is moved as words, whatever it
// holds.
bool list_blocks(const PartitionArea& area, const NodeReduction::Terms& terms,
                 std::vector<NodeReduction::Block>& blocks) {
  blocks.resize(terms.processes.size());
  for (std::size_t i = 0; i < blocks.size() && !area.blocks.empty(); ++i) {
    core::CallEnd end = area.end;
    end.segment = area.blocks[area.blocks.size() == 1 ? 0 : i];
    const std::size_t bytes = end.segment.size_bytes();
    const std::size_t element_bytes = device::element_bytes(terms.element);
    if (bytes == 0) {
      blocks[i].start = static_cast<std::byte*>(end.user);
      continue;
    }
    if (!end.usable_by(*terms.runtime, terms.device) || bytes % element_bytes != 0) return false;
    blocks[i] = {end.address(0), bytes / element_bytes};
  }
  return true;
}

}  // namespace

NodeReduction::Terms PartitionedCollective::terms_on_node() const {
  NodeReduction::Terms terms{.name = plan_.name,
                             .fingerprint = plan_.fingerprint,
                             .rank = plan_.rank,
                             .shape = *plan_.by_kernels,
                             .processes = plan_.processes,
                             .partitions = call_.partitions,
                             .op = plan_.reduction.op,
                             .element = plan_.reduction.element,
                             .runtime = runtime(),
                             .device = call_.end.device,
                             .sources = {},
                             .targets = {}};
  if (!plan_.reduction.type) {
    terms.op = device::ReduceOp::max;
    terms.element = device::Element::uint32;
  }
  const auto has_any = [](const NodeReduction::Block& block) { return block.count > 0; };
  terms.able =
      plan_.kernels_may && call_.copy != PartitionCopy::engine &&
      device::is_defined(terms.op, terms.element) && terms.runtime != nullptr &&
      words_are_pinned() && list_blocks(plan_.contribution, terms, terms.sources) &&
      list_blocks(plan_.result, terms, terms.targets) &&
      (std::ranges::any_of(terms.sources, has_any) || std::ranges::any_of(terms.targets, has_any));
  return terms;
}

// Whether there is one follows from what all ranks know alike.
void PartitionedCollective::meet_on_node() {
  const std::size_t size = plan_.processes.size();
  if (!plan_.by_kernels || size < 2 || size > static_cast<std::size_t>(device::kPartitionRanksMax))
    return;
  node_ = std::make_unique<NodeReduction>(table_, terms_on_node(),
                                          reinterpret_cast<std::uint32_t*>(&arrival(0)));
}

Status PartitionedCollective::choose_way(NodeReduction::Opening opening) {
  if (!node_->is_used()) {
    ACCORD_TRY(table_.poll());
    ACCORD_TRY(node_->join(round(), opening));
  }
  way_ = node_->way(round(), opening);
  if (way_ != NodeReduction::Way::kernels) return {};
  is_reducer_due_ = true;
  if (call_.kernels_wait || !has_prequest()) ACCORD_TRY(start_reducer());
  if (!std::exchange(kernels_told_, true)) connect_prequest();
  return {};
}

Status PartitionedCollective::start_reducer() {
  is_reducer_due_ = false;
  return node_->reducer().start(round());
}

// Kernels that mark partitions tell all ranks themselves, unless they could not yet.
Status PartitionedCollective::step_on_node(bool& done) {
  prepared_.store(round(), std::memory_order_release);
  // A launch takes the host some microseconds. Where no kernel waits for what the reducer brings,
  // the program first launches its own.
  if (is_reducer_due_ && is_starting()) return {};
  if (is_reducer_due_) ACCORD_TRY(start_reducer());
  std::vector<std::int32_t> marked;
  std::erase_if(unmarked_, [&](std::int32_t partition) {
    if (word(static_cast<std::size_t>(partition)).load(std::memory_order_acquire) != round())
      return false;
    marked.push_back(partition);
    return true;
  });
  if (!marked.empty()) ACCORD_TRY(node_->reducer().mark(marked));
  std::erase_if(open_, [&](std::int32_t partition) {
    return arrival(partition).load(std::memory_order_acquire) == round();
  });
  done = open_.empty();
  if (done) return {};
  if (++steps_on_node_ % kStepsPerPoll == 0) ACCORD_TRY(table_.poll());
  ACCORD_TRY(complaint());
  return node_->reducer().progress();
}

}  // namespace accord::partitioned
