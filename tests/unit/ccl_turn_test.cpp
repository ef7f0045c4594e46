// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives of several communicators that start by a collective library, in any order on
// different processes: all processes in one, polled in a random order. What the library does here
// is what is worst for us: a rank that has started does nothing at all until all ranks of that call
// have.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "coll/library/far_turn.h"
#include "coll/library/turn.h"
#include "node_world.h"
#include "post_wire.h"

namespace accord::test {
namespace {

using coll::CclAlarm;
using coll::CclFarTurn;
using coll::CclNodeTurn;
using coll::CclPlace;
using coll::CclRollCall;
using coll::CclTurn;
using Company = CclTurn::Company;

// To be asked again and again.
bool comes(CclTurn& turn) { return turn.all_entered() && turn.comes(); }

// How ranks tell each other: by mailboxes of their node, or by messages.
enum class Place { node, nodes };

// The ranks of a communicator on several nodes.
class Apart {
 public:
  explicit Apart(int size, unsigned seed) : post_(seed) {
    for (int rank = 0; rank < size; ++rank) {
      wires_.push_back(std::make_shared<PostWire>(post_, rank));
      ranks_.push_back(std::make_unique<CclRollCall>(wires_.back(), rank, size, 1));
    }
  }
  CclRollCall& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  const std::shared_ptr<PostWire>& wire(int rank) { return wires_[static_cast<std::size_t>(rank)]; }
  const Post& post() const { return post_; }

 private:
  Post post_;
  std::vector<std::shared_ptr<PostWire>> wires_;
  std::vector<std::unique_ptr<CclRollCall>> ranks_;
};

// A communicator, of some of the processes.
struct Comm {
  std::unique_ptr<NodeWorld> world;
  std::unique_ptr<Apart> apart;
  std::vector<int> processes;  // by rank
  std::uint64_t number;
};

// One call on one rank.
struct Call {
  int comm;
  int rank;
  int sequence;     // among the calls of the communicator
  bool is_awaited;  // before the process makes another
  std::unique_ptr<CclTurn> turn = nullptr;
  bool started = false;
};

struct Process {
  CclPlace place;
  std::vector<Call> calls;                   // under way or to come, in the order of this process
  std::vector<std::pair<int, int>> started;  // of which communicator, and which of its calls
};

class World {
 public:
  explicit World(unsigned seed, Place place = Place::node) : random_(seed), place_(place) {}

  void add_comm(std::vector<int> processes) {
    const int size = static_cast<int>(processes.size());
    comms_.push_back({nullptr, nullptr, std::move(processes), random_() | 1u});
    if (place_ == Place::node) comms_.back().world = std::make_unique<NodeWorld>(size, 64 << 10, 1);
    if (place_ == Place::nodes) comms_.back().apart = std::make_unique<Apart>(size, random_());
    std::size_t count = 0;
    for (const Comm& comm : comms_)
      for (const int process : comm.processes)
        count = std::max(count, static_cast<std::size_t>(process) + 1);
    while (processes_.size() < count) processes_.push_back(std::make_unique<Process>());
  }

  // Every process makes `calls` calls on each of its communicators, one at a time on each. Either
  // which communicator is next is its own choice, and it awaits none before it has made all; or the
  // order is common, and it awaits some calls at once.
  enum class Order { own, common };
  void add_calls(int calls, Order kind) {
    std::vector<int> common;
    for (int comm = 0; comm < static_cast<int>(comms_.size()); ++comm)
      common.insert(common.end(), static_cast<std::size_t>(calls), comm);
    std::ranges::shuffle(common, random_);
    for (std::size_t number = 0; number < processes_.size(); ++number) {
      std::vector<int> order = common;
      if (kind == Order::own) std::ranges::shuffle(order, random_);
      std::vector<int> next(comms_.size());
      for (const int comm : order) {
        const int rank = rank_of(comm, number);
        const bool is_awaited = kind == Order::common && random_() % 2 == 0;
        if (rank < 0) continue;
        processes_[number]->calls.push_back(
            {comm, rank, next[static_cast<std::size_t>(comm)]++, is_awaited});
      }
    }
  }

