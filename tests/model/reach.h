// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the programs of a test have reached: algorithms by kind of collective, branches that matter,
// and what the generator can make. Marks in the copies of sources that mutate.py writes count what
// is in the library. A test prints the report and fails where something named is never reached: a
// dead option of the generator must show.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "named_reach.h"
#include "node/direct_plan.h"
#include "node/plan.h"

// Name, and the collectives (node::Kind) for which it must be reached: none says once is enough.
#define ACCORD_MODEL_REACHES(REACH)                                                      \
  REACH(staged, kNoKinds)                                                                \
  REACH(pipelined, kNoKinds)                                                             \
  REACH(regions, kNodeKinds)                                                             \
  REACH(inbox, kNodeKinds | kPairKinds)                                                  \
  REACH(direct_copies, kNoKinds)                                                         \
  REACH(direct_pushes, kNoKinds)                                                         \
  REACH(direct_own_result, kNoKinds)                                                     \
  REACH(direct_shares, kNoKinds)                                                         \
  REACH(direct_spread, kNoKinds)                                                         \
  REACH(pair_lent, kPairKinds)                                                           \
  REACH(pair_through_region, kPairKinds)                                                 \
  /* Of a call: */                                                                       \
  REACH(in_one_step, kNoKinds)       /* without an operation */                          \
  REACH(run_again, kNoKinds)         /* as one that was kept */                          \
  REACH(persistent_rounds, kNoKinds) /* of which all go from device to device */         \
  REACH(foreign_end, kNoKinds)       /* of another device runtime than the group's */    \
  REACH(key_without_room, kNoKinds)  /* more kinds of calls than the mode table holds */ \
  REACH(key_displaced, kNoKinds)                                                         \
  REACH(long_and_short_pairs, kNoKinds) /* by inboxes, with a rest that is too long */   \
  REACH(long_beside_short, kNoKinds)    /* pairs through a region */                     \
  REACH(pair_of_no_bytes, kNoKinds)                                                      \
  REACH(direct_declined, kNoKinds) /* for some rank's buffer */                          \
  REACH(direct_in_place, kNoKinds)                                                       \
  /* Of joining a group: */                                                              \
  REACH(ranks_accepted, kNoKinds)                                                        \
  REACH(opening_refused, kNoKinds)                                                       \
  REACH(joined_too_early, kNoKinds)                                                      \
  REACH(grown, kNoKinds)                                                                 \
  REACH(full_socket, kNoKinds)                                                           \
  /* Of users' memory that is lent: */                                                   \
  REACH(offered, kNoKinds)                                                               \
  REACH(offer_again, kNoKinds) /* in a slot that had another one */                      \
  REACH(offer_of_freed, kNoKinds)                                                        \
  REACH(freed_found_later, kNoKinds)                                                     \
  REACH(offer_waits_for_room, kNoKinds)                                                  \
  REACH(idle_gives_way, kNoKinds)                                                        \
  REACH(known_forgotten, kNoKinds)                                                       \
  REACH(export_refused, kNoKinds)                                                        \
  REACH(import_refused, kNoKinds)                                                        \
  REACH(import_tried_again, kNoKinds)                                                    \
  REACH(stale_generation, kNoKinds)                                                      \
  REACH(stale_import_closed, kNoKinds)                                                   \
  REACH(late_trial, kNoKinds)                                                            \
  REACH(late_trial_counts, kNoKinds) /* once it has ended */

namespace accord::model {

enum class Reach {
#define ACCORD_MODEL_REACH(name, kinds) name,
  ACCORD_MODEL_REACHES(ACCORD_MODEL_REACH)
#undef ACCORD_MODEL_REACH
};

inline constexpr int kNoKind = -1;
void reached(Reach what, int kind = kNoKind) noexcept;
inline void reached(Reach what, node::Kind kind) noexcept { reached(what, static_cast<int>(kind)); }
void reached_direct(node::DirectForm form, node::Kind kind) noexcept;

// Of pairs through a region, one is much longer than another.
template <class Pairs>
bool differ_much(const Pairs& pairs) {
  std::size_t shortest = SIZE_MAX;
  std::size_t longest = 0;
  for (const auto* pair : pairs) {
    shortest = std::min(shortest, pair->size_bytes);
    longest = std::max(longest, pair->size_bytes);
  }
  constexpr std::size_t kFactor = 8;
  return !pairs.empty() && longest > kFactor * shortest;
}

template <class... Kind>
bool reached_if(Reach what, bool is_there, Kind... kind) noexcept {
  if (is_there) reached(what, kind...);
  return is_there;
}

void forget_reached();
std::string reach_report();
// What was not, a line each; empty when there is nothing.
std::string never_reached();

}  // namespace accord::model
