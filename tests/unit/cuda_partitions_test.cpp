// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions of partitions by kernels of the CUDA runtime: ranks of one process on one device, each
// with a kernel of its own. Runs on a GPU, or over the fake driver (cuda_program.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "../partition_blocks.h"
#include "cuda_test.h"
#include "device/partition_reducer.h"
#include "device/reduce_on_host.h"
#include "fake_cuda_control.h"

namespace accord::test {
namespace {

using device::Element;
using device::MemoryKind;
using device::PartitionReducer;
using device::PartitionReduction;
using device::PartitionShape;
using device::ReduceOp;

constexpr std::size_t kGuardBytes = 64;

struct Buffer {
  Buffer(MemoryKind kind, std::size_t size_bytes) {
    EXPECT_OK(cuda_runtime().allocate(0, kind, size_bytes, pointer));
  }
  ~Buffer() { (void)cuda_runtime().free(pointer); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* at(std::size_t offset_bytes) const {
    return static_cast<std::byte*>(pointer) + offset_bytes;
  }
  void* pointer = nullptr;
};

struct Shape {
  int ranks = 2;
  int partitions = 3;
  std::size_t count = 1000;
  ReduceOp op = ReduceOp::sum;
  Element element = Element::float32;
  std::size_t shift_bytes = 0;   // of all buffers
  std::size_t spread_bytes = 0;  // and of each rank's once more
  bool in_place = false;
  bool by_packets = false;
  PartitionShape of = {};
};

// All ranks of a reduction.
class Ranks {
 public:
  explicit Ranks(const Shape& shape) : shape_(shape), blocks_{shape.of, shape.ranks, shape.count} {
    for (int i = 0; i < shape.ranks; ++i) allocate(i);
    PartitionReduction reduction = outline(0);
    EXPECT_TRUE(!shape.by_packets || suits_packets(reduction));
    for (int rank = 0; rank < shape.ranks; ++rank) {
      reduction = outline(rank);
      blocks_.arrange_for(
          rank, [&](int of, int block) { return source(of) + start(block); },
          [&](int of, int block) { return target(of) + start(block); }, reduction);
      for (int i = 0; i < shape.ranks; ++i)
        reduction.words[i] = static_cast<std::uint32_t*>(words_[at(i)]->pointer);
      auto& reducer = reducers_.emplace_back();
      status_ = cuda_runtime().make_partition_reducer(0, reduction, arrived(rank), reducer);
      if (!status_.ok()) return;
    }
  }

  const Status& status() const { return status_; }

  // Marks go rank by rank and from the last partition to the first one, with a pause in between.
  void run(std::uint32_t round, std::chrono::milliseconds pause = {}) {
    std::vector<std::vector<unsigned char>> data;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      auto& bytes_of_rank = data.emplace_back(pattern(source_bytes(), round * 16 + unsigned(rank)));
      // No infinities and no NaNs.
      for (unsigned char& byte : bytes_of_rank) byte &= 0x3f;
      const std::vector<unsigned char> before(target_bytes() + kGuardBytes, 0xee);
      EXPECT_OK(copy_one(target(rank), before.data(), before.size()));
      EXPECT_OK(copy_one(source(rank), bytes_of_rank.data(), source_bytes()));
    }
    for (const auto& reducer : reducers_) ASSERT_OK(reducer->start(round));
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      if (rank != 0) std::this_thread::sleep_for(pause);
      if (!gives(rank)) continue;
      for (std::int32_t partition = shape_.partitions; partition-- > 0;) {
        ASSERT_OK(reducers_[static_cast<std::size_t>(rank)]->mark({&partition, 1}));
      }
    }
    await(round);
    check(data);
  }

