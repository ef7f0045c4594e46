// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What an algorithm is. Each is one object in a file of its own and one line in algorithms.def.
// From these lines everything is made that speaks of algorithms: which one a call takes
// (select/selection.h), the names that ACCORD_ALGORITHM and tables know, `accord explain`, `accord
// tune`, and docs/algorithms.md.
//
// A call takes its algorithm in two steps. Before the vote each rank works out the same DeviceWays,
// from what MPI makes equal on all ranks: what may be tried, and with which limits. After the vote,
// when the ranks know what they share, select() takes the first line that takes the Situation.
// Knows no mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ccl/library.h"
#include "node/call.h"

namespace accord::node {
class Group;
}

namespace accord::core {
struct Team;
}

namespace accord::coll {

class Exchange;
struct Algorithm;
struct CollArgs;

// How what is on a device gets to a rank of another node: through the host MPI, or by a design of
// net/designs.def.
struct NetWay {
  enum class Way { automatic, staged, design };

  Way way = Way::automatic;
  unsigned design = 0;  // its number; design only

  bool operator==(const NetWay&) const = default;
};

// An algorithm and how it is run, as a name such as "node-direct-two-shot" asks for it. Default: by
// size and place, as if nothing were asked for.
struct Variant {
  // Of reductions: who reduces what. Spread: two shots, where copy engines bring what is reduced
  // (node/spread_plan.h).
  enum class Shots { by_size, one, two, spread };

  const Algorithm* algorithm = nullptr;
  Shots shots = Shots::by_size;
  bool direct = false;              // straight between the users' buffers, where they are lent
  bool one_leader = false;          // of each node, where the ranks are on several
  NetWay between{};                 // what goes between nodes; automatic: as ACCORD_NET_DESIGN says
  ccl::Library* library = nullptr;  // whose communicator does it

  bool is(const Algorithm& wanted) const noexcept { return algorithm == &wanted; }
  bool operator==(const Variant&) const = default;
};

struct NamedVariant {
  const char* name;
  Variant variant;
  const char* path = nullptr;  // where traces say another one than the algorithm's name
};

// Who has chosen an algorithm; rule: nobody has asked for one.
enum class Origin { setting, info, table, rule };

struct Asked {
  Variant variant;
  Origin origin = Origin::rule;
  // What a table wants between the nodes, where the ranks are on several and nothing names it.
  NetWay between{};

  bool is(const Algorithm& algorithm) const noexcept { return variant.is(algorithm); }
  bool is_automatic() const noexcept { return variant.algorithm == nullptr; }
  // By one of those that give the call to the host MPI; by one that goes through regions however
  // short the call is.
  bool for_host() const noexcept;
  bool for_regions() const noexcept;
};

// What of a call decides.
struct Question {
  node::Kind kind = node::Kind::bcast;
  int ranks = 1;
  std::size_t size_bytes = 0;     // of the block between two ranks; the mean where blocks differ
  std::size_t longest_bytes = 0;  // of these blocks
  std::size_t element_bytes = 1;  // of reductions on a device
  bool equal_blocks = true;
  bool can_be_cut = false;  // into chunks of the host MPI's call
};

// What a call may try before it is left to the host MPI. Each algorithm fills in what is its own.
struct DeviceWays {
  // A bit for each line of algorithms.def, from the lowest. Of ways that are made by hand: all.
  std::uint32_t offered = UINT32_MAX;
  std::size_t lane_bytes = 0;     // of inboxes; 0: none
  std::uint64_t inbox_calls = 1;  // the call of its kind with which they are made
  bool regions = false;
  bool in_turns = true;  // by regions also where ranks take turns on a device
  // By regions in host memory.
  enum class ByHost { never, in_turns, always } by_host_regions = ByHost::never;
  bool direct = false;
  // Of calls that go pair by pair: what a pair must have to reach into the other's buffer; 0: none
  // does.
  std::size_t lend_bytes = 0;
  std::size_t one_shot_bytes = 0;       // reductions up to here
  std::size_t spread_bytes = SIZE_MAX;  // straight ones from here on
  ccl::Library* library = nullptr;      // that is to do it, where it can
  // A node, at most, where the ranks are on several and the call goes in two levels; 0: it does
  // not.
  int leaders_max = 0;
  std::size_t message_bytes_min = 0;  // between two of them, for that to be worth it
  std::size_t far_pair_bytes = 0;     // and of calls that go pair by pair
  // Of equal blocks: only where these travel together (pairs/bundles.h), and often.
  bool only_bundled = false;
  // Then what goes between the nodes, where the ranks can: by a transport, from so many bytes on.
  NetWay between{};
  std::size_t offer_bytes = 0;
  std::size_t offer_bytes_end = SIZE_MAX;  // of pairs, and to here
  bool spares_cores =
      false;  // nobody has asked for it by name: an active proxy is only for idle ones

