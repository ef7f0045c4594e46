// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions of partitions by kernels of all ranks, on the embedded host runtime: ranks, the
// kernels of the library and those of the program are threads. Also for the thread sanitizer.
#include "device/partition_reducer.h"

#include <gtest/gtest.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "../partition_blocks.h"
#include "device/device_runtime.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

struct Shape {
  int ranks;
  int partitions;
  std::size_t count;
  bool in_place = false;
  // So that kernels leave before what they wait for is there.
  std::chrono::milliseconds pause{0};
  PartitionShape of = {};
};

// Memory of the device, zero at first.
template <class T>
class Memory {
 public:
  explicit Memory(std::size_t count) : count_(count) {
    void* memory = nullptr;
    EXPECT_TRUE(host_runtime().allocate(0, MemoryKind::device, count * sizeof(T), memory).ok());
    memory_ = static_cast<T*>(memory);
    write(std::vector<T>(count));
  }
  ~Memory() { (void)host_runtime().free(memory_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* get() const { return memory_; }
  void write(const std::vector<T>& values, std::size_t first = 0) const {
    move({.dst = memory_ + first, .src = values.data(), .row_bytes = values.size() * sizeof(T)});
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    move({.dst = values.data(), .src = memory_, .row_bytes = count_ * sizeof(T)});
    return values;
  }

 private:
  static void move(const Copy& copy) { EXPECT_TRUE(host_runtime().copy(0, {&copy, 1}).ok()); }
  std::size_t count_;
  T* memory_ = nullptr;
};

int value(int rank, std::uint32_t round, std::size_t i) {
  return rank * 100000 + static_cast<int>(round) * 1000 + static_cast<int>(i % 1000);
}

class Rank {
 public:
  Rank(const Shape& shape, int own)
      : shape_(shape),
        own_(own),
        blocks_{shape.of, shape.ranks, shape.count},
        from_(elements() * static_cast<std::size_t>(blocks_.contributed())),
        to_(elements() * static_cast<std::size_t>(blocks_.received())),
        words_(partition_memory_bytes(outline()) / sizeof(std::uint32_t)),
        arrived_(partition_host_words(shape.partitions)),
        marks_(static_cast<std::size_t>(shape.partitions) * 2),
        asked_(static_cast<std::size_t>(shape.partitions)),
        random_(static_cast<unsigned>(own)) {}

  void connect(const std::vector<std::unique_ptr<Rank>>& all) {
    PartitionReduction reduction = outline();
    prequest_.sides = ACCORD_PARTITION_SENDS;
    prequest_.partitions = shape_.partitions;
    prequest_.control = &control_;
    prequest_.transfer_partitions = 1;
    prequest_.marks = 1;
    prequest_.partition_marks = marks_.data();
    prequest_.transfer_marks = marks_.data() + shape_.partitions;
    prequest_.ready = asked_.data();
    prequest_.node.ranks = static_cast<std::uint32_t>(shape_.ranks);
    const auto rank_of = [&](int i) -> const Rank& { return *all[static_cast<std::size_t>(i)]; };
    const auto start = [&](int block) { return static_cast<std::size_t>(block) * elements(); };
    blocks_.arrange_for(
        own_, [&](int rank, int block) { return rank_of(rank).source().get() + start(block); },
        [&](int rank, int block) { return rank_of(rank).to_.get() + start(block); }, reduction);
    for (int i = 0; i < shape_.ranks; ++i) {
      const Rank& rank = rank_of(i);
      reduction.words[i] = rank.words_.get();
      prequest_.node.ready[i] =
          static_cast<std::uint32_t*>(host_runtime().address_for_library(rank.words_.get())) +
          ready_word(shape_.ranks, 0, own_);
    }
    prequest_.state = ACCORD_PARTITION_STATE_ON_NODE;
    ASSERT_TRUE(
        host_runtime().make_partition_reducer(0, reduction, arrived_.data(), reducer_).ok());
  }

  void run(std::uint32_t round) {
    start(round);
    std::vector<int> order(static_cast<std::size_t>(shape_.partitions));
    for (int i = 0; i < shape_.partitions; ++i) order[static_cast<std::size_t>(i)] = i;
    std::ranges::shuffle(order, random_);
    // Odd ones by kernels of the program, the others by the host.
    std::thread kernel([&] {
      std::this_thread::sleep_for(shape_.pause * (own_ + 1));
      for (const int partition : order) {
        if (partition % 2 == 0 || !gives()) continue;
        make(partition, round);
        EXPECT_EQ(MPIX_Pready(partition, &prequest_), 0);
      }
    });
    for (const int partition : order) {
      if (partition % 2 != 0 || !gives()) continue;
      make(partition, round);
      EXPECT_TRUE(reducer_->mark({&partition, 1}).ok());
    }
    while (!complete(round)) {
      EXPECT_TRUE(reducer_->progress().ok());
      std::this_thread::yield();
    }
    EXPECT_EQ(made_, gives() ? shape_.partitions : 0) << "through before all is marked";
    kernel.join();
    check(round);
    EXPECT_EQ(control_.error, 0u);
    EXPECT_TRUE(std::ranges::all_of(asked_, [](std::uint32_t asked) { return asked == 0; }));
  }

 private:
  std::size_t elements() const {
    return static_cast<std::size_t>(shape_.partitions) * shape_.count;
  }
  PartitionReduction outline() const {
    PartitionReduction reduction;
    reduction.partitions = shape_.partitions;
    reduction.op = ReduceOp::sum;
    reduction.element = Element::int32;
    // Sizes are the same wherever buffers are.
    int elsewhere[2] = {};
    const auto source = [&](int, int) { return &elsewhere[0]; };
    const auto target = [&](int, int) { return &elsewhere[1]; };
    blocks_.arrange_for(own_, source, target, reduction);
    return reduction;
  }
  const Memory<int>& source() const { return shape_.in_place ? to_ : from_; }
  bool gives() const { return blocks_.gives(own_); }

  void start(std::uint32_t round) {
    made_ = 0;
    for (accord_partition_start& line : control_.started)
      std::atomic_ref(line.rounds).store(round, std::memory_order_release);
    ASSERT_TRUE(reducer_->start(round).ok());
  }
  // Where a partition of a block begins.
  std::size_t first(int block, int partition, std::size_t count) const {
    return static_cast<std::size_t>(block) * elements() +
           static_cast<std::size_t>(partition) * count;
  }
  void make(int partition, std::uint32_t round) {
    ++made_;
    for (int block = 0; block < blocks_.contributed(); ++block) {
      std::vector<int> values(blocks_.count_of(own_, block));
      const std::size_t start = first(block, partition, values.size());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(own_, round, start + i);
      source().write(values, start);
    }
  }
  bool complete(std::uint32_t round) {
    return std::all_of(arrived_.begin(), arrived_.end() - 1, [&](std::uint32_t& word) {
      return std::atomic_ref(word).load(std::memory_order_acquire) == round;
    });
  }
  void check(std::uint32_t round) const {
    const std::vector<int> got = to_.read();
    for (int block = 0; block < blocks_.received(); ++block) {
      const std::vector<int> sources = blocks_.sources(own_, block);
      const int from = blocks_.source_block(own_);
      const std::size_t count =
          blocks_.count_of(block, own_) * static_cast<std::size_t>(shape_.partitions);
      for (std::size_t i = 0; i < elements() && !sources.empty(); ++i) {
        int expected = 0;
        for (const int rank : sources)
          if (i < count) expected += value(rank, round, first(from, 0, 0) + i);
        ASSERT_EQ(got[first(block, 0, 0) + i], expected)
            << "rank " << own_ << ", round " << round << ", block " << block << ", at " << i;
      }
    }
  }

  const Shape shape_;
  const int own_;
  const test::PartitionBlocks blocks_;
  const Memory<int> from_;
  const Memory<int> to_;
  const Memory<std::uint32_t> words_;
  std::vector<std::uint32_t> arrived_;
  std::vector<std::uint64_t> marks_;
  std::vector<std::uint32_t> asked_;
  accord_partition_control control_{};
  accord_prequest prequest_{};
  std::unique_ptr<PartitionReducer> reducer_;
  std::minstd_rand random_;
  std::atomic<int> made_{0};  // partitions of the round
};

void run_all(const Shape& shape, const std::vector<std::uint32_t>& rounds) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < shape.ranks; ++i) ranks.push_back(std::make_unique<Rank>(shape, i));
  for (const auto& rank : ranks) rank->connect(ranks);
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) {
    threads.emplace_back([&] {
      for (const std::uint32_t round : rounds) rank->run(round);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::uint32_t> first_rounds(std::uint32_t count) {
  std::vector<std::uint32_t> rounds;
  for (std::uint32_t round = 1; round <= count; ++round) rounds.push_back(round);
  return rounds;
}

TEST(PartitionReducer, all_ranks_get_the_sum) { run_all({3, 7, 100}, first_rounds(50)); }
TEST(PartitionReducer, in_place) { run_all({3, 5, 100, true}, first_rounds(50)); }
// The shares of each belong to a few of the ranks.
TEST(PartitionReducer, short_partitions) { run_all({4, 9, 3}, first_rounds(50)); }
TEST(PartitionReducer, long_partitions) { run_all({2, 3, 100'000}, first_rounds(3)); }
TEST(PartitionReducer, one_partition) { run_all({2, 1, 1000}, first_rounds(50)); }
TEST(PartitionReducer, rounds_wrap) { run_all({2, 4, 50}, {0xfffffffe, 0xffffffff, 1, 2}); }

TEST(PartitionReducer, all_collectives) {
  for (const int root : {0, 2})
    for (const PartitionShape& of : test::partition_shapes(root))
      run_all({.ranks = 3, .partitions = 7, .count = 100, .of = of}, first_rounds(20));
}

TEST(PartitionReducer, broadcasts_in_place) {
  const PartitionShape of{.givers = PartitionShape::Ranks::root, .root = 1};
  run_all({.ranks = 3, .partitions = 7, .count = 100, .in_place = true, .of = of},
          first_rounds(50));
}

// A rank that gets nothing is through when its own share is, whatever the others do, and goes on:
// here those that are not the root are rounds apart.
TEST(PartitionReducer, late_marks_of_all_collectives) {
  for (const PartitionShape& of : test::partition_shapes(1))
    run_all({3, 4, 50, false, std::chrono::milliseconds(5), of}, first_rounds(3));
}

// Kernels that have left come back for what becomes ready later.
TEST(PartitionReducer, late_marks) {
  run_all({2, 4, 50, false, std::chrono::milliseconds(5)}, first_rounds(5));
}

// What no device reduces is declined, as are buffers that are no device's.
TEST(PartitionReducer, declines) {
  PartitionReduction reduction;
  reduction.ranks = reduction.partitions = 1;
  reduction.count = 1;
  std::unique_ptr<PartitionReducer> reducer;
  EXPECT_EQ(host_runtime().make_partition_reducer(0, reduction, nullptr, reducer).code(),
            StatusCode::unsupported);
}

// Shares are whole lines, cover all and fall to all ranks in turn.
TEST(PartitionReducer, shares) {
  for (const std::size_t count : {1u, 31u, 32u, 33u, 1000u, 4096u}) {
    for (const int ranks : {1, 2, 3, 8}) {
      const std::size_t share = share_elements(count, ranks, 4);
      const int shares = shares_of(count, share);
      EXPECT_EQ(share * 4 % kShareLineBytes, 0u);
      EXPECT_LE(shares, ranks);
      EXPECT_LT(share * static_cast<std::size_t>(shares - 1), count);
      for (int partition = 0; partition < 5; ++partition) {
        std::vector<int> seen(static_cast<std::size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank)
          ++seen[static_cast<std::size_t>(share_of(rank, ranks, partition))];
        EXPECT_TRUE(std::ranges::all_of(seen, [](int times) { return times == 1; }));
      }
    }
  }
}

}  // namespace
}  // namespace accord::device
