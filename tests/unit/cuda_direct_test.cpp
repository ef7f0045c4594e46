// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Direct work by the resident kernel of the CUDA runtime. Runs on a GPU, or over the fake driver;
// part of the program that claims device 0 (cuda_inbox_rig.h).
#include <gtest/gtest.h>

#include <thread>

#include "cuda_inbox_rig.h"
#include "device/direct_work.h"

namespace accord::test {
namespace {

using device::DirectUpdate;
using device::DirectWork;
using device::DirectWorker;
using device::Element;
using device::ReduceOp;

class CudaDirect : public testing::Test {
 protected:
  void SetUp() override {
    if (nothing_to_test() != nullptr) GTEST_SKIP() << nothing_to_test();
    const Status opened = rig_.open();
    if (opened.code() == StatusCode::unsupported) GTEST_SKIP() << opened.message();
    ASSERT_OK(opened);
  }

  Status run(const DirectWork& work) {
    bool done = false;
    ACCORD_TRY(DirectWorker::of(cuda_runtime(), 0).run(work, done));
    return done ? Status() : Status(StatusCode::unsupported, "no kernel does it");
  }
  Status update(DirectUpdate update) { return run({.update = &update}); }

  template <class T>
  void put(std::byte* where, const std::vector<T>& values) {
    ASSERT_OK(copy_one(where, values.data(), values.size() * sizeof(T)));
  }
  template <class T>
  std::vector<T> get(const std::byte* where, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(copy_one(values.data(), where, count * sizeof(T)));
    return values;
  }

  Rig rig_;
};

TEST_F(CudaDirect, copies_go_together_whatever_their_number_and_place) {
  for (const std::size_t size_bytes : {1, 4, 8, 17, 4096, 20000}) {
    for (const std::size_t count : {1, 2, 64}) {
      const std::size_t step = size_bytes + 3;
      if (count * step > kLaneBytes) continue;
      const auto data = pattern(count * step, static_cast<unsigned>(size_bytes + count));
      ASSERT_OK(copy_one(rig_.src(), data.data(), data.size()));
      auto wanted = std::vector<unsigned char>(count * step, 0xee);
      ASSERT_OK(copy_one(rig_.dst(), wanted.data(), wanted.size()));
      std::vector<Copy> copies;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t from = (count - 1 - i) * step;
        copies.push_back({rig_.dst() + i * step, rig_.src() + from, size_bytes});
        std::copy_n(data.data() + from, size_bytes, wanted.data() + i * step);
      }
      ASSERT_OK(run({.copies = copies, .leaves_device = false}));
      ASSERT_EQ(wanted, contents(rig_.dst(), wanted.size())) << size_bytes << " " << count;
    }
  }
}

// As messages within a node are fetched.
TEST_F(CudaDirect, whatever_is_reached_is_copied) {
  DirectWorker& worker = DirectWorker::of(cuda_runtime(), 0);
  const auto copies = [&](void* dst, const void* src, std::size_t size_bytes) {
    const Copy copy{.dst = dst, .src = src, .row_bytes = size_bytes};
    bool done = false;
    EXPECT_OK(worker.copy({&copy, 1}, done));
    return done;
  };
  for (const std::size_t size_bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{8193},
                                       std::min(device::direct_copy_bytes(), kLaneBytes - 4)}) {
    const auto data = pattern(size_bytes, static_cast<unsigned>(size_bytes));
    ASSERT_OK(copy_one(rig_.src() + 4, data.data(), size_bytes));
    EXPECT_TRUE(copies(rig_.dst(), rig_.src() + 4, size_bytes));
    EXPECT_EQ(data, contents(rig_.dst(), size_bytes));
  }
  device::PointerInfo to;
  ASSERT_TRUE(cuda_runtime().classify(rig_.dst(), to));
  EXPECT_FALSE(
      copies(static_cast<std::byte*>(to.base) + to.size_bytes - 1, rig_.src(), std::size_t{2}));
}

TEST_F(CudaDirect, elements_are_combined_and_what_was_there_is_told) {
  constexpr std::size_t kCount = 3001;
  std::vector<std::int64_t> there(kCount);
  std::vector<std::int64_t> given(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    there[i] = static_cast<std::int64_t>(i) << 30;
    given[i] = 7 - static_cast<std::int64_t>(i);
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, kCount}) {
    put(rig_.src(), given);
    put(rig_.dst() + 8, there);
    std::byte* const result = rig_.dst() + kLaneBytes / 2;
    ASSERT_OK(update({.target = rig_.dst() + 8,
                      .operand = rig_.src(),
                      .result = result,
                      .size_bytes = count * 8,
                      .op = ReduceOp::sum,
                      .element = Element::int64}));
    auto wanted = there;
    for (std::size_t i = 0; i < count; ++i) wanted[i] += given[i];
    EXPECT_EQ(wanted, get<std::int64_t>(rig_.dst() + 8, kCount));
    EXPECT_EQ(std::vector(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(count)),
              get<std::int64_t>(result, count));
  }
}

