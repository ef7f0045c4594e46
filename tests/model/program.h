// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A program of a modelled job as data: what is to happen (events: a message, a gathering of
// messages by wildcard, a collective, each perhaps in several rounds) and, thread by thread, the
// calls that make it happen. It can be printed, run (runner.h) and cut down (shrink.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls.h"
#include "exchange_options.h"

namespace accord::model {

// Where a buffer lies.
enum class Place { host, device_a, device_b, managed };

// One buffer of one participant; blocks of the event's elements with a gap after each.
struct End {
  Place place = Place::host;
  std::size_t gap_elements = 0;
  int pool = -1;  // the rank's allocation of this number that it is cut from; -1: one of its own
};

// What one participant holds: one request (or blocking call) a round.
struct Part {
  int rank = 0;    // in the world
  int thread = 0;  // that starts it
  bool persistent = false;
  End send;
  End recv;
};

struct Event {
  enum class Kind {
    message,     // parts: sender, receiver
    gathering,   // parts: k senders, then the k receives of one rank from any source
    collective,  // parts: the members, in order
    cancelled,   // parts: a receive that is never matched
  };
  Kind kind = Kind::message;
  int comm = 0;  // of the program's communicators
  int rounds = 1;
  std::size_t elements = 0;        // 64-bit; of one block pair by pair for alltoall and allgather
  std::size_t block_elements = 1;  // blocks of a strided buffer; divides `elements`
  int tag = 0;
  bool synchronous = false;
  std::size_t spare_elements = 0;  // by which a receive is larger than its message
  Collective collective = Collective::barrier;
  Op op = Op::none;
  int root = 0;
  bool in_place = false;
  bool persistent = false;  // a collective's requests are
  // By part, where blocks may differ: how many times `elements` its block has. Where pairs may, by
  // sender and receiver.
  std::vector<std::size_t> weights{};
  std::vector<int> children{};  // dup, split: the communicators made, by colour
  std::vector<int> colors{};    // split: by part
  std::vector<Part> parts{};

  std::size_t senders() const { return kind == Kind::gathering ? parts.size() / 2 : 1; }
  std::size_t block_elements_of(std::size_t part) const {
    return elements * (weights.empty() ? 1 : weights[part]);
  }
  // Of the blocks before that of `part`: of all for their number.
  std::size_t elements_before(std::size_t part) const {
    std::size_t sum = 0;
    for (std::size_t before = 0; before < part; ++before) sum += block_elements_of(before);
    return sum;
  }
  std::size_t pair_elements(std::size_t sender, std::size_t receiver) const {
    return elements * weights[sender * parts.size() + receiver];
  }
  // Of all that goes to, or comes from, the parts before `end`.
  std::size_t elements_sent(std::size_t sender, std::size_t end) const {
    std::size_t sum = 0;
    for (std::size_t part = 0; part < end; ++part) sum += pair_elements(sender, part);
    return sum;
  }
  std::size_t elements_received(std::size_t receiver, std::size_t end) const {
    std::size_t sum = 0;
    for (std::size_t part = 0; part < end; ++part) sum += pair_elements(part, receiver);
    return sum;
  }
  bool receives(std::size_t part) const {
    return kind == Kind::cancelled || (kind != Kind::collective && part >= senders());
  }
};

// One participant's share of one round of an event.
struct Ref {
  int event = 0;
  int round = 0;
  int part = 0;
  bool operator==(const Ref&) const = default;
};

struct Action {
  enum class Verb {
    init,   // make the persistent request
    start,  // non-blocking call, or MPI_Start
    block,  // the whole call, blocking
    wait,
    test,
    status,    // MPI_Request_get_status
    wait_all,  // on those of the refs that are still active
    wait_any,
    wait_some,
    test_all,
    release,  // MPI_Request_free: of an active request, or of a persistent one at its end
    cancel,
    probe,   // for the message that a receive will take
    iprobe,  // the same, by polling
    open,    // lets the other threads of the rank go: the communicators are made
    await,   // until the rank's first thread has opened
  };
  Verb verb = Verb::start;
  std::vector<Ref> refs;
};

struct Program {
  int ranks = 2;
  int threads = 1;  // of each rank
  bool threads_allowed = true;
  std::size_t pipeline_bytes = 64;
  std::size_t chunk_bytes = 32;
  ExchangeOptions exchange{};
  std::uint64_t salt = 0;      // of all data
  unsigned churn_percent = 0;  // of allocations of pools that are freed and made anew when idle
  std::vector<std::vector<int>> comms{{}};  // members, as world ranks; number 0 is the world
  std::vector<Event> events;
  std::vector<std::vector<Action>> lists;  // of thread rank * threads + thread

  const std::vector<Action>& list(int rank, int thread) const {
    return lists[static_cast<std::size_t>(rank * threads + thread)];
  }
};

const char* name_of(Action::Verb verb);
std::string to_text(const Program& program);
std::string to_text(const Program& program, const Action& action);

// The program of a seed: legal by construction, and as hard on the order of things as that allows.
struct GeneratorOptions {
  int ranks_max = 5;
  int ranks = 0;  // exactly so many, where it is set
  int threads_max = 1;
  int length_max = 14;  // events, about
  // Communicators have other ranks than the world, and some messages are probed for.
  bool entangled = true;
  bool persistent_collectives = true;
  unsigned compose_percent = 0;  // of reductions, whose operation does not commute
  // What an MPI may be unable to do.
  bool gaps_in_reductions = true;
  bool nonblocking_dup = true;
  bool probes_of_own_messages = true;
  std::vector<Collective> without{};
  std::vector<Collective> never_in_place{};
};
Program generate(std::uint64_t seed, const GeneratorOptions& options);

}  // namespace accord::model