  // False where nobody can go on for good.
  bool run(Company company) {
    started_.assign(comms_.size(), {});
    for (int polls = 0; polls < 400000; ++polls) {
      if (std::ranges::all_of(processes_, [](const auto& one) { return one->calls.empty(); }))
        return true;
      poll(*processes_[random_() % processes_.size()], company);
    }
    return false;
  }

  // Whether any two processes have started the calls that both take part in in one order, so that
  // these may all go by one communicator of the library.
  bool started_in_one_order() const {
    const auto common = [this](std::size_t process, std::size_t other) {
      auto calls = processes_[process]->started;
      std::erase_if(calls, [&](const auto& call) { return rank_of(call.first, other) < 0; });
      return calls;
    };
    for (std::size_t one = 0; one < processes_.size(); ++one)
      for (std::size_t other = 0; other < one; ++other)
        if (common(one, other) != common(other, one)) return false;
    return true;
  }

 private:
  int rank_of(int comm, std::size_t process) const {
    const auto& processes = comms_[static_cast<std::size_t>(comm)].processes;
    const auto found = std::ranges::find(processes, static_cast<int>(process));
    return found == processes.end() ? -1 : static_cast<int>(found - processes.begin());
  }

  int& started(const Call& call) {
    auto& counts = started_[static_cast<std::size_t>(call.comm)];
    if (counts.size() <= static_cast<std::size_t>(call.sequence))
      counts.resize(static_cast<std::size_t>(call.sequence) + 1);
    return counts[static_cast<std::size_t>(call.sequence)];
  }
  bool all_started(const Call& call) {
    return started(call) ==
           static_cast<int>(comms_[static_cast<std::size_t>(call.comm)].processes.size());
  }

  static std::unique_ptr<CclTurn> make_turn(const Comm& comm, int rank, Company company,
                                            CclTurn::Process idle, Process& process) {
    if (comm.apart)
      return std::make_unique<CclFarTurn>(comm.apart->rank(rank), comm.number, company, idle,
                                          process.place);
    return std::make_unique<CclNodeTurn>(comm.world->group(rank), comm.number, company, idle,
                                         process.place);
  }

  void poll(Process& process, Company company) {
    const auto running = std::ranges::find_if(process.calls, &Call::started);
    if (running != process.calls.end()) {
      if (all_started(*running)) process.calls.erase(running);  // with its turn
      return;
    }
    std::vector<bool> seen(comms_.size());
    std::vector<Call*> open;
    for (Call& call : process.calls) {
      const auto comm = static_cast<std::size_t>(call.comm);
      // A communicator's calls come one after the other.
      if (!seen[comm]) open.push_back(&call);
      seen[comm] = true;
      if (call.is_awaited || company == Company::none) break;
    }
    std::ranges::shuffle(open, random_);
    for (Call* const one : open) {
      Call& call = *one;
      const auto comm = static_cast<std::size_t>(call.comm);
      if (random_() % 4 == 0 && !call.turn) continue;
      if (!call.turn) {
        const bool idle = company == Company::none && random_() % 2 == 0;
        call.turn = make_turn(comms_[comm], call.rank, company,
                              idle ? CclTurn::Process::idle : CclTurn::Process::busy, process);
        call.turn->enter();
      }
      if (!comes(*call.turn)) continue;
      call.turn->started();
      call.started = true;
      process.started.emplace_back(call.comm, call.sequence);
      ++started(call);
      return;
    }
  }

