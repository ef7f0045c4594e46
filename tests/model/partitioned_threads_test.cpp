// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned communication with ranks and kernels as threads, for the thread sanitizer. The first
// test is the protocol of kernels alone, on plain memory; the second both ends with everything
// around them, over messages that come late. (Between the two ends of one process there are two
// mappings of the pages that they share, which the sanitizer cannot know to be one: here data goes
// by messages.)
#include <gtest/gtest.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "device/registry.h"
#include "partitioned/receive.h"
#include "partitioned/send.h"
#include "thread_messages.h"

namespace accord::device {
DeviceRuntime& host_runtime();
}

namespace accord::partitioned {
namespace {

// One send and one receive request in plain memory, as two hosts would have set them up.
class Ends {
 public:
  static constexpr int kPartitions = 6;
  static constexpr int kTransferPartitions = 2;
  static constexpr int kTransfers = 3;
  static constexpr std::size_t kPartitionBytes = 40;

  explicit Ends(bool kernels_move) {
    const accord_prequest::accord_partition_link link{
        .transfer_bytes = kTransferPartitions * kPartitionBytes,
        .total_bytes = sizeof from,
        .transfers = kTransfers,
        .arrived = arrived,
        .peer_ready = receiver_ready,
        .peer = kernels_move ? to : nullptr};
    send = {.image = &send,
            .sides = ACCORD_PARTITION_SENDS,
            .partitions = kPartitions,
            .partition_bytes = kPartitionBytes,
            .control = &send_control,
            .transfer_partitions = kTransferPartitions,
            .marks = 2,
            .partition_marks = partition_marks,
            .transfer_marks = transfer_marks,
            .ready = ready,
            .buffer = from,
            .kernel_bytes = sizeof from,
            .thread_bytes = sizeof from,
            .link = link,
            .node = {},
            .state = ACCORD_PARTITION_STATE_CONNECTED};
    receive = {.image = &receive,
               .sides = ACCORD_PARTITION_RECEIVES,
               .partitions = kTransfers,
               .partition_bytes = kTransferPartitions * kPartitionBytes,
               .control = &receive_control,
               .transfer_partitions = 0,
               .marks = 0,
               .partition_marks = nullptr,
               .transfer_marks = nullptr,
               .ready = nullptr,
               .buffer = nullptr,
               .kernel_bytes = 0,
               .thread_bytes = 0,
               .link = link,
               .node = {},
               .state = ACCORD_PARTITION_STATE_CONNECTED};
  }

  static void store(std::uint32_t& word, std::uint32_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }
  static void store(accord_partition_line (&lines)[ACCORD_PARTITION_LINES], std::uint32_t round) {
    for (accord_partition_line& line : lines) store(line.round, round);
  }
  static void store(accord_partition_start (&lines)[ACCORD_PARTITION_LINES], std::uint32_t round) {
    for (accord_partition_start& line : lines)
      std::atomic_ref(line.rounds).store(round, std::memory_order_release);
  }
  static std::uint32_t load(std::uint32_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }

  // The sender's host: moves what kernels ask it to, until all has arrived.
  void serve(std::uint32_t round) {
    for (int moved = 0; moved < kTransfers; std::this_thread::yield()) {
      moved = 0;
      for (int i = 0; i < kTransfers; ++i) {
        if (load(arrived[i]) != round && load(ready[i]) == round) {
          constexpr std::size_t kBytes = kTransferPartitions * kPartitionBytes;
          std::memcpy(to + static_cast<std::size_t>(i) * kBytes,
                      from + static_cast<std::size_t>(i) * kBytes, kBytes);
          store(arrived[i], round);
        }
        if (load(arrived[i]) == round) ++moved;
      }
    }
  }

