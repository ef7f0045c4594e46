// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Lists of copies within a device or between two: part of cuda_runtime_test. Over the fake driver
// it tests the launches, on a GPU the kernel too.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cuda_fixture.h"
#include "device/cuda/copy_list.h"

namespace accord::device {
namespace {

using cuda::copy_list_launches;
using test::contents;
using test::copy_one;
using test::pattern;

class CudaCopyList : public test::Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    if (IsSkipped()) return;
    if (!runtime_.can_reduce(ReduceOp::sum, Element::int32)) GTEST_SKIP() << "no kernels";
  }

  // Copies of `sizes`, in a different order on either side and with any alignment; what lies
  // between them stays. Returns how many launches that took.
  std::uint64_t expect_copies(const std::vector<std::size_t>& sizes, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::size_t size_bytes = 0;
    std::vector<std::size_t> from;
    for (const std::size_t size : sizes) {
      size_bytes += random() % 40;
      from.push_back(size_bytes);
      size_bytes += size;
    }
    size_bytes += 40 * sizes.size();
    std::byte* const source = allocate(size_bytes);
    std::byte* const target = allocate(size_bytes);
    const auto data = pattern(size_bytes, seed);
    auto wanted = pattern(size_bytes, seed + 1);
    EXPECT_OK(copy_one(source, data.data(), size_bytes));
    EXPECT_OK(copy_one(target, wanted.data(), size_bytes));
    std::vector<Copy> copies;
    std::size_t to = 0;
    for (std::size_t i = sizes.size(); i-- > 0; to += sizes[i]) {
      // Every other one lies as its source does.
      to += i % 2 == 0 ? random() % 16 : (from[i] - to) % 16;
      copies.push_back({target + to, source + from[i], sizes[i]});
      std::memcpy(wanted.data() + to, data.data() + from[i], sizes[i]);
    }
    const std::uint64_t before = copy_list_launches();
    EXPECT_OK(runtime_.copy(0, copies));
    EXPECT_EQ(wanted, contents(target, size_bytes));
    return copy_list_launches() - before;
  }
};

TEST_F(CudaCopyList, takes_one_launch) {
  EXPECT_EQ(1u, expect_copies({1, 7, 16, 17, 4096, 65537}, 1));
  EXPECT_EQ(1u, expect_copies({3 << 20, 5, 1 << 20}, 2));
}

TEST_F(CudaCopyList, of_many_copies_takes_several) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 130; ++i) sizes.push_back(1 + i * 37 % 900);
  EXPECT_EQ(3u, expect_copies(sizes, 3));
}

TEST_F(CudaCopyList, random_ones_match_a_reference) {
  std::mt19937 random(4);
  for (std::uint32_t round = 0; round < 60; ++round) {
    std::vector<std::size_t> sizes(2 + random() % 20);
    for (std::size_t& size : sizes) size = 1 + random() % (round % 3 == 0 ? 40 : 70000);
    EXPECT_EQ(1u, expect_copies(sizes, 5 + round)) << round;
  }
}

TEST_F(CudaCopyList, can_be_polled) {
  const auto data = pattern(4096, 6);
  std::byte* const memory = allocate(8192);
  ASSERT_OK(copy_one(memory, data.data(), 4096));
  const Copy copies[] = {{memory + 4096, memory, 1000}, {memory + 5096, memory + 1000, 3096}};
  CopyTicket ticket;
  ASSERT_OK(runtime_.copy_begin(0, copies, ticket));
  for (bool done = false; !done;) ASSERT_OK(runtime_.copy_done(ticket, done));
  EXPECT_EQ(data, contents(memory + 4096, 4096));
}

TEST_F(CudaCopyList, takes_one_launch_between_devices_for_short_ones) {
  if (runtime_.device_count() < 2) GTEST_SKIP() << "one device only";
  int access = 0;
  ASSERT_CUDA(test::driver().device_can_access_peer(&access, 0, 1));
  if (access == 0) GTEST_SKIP() << "devices that cannot address each other";
  constexpr std::size_t most_bytes = std::size_t{256} << 10;
  const std::size_t size_bytes = most_bytes + 1000;
  void* far = nullptr;
  ASSERT_OK(runtime_.allocate(1, MemoryKind::device, size_bytes, far));
  std::byte* const near = allocate(size_bytes);
  const auto data = pattern(size_bytes, 8);
  ASSERT_OK(copy_one(far, data.data(), size_bytes, 1));
  const auto launches_of = [&](std::initializer_list<std::size_t> sizes) {
    const std::uint64_t before = copy_list_launches();
    std::vector<Copy> copies;
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
      copies.push_back({near + at, static_cast<std::byte*>(far) + at, size});
      at += size;
    }
    EXPECT_OK(runtime_.copy(0, copies));
    EXPECT_EQ((std::vector<unsigned char>(data.begin(), data.begin() + static_cast<long>(at))),
              contents(near, at));
    return copy_list_launches() - before;
  };
  EXPECT_EQ(1u, launches_of({most_bytes, 100, 200, 700}));
  EXPECT_EQ(0u, launches_of({most_bytes + 1, 100, 200, 699}));
  EXPECT_EQ(0u, launches_of({100, 200, 300}));
  // A kernel of the program may wait for them: to load or launch one of ours would wait for that.
  const std::uint64_t before = copy_list_launches();
  const std::vector<Copy> four = [&] {
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < 4; ++i)
      copies.push_back({near + 200 * i, static_cast<std::byte*>(far) + 200 * i, 100});
    return copies;
  }();
  CopyTicket ticket;
  ASSERT_OK(runtime_.copy_begin_beside_kernels(0, four, ticket));
  for (bool done = false; !done;) ASSERT_OK(runtime_.copy_done(ticket, done));
  EXPECT_EQ(before, copy_list_launches());
  EXPECT_OK(runtime_.free(far));
}

// Copy engines are there for what leaves for the host, and they alone reach all of it.
TEST_F(CudaCopyList, goes_by_copies_where_one_side_is_elsewhere) {
  std::vector<unsigned char> pageable = pattern(64, 7);
  void* pinned = nullptr;
  ASSERT_OK(runtime_.allocate(0, MemoryKind::pinned, 64, pinned));
  std::byte* const memory = allocate(256);
  for (void* host : {static_cast<void*>(pageable.data()), pinned}) {
    const std::uint64_t before = copy_list_launches();
    const Copy in[] = {{memory, host, 32}, {memory + 32, static_cast<std::byte*>(host) + 32, 32}};
    EXPECT_OK(runtime_.copy(0, in));
    const Copy mixed[] = {{memory + 64, memory, 64}, {host, memory, 64}};
    EXPECT_OK(runtime_.copy(0, mixed));
    EXPECT_EQ(before, copy_list_launches());
    EXPECT_EQ(0, std::memcmp(contents(memory + 64, 64).data(), host, 64));
  }
  EXPECT_OK(runtime_.free(pinned));
  const Copy one{memory + 128, memory, 64};
  const Copy rows[] = {{memory + 128, memory, 8, 4, 16, 16}, {memory + 200, memory, 8}};
  const std::uint64_t before = copy_list_launches();
  EXPECT_OK(runtime_.copy(0, {&one, 1}));
  EXPECT_OK(runtime_.copy(0, rows));
  EXPECT_EQ(before, copy_list_launches());
}

}  // namespace
}  // namespace accord::device
