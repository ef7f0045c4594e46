// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Longer calls within a node: through device memory that its ranks share (node_exchange.h), or
// straight between the users' buffers where these are lent (direct_exchange.h); pair by pair
// coll/pairs/pairwise_exchange.h.
#include <algorithm>

#include "base/config.h"
#include "coll/algorithm.h"
#include "coll/coll_args.h"
#include "coll/intra/node_exchange.h"
#include "coll/pairs/pairwise_exchange.h"
#include "core/team.h"

namespace accord::coll {
namespace {

using node::Kind;
using Shots = Variant::Shots;

constexpr const Algorithm* kThis = &algorithms::regions;
constexpr const char* kDirectPath = "node-direct";
constexpr NamedVariant kVariants[] = {
    {"node", {.algorithm = kThis}},
    {"node-one-shot", {.algorithm = kThis, .shots = Shots::one}},
    {"node-two-shot", {.algorithm = kThis, .shots = Shots::two}},
    {"node-direct", {.algorithm = kThis, .direct = true}, kDirectPath},
    {"node-direct-one-shot",
     {.algorithm = kThis, .shots = Shots::one, .direct = true},
     kDirectPath},
    {"node-direct-two-shot",
     {.algorithm = kThis, .shots = Shots::two, .direct = true},
     kDirectPath},
    {"node-direct-spread",
     {.algorithm = kThis, .shots = Shots::spread, .direct = true},
     kDirectPath},
};

// For two ranks all of it is no more than an exchange of shares; the kernel alone then brings it
// over.
std::size_t one_shot_bytes(Shots shots, int ranks) {
  constexpr std::size_t kShareOfMany = 16;
  if (shots == Shots::one) return SIZE_MAX;
  if (shots != Shots::by_size) return 0;
  return ranks == 2 ? config().one_shot_bytes : config().one_shot_bytes / kShareOfMany;
}

// Only allreduce by itself: where engines store nothing, nothing fills their pauses between pieces
// (2 x H200, 256 MiB: reduce_scatter 295 GB/s, its kernel alone 312; reduce 329 and 357).
std::size_t spread_bytes(Shots shots, Kind kind) {
  if (shots == Shots::spread) return 1;
  const bool is_worth_it = kind == Kind::allreduce && config().spread_bytes != 0;
  return shots == Shots::by_size && is_worth_it ? config().spread_bytes : SIZE_MAX;
}

// What a rank has to copy to the host and from there, at most, as if it were copied alone: where
// the CPU has to reduce it takes three times that, and in a gather on devices only the root waits
// for a turn (H100, 4 ranks).
std::size_t bytes_by_host(const Question& question) {
  const node::Pattern pattern = node::pattern_of(question.kind);
  const auto ranks = static_cast<std::size_t>(question.ranks);
  const std::size_t blocks = (pattern.blocks_in ? ranks : 1) + (pattern.blocks_out ? ranks : 1);
  const bool both_ways = !pattern.from_root;
  const bool counts_thrice = pattern.reduces || pattern.to_root;
  return question.longest_bytes * (both_ways ? blocks : blocks - 1) * (counts_thrice ? 3 : 1);
}

bool offer(const Question& question, const Asked& asked, DeviceWays& ways) {
  const bool is_wanted = asked.for_regions();
  const std::size_t node_bytes = config().node_bytes;
  const std::size_t direct_bytes = config().direct_bytes;
  const bool by_pairs = node::goes_by_pairs(question.kind);
  ways.regions = is_wanted || (node_bytes != 0 && (by_pairs || question.size_bytes >= node_bytes));
  ways.in_turns = is_wanted || by_pairs || bytes_by_host(question) >= config().turn_bytes;
  const bool is_long = direct_bytes != 0 && question.longest_bytes >= direct_bytes;
  ways.direct = asked.variant.direct || (!is_wanted && is_long);
  // Lanes of a region take twice the time of a buffer that is reached directly.
  const std::size_t pair_bytes = std::min<std::size_t>(direct_bytes, node_bytes);
  ways.lend_bytes = asked.variant.direct ? 1 : is_wanted ? 0 : pair_bytes;
  ways.one_shot_bytes = one_shot_bytes(asked.variant.shots, question.ranks);
  ways.spread_bytes = spread_bytes(asked.variant.shots, question.kind);
  return ways.regions;
}

Variant in_detail(const Question& question, const DeviceWays& ways) {
  const bool is_lent = ways.lend_bytes != 0 && question.longest_bytes >= ways.lend_bytes;
  Variant variant{.algorithm = kThis,
                  .direct = node::goes_by_pairs(question.kind) ? is_lent : ways.direct};
  if (question.kind != Kind::allreduce && question.kind != Kind::reduce) return variant;
  const bool is_spread = variant.direct && question.longest_bytes >= ways.spread_bytes;
  variant.shots = question.longest_bytes <= ways.one_shot_bytes ? Shots::one
                  : is_spread                                   ? Shots::spread
                                                                : Shots::two;
  return variant;
}

std::unique_ptr<Exchange> make(core::Team& team, const CollArgs& call, Company) {
  if (node::goes_by_pairs(call.exchange->kind))
    return std::make_unique<PairwiseExchange>(team.regions.group, call);
  return std::make_unique<NodeExchange>(team.regions.group, call);
}

}  // namespace

constinit const Algorithm algorithms::regions{
    .name = "node",
    .variants = kVariants,
    .has = [](Kind) { return true; },
    .by_regions = true,
    .offer = offer,
    .takes = [](const Situation& s) { return s.regions && !s.all_short; },
    .in_detail = in_detail,
    .make = make,
    .copier = [](core::Team& team, const CollArgs&) -> const node::Group* {
      return team.regions.group.get();
    },
    .what =
        "Moves chunks through regions of device memory that the ranks of a node have open, by copy "
        "engines or kernels; kernels reduce. If the owners of all buffers lend them, data goes "
        "straight from buffer to buffer (node-direct). A reduction goes in one shot (each rank "
        "reduces all it needs), two shots (each reduces a share, then fetches the others' "
        "results), or spread (two shots, with copy engines beside kernels).",
    .steps =
        "for each chunk: fill, [reduce a share], fetch; straight: one pass, or two for two shots",
    .bytes =
        "what the collective has to move; through regions one more copy within the device; one "
        "shot: (ranks - 1) times the vector, two shots: twice the vector",
    .where =
        "within a node; from ACCORD_NODE_BYTES on (from ACCORD_TURN_BYTES on where ranks take "
        "turns on a device), straight from ACCORD_DIRECT_BYTES on"};

}  // namespace accord::coll
