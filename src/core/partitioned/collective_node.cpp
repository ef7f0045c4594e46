// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned allreduce or bcast whose ranks leave it to kernels of theirs: what is left for the
// host is to find out whether they can, to mark what the program marks here, and to see that it is
// done.
#include <utility>

#include "core/partitioned/collective.h"

namespace accord::core {
namespace {

// Messages say no more than that another rank has given up, and to look for them takes longer than
// the rest of a step.
constexpr unsigned kStepsPerPoll = 32;

// All partitions of the only block.
PipelineEnd whole(const PartitionArea& area, std::int32_t partitions) {
  PipelineEnd end = area.end;
  end.segment = area.blocks.front();
  end.segment.count *= static_cast<std::size_t>(partitions);
  return end;
}

}  // namespace

// Each rank brings two buffers, of a broadcast one that is both; that is moved as words, whatever
// it holds.
NodeReduction::Terms PartitionedCollective::terms_on_node() const {
  NodeReduction::Terms terms{.name = plan_.name,
                             .fingerprint = plan_.fingerprint,
                             .rank = plan_.rank,
                             .root = plan_.root,
                             .processes = plan_.processes,
                             .partitions = call_.partitions,
                             .count = plan_.reduction.count,
                             .op = plan_.reduction.op,
                             .element = plan_.reduction.element,
                             .source = {},
                             .target = {}};
  const bool reduces = plan_.root == device::PartitionReduction::kNoRoot;
  const bool gives = reduces || plan_.root == plan_.rank;
  terms.source = whole(gives ? plan_.contribution : plan_.result, call_.partitions);
  terms.target = reduces ? whole(plan_.result, call_.partitions) : terms.source;
  bool is_whole = true;
  if (!reduces) {
    terms.op = device::ReduceOp::max;
    terms.element = device::Element::uint32;
    const std::size_t word_bytes = device::element_bytes(terms.element);
    const std::size_t bytes =
        terms.source.segment.size_bytes() / static_cast<std::size_t>(call_.partitions);
    terms.count = bytes / word_bytes;
    is_whole = bytes % word_bytes == 0;
  }
  terms.able = is_whole && call_.copy != PartitionCopy::engine &&
               device::is_defined(terms.op, terms.element) && runtime() != nullptr &&
               words_are_pinned() && terms.source.usable_by(*runtime(), call_.end.device) &&
               terms.target.usable_by(*runtime(), call_.end.device);
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
  ACCORD_TRY(node_->reducer().start(round()));
  if (!std::exchange(kernels_told_, true)) connect_prequest();
  return {};
}

// Kernels that mark partitions tell all ranks themselves, unless they could not yet.
Status PartitionedCollective::step_on_node(bool& done) {
  prepared_.store(round(), std::memory_order_release);
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

}  // namespace accord::core
