// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions and layouts of the Level Zero runtime, over the real loader, its validation layer and
// the test driver, which runs the kernels as the CPU's compiler has made them, or the library's
// SPIR-V by OpenCL (ACCORD_TEST_ZE_OPENCL).
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "../unit/pack_check.h"
#include "../unit/reduction_check.h"
#include "device/level_zero/pack.h"
#include "driver_control.h"

namespace accord::device {
DeviceRuntime& level_zero_runtime();
}

namespace {

using namespace accord;
using namespace accord::device;
using test::Half;
using test::Held;
using test::Slots;
using test::ValueAndIndex;
using test::level_zero::DriverControl;
using Runs = std::vector<device::Run>;  // Run is a name of testing::Test

class LevelZeroKernels : public testing::Test {
 protected:
  // The runtime knows what a device can do once there is memory of it.
  void SetUp() override {
    EXPECT_OK(runtime_.allocate(0, MemoryKind::device, 64, memory_));
    ASSERT_TRUE(runtime_.can_reduce(ReduceOp::sum, Element::int32));
  }
  void TearDown() override { EXPECT_OK(runtime_.free(memory_)); }

  DeviceRuntime& runtime_ = level_zero_runtime();
  void* memory_ = nullptr;
};

#define ACCORD_ELEMENT_TEST(element, ...)                         \
  TEST_F(LevelZeroKernels, element) {                             \
    test::check_element<__VA_ARGS__>(runtime_, Element::element); \
  }
ACCORD_TEST_ELEMENTS(ACCORD_ELEMENT_TEST)
#undef ACCORD_ELEMENT_TEST

TEST_F(LevelZeroKernels, large) { test::check_large(runtime_); }
TEST_F(LevelZeroKernels, many_sources) { test::check_many_sources(runtime_); }
TEST_F(LevelZeroKernels, kinds_of_memory) { test::check_kinds_of_memory(runtime_); }
TEST_F(LevelZeroKernels, errors) { test::check_errors(runtime_); }

// Made resident where it is not at home, which the test driver insists on.
TEST_F(LevelZeroKernels, memory_of_another_device) {
  Slots near(runtime_, 1, 1000);
  Slots far(runtime_, 1, 1000, MemoryKind::device, 1);
  near.upload(0);
  far.upload(0);
  const void* const sources[] = {near.at(0), far.at(0)};
  ASSERT_OK(test::reduce(runtime_, {far.at(0), sources, 1000, ReduceOp::bxor, Element::uint8}));
  const auto seen = far.download(0);
  for (std::size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(near.contents(0)[i] ^ far.contents(0)[i], seen[i]) << i;
}

// Threads share the kernels, whose arguments are part of them.
TEST_F(LevelZeroKernels, threads) {
  const auto work = [&](unsigned seed) {
    for (std::size_t count = 100 + seed; count < 1100; count += 100) {
      Status status;
      test::ReductionCheck<std::int32_t> check(runtime_, Element::int32, ReduceOp::sum,
                                               test::Alignment::common, 3, count);
      EXPECT_TRUE(check.run(3, count, 0, status)) << status.message();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LevelZeroKernels, layouts) {
  test::Layouts(runtime_, MemoryKind::pinned).check(60, 11);
  test::Layouts(runtime_, MemoryKind::device).check(60, 12);
}

// Which layouts kernels follow: short rows, on both sides in memory that they reach.
TEST_F(LevelZeroKernels, follow_short_rows) {
  if (std::getenv("ACCORD_TEST_PACK") != nullptr) GTEST_SKIP() << "where nobody has chosen";
  constexpr std::size_t kBytes = 1 << 20;
  Slots device_memory(runtime_, 1, kBytes);
  device_memory.upload(0);
  Runs squares;
  for (std::ptrdiff_t i = 0; i < 300; ++i) squares.push_back({i * i * 8, 8, 0});
  const auto launches = [&](const Runs& runs, std::ptrdiff_t extent_bytes, std::size_t elements,
                            void* packed) {
    const auto type = std::make_shared<const Typemap>(runs, extent_bytes);
    const std::uint64_t before = level_zero::pack_launches();
    CopyBatch batch;
    batch.append({type, device_memory.at(0), static_cast<std::byte*>(packed), 0,
                  type->size_bytes() * elements, LayoutCopy::Direction::pack});
    EXPECT_OK(runtime_.copy_batch(0, batch));
    return level_zero::pack_launches() - before;
  };
  Slots pinned(runtime_, 1, 80'000, MemoryKind::pinned);
  std::vector<unsigned char> plain(80'000);
  EXPECT_EQ(1U, launches({{0, 8, 0}}, 16, 10'000, pinned.at(0)));
  EXPECT_EQ(1U, launches(squares, 300 * 300 * 8, 1, pinned.at(0)));
  EXPECT_EQ(0U, launches({{0, 8, 0}}, 16, 2, pinned.at(0))) << "two rows";
  EXPECT_EQ(0U, launches({{0, 8, 0}}, 16, 10'000, plain.data())) << "plain host memory";
}

TEST_F(LevelZeroKernels, keep_nothing) {
  const DriverControl driver;
  const auto work = [&] {
    Status status;
    test::ReductionCheck<float> check(runtime_, Element::float32, ReduceOp::sum,
                                      test::Alignment::odd, 3, 1000);
    EXPECT_TRUE(check.run(3, 1000, 0, status)) << status.message();
    test::Layouts(runtime_, MemoryKind::device).check(2, 3);
  };
  work();
  const Held before = driver.held();
  for (int i = 0; i < 10; ++i) work();
  EXPECT_EQ(driver.held(), before);
}

}  // namespace