  accord_prequest send{};
  accord_prequest receive{};
  accord_partition_control send_control{};
  accord_partition_control receive_control{};
  std::uint64_t partition_marks[kPartitions]{};
  std::uint64_t transfer_marks[kTransfers]{};
  std::uint32_t ready[kTransfers]{};
  std::uint32_t arrived[kTransfers]{};
  accord_partition_line receiver_ready[ACCORD_PARTITION_LINES]{};
  unsigned char from[kPartitions * kPartitionBytes]{};
  unsigned char to[sizeof from]{};
};

void run_kernels(bool kernels_move) {
  Ends ends(kernels_move);
  for (std::uint32_t round = 1; round <= 200; ++round) {
    Ends::store(ends.receive_control.started, round);
    Ends::store(ends.receiver_ready, round);
    Ends::store(ends.send_control.started, round);
    // Two threads make a partition, each one half of it.
    auto senders = launch(2, [&](int half) {
      constexpr std::size_t kHalf = Ends::kPartitionBytes / 2;
      for (int i = 0; i < Ends::kPartitions; ++i) {
        const std::size_t partition = static_cast<std::size_t>(half == 0 ? i : 5 - i);
        std::memset(
            ends.from + partition * Ends::kPartitionBytes + static_cast<std::size_t>(half) * kHalf,
            static_cast<int>(round + partition), kHalf);
        EXPECT_EQ(MPIX_Pready(static_cast<int>(partition), &ends.send), 0);
      }
    });
    auto receivers = launch(Ends::kTransfers, [&](int partition) {
      while (MPIX_Parrived(partition, &ends.receive) == 0) std::this_thread::yield();
      for (std::size_t i = 0; i < Ends::kTransferPartitions * Ends::kPartitionBytes; ++i) {
        const std::size_t at = static_cast<std::size_t>(partition) * 2 * Ends::kPartitionBytes + i;
        EXPECT_EQ(ends.to[at], static_cast<unsigned char>(round + at / Ends::kPartitionBytes));
      }
    });
    ends.serve(round);
    join(senders);
    join(receivers);
    EXPECT_EQ(ends.send_control.error, 0u);
    for (const std::uint32_t asked : ends.ready) EXPECT_EQ(asked == round, !kernels_move);
  }
}

TEST(partitioned_threads, kernels_move) { run_kernels(true); }
TEST(partitioned_threads, kernels_ask_the_host) { run_kernels(false); }

// Where the round has begun but the receiver is not in it yet, nothing is written into its memory.
TEST(partitioned_threads, kernels_wait_for_nobody) {
  Ends ends(true);
  Ends::store(ends.send_control.started, 1);
  for (int mark = 0; mark < 2; ++mark) EXPECT_EQ(MPIX_Pready_range(0, 1, &ends.send), 0);
  EXPECT_EQ(ends.ready[0], 1u);
  EXPECT_EQ(ends.arrived[0], 0u);
  EXPECT_EQ(MPIX_Pready(0, &ends.send), ACCORD_PARTITION_TWICE);
  EXPECT_EQ(ends.send_control.error, static_cast<unsigned>(ACCORD_PARTITION_TWICE));
}

// Marks of many threads at a time make a partition ready once, and what has been marked before the
// round is an error that leaves nothing behind.
TEST(partitioned_threads, many_marks_at_once) {
  constexpr int kMarks = 8;
  Ends ends(false);
  ends.send.marks = kMarks;
  const auto mark_all = [&] {
    std::atomic<int> errors{0};
    auto threads = launch(kMarks, [&](int) {
      if (MPIX_Pready_range(0, Ends::kPartitions - 1, &ends.send) != 0) ++errors;
    });
    join(threads);
    return errors.load();
  };
  EXPECT_GT(mark_all(), 0);
  EXPECT_EQ(std::exchange(ends.send_control.error, 0u),
            static_cast<unsigned>(ACCORD_PARTITION_NOT_STARTED));
  for (std::uint32_t round = 1; round <= 200; ++round) {
    Ends::store(ends.send_control.started, round);
    EXPECT_EQ(mark_all(), 0);
    for (const std::uint32_t ready : ends.ready) EXPECT_EQ(ready, round);
    EXPECT_EQ(ends.send_control.error, 0u);
    if (round % 50 != 0) continue;
    EXPECT_GT(mark_all(), 0);
    EXPECT_EQ(std::exchange(ends.send_control.error, 0u),
              static_cast<unsigned>(ACCORD_PARTITION_TWICE));
  }
}

// Rounds wrap, and what is left from long ago is not taken for now.
TEST(partitioned_threads, rounds_wrap) {
  Ends ends(true);
  for (std::uint32_t round : {0xfffffffeu, 0xffffffffu, 1u, 2u}) {
    Ends::store(ends.receiver_ready, round);
    Ends::store(ends.receive_control.started, round);
    Ends::store(ends.send_control.started, round);
    EXPECT_EQ(MPIX_Parrived(2, &ends.receive), 0);
    for (int mark = 0; mark < 2; ++mark)
      EXPECT_EQ(MPIX_Pready_range(0, Ends::kPartitions - 1, &ends.send), 0);
    for (int i = 0; i < Ends::kTransfers; ++i) EXPECT_EQ(MPIX_Parrived(i, &ends.receive), 1);
  }
}

constexpr int kPartitions = 6;
constexpr std::size_t kPartitionInts = 50;
constexpr std::size_t kInts = kPartitions * kPartitionInts;

// A rank that sends to the other one and receives from it, with kernels on both ends.
class Rank {
 public:
  Rank(Mail& mail, int own)
      : own_(own), messages_(mail, own), table_(messages_, host_, own), engine_(host_) {
    auto& runtime = device::host_runtime();
    for (void** memory : {&from_, &to_}) {
      EXPECT_TRUE(
          runtime.allocate(0, device::MemoryKind::device, kInts * sizeof(int), *memory).ok());
    }
    send_ = std::make_shared<PartitionedSend>(table_, call(from_, kPartitions));
    receive_ = std::make_shared<PartitionedReceive>(table_, call(to_, kPartitions / 2));
    EXPECT_TRUE(send_->open().ok() && receive_->open().ok());
    EXPECT_TRUE(send_->create_prequest(send_prequest_).ok());
    EXPECT_TRUE(receive_->create_prequest(receive_prequest_).ok());
  }
  ~Rank() {
    send_.reset();
    receive_.reset();
    for (void* memory : {from_, to_}) (void)device::host_runtime().free(memory);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // A round all of which is marked before anything is sent; returns how many messages it took, but
  // for what the two ends tell each other.
  int run_at_once(int round) {
    start(*receive_, receive_);
    start(*send_, send_);
    engine_.wait_until([&] { return send_->prepared() && receive_->prepared(); });
    const int before = messages_.sent();
    for (int partition = 0; partition < kPartitions; ++partition) fill(partition, round);
    EXPECT_TRUE(send_->pready(0, kPartitions - 1).ok());
    engine_.wait(*send_);
    engine_.wait(*receive_);
    check(round);
    return messages_.sent() - before;
  }
  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      start(*receive_, receive_);
      start(*send_, send_);
      engine_.wait_until([&] { return send_->prepared() && receive_->prepared(); });
      // Odd partitions by kernels, the others by threads of the host.
      auto threads = launch(kPartitions, [&](int partition) {
        fill(partition, round);
        if (partition % 2 != 0) {
          EXPECT_EQ(MPIX_Pready_block(partition, send_prequest_), 0);
        } else {
          EXPECT_TRUE(send_->pready(partition, partition).ok());
          engine_.progress();
        }
      });
      auto watchers = launch(kPartitions / 2, [&](int partition) {
        while (MPIX_Parrived(partition, receive_prequest_) == 0) std::this_thread::yield();
      });
      engine_.wait(*send_);
      engine_.wait(*receive_);
      join(threads);
      join(watchers);
      EXPECT_TRUE(send_->outcome().ok()) << send_->outcome().message();
      EXPECT_TRUE(receive_->outcome().ok()) << receive_->outcome().message();
      check(round);
    }
  }

