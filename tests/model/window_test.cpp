// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows of the library (rma/window.h) over the fake MPI and the fake devices: random programs of
// operations whose outcome atomicity, order and locks decide, whichever rank runs when. Parts of
// ranks are device memory, which the others reach themselves, or managed, which they ask for by
// messages. Each deliberate mistake in locks, flushes and updates must be found.
#include "rma/window.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fake_device.h"
#include "program_memory.h"
#include "random.h"
#include "runner.h"

namespace accord::model {
namespace {

using Number = std::int64_t;
using Numbers = std::vector<Number>;

constexpr rma::Update kSum{.op = 1, .type = 1, .element_bytes = sizeof(Number)};
constexpr rma::Update kReplace{.op = rma::Update::kReplace, .element_bytes = sizeof(Number)};
constexpr rma::Update kRead{.op = rma::Update::kNoOp, .element_bytes = sizeof(Number)};

// What the host MPI does in a program.
Status sum(const rma::Update&, const std::byte* in, std::byte* inout, std::size_t size_bytes) {
  for (std::size_t at = 0; at < size_bytes; at += sizeof(Number)) {
    Number one = 0;
    Number other = 0;
    std::memcpy(&one, in + at, sizeof one);
    std::memcpy(&other, inout + at, sizeof other);
    one += other;
    std::memcpy(inout + at, &one, sizeof one);
  }
  return {};
}

// On the world: only the window sends by it with these tags.
class ModelWire final : public core::Wire {
 public:
  explicit ModelWire(FakeRank& host) : host_(host) {}
  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& request) override {
    request = host_.isend(kWorld, rank, kFirstTag + tag, buffer(bytes, size_bytes),
                          FakeRank::Send::standard);
    return {};
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& request) override {
    request = host_.irecv(kWorld, rank == kAnyRank ? kAnySource : rank, kFirstTag + tag,
                          buffer(bytes, size_bytes));
    return {};
  }
  Status test(core::HostRequest& request, bool& done, core::Completion& completion) override {
    MessageStatus status;
    done = host_.test(request, &status);
    completion.received_bytes = status.size_bytes;
    return {};
  }
  void cancel(core::HostRequest& request) noexcept override {
    host_.cancel(request);
    host_.wait(request);
  }
  Status opened() override { return {}; }

  static Buffer buffer(const void* bytes, std::size_t size_bytes) {
    return {const_cast<void*>(bytes), {size_bytes, size_bytes}, 1};
  }

 private:
  static constexpr int kFirstTag = 100;
  FakeRank& host_;
};

// Operations on other ranks by each route.
std::atomic<int> by_direct{0};
std::atomic<int> by_messages{0};

// Slots of each rank's part.
enum Slot : int { sums, counted, tickets, left_half, right_half, ordered_from };

struct Drawn {
  explicit Drawn(std::uint64_t seed) : random(seed) {
    ranks = 2 + static_cast<int>(random.below(3));
    for (int rank = 0; rank < ranks; ++rank)
      places.push_back(random.below(3) == 0 ? Place::managed : Place::device_a);
    rounds = 2 + static_cast<int>(random.below(4));
  }
  Random random;
  int ranks = 0;
  std::vector<Place> places;
  int rounds = 0;
};

class WindowRank {
 public:
  WindowRank(Rank& rank, FakeRank& host, const Drawn& drawn)
      : rank_(rank),
        drawn_(drawn),
        own_(rank.world_rank),
        memory_(allocate_for_program(drawn.places[index(own_)], bytes())),
        window_(std::make_unique<rma::Window>(rank.shim->engine(), own_, drawn.ranks, sum)) {
    std::memset(FakeDevice::owner(memory_)->behind(memory_), 0, bytes());
    const rma::Part part{.base = static_cast<std::byte*>(memory_),
                         .size_bytes = bytes(),
                         .unit_bytes = sizeof(Number),
                         .where = FakeDevice::classify_any(memory_),
                         .is_dynamic = false};
    check(window_->open(part, std::make_unique<ModelWire>(host),
                        [this](const void* mine, void* all, std::size_t size_bytes) {
                          return gather(mine, all, size_bytes);
                        }));
  }
  // In a run that has failed nobody can wait for what is left of the window.
  ~WindowRank() {
    if (std::uncaught_exceptions() > 0) {
      (void)window_.release();
      return;
    }
    window_.reset();
    free_of_program(memory_);
  }
  WindowRank(const WindowRank&) = delete;
  WindowRank& operator=(const WindowRank&) = delete;

