// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows whose ranks are processes of one node: how they find each other, and whom their locks
// keep out. And what many threads of one rank attach.
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <new>
#include <thread>

#include "idle_port.h"
#include "rma_world.h"

namespace accord::test {
namespace {

constexpr int kRanks = 16;  // a socket holds the parcels of 11
constexpr int kRoundsMax = 8;
constexpr std::size_t kToldBytes = 64;

// In memory that all processes share.
struct Board {
  struct Round {
    std::atomic<int> arrived{0};
    std::byte told[kRanks][kToldBytes];
  };
  Round rounds[kRoundsMax];
  std::atomic<bool> is_unlocked{false};
};

// The ranks outnumber the cores.
class YieldingPort final : public IdlePort {
  void pause() override { ::sched_yield(); }
};

// One rank with its window.
class Member {
 public:
  Member(Board& board, int rank, int size)
      : board_(board), rank_(rank), size_(size), window_(engine_, rank, size, add) {}

  Status open() {
    return window_.open({}, nullptr, [&](const void* mine, void* all, std::size_t size_bytes) {
      return gather(mine, all, size_bytes);
    });
  }
  Status meet() {
    const char nothing = 0;
    char all[kRanks];
    return gather(&nothing, all, 1);
  }
  Board& board() { return board_; }
  Window& window() { return window_; }

 private:
  // As the shim does it.
  Status gather(const void* mine, void* all, std::size_t size_bytes) {
    Board::Round& round = board_.rounds[round_++];
    std::memcpy(round.told[rank_], mine, size_bytes);
    round.arrived.fetch_add(1);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (; round.arrived.load() < size_; ::sched_yield()) {
      window_.receive();
      if (std::chrono::steady_clock::now() > give_up) return {StatusCode::unsupported, "alone"};
    }
    for (int rank = 0; rank < size_; ++rank)
      std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(rank) * size_bytes,
                  round.told[rank], size_bytes);
    return {};
  }

  Board& board_;
  const int rank_;
  const int size_;
  int round_ = 0;
  YieldingPort port_;
  core::Engine engine_{port_};
  Window window_;
};

// A process for each rank; they return 0 where all is well.
using Body = std::function<int(Member&, int rank)>;
void expect_of_ranks(int size, const Body& body) {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  Board& board = *new (memory) Board;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    Member member(board, rank, size);
    ::_exit(member.open().ok() ? body(member, rank) : 99);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(child, ::waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  ::munmap(memory, sizeof(Board));
}

TEST(rma_window, is_opened_at_once_by_more_ranks_than_a_socket_holds_parcels) {
  const auto begin = std::chrono::steady_clock::now();
  expect_of_ranks(kRanks, [](Member& member, int) {
    for (int peer = 0; peer < kRanks; ++peer)
      if (member.window().route(peer) != Route::direct) return 1;
    return member.meet().ok() ? 0 : 2;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

// The program reads its own memory then.
TEST(rma_window, a_lock_of_all_ranks_keeps_others_out_of_the_own_memory) {
  expect_of_ranks(2, [](Member& member, int rank) {
    if (rank == 0) {
      if (!member.window().lock_all(true).ok() || !member.meet().ok()) return 1;
      ::usleep(50000);
      member.board().is_unlocked = true;
      return member.window().unlock_all().ok() ? 0 : 2;
    }
    if (!member.meet().ok() || !member.window().lock(0, LockKind::exclusive, true).ok()) return 3;
    return member.board().is_unlocked ? 0 : 4;
  });
}

TEST(rma_window, a_lock_of_all_ranks_that_fails_is_held_nowhere) {
  expect_of_ranks(2, [](Member& member, int rank) {
    if (rank == 1)
      return member.window().lock(0, LockKind::exclusive, true).ok() && member.meet().ok() ? 0 : 1;
    if (!member.meet().ok()) return 2;
    for (int time = 0; time < 2; ++time)
      if (member.window().lock_all(true).code() != StatusCode::device_error) return 3;
    return member.window().unlock_all().code() == StatusCode::no_epoch ? 0 : 4;
  });
}

// So that threads overtake each other wherever one lets the engine work.
class Nap final : public core::Operation {
  Phase advance(core::HostPort&) override {
    ::usleep(50);
    return Phase::issued;
  }
};

TEST(rma_window, keeps_what_many_threads_attach_at_once) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 100;
  IdlePort port;
  core::Engine engine(port);
  Window window(engine, 0, 1, add);
  EXPECT_OK(window.open({.where = {}, .is_dynamic = true}, nullptr,
                        [](const void* mine, void* all, std::size_t size_bytes) -> Status {
                          std::memcpy(all, mine, size_bytes);
                          return {};
                        }));
  engine.submit(std::make_shared<Nap>(), nullptr);
  std::deque<OnDevice> memory;
  for (int i = 0; i < kThreads; ++i) memory.emplace_back(counted(0, 4));
  std::atomic<int> lost{0};
  std::vector<std::thread> threads;
  for (const OnDevice& mine : memory)
    threads.emplace_back([&] {
      std::byte* const start = mine.place().start;
      const Pieces whole{{reinterpret_cast<std::intptr_t>(start), 16}};
      for (int time = 0; time < kTimes; ++time) {
        EXPECT_OK(window.attach(start, 16, false));
        ::usleep(50);
        bool is_host = !window.is_on_device(0, whole);
        if (is_host) ++lost;
        EXPECT_OK(window.detach(start, is_host));
        if (is_host) ++lost;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
  EXPECT_FALSE(window.has_devices_at(0));
}

}  // namespace
}  // namespace accord::test
