// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned collective with ranks and kernels as threads, for the thread sanitizer.
#include <gtest/gtest.h>

#include <accord/partitioned.cuh>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "device/registry.h"
#include "partitioned/collective.h"
#include "thread_messages.h"

namespace accord::device {
DeviceRuntime& host_runtime();
}

namespace accord::partitioned {
namespace {

// A rank of an allreduce of sums, partitions of which kernels and threads of the host mark and
// watch.
class ReducingRank {
 public:
  static constexpr int kRanks = 3;
  static constexpr int kPartitions = 6;
  static constexpr std::size_t kPartitionInts = 50;
  static constexpr std::size_t kInts = kPartitions * kPartitionInts;

  // Partitions as if their elements had so many bytes.
  ReducingRank(Mail& mail, int own, std::size_t element_bytes)
      : own_(own),
        element_bytes_(element_bytes),
        messages_(mail, own),
        table_(messages_, host_, own),
        engine_(host_) {
    auto& runtime = device::host_runtime();
    for (void** memory : {&from_, &to_}) {
      EXPECT_TRUE(
          runtime.allocate(0, device::MemoryKind::device, kInts * sizeof(int), *memory).ok());
    }
    request_ = std::make_shared<PartitionedCollective>(table_, call(), plan());
    EXPECT_TRUE(request_->open().ok());
    EXPECT_TRUE(request_->create_prequest(prequest_).ok());
  }
  ~ReducingRank() {
    request_.reset();
    for (void* memory : {from_, to_}) (void)device::host_runtime().free(memory);
  }
  ReducingRank(const ReducingRank&) = delete;
  ReducingRank& operator=(const ReducingRank&) = delete;

  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      request_->renew();
      engine_.submit(request_, nullptr);
      auto threads = launch(kPartitions, [&](int partition) {
        std::vector<int> values(kPartitionInts);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = value(own_, round, partition, i);
        copy(part(from_, partition), values.data());
        if (partition % 2 != 0) {
          EXPECT_EQ(MPIX_Pready_block(partition, prequest_), 0);
        } else {
          EXPECT_TRUE(request_->pready(partition, partition).ok());
          engine_.progress();
        }
      });
      auto watchers = launch(kPartitions, [&](int partition) {
        while (MPIX_Parrived(partition, prequest_) == 0) std::this_thread::yield();
        check(round, partition);
      });
      engine_.wait(*request_);
      join(threads);
      join(watchers);
      EXPECT_TRUE(request_->outcome().ok()) << request_->outcome().message();
    }
  }

  // All of a round marked before anything goes.
  void run_at_once() {
    for (int partition = 0; partition < kPartitions; ++partition) {
      std::vector<int> values(kPartitionInts);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(own_, 0, partition, i);
      copy(part(from_, partition), values.data());
    }
    request_->renew();
    EXPECT_TRUE(request_->pready(0, kPartitions - 1).ok());
    engine_.submit(request_, nullptr);
    engine_.wait(*request_);
    EXPECT_TRUE(request_->outcome().ok());
    for (int partition = 0; partition < kPartitions; ++partition) check(0, partition);
  }
  int sent() const { return messages_.sent(); }

 private:
  core::CallEnd end(void* memory) const {
    core::CallEnd made;
    made.user = memory;
    made.runtime = &device::host_runtime();
    made.on_device = true;
    made.device = 0;
    return made;
  }
  PartitionedCall call() const {
    PartitionedCall made;
    made.end = end(from_);
    made.partitions = kPartitions;
    return made;
  }
  CollectivePlan plan() {
    const auto type = core::Typemap::contiguous(sizeof(int));
    const std::vector<core::Segment> blocks = {{type, kPartitionInts, 0}};
    CollectivePlan made;
    made.name = table_.next_collective(1);
    made.rank = own_;
    for (int rank = 0; rank < kRanks; ++rank) made.processes.push_back(rank);
    made.gives = made.gets = true;
    made.contribution = {end(from_), blocks};
    made.result = {end(to_), blocks};
    made.reduction = {.type = type,
                      .count = kPartitionInts,
                      .commutative = true,
                      .reduce = [](const void* in, void* inout, std::size_t count) {
                        for (std::size_t i = 0; i < count; ++i)
                          static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
                        return Status();
                      }};
    made.schedule = allreduce_schedule({.rank = own_,
                                        .size = kRanks,
                                        .count = kPartitionInts,
                                        .element_bytes = element_bytes_,
                                        .commutative = true,
                                        .in_rank_order = false});
    return made;
  }
  static int* part(void* memory, int partition) {
    return static_cast<int*>(memory) + static_cast<std::size_t>(partition) * kPartitionInts;
  }
  static int value(int rank, int round, int partition, std::size_t i) {
    return rank * 1000000 + round * 1000 + partition * 100 + static_cast<int>(i);
  }
  void check(int round, int partition) {
    std::vector<int> got(kPartitionInts);
    copy(got.data(), part(to_, partition));
    for (std::size_t i = 0; i < got.size(); ++i) {
      int sum = 0;
      for (int rank = 0; rank < kRanks; ++rank) sum += value(rank, round, partition, i);
      ASSERT_EQ(got[i], sum);
    }
  }
  void copy(void* dst, const void* src) {
    const device::Copy one{.dst = dst, .src = src, .row_bytes = kPartitionInts * sizeof(int)};
    EXPECT_TRUE(device::host_runtime().copy(0, {&one, 1}).ok());
  }

  int own_;
  std::size_t element_bytes_;
  ThreadMessages messages_;
  ThreadHost host_;
  PartitionedTable table_;
  core::Engine engine_;
  void* from_ = nullptr;
  void* to_ = nullptr;
  std::shared_ptr<PartitionedCollective> request_;
  accord_prequest* prequest_ = nullptr;
};

class PartitionedCollectiveThreads : public testing::Test {
 protected:
  template <class Body>
  void run(std::size_t element_bytes, Body body) {
    Mail mail;
    std::deque<ReducingRank> ranks;
    for (int rank = 0; rank < ReducingRank::kRanks; ++rank)
      ranks.emplace_back(mail, rank, element_bytes);
    auto threads = launch(ReducingRank::kRanks,
                          [&](int rank) { body(ranks[static_cast<std::size_t>(rank)]); });
    join(threads);
    for (const ReducingRank& rank : ranks) sent_.push_back(rank.sent());
  }
  std::vector<int> sent_;
};

TEST_F(PartitionedCollectiveThreads, allreduce_around_a_ring) {
  run(1 << 20, [](ReducingRank& rank) { rank.run(40); });
}

TEST_F(PartitionedCollectiveThreads, allreduce_by_exchanges) {
  run(sizeof(int), [](ReducingRank& rank) { rank.run(40); });
}

// Besides what they have to know of each other's start: rank 0 gives to rank 1, which exchanges
// with rank 2 and gives back.
TEST_F(PartitionedCollectiveThreads, neighbours_go_in_one_message) {
  run(sizeof(int), [](ReducingRank& rank) { rank.run_at_once(); });
  EXPECT_EQ(sent_, (std::vector<int>{1 + 1, 2 + 2, 1 + 1}));
}

}  // namespace
}  // namespace accord::partitioned