  void run() {
    for (int round = 0; round < drawn_.rounds; ++round) {
      const int target = static_cast<int>(rank_.scheduler.random(index(drawn_.ranks)));
      if (target != own_)
        ++(window_->route(target) == rma::Route::direct ? by_direct : by_messages);
      switch (rank_.scheduler.random(5)) {
        case 0:
          add_and_fetch(target);
          break;
        case 1:
          count_under_lock(target);
          break;
        case 2:
          take_ticket(target);
          break;
        case 3:
          look_at_halves(target);
          break;
        default:
          keep_order(target, round);
      }
    }
    barrier();
    expect_all_there();
    barrier();
    window_->close();
    barrier();
  }

  Numbers done = Numbers(kKinds * kRanksMax);  // by slot and target
  Numbers fetched;                             // of `tickets` at rank 0

  static constexpr std::size_t kKinds = 3;
  static constexpr std::size_t kRanksMax = 4;

 private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  std::size_t bytes() const { return index(ordered_from + drawn_.ranks) * sizeof(Number); }
  void fail(const std::string& what) {
    rank_.scheduler.fail("window: " + what + " (rank " + std::to_string(own_) + ")");
  }
  void check(const Status& status) {
    rank_.scheduler.event();  // what is done in shared memory, too
    if (!status.ok()) fail(status.message());
  }
  static rma::Pieces slot(int number) {
    return {{number * static_cast<std::int64_t>(sizeof(Number)), sizeof(Number)}};
  }
  static rma::End one(Number& number) { return {rma::Place::host(&number), {{0, sizeof(Number)}}}; }
  void count(Slot what, int target) { ++done[what * kRanksMax + index(target)]; }

  // Sums of all ranks, within one epoch.
  void add_and_fetch(int target) {
    constexpr int kTimes = 3;
    check(window_->lock_all(true));
    Number ones[kTimes] = {1, 1, 1};
    for (Number& number : ones) {
      check(window_->update(target, kSum, slot(sums), one(number), nullptr, nullptr));
      count(sums, target);
    }
    check(window_->unlock_all());
  }

  // Read, flushed, and written: right only if nobody else does so meanwhile.
  void count_under_lock(int target) {
    check(window_->lock(target, rma::LockKind::exclusive, true));
    Number now = -1;
    check(window_->get(target, {slot(counted)}, one(now), nullptr));
    check(window_->flush(target));
    ++now;
    check(window_->put(target, {slot(counted)}, one(now), nullptr));
    check(window_->unlock(target));
    count(counted, target);
  }

  // Each number is fetched once, though no lock of the window is exclusive.
  void take_ticket(int target) {
    check(window_->lock(target, rma::LockKind::shared, true));
    Number by = 1;
    Number ticket = -1;
    const rma::End result = one(ticket);
    check(window_->update(target, kSum, slot(tickets), one(by), &result, nullptr));
    check(window_->unlock(target));
    count(tickets, target);
    if (target == 0) fetched.push_back(ticket);
  }

  // Whoever shares the lock finds what one holder has written: two equal halves.
  void look_at_halves(int target) {
    if (rank_.scheduler.random(2) == 0) {
      check(window_->lock(target, rma::LockKind::exclusive, true));
      Number mark = 1 + own_;
      check(window_->put(target, {slot(left_half)}, one(mark), nullptr));
      check(window_->flush(target));
      check(window_->put(target, {slot(right_half)}, one(mark), nullptr));
      check(window_->unlock(target));
      return;
    }
    check(window_->lock(target, rma::LockKind::shared, true));
    Number left = -1;
    Number right = -2;
    check(window_->get(target, {slot(left_half)}, one(left), nullptr));
    check(window_->flush(target));
    check(window_->get(target, {slot(right_half)}, one(right), nullptr));
    check(window_->unlock(target));
    if (left != right) fail("halves differ under a shared lock");
  }

  // Accumulates of one origin on one place are in order without a flush between them.
  void keep_order(int target, int round) {
    constexpr int kTimes = 3;
    const rma::Pieces mine = slot(ordered_from + own_);
    check(window_->lock(target, rma::LockKind::shared, true));
    Number marks[kTimes];
    Number found = -1;
    Number nothing = 0;
    for (int i = 0; i < kTimes; ++i) {
      marks[i] = 100 * (round + 1) + i;
      check(window_->update(target, kReplace, mine, one(marks[i]), nullptr, nullptr));
    }
    const rma::End result = one(found);
    check(window_->update(target, kRead, mine, one(nothing), &result, nullptr));
    check(window_->unlock(target));
    if (found != marks[kTimes - 1]) fail("accumulates of one origin have changed their order");
  }

