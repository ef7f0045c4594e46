// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls whose ranks are on several nodes: up to the leaders of each node, between the nodes, and
// down (coll/inter/exchange.h); pair by pair coll/pairs/two_level_pairs.h.
#include <climits>

#include "base/config.h"
#include "coll/algorithm.h"
#include "coll/coll_args.h"
#include "coll/inter/exchange.h"
#include "coll/inter/plan.h"
#include "coll/pairs/bundles.h"
#include "coll/pairs/two_level_pairs.h"
#include "coll/select/selection.h"
#include "core/team.h"

namespace accord::coll {
namespace {

constexpr const Algorithm* kThis = &algorithms::two_level;
// Numbered as net/design.h numbers them.
enum class Design : unsigned {
#define DESIGN(name) name,
#include "net/designs.def"
#undef DESIGN
};
constexpr NamedVariant kVariants[] = {
    {"two-level", {.algorithm = kThis}},
    {"two-level-single-leader", {.algorithm = kThis, .one_leader = true}},
    {"two-level-host", {.algorithm = kThis, .between = {NetWay::Way::staged}}, "two-level"},
#define DESIGN(name)                                                                            \
  {"two-level-" #name,                                                                          \
   {.algorithm = kThis, .between = {NetWay::Way::design, static_cast<unsigned>(Design::name)}}, \
   "two-level-" #name},
#include "net/designs.def"
#undef DESIGN
};

// All ranks of the job have made ready for that, or none has.
bool has_designs() {
  static const bool may_be =
      may_go_by_design({.setting = &algorithm_choice(), .table = &configured_table()});
  return may_be;
}

// A table says what goes between the nodes, and nobody else does.
bool is_for_table(const Asked& asked) {
  const std::string& setting = config().net_design;
  const bool is_wish = asked.origin == Origin::setting || asked.origin == Origin::info;
  return asked.between != NetWay() && !is_wish && (setting == "table" || setting == "auto");
}

// A design by name is for any size that is worth a message of its own.
void choose_between(const Asked& asked, DeviceWays& ways) {
  const bool is_named = asked.is(*kThis) && asked.variant.between != NetWay();
  const bool by_table = !is_named && is_for_table(asked);
  ways.between = !has_designs() ? NetWay{NetWay::Way::staged}
                 : is_named     ? asked.variant.between
                 : by_table     ? asked.between
                                : transport_by_setting();
  ways.offer_bytes = is_named || by_table ? 1 : config().net_bytes;
  ways.spares_cores =
      by_table || asked.origin == Origin::table || ways.between == NetWay();  // or by rule
}

// Of two ranks, which by way of leaders are not worth it before four times that.
std::size_t pair_bytes_min() { return config().two_level_bytes / 4; }

// Of a call that may go through regions on each node. Pair by pair each rank says whether it has a
// pair that is.
bool is_worth_it(const Question& question, int leaders_max) {
  return node::goes_by_pairs(question.kind) || question.size_bytes >= config().two_level_bytes ||
         (TwoLevelPairs::takes(question.kind, leaders_max) &&
          question.size_bytes >= pair_bytes_min());
}

bool offer(const Question& question, const Asked& asked, DeviceWays& ways) {
  // Many nodes cut a message into parts that are not worth a message each: then it goes another
  // way, unless somebody has asked for this one.
  constexpr std::size_t kWorthIt = std::size_t{16} << 10;
  const bool is_wanted = asked.is(*kThis) || is_for_table(asked);
  ways.message_bytes_min = is_wanted ? 0 : kWorthIt;
  ways.far_pair_bytes = is_wanted ? 0 : pair_bytes_min();
  const int leaders_max = asked.variant.one_leader ? 1 : INT_MAX;
  const bool is_on = config().two_level_bytes != 0;
  const bool is_long = ways.regions && is_on && is_worth_it(question, leaders_max);
  const bool is_short = is_on && config().node_bytes != 0 &&
                        Bundles::take_equal(question.kind, question.longest_bytes);
  // Inboxes are of one node, and a library may turn out to be.
  const bool by_rule = asked.is_automatic() || asked.is(algorithms::inbox) ||
                       asked.is(algorithms::packets) || asked.is(algorithms::library);
  if (!is_wanted && !(by_rule && (is_long || is_short))) return false;
  ways.leaders_max = leaders_max;
  ways.only_bundled = !is_wanted && !is_long;
  choose_between(asked, ways);
  return true;
}

std::unique_ptr<Exchange> make(core::Team& team, const CollArgs& call, Company) {
  if (TwoLevelPairs::takes(call.exchange->kind, call.ways.leaders_max))
    return std::make_unique<TwoLevelPairs>(team, call);
  return std::make_unique<TwoLevelExchange>(team, call);
}

}  // namespace

constinit const Algorithm algorithms::two_level{
    .name = "two-level",
    .variants = kVariants,
    .has = [](node::Kind) { return true; },
    .by_regions = true,
    .offer = offer,
    .takes = [](const Situation& s) { return s.two_levels && (s.by_pairs() || !s.all_short); },
    .in_detail =
        [](const Question& question, const DeviceWays& ways) {
          const bool has_leaders = !node::goes_by_pairs(question.kind);
          const bool one_leader = has_leaders && ways.leaders_max == 1;
          const bool by_design = ways.between.way == NetWay::Way::design && !one_leader;
          return Variant{.algorithm = kThis,
                         .one_leader = one_leader,
                         .between = by_design ? ways.between : NetWay()};
        },
    .make = make,
    .copier = [](core::Team& team, const CollArgs&) -> const node::Group* {
      return team.nodes.local.group.get();
    },
    .what =
        "Collects within each node at its leaders, exchanges between the nodes, and hands out "
        "within each node, in chunks that overlap. As many ranks of a node lead as every node "
        "has, each for a share (two-level-single-leader: one). Pair by pair, short blocks for "
        "another node travel together. Between the nodes long messages go by the host MPI "
        "(two-level-host), or by the design of that name; two-level leaves that to "
        "ACCORD_NET_DESIGN.",
    .steps =
        "for each chunk: a collective within the node; rounds of messages between "
        "leaders, a part of the chunk for each node; a collective within the node",
    .bytes =
        "a byte goes once to each node that needs it; an allreduce sends twice the vector from "
        "each node",
    .where =
        "ranks on several nodes; from ACCORD_TWO_LEVEL_BYTES on; of alltoall(v, w) also short "
        "blocks that travel together, where there are many"};

}  // namespace accord::coll