TEST_F(CudaDirect, short_elements_leave_their_neighbours_alone) {
  put(rig_.src(), std::vector<std::uint8_t>{200});
  put(rig_.dst(), std::vector<std::uint8_t>{1, 2, 100, 4});
  ASSERT_OK(update({.target = rig_.dst() + 2,
                    .operand = rig_.src(),
                    .size_bytes = 1,
                    .op = ReduceOp::max,
                    .element = Element::uint8}));
  EXPECT_EQ((std::vector<std::uint8_t>{1, 2, 200, 4}), get<std::uint8_t>(rig_.dst(), 4));
}

TEST_F(CudaDirect, an_element_is_read_replaced_and_compared) {
  put(rig_.dst(), std::vector<double>{1.5, 2.5});
  put(rig_.src(), std::vector<double>{8.5, 2.5, -1.0, -1.0, -1.0});
  std::byte* const second = rig_.dst() + 8;
  std::byte* const result = rig_.src() + 16;
  ASSERT_OK(update({.target = second, .result = result, .size_bytes = 8}));
  ASSERT_OK(
      update({.target = rig_.dst(), .operand = rig_.src(), .result = result + 8, .size_bytes = 8}));
  EXPECT_EQ((std::vector<double>{8.5, 2.5}), get<double>(rig_.dst(), 2));
  const auto swap = [&](const std::byte* expected) {
    return update({.target = second,
                   .operand = rig_.src(),
                   .compare = expected,
                   .result = result + 16,
                   .size_bytes = 8});
  };
  ASSERT_OK(swap(rig_.src()));  // 8.5, which is not there
  EXPECT_EQ((std::vector<double>{8.5, 2.5}), get<double>(rig_.dst(), 2));
  ASSERT_OK(swap(rig_.src() + 8));
  EXPECT_EQ((std::vector<double>{8.5, 8.5}), get<double>(rig_.dst(), 2));
  EXPECT_EQ((std::vector<double>{8.5, 2.5, 2.5, 1.5, 2.5}), get<double>(rig_.src(), 5));
}

TEST_F(CudaDirect, operands_and_results_may_be_page_locked) {
  void* pinned = nullptr;
  ASSERT_OK(cuda_runtime().allocate(0, MemoryKind::pinned, 64, pinned));
  auto* const numbers = static_cast<int*>(pinned);
  numbers[0] = 5;
  numbers[1] = -1;
  put(rig_.dst(), std::vector<int>{30});
  ASSERT_OK(update({.target = rig_.dst(),
                    .operand = &numbers[0],
                    .result = &numbers[1],
                    .size_bytes = 4,
                    .op = ReduceOp::sum,
                    .element = Element::int32}));
  EXPECT_EQ(30, numbers[1]);
  EXPECT_EQ(std::vector<int>{35}, get<int>(rig_.dst(), 1));
  EXPECT_OK(cuda_runtime().free(pinned));
}

TEST_F(CudaDirect, it_knows_what_it_reaches) {
  DirectWorker& worker = DirectWorker::of(cuda_runtime(), 0);
  device::PointerInfo memory;
  ASSERT_TRUE(cuda_runtime().classify(rig_.dst(), memory));
  EXPECT_TRUE(worker.reaches(memory, rig_.dst(), 16));
  const auto* const end = static_cast<std::byte*>(memory.base) + memory.size_bytes;
  EXPECT_TRUE(worker.reaches(memory, end - 4, 4));
  EXPECT_FALSE(worker.reaches(memory, end - 4, 5));
  EXPECT_FALSE(worker.reaches({}, rig_.dst(), 16));
}

TEST_F(CudaDirect, it_is_wanted_by_those_who_come_often) {
  DirectWorker& worker = DirectWorker::of(cuda_runtime(), 0);
  constexpr int kPatience = 100000;  // where other programs take the processors' time
  bool wanted = false;
  for (int i = 0; i < kPatience && !wanted; ++i) wanted = worker.is_wanted();
  EXPECT_TRUE(wanted);
  for (int i = 0; i < 100; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    wanted = worker.is_wanted();
  }
  EXPECT_FALSE(wanted);
}

}  // namespace
}  // namespace accord::test