 private:
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  bool gives(int rank) const { return blocks_.gives(rank); }
  // Of a block.
  std::size_t bytes() const {
    return at(shape_.partitions) * shape_.count * element_bytes(shape_.element);
  }
  std::size_t start(int block) const { return at(block) * bytes(); }
  std::size_t source_bytes() const { return start(blocks_.contributed()); }
  std::size_t target_bytes() const { return start(blocks_.received()); }
  std::size_t offset(int rank) const { return shape_.shift_bytes + at(rank) * shape_.spread_bytes; }
  std::byte* target(int rank) const { return targets_[at(rank)]->at(offset(rank)); }
  std::byte* source(int rank) const {
    return shape_.in_place ? target(rank) : sources_[at(rank)]->at(offset(rank));
  }
  // Of a rank, before it is known where buffers are: sizes are the same.
  PartitionReduction outline(int rank) const {
    PartitionReduction reduction;
    reduction.partitions = shape_.partitions;
    reduction.op = shape_.op;
    reduction.element = shape_.element;
    reduction.by_packets = shape_.by_packets;
    std::byte elsewhere[2] = {};
    blocks_.arrange_for(
        rank, [&](int, int) { return &elsewhere[0]; }, [&](int, int) { return &elsewhere[1]; },
        reduction);
    return reduction;
  }
  void allocate(int rank) {
    const std::vector<std::byte> zeros(partition_memory_bytes(outline(rank)));
    const std::size_t host_bytes =
        device::partition_host_words(shape_.partitions) * sizeof(std::uint32_t);
    sources_.push_back(
        std::make_unique<Buffer>(MemoryKind::device, source_bytes() + offset(rank) + kGuardBytes));
    targets_.push_back(
        std::make_unique<Buffer>(MemoryKind::device, target_bytes() + offset(rank) + kGuardBytes));
    words_.push_back(std::make_unique<Buffer>(MemoryKind::device, zeros.size()));
    arrived_.push_back(std::make_unique<Buffer>(MemoryKind::pinned, host_bytes));
    std::fill_n(static_cast<std::byte*>(arrived_.back()->pointer), host_bytes, std::byte{0});
    EXPECT_OK(copy_one(words_.back()->pointer, zeros.data(), zeros.size()));
  }
  std::uint32_t* arrived(int rank) const {
    return static_cast<std::uint32_t*>(arrived_[static_cast<std::size_t>(rank)]->pointer);
  }
  bool all_arrived(std::uint32_t round) const {
    for (int rank = 0; rank < shape_.ranks; ++rank)
      for (int i = 0; i < shape_.partitions; ++i)
        if (std::atomic_ref(arrived(rank)[i]).load(std::memory_order_acquire) != round)
          return false;
    return true;
  }
  void await(std::uint32_t round) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!all_arrived(round)) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      for (const auto& reducer : reducers_) ASSERT_OK(reducer->progress());
    }
  }
  void check(const std::vector<std::vector<unsigned char>>& data) const {
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      std::vector<unsigned char> expected(target_bytes() + kGuardBytes, 0xee);
      if (shape_.in_place) std::ranges::copy(data[at(rank)], expected.begin());
      for (int block = 0; block < blocks_.received(); ++block) {
        std::vector<const void*> from;
        for (const int source : blocks_.sources(rank, block))
          from.push_back(data[at(source)].data() + start(blocks_.source_block(rank)));
        if (from.empty()) continue;
        device::reduce_on_host({expected.data() + start(block), from,
                                at(shape_.partitions) * blocks_.count_of(block, rank), shape_.op,
                                shape_.element});
      }
      ASSERT_EQ(contents(target(rank), expected.size()), expected) << "rank " << rank;
    }
  }

  const Shape shape_;
  const test::PartitionBlocks blocks_;
  std::vector<std::unique_ptr<Buffer>> sources_;
  std::vector<std::unique_ptr<Buffer>> targets_;
  std::vector<std::unique_ptr<Buffer>> words_;
  std::vector<std::unique_ptr<Buffer>> arrived_;
  Status status_;
  std::vector<std::unique_ptr<PartitionReducer>> reducers_;
};

class CudaPartitions : public testing::Test {
 protected:
  void SetUp() override {
    if (nothing_to_test() != nullptr) GTEST_SKIP() << nothing_to_test();
    const Ranks ranks{Shape{}};
    if (ranks.status().code() == StatusCode::unsupported) GTEST_SKIP() << ranks.status().message();
    ASSERT_OK(ranks.status());
  }
  // Also by packets, where it may be that long.
  static void run(Shape shape, std::uint32_t rounds) {
    for (shape.by_packets = false;; shape.by_packets = true) {
      Ranks ranks(shape);
      ASSERT_OK(ranks.status());
      for (std::uint32_t round = 1; round <= rounds; ++round) ranks.run(round);
      const bool is_long =
          static_cast<std::size_t>(shape.partitions) * shape.count * element_bytes(shape.element) >
          kLongBytes;
      if (shape.by_packets || is_long || shape.of != PartitionShape{}) return;
    }
  }
  static constexpr std::size_t kLongBytes = device::kPacketBytesMax / 2;  // of three ranks
};

TEST_F(CudaPartitions, all_ranks_get_the_result) {
  for (const std::size_t count : {1u, 3u, 31u, 1000u, 4099u})
    for (const int ranks : {2, 3}) run({.ranks = ranks, .partitions = 5, .count = count}, 3);
}

// So many blocks have worked on each partition, of 16 KiB of a rank's share each.
void expect_slices(unsigned slices) {
  if (fake_cuda() == nullptr) return;
  EXPECT_EQ(slices, fake_cuda()->slices());
}

