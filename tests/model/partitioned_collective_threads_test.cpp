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

#include "core/partitioned/collective.h"
#include "device/registry.h"
#include "thread_messages.h"

namespace accord::device {
DeviceRuntime& host_runtime();
}

namespace accord::core {
namespace {

// A rank of an allreduce of sums, partitions of which kernels and threads of the host mark and
// watch.
class ReducingRank {
 public:
  static constexpr int kRanks = 3;
  static constexpr int kPartitions = 6;
  static constexpr std::size_t kPartitionInts = 50;
  static constexpr std::size_t kInts = kPartitions * kPartitionInts;

  ReducingRank(Mail& mail, int own)
      : own_(own), messages_(mail, own), table_(messages_, host_, own), engine_(host_) {
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

 private:
  PipelineEnd end(void* memory) const {
    PipelineEnd made;
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
    const auto type = Typemap::contiguous(sizeof(int));
    const std::vector<PartitionBlock> blocks = {
        {{type, kPartitionInts, 0}, kPartitionInts * sizeof(int)}};
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
    // As if elements were long, so that partitions go around the ring.
    made.schedule = allreduce_schedule({.rank = own_,
                                        .size = kRanks,
                                        .count = kPartitionInts,
                                        .element_bytes = 1 << 20,
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
  ThreadMessages messages_;
  ThreadHost host_;
  PartitionedTable table_;
  Engine engine_;
  void* from_ = nullptr;
  void* to_ = nullptr;
  std::shared_ptr<PartitionedCollective> request_;
  accord_prequest* prequest_ = nullptr;
};

TEST(partitioned_collective_threads, allreduce) {
  Mail mail;
  std::deque<ReducingRank> ranks;
  for (int rank = 0; rank < ReducingRank::kRanks; ++rank) ranks.emplace_back(mail, rank);
  auto threads = launch(ReducingRank::kRanks,
                        [&](int rank) { ranks[static_cast<std::size_t>(rank)].run(40); });
  join(threads);
}

}  // namespace
}  // namespace accord::core