  bool wants_host_regions(bool takes_turns) const noexcept {
    return by_host_regions == ByHost::always ||
           (by_host_regions == ByHost::in_turns && takes_turns && !in_turns);
  }
  bool any() const noexcept {
    return regions || lane_bytes != 0 || library != nullptr || leaders_max != 0 ||
           by_host_regions == ByHost::always;
  }
};

// What the ranks know of a call once they have voted, and share by then. Equal on all of them.
struct Situation {
  node::Kind kind = node::Kind::bcast;
  std::uint32_t offered = UINT32_MAX;  // DeviceWays
  bool all_short = false;     // no rank has anything on a device that is worth more than inboxes
  bool library = false;       // its communicator is there, and the library has this call
  bool inboxes = false;       // and the call fits them
  bool packets = false;       // and goes through them in packets as well
  bool host_regions = false;  // wanted, and there
  bool regions = false;       // and kernels, if the call reduces
  bool two_levels = false;    // a group on each node, a wire between them, and it is worth it
  bool chunks = false;        // the host MPI's call can be cut, and it is worth it

  // Each rank knows the sizes of its own pairs only.
  bool by_pairs() const noexcept { return node::goes_by_pairs(kind); }
};

// What only the caller knows of this process.
struct Company {
  // No other collective of the process can be under way while this one is.
  bool is_alone = false;
  // Nothing else of the process is under way now.
  bool is_idle = false;
};

struct Algorithm {
  const char* name;  // as traces and accord_last_path say it, for most
  // The names that ask for it; none: those of the libraries there are.
  std::span<const NamedVariant> variants;
  // Its calls are the host MPI's.
  bool by_host = false;
  // Whether there is a form of it for such a collective at all.
  bool (*has)(node::Kind kind);
  // Calls that ask for it want no shorter way than through regions.
  bool by_regions = false;
  // Before the vote, of collectives that it has: whether the call may try it, and `ways` with what
  // is its own. The last line of algorithms.def is asked first, so that it sees what simpler ones
  // offer. Null: always.
  bool (*offer)(const Question& question, const Asked& asked, DeviceWays& ways) = nullptr;
  // After the vote, of what it has offered.
  bool (*takes)(const Situation& situation);
  // What `question` comes to in detail; null: there are no details.
  Variant (*in_detail)(const Question& question, const DeviceWays& ways) = nullptr;
  // Null: calls of the host MPI, for coll/run/collective_operation. Both outlive what is made.
  std::unique_ptr<Exchange> (*make)(core::Team& team, const CollArgs& call,
                                    Company company) = nullptr;
  // Whose runtime alone copies a call's ends; null: any does.
  const node::Group* (*copier)(core::Team& team, const CollArgs& call) = nullptr;
  // Whether a blocking call is so short that it may be polled at once, without an operation. Null:
  // never.
  bool (*goes_at_once)(core::Team& team, const CollArgs& call) = nullptr;

  // For people: docs/algorithms.md.
  const char* what;
  const char* steps;
  const char* bytes;
  const char* where;
};

namespace algorithms {
#define ALGORITHM(name) extern const Algorithm name;
#include "coll/algorithms.def"
#undef ALGORITHM
}  // namespace algorithms

// In the order of algorithms.def.
std::span<const Algorithm* const> all_of_registry() noexcept;

inline bool Asked::for_regions() const noexcept {
  return !is_automatic() && variant.algorithm->by_regions;
}
inline bool Asked::for_host() const noexcept {
  return !is_automatic() && variant.algorithm->by_host;
}

// Whether memory of an end may be copied by `group`'s runtime; null: by any.
bool copies_ends_of(const node::Group* group, const CollArgs& call);

}  // namespace accord::coll
