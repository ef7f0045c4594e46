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

#include "cuda_test.h"
#include "device/host_reduce.h"
#include "device/partition_reducer.h"

namespace accord::test {
namespace {

using device::Element;
using device::MemoryKind;
using device::PartitionReducer;
using device::PartitionReduction;
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
  int root = PartitionReduction::kNoRoot;
};

// All ranks of a reduction.
class Ranks {
 public:
  explicit Ranks(const Shape& shape) : shape_(shape) {
    PartitionReduction reduction;
    reduction.ranks = shape.ranks;
    reduction.partitions = shape.partitions;
    reduction.count = shape.count;
    reduction.op = shape.op;
    reduction.element = shape.element;
    reduction.by_packets = shape.by_packets;
    reduction.root = shape.root;
    EXPECT_TRUE(!shape.by_packets || suits_packets(reduction));
    const std::vector<std::byte> zeros(partition_memory_bytes(reduction));
    const std::size_t host_bytes =
        device::partition_host_words(shape.partitions) * sizeof(std::uint32_t);
    for (int i = 0; i < shape.ranks; ++i) {
      const std::size_t shift = offset(i);
      auto& source = sources_.emplace_back(
          std::make_unique<Buffer>(MemoryKind::device, bytes() + shift + kGuardBytes));
      auto& target = targets_.emplace_back(
          std::make_unique<Buffer>(MemoryKind::device, bytes() + shift + kGuardBytes));
      auto& words = words_.emplace_back(std::make_unique<Buffer>(MemoryKind::device, zeros.size()));
      auto& arrived =
          arrived_.emplace_back(std::make_unique<Buffer>(MemoryKind::pinned, host_bytes));
      std::fill_n(static_cast<std::byte*>(arrived->pointer), host_bytes, std::byte{0});
      EXPECT_OK(copy_one(words->pointer, zeros.data(), zeros.size()));
      reduction.sources[i] = (shape.in_place ? target : source)->at(shift);
      reduction.targets[i] = target->at(shift);
      reduction.words[i] = static_cast<std::uint32_t*>(words->pointer);
    }
    for (reduction.rank = 0; reduction.rank < shape.ranks; ++reduction.rank) {
      auto& reducer = reducers_.emplace_back();
      status_ =
          cuda_runtime().make_partition_reducer(0, reduction, arrived(reduction.rank), reducer);
      if (!status_.ok()) return;
    }
    reduction_ = reduction;
  }

  const Status& status() const { return status_; }

  // Marks go rank by rank and from the last partition to the first one, with a pause in between.
  void run(std::uint32_t round, std::chrono::milliseconds pause = {}) {
    std::vector<std::vector<unsigned char>> data;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      auto& bytes_of_rank = data.emplace_back(pattern(bytes(), round * 16 + unsigned(rank)));
      // No infinities and no NaNs.
      for (unsigned char& byte : bytes_of_rank) byte &= 0x3f;
      EXPECT_OK(
          copy_one(const_cast<void*>(reduction_.sources[rank]), bytes_of_rank.data(), bytes()));
      const std::vector<unsigned char> guard(kGuardBytes, 0xee);
      EXPECT_OK(copy_one(static_cast<std::byte*>(reduction_.targets[rank]) + bytes(), guard.data(),
                         kGuardBytes));
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
  bool gives(int rank) const {
    return shape_.root == PartitionReduction::kNoRoot || shape_.root == rank;
  }
  std::size_t bytes() const {
    return static_cast<std::size_t>(shape_.partitions) * shape_.count *
           element_bytes(shape_.element);
  }
  std::size_t offset(int rank) const {
    return shape_.shift_bytes + static_cast<std::size_t>(rank) * shape_.spread_bytes;
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
    std::vector<const void*> sources;
    for (int rank = 0; rank < shape_.ranks; ++rank)
      if (gives(rank)) sources.push_back(data[static_cast<std::size_t>(rank)].data());
    std::vector<unsigned char> expected(bytes());
    device::reduce_on_host({expected.data(), sources,
                            static_cast<std::size_t>(shape_.partitions) * shape_.count, shape_.op,
                            shape_.element});
    expected.resize(bytes() + kGuardBytes, 0xee);
    for (int rank = 0; rank < shape_.ranks; ++rank)
      ASSERT_EQ(contents(reduction_.targets[rank], expected.size()), expected) << "rank " << rank;
  }

  const Shape shape_;
  PartitionReduction reduction_;
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
      if (shape.by_packets || is_long || shape.root >= 0) return;
    }
  }
  static constexpr std::size_t kLongBytes = device::kPacketBytesMax / 2;  // of three ranks
};

TEST_F(CudaPartitions, all_ranks_get_the_result) {
  for (const std::size_t count : {1u, 3u, 31u, 1000u, 4099u})
    for (const int ranks : {2, 3}) run({.ranks = ranks, .partitions = 5, .count = count}, 3);
}

TEST_F(CudaPartitions, several_slices) {
  for (const int ranks : {2, 3}) run({.ranks = ranks, .partitions = 3, .count = 30'001}, 4);
}

TEST_F(CudaPartitions, one_long_partition_is_cut_into_slices) {
  run({.partitions = 1, .count = 1'000'003}, 2);
  run({.partitions = 3, .count = 300'000}, 2);
}

TEST_F(CudaPartitions, more_partitions_than_a_warp_looks_at) {
  run({.partitions = 3000, .count = 5}, 2);
}

TEST_F(CudaPartitions, in_place) { run({.partitions = 4, .count = 5000, .in_place = true}, 3); }

TEST_F(CudaPartitions, broadcasts) {
  for (const int root : {0, 2}) {
    for (const std::size_t count : {1u, 1000u, 100'003u})
      run({.ranks = 3, .partitions = 5, .count = count, .in_place = true, .root = root}, 3);
  }
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