 private:
  PartitionedCall call(void* memory, std::int32_t partitions) {
    PartitionedCall made;
    made.end.user = memory;
    made.end.runtime = &device::host_runtime();
    made.end.on_device = true;
    made.end.device = 0;
    made.end.memory = device::classify(memory);
    made.end.segment = {core::Typemap::contiguous(sizeof(int)), kInts, 0};
    made.envelope = {.process = 1 - own_, .lineage = 1, .tag = 3};
    made.partitions = partitions;
    made.partition_bytes = kInts / static_cast<std::size_t>(partitions) * sizeof(int);
    return made;
  }
  void start(Partitioned& request, std::shared_ptr<core::Operation> operation) {
    request.renew();
    engine_.submit(std::move(operation), nullptr);
  }
  static int value(int sender, int round, std::size_t i) {
    return sender * 1000000 + round * 1000 + static_cast<int>(i);
  }
  void fill(int partition, int round) {
    const std::size_t first = static_cast<std::size_t>(partition) * kPartitionInts;
    std::vector<int> values(kPartitionInts);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(own_, round, first + i);
    copy(static_cast<int*>(from_) + first, values.data(), values.size());
  }
  void check(int round) {
    std::vector<int> got(kInts);
    copy(got.data(), to_, kInts);
    for (std::size_t i = 0; i < kInts; ++i) ASSERT_EQ(got[i], value(1 - own_, round, i));
  }
  void copy(void* dst, const void* src, std::size_t ints) {
    const device::Copy one{.dst = dst, .src = src, .row_bytes = ints * sizeof(int)};
    EXPECT_TRUE(device::host_runtime().copy(0, {&one, 1}).ok());
  }

