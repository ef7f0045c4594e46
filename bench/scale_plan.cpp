// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a leader does in a call in two levels, as its plan says it: scale_model.py predicts the
// same.
#include <fmt/format.h>

#include <climits>
#include <vector>

#include "bench/scale.h"
#include "coll/inter/plan.h"
#include "core/placement.h"

namespace accord::bench {
namespace {

std::string in_json(const coll::TwoLevelPlan::Round& round) {
  std::size_t sends = 0;
  std::size_t bytes = 0;
  for (const auto& message : round.messages) {
    sends += message.sends ? 1 : 0;
    bytes += message.sends ? message.length_bytes : 0;
  }
  return fmt::format("{{\"messages\": {}, \"bytes\": {}}}", sends, bytes);
}

}  // namespace

std::string plan_in_json(bool is_alltoall, std::size_t block_bytes, const Job& job,
                         std::size_t parcel_bytes) {
  std::vector<std::uint64_t> nodes(static_cast<std::size_t>(job.ranks));
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    nodes[rank] = rank / static_cast<std::size_t>(job.node) + 1;
  const core::Placement placement = core::Placement::of(nodes);
  node::Call call{.kind = node::Kind::alltoall, .size = job.ranks, .block_bytes = block_bytes};
  if (!is_alltoall) {
    call.kind = node::Kind::allreduce;
    call.op = device::ReduceOp::sum;
    call.element = device::Element::float32;
  }
  const coll::TwoLevelPlan plan(call, placement, 0, false, INT_MAX, parcel_bytes);
  std::string chunks;
  for (std::size_t number = 0; number < plan.chunks(); ++number) {
    std::string rounds;
    for (const auto& round : plan.chunk(number).rounds)
      rounds += (rounds.empty() ? "" : ", ") + in_json(round);
    chunks += fmt::format("{}[{}]", chunks.empty() ? "" : ", ", rounds);
  }
  return fmt::format("{{\"leaders\": {}, \"chunks\": [{}]}}\n", plan.leaders(), chunks);
}

}  // namespace accord::bench