  std::mt19937 random_;
  const Place place_;
  std::vector<Comm> comms_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::vector<int>> started_;  // ranks of each call of each communicator
};

constexpr std::pair<World::Order, Place> kOrdersAndPlaces[] = {
    {World::Order::own, Place::node},
    {World::Order::common, Place::node},
    {World::Order::own, Place::nodes},
    {World::Order::common, Place::nodes}};

TEST(ccl_turn, two_communicators_of_the_same_two_processes) {
  for (const auto& [order, place] : kOrdersAndPlaces) {
    for (unsigned seed = 0; seed < 40; ++seed) {
      World world(seed, place);
      world.add_comm({0, 1});
      world.add_comm({1, 0});
      world.add_calls(5, order);
      EXPECT_TRUE(world.run(Company::possible)) << "seed " << seed;
      EXPECT_TRUE(world.started_in_one_order()) << "seed " << seed;
    }
  }
}

TEST(ccl_turn, communicators_that_meet_in_a_ring) {
  for (const auto& [order, place] : kOrdersAndPlaces) {
    for (unsigned seed = 0; seed < 40; ++seed) {
      World world(seed, place);
      world.add_comm({0, 1});
      world.add_comm({1, 2});
      world.add_comm({2, 3, 0});
      world.add_comm({3, 2, 1, 0});
      world.add_calls(4, order);
      EXPECT_TRUE(world.run(Company::possible)) << "seed " << seed;
      EXPECT_TRUE(world.started_in_one_order()) << "seed " << seed;
    }
  }
}

// In step, so that no chance helps: each of two processes has a place for another call.
TEST(ccl_turn, two_calls_do_not_keep_each_other_from_starting) {
  NodeWorld one(2, 64 << 10, 1);
  NodeWorld other(2, 64 << 10, 1);
  CclPlace places[2];
  CclNodeTurn first[] = {{one.group(0), 3, Company::possible, CclTurn::Process::busy, places[0]},
                         {one.group(1), 3, Company::possible, CclTurn::Process::busy, places[1]}};
  CclNodeTurn second[] = {
      {other.group(0), 5, Company::possible, CclTurn::Process::busy, places[0]},
      {other.group(1), 5, Company::possible, CclTurn::Process::busy, places[1]}};
  for (CclTurn* turn : {&first[0], &second[1], &second[0], &first[1]}) turn->enter();
  bool come[2] = {};
  for (int poll = 0; poll < 100; ++poll) {
    come[0] = comes(first[0]);
    EXPECT_FALSE(comes(second[1]));
    EXPECT_FALSE(comes(second[0]));
    come[1] = comes(first[1]);
  }
  EXPECT_TRUE(come[0] && come[1]);
}

TEST(ccl_turn, one_call_at_a_time) {
  for (const Place place : {Place::node, Place::nodes}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      World world(seed, place);
      world.add_comm({0, 1, 2});
      world.add_calls(20, World::Order::common);
      EXPECT_TRUE(world.run(Company::none)) << "seed " << seed;
    }
  }
}

// Also where some ranks make the next call while others are yet to see the answers of this one.
TEST(ccl_turn, across_nodes_all_learn_what_all_have_told) {
  constexpr int kCalls = 6;
  for (const int size : {1, 2, 3, 5, 8}) {
    Apart apart(size, static_cast<unsigned>(size));
    std::vector<CclPlace> places(static_cast<std::size_t>(size));
    std::vector<int> calls(static_cast<std::size_t>(size));
    std::vector<std::unique_ptr<CclTurn>> turns(static_cast<std::size_t>(size));
    std::mt19937 random(7);
    const auto has_left = [](int call) { return call < kCalls; };
    for (int poll = 0; std::ranges::any_of(calls, has_left); ++poll) {
      ASSERT_LT(poll, 200000) << size << " ranks";
      const auto rank = random() % turns.size();
      if (calls[rank] == kCalls) continue;
      CclRollCall& mine = apart.rank(static_cast<int>(rank));
      if (!turns[rank]) {
        turns[rank] = std::make_unique<CclFarTurn>(
            mine, 1, Company::none,
            random() % 2 == 0 ? CclTurn::Process::idle : CclTurn::Process::busy, places[rank]);
        for (int peer = 0; peer < size; ++peer)
          mine.tell(peer,
                    {rank * 100 + static_cast<unsigned>(peer), static_cast<unsigned>(calls[rank])});
        turns[rank]->tell(~(std::uint64_t{1} << (rank + static_cast<unsigned>(calls[rank]))));
        turns[rank]->enter();
      }
      if (!comes(*turns[rank])) continue;
      const std::uint64_t cleared = ((std::uint64_t{1} << size) - 1) << calls[rank];
      EXPECT_EQ(turns[rank]->told_by_all(), ~cleared) << size << " ranks";
      for (int peer = 0; peer < size; ++peer)
        EXPECT_EQ(mine.told_by(peer), (coll::CclWords{static_cast<unsigned>(peer) * 100 + rank,
                                                      static_cast<unsigned>(calls[rank])}));
      turns[rank]->started();
      turns[rank].reset();
      ++calls[rank];
      // However many calls there have been, each rank keeps one letter that has arrived.
      EXPECT_LE(apart.post().sends.size(), turns.size());
    }
    EXPECT_TRUE(apart.post().letters.empty());
    EXPECT_TRUE(apart.post().receives.empty());
  }
}

TEST(ccl_turn, an_alarm_reaches_all_ranks_once) {
  constexpr int kRanks = 4;
  Apart apart(kRanks, 3);
  {
    std::vector<std::unique_ptr<CclAlarm>> alarms;
    for (int rank = 0; rank < kRanks; ++rank)
      alarms.push_back(std::make_unique<CclAlarm>(apart.wire(rank), rank, kRanks));
    for (const auto& alarm : alarms) EXPECT_OK(alarm->check());
    alarms[2]->ring();
    EXPECT_EQ(apart.post().letters.size(), std::size_t{kRanks - 1});
    EXPECT_FALSE(alarms[2]->check().ok());
    for (const int rank : {0, 1, 3}) {
      CclAlarm& alarm = *alarms[static_cast<std::size_t>(rank)];
      for (int poll = 0; poll < 100 && alarm.check().ok(); ++poll) continue;
      EXPECT_NE(alarm.check().message().find("rank 2"), std::string::npos);
      alarm.ring();  // all know
    }
    EXPECT_TRUE(apart.post().letters.empty());
  }
  EXPECT_TRUE(apart.post().receives.empty());
}

// An alarm that nobody heard in time, for the next wire with the same tags.
TEST(ccl_turn, an_alarm_of_an_earlier_wire_is_none) {
  test::Post post(1);
  const auto alarm = [&post](int rank, std::uint32_t name) {
    return std::make_unique<CclAlarm>(std::make_shared<test::PostWire>(post, rank, name), rank, 2);
  };
  alarm(0, 1)->ring();
  const auto listening = alarm(1, 2);
  for (int poll = 0; poll < 100 && !post.letters.empty(); ++poll) EXPECT_OK(listening->check());
  EXPECT_TRUE(post.letters.empty());
  EXPECT_OK(listening->check());
  alarm(0, 2)->ring();
  for (int poll = 0; poll < 100 && listening->check().ok(); ++poll) continue;
  EXPECT_FALSE(listening->check().ok());
}

// As after an error in the midst of a call.
TEST(ccl_turn, a_roll_call_that_ends_early_leaves_nothing_behind_to_write_to) {
  Apart apart(2, 1);
  {
    CclPlace place;
    CclRollCall mine(apart.wire(0), 0, 2, 5);
    CclFarTurn turn(mine, 1, Company::possible, CclTurn::Process::busy, place);
    mine.tell(1, {1, 2});
    turn.enter();
    EXPECT_FALSE(comes(turn));
    EXPECT_EQ(apart.post().receives.size(), 2u);
  }
  EXPECT_TRUE(apart.post().receives.empty());
}

TEST(ccl_turn, nobody_starts_before_all_have_come) {
  NodeWorld world(3, 64 << 10, 1);
  CclPlace places[3];
  CclNodeTurn first(world.group(0), 1, Company::none, CclTurn::Process::busy, places[0]);
  CclNodeTurn second(world.group(1), 1, Company::none, CclTurn::Process::busy, places[1]);
  first.enter();
  second.enter();
  for (int poll = 0; poll < 10; ++poll) {
    EXPECT_FALSE(comes(first));
    EXPECT_FALSE(comes(second));
  }
  CclNodeTurn third(world.group(2), 1, Company::none, CclTurn::Process::busy, places[2]);
  third.enter();
  bool come[3] = {};
  for (int poll = 0; poll < 10; ++poll) {
    come[0] = comes(first);
    come[1] = comes(second);
    come[2] = comes(third);
  }
  EXPECT_TRUE(come[0] && come[1] && come[2]);
}

// Two looks at the mailboxes, one after the other on two ranks, else tell each of them that the
// other has a place.
TEST(ccl_turn, where_nothing_else_is_under_way_all_start_once_all_have_come) {
  NodeWorld world(2, 64 << 10, 1);
  CclPlace places[2];
  for (int call = 0; call < 3; ++call) {
    CclNodeTurn first(world.group(0), 1, Company::none, CclTurn::Process::idle, places[0]);
    CclNodeTurn second(world.group(1), 1, Company::none, CclTurn::Process::idle, places[1]);
    first.enter();
    EXPECT_FALSE(comes(first));
    second.enter();
    EXPECT_TRUE(comes(second));
    EXPECT_TRUE(comes(first));
  }
  // One that is busy takes a look more.
  CclNodeTurn first(world.group(0), 1, Company::none, CclTurn::Process::idle, places[0]);
  CclNodeTurn second(world.group(1), 1, Company::none, CclTurn::Process::busy, places[1]);
  first.enter();
  EXPECT_FALSE(comes(first));
  second.enter();
  EXPECT_TRUE(comes(second));
  EXPECT_TRUE(comes(first));
}

// Nor does one wait for those who have not yet seen that the call before may start. It does before
// it tells them something anew.
TEST(ccl_turn, a_call_is_entered_while_others_are_late_for_the_one_before) {
  NodeWorld world(2, 64 << 10, 1);
  CclPlace places[2];
  const auto make = [&](int rank, CclTurn::Process process) {
    return std::make_unique<CclNodeTurn>(world.group(rank), 1, Company::none, process,
                                         places[rank]);
  };
  for (const auto next : {CclTurn::Process::idle, CclTurn::Process::busy}) {
    auto late = make(1, CclTurn::Process::idle);
    auto early = make(0, CclTurn::Process::idle);
    late->enter();
    early->enter();
    EXPECT_TRUE(comes(*early));
    early.reset();
    early = make(0, next);
    EXPECT_FALSE(early->may_tell());
    early->enter();
    EXPECT_FALSE(comes(*early));
    EXPECT_TRUE(comes(*late));
    late.reset();
    late = make(1, next);
    EXPECT_TRUE(late->may_tell());
    late->enter();
    bool come[2] = {};
    for (int poll = 0; poll < 3; ++poll) {
      come[0] = comes(*early);
      come[1] = comes(*late);
    }
    EXPECT_TRUE(come[0] && come[1]);
  }
}

// As after an error: its place is free for others.
TEST(ccl_turn, a_call_that_ends_early_gives_its_place_back) {
  NodeWorld one(1, 64 << 10, 1);
  NodeWorld other(1, 64 << 10, 1);
  CclPlace place;
  CclNodeTurn first(one.group(0), 1, Company::none, CclTurn::Process::busy, place);
  CclNodeTurn second(other.group(0), 2, Company::none, CclTurn::Process::busy, place);
  first.enter();
  second.enter();
  EXPECT_TRUE(comes(first));
  EXPECT_FALSE(comes(second));
  first.end();
  EXPECT_TRUE(comes(second));
}

}  // namespace
}  // namespace accord::test