  int own_;
  ThreadMessages messages_;
  ThreadHost host_;
  PartitionedTable table_;
  core::Engine engine_;
  void* from_ = nullptr;
  void* to_ = nullptr;
  std::shared_ptr<PartitionedSend> send_;
  std::shared_ptr<PartitionedReceive> receive_;
  accord_prequest* send_prequest_ = nullptr;
  accord_prequest* receive_prequest_ = nullptr;
};

TEST(partitioned_threads, both_ends) {
  ::setenv("ACCORD_TEST_PARTITIONED", "messages", 1);
  Mail mail;
  Rank first(mail, 0);
  Rank second(mail, 1);
  ::unsetenv("ACCORD_TEST_PARTITIONED");
  constexpr int kRounds = 40;
  std::thread other([&] { second.run(kRounds); });
  first.run(kRounds);
  other.join();
}

TEST(partitioned_threads, neighbours_go_in_one_message) {
  ::setenv("ACCORD_TEST_PARTITIONED", "messages", 1);
  Mail mail;
  Rank first(mail, 0);
  Rank second(mail, 1);
  ::unsetenv("ACCORD_TEST_PARTITIONED");
  for (int round = 0; round < 3; ++round) {
    int messages = 0;
    std::thread other([&] { second.run_at_once(round); });
    messages = first.run_at_once(round);
    other.join();
    EXPECT_EQ(messages, 1);
  }
}

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The best of some rounds to oneself in host memory, each partition marked by itself.
double seconds_of_round(int partitions) {
  Mail mail;
  ThreadMessages messages(mail, 0);
  ThreadHost host;
  PartitionedTable table(messages, host, 0);
  core::Engine engine(host);
  std::vector<int> from(static_cast<std::size_t>(partitions));
  std::vector<int> to(from.size());
  const auto call = [&](std::vector<int>& memory) {
    PartitionedCall made;
    made.end.user = memory.data();
    made.end.segment = {core::Typemap::contiguous(sizeof(int)), memory.size(), 0};
    made.envelope = {.process = 0, .lineage = 1, .tag = 3};
    made.partitions = partitions;
    made.partition_bytes = sizeof(int);
    return made;
  };
  const auto send = std::make_shared<PartitionedSend>(table, call(from));
  const auto receive = std::make_shared<PartitionedReceive>(table, call(to));
  EXPECT_TRUE(send->open().ok() && receive->open().ok());
  double best = 1e9;
  for (int round = 0; round < 4; ++round) {
    std::iota(from.begin(), from.end(), round);
    for (const std::shared_ptr<Partitioned>& one : {std::static_pointer_cast<Partitioned>(receive),
                                                    std::static_pointer_cast<Partitioned>(send)}) {
      one->renew();
      engine.submit(one, nullptr);
    }
    engine.wait_until([&] { return send->prepared() && receive->prepared(); });
    const double start = cpu_seconds();
    for (int partition = 0; partition < partitions; ++partition) {
      EXPECT_TRUE(send->pready(partition, partition).ok());
      engine.progress();
    }
    engine.wait(*send);
    engine.wait(*receive);
    best = std::min(best, cpu_seconds() - start);
    EXPECT_EQ(from, to);
  }
  return best;
}

TEST(partitioned_threads, work_grows_with_the_number_of_partitions) {
  ::setenv("ACCORD_TEST_PARTITIONED", "messages", 1);
  const double few = seconds_of_round(512);
  const double many = seconds_of_round(16 * 512);
  ::unsetenv("ACCORD_TEST_PARTITIONED");
  EXPECT_LT(many, 4 * 16 * few);  // and not with its square
}

}  // namespace
}  // namespace accord::partitioned