  Status gather(const void* mine, void* all, std::size_t size_bytes) {
    std::vector<Request> requests;
    for (int peer = 0; peer < drawn_.ranks; ++peer) {
      auto* const to = static_cast<std::byte*>(all) + index(peer) * size_bytes;
      requests.push_back(rank_.mpi.irecv(kWorld, peer, 1, ModelWire::buffer(to, size_bytes)));
      requests.push_back(rank_.mpi.isend(kWorld, peer, 1, ModelWire::buffer(mine, size_bytes),
                                         UserMpi::Send::standard));
    }
    std::vector<MessageStatus> statuses(requests.size());
    rank_.mpi.wait_all(requests, statuses);
    return {};
  }
  void barrier() { (void)rank_.mpi.collective(Form::blocking, kWorld, CollectiveArgs{}); }

  // What all ranks have done to this one's part.
  void expect_all_there() {
    Numbers all(done.size() * index(drawn_.ranks));
    (void)gather(done.data(), all.data(), done.size() * sizeof(Number));
    Numbers found(index(ordered_from));
    std::memcpy(found.data(), FakeDevice::owner(memory_)->behind(memory_),
                found.size() * sizeof(Number));
    for (const Slot what : {sums, counted, tickets}) {
      Number wanted = 0;
      for (int peer = 0; peer < drawn_.ranks; ++peer)
        wanted += all[index(peer) * done.size() + what * kRanksMax + index(own_)];
      if (found[what] != wanted)
        fail("updates are lost: " + std::to_string(found[what]) + " of " + std::to_string(wanted) +
             " in slot " + std::to_string(what));
    }
  }

  Rank& rank_;
  const Drawn& drawn_;
  const int own_;
  void* const memory_;
  std::unique_ptr<rma::Window> window_;
};

std::string run_program(std::uint64_t seed, Mutation mutation) {
  const Drawn drawn(seed);
  RunOptions options;
  options.seed = seed;
  options.mutation = mutation;
  std::vector<Numbers> fetched(static_cast<std::size_t>(drawn.ranks));
  std::string message = run_ranks(drawn.ranks, options, ShimOptions(), [&](Rank& rank) {
    WindowRank own(rank, rank.shim->host(), drawn);
    own.run();
    fetched[static_cast<std::size_t>(rank.world_rank)] = own.fetched;
  });
  if (!message.empty()) return message;
  std::multiset<Number> all;
  for (const Numbers& list : fetched) all.insert(list.begin(), list.end());
  Number next = 0;
  for (const Number ticket : all)
    if (ticket != next++) return "window: a ticket was fetched twice or never";
  return {};
}

TEST(ModelWindow, RandomProgramsAreRight) {
  constexpr std::uint64_t kPrograms = 1000;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed)
    ASSERT_EQ(run_program(seed, Mutation::none), "") << "seed " << seed;
  EXPECT_GT(by_direct, 100);
  EXPECT_GT(by_messages, 100);
}

struct WindowMistake {
  const char* name;
  Mutation mutation;
};

class WindowMutations : public testing::TestWithParam<WindowMistake> {};

TEST_P(WindowMutations, AreFound) {
  constexpr std::uint64_t kProgramsMax = 1000;
  for (std::uint64_t seed = 1; seed <= kProgramsMax; ++seed) {
    const std::string message = run_program(seed, GetParam().mutation);
    if (message.empty()) continue;
    std::printf("found in program %d: %s\n", static_cast<int>(seed), message.c_str());
    return;
  }
  FAIL() << "not found in " << kProgramsMax << " programs";
}

INSTANTIATE_TEST_SUITE_P(
    Model, WindowMutations,
    testing::Values(WindowMistake{"UpdateUnlocked", Mutation::update_unlocked},
                    WindowMistake{"LockDespiteSharers", Mutation::lock_despite_sharers},
                    WindowMistake{"ShareDespiteHolder", Mutation::share_despite_holder},
                    WindowMistake{"UnlockUnflushed", Mutation::unlock_unflushed},
                    WindowMistake{"FlushUnanswered", Mutation::flush_unanswered}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

}  // namespace
}  // namespace accord::model