TEST_F(CudaPartitions, several_slices) {
  for (const int ranks : {2, 3}) {
    run({.ranks = ranks, .partitions = 3, .count = 30'001}, 4);
    expect_slices(ranks == 2 ? 3 : 2);
  }
}

TEST_F(CudaPartitions, one_long_partition_is_cut_into_slices) {
  run({.partitions = 1, .count = 1'000'003}, 2);
  expect_slices(122);
  run({.partitions = 3, .count = 300'000}, 2);
  expect_slices(36);
}

TEST_F(CudaPartitions, more_partitions_than_a_warp_looks_at) {
  run({.partitions = 3000, .count = 5}, 2);
}

TEST_F(CudaPartitions, in_place) { run({.partitions = 4, .count = 5000, .in_place = true}, 3); }

TEST_F(CudaPartitions, all_collectives) {
  for (const int root : {0, 2}) {
    for (const PartitionShape& of : partition_shapes(root)) {
      for (const std::size_t count : {1u, 1000u, 100'003u})
        run({.ranks = 3, .partitions = 5, .count = count, .of = of}, 3);
      run({.ranks = 3, .count = 1001, .shift_bytes = 4, .spread_bytes = 4, .of = of}, 2);
    }
  }
}

TEST_F(CudaPartitions, broadcasts_in_place) {
  const PartitionShape of{.givers = PartitionShape::Ranks::root, .root = 1};
  run({.ranks = 3, .partitions = 5, .count = 1000, .in_place = true, .of = of}, 3);
}

TEST_F(CudaPartitions, wherever_buffers_lie) {
  for (const std::size_t shift : {4u, 1u}) {
    for (const std::size_t spread : {0u, 4u, 3u})
      run({.count = 1001, .shift_bytes = shift, .spread_bytes = spread}, 1);
  }
}

TEST_F(CudaPartitions, elements_and_operations) {
  for (const Element element :
       {Element::int32, Element::uint32, Element::int64, Element::uint64, Element::float16,
        Element::bfloat16, Element::float32, Element::float64}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max})
      run({.count = 333, .op = op, .element = element}, 1);
  }
}

TEST_F(CudaPartitions, what_there_is_no_kernel_for_is_declined) {
  const Ranks ranks({.op = ReduceOp::minloc, .element = Element::float64_int32});
  EXPECT_EQ(ranks.status().code(), StatusCode::unsupported);
}

// The kernels have left when the last rank marks, and come back.
TEST_F(CudaPartitions, late_marks) {
  for (const bool by_packets : {false, true}) {
    for (const bool in_place : {false, true}) {
      Ranks ranks({.partitions = 4, .count = 5000, .in_place = in_place, .by_packets = by_packets});
      ASSERT_OK(ranks.status());
      for (std::uint32_t round = 1; round <= 3; ++round)
        ranks.run(round, std::chrono::milliseconds(10));
    }
  }
}

TEST_F(CudaPartitions, late_marks_of_all_collectives) {
  for (const PartitionShape& of : partition_shapes(1)) {
    Ranks ranks({.ranks = 3, .partitions = 4, .count = 5000, .of = of});
    ASSERT_OK(ranks.status());
    for (std::uint32_t round = 1; round <= 2; ++round)
      ranks.run(round, std::chrono::milliseconds(5));
  }
}

TEST_F(CudaPartitions, rounds_wrap) {
  for (const bool by_packets : {false, true}) {
    Ranks ranks({.partitions = 4, .count = 100, .by_packets = by_packets});
    ASSERT_OK(ranks.status());
    for (const std::uint32_t round : {0xfffffffeu, 0xffffffffu, 1u, 2u}) ranks.run(round);
  }
}

// What is long, takes many ranks, or much memory, is shared out.
TEST(PartitionPackets, are_for_short_partitions) {
  const auto suits = [](int ranks, int partitions, std::size_t count) {
    PartitionReduction reduction;
    reduction.ranks = ranks;
    reduction.partitions = partitions;
    reduction.count = count;
    reduction.element = Element::float32;
    return suits_packets(reduction);
  };
  EXPECT_TRUE(suits(2, 1, 64 << 10));
  EXPECT_FALSE(suits(2, 1, (64 << 10) + 1));
  EXPECT_TRUE(suits(5, 1, 16 << 10));
  EXPECT_FALSE(suits(5, 1, (16 << 10) + 1));
  EXPECT_TRUE(suits(2, 16, 4 << 10));
  EXPECT_FALSE(suits(2, 16, (4 << 10) + 1));
  EXPECT_FALSE(suits(1, 1, 1));
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) { return accord::test::run_cuda_tests(argc, argv); }
