// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies on a device whose kernels take turns with those of other processes: part of
// cuda_runtime_test. The fake driver counts what would wait for a turn.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cuda_fixture.h"
#include "device/cuda/turn_copies.h"
#include "fake_cuda_control.h"

namespace accord::device {
namespace {

using cuda::HostMemory;
using cuda::TurnCopies;
using test::contents;
using test::Cuda;
using test::driver;
using test::fake_cuda;
using test::pattern;

class TurnCopiesTest : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    if (!IsSkipped()) copies_.expect(driver(), 0);
  }

  Status copy(void* dst, const void* src, std::size_t size_bytes) {
    const Copy one{.dst = dst, .src = src, .row_bytes = size_bytes};
    return copies_.copy(driver(), 0, {&one, 1});
  }
  unsigned turns() const { return fake_cuda() == nullptr ? 0 : fake_cuda()->turns(); }

  HostMemory host_memory_;
  TurnCopies copies_{host_memory_};
};

TEST_F(TurnCopiesTest, wait_for_no_turn) {
  for (const std::size_t size_bytes :
       {std::size_t{2}, std::size_t{3}, std::size_t{8}, std::size_t{4097}, std::size_t{32767},
        std::size_t{32768}, std::size_t{1} << 20}) {
    const auto data = pattern(size_bytes, 1);
    std::byte* first = allocate(size_bytes + 3);
    std::byte* second = allocate(size_bytes + 1);
    std::byte end{42};
    ASSERT_OK(test::copy_one(second + size_bytes, &end, 1));
    const unsigned before = turns();
    EXPECT_OK(copy(first + 3, data.data(), size_bytes));
    EXPECT_OK(copy(second, first + 3, size_bytes));
    std::vector<unsigned char> back(size_bytes);
    EXPECT_OK(copy(back.data(), second, size_bytes));
    EXPECT_EQ(before, turns()) << size_bytes;
    EXPECT_EQ(data, back) << size_bytes;
    EXPECT_EQ(std::vector<unsigned char>(1, 42), contents(second + size_bytes, 1)) << size_bytes;
  }
}

TEST_F(TurnCopiesTest, leave_what_is_long_to_kernels) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const auto data = pattern(kBytes, 2);
  std::byte* first = allocate(kBytes);
  std::byte* second = allocate(kBytes);
  ASSERT_OK(copy(first, data.data(), kBytes));
  const unsigned before = turns();
  EXPECT_OK(copy(second, first, kBytes));
  if (fake_cuda() != nullptr) {
    EXPECT_EQ(before + 1, turns());
  }
  EXPECT_EQ(data, contents(second, kBytes));
}

TEST_F(TurnCopiesTest, keep_pitches) {
  constexpr std::size_t kRow = 100;
  constexpr std::size_t kRows = 7;
  const auto data = pattern(kRows * 2 * kRow, 3);
  std::byte* first = allocate(data.size());
  std::byte* second = allocate(3 * kRow * kRows);
  ASSERT_OK(copy(first, data.data(), data.size()));
  const Copy rows{.dst = second,
                  .src = first,
                  .row_bytes = kRow,
                  .rows = kRows,
                  .dst_pitch_bytes = 3 * kRow,
                  .src_pitch_bytes = 2 * kRow};
  const unsigned before = turns();
  ASSERT_OK(copies_.copy(driver(), 0, {&rows, 1}));
  EXPECT_EQ(before, turns());
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto* const start = data.data() + 2 * kRow * row;
    EXPECT_EQ(std::vector<unsigned char>(start, start + kRow),
              contents(second + 3 * kRow * row, kRow));
  }
}

// Several under way at once have host memory of their own.
TEST_F(TurnCopiesTest, overlap) {
  constexpr std::size_t kBytes = 5000;
  std::vector<CopyTicket> tickets(8);
  std::vector<std::vector<unsigned char>> data;
  std::vector<std::byte*> ends;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    data.push_back(pattern(kBytes, static_cast<unsigned>(i)));
    std::byte* source = allocate(kBytes);
    ends.push_back(allocate(kBytes));
    ASSERT_OK(copy(source, data.back().data(), kBytes));
    const Copy one{.dst = ends.back(), .src = source, .row_bytes = kBytes};
    ASSERT_OK(copies_.begin(driver(), 0, {&one, 1}, tickets[i]));
  }
  for (CopyTicket& ticket : tickets)
    for (bool done = false; !done;) ASSERT_OK(copies_.done(driver(), ticket, done));
  for (std::size_t i = 0; i < ends.size(); ++i) EXPECT_EQ(data[i], contents(ends[i], kBytes));
}

// To page-lock more might wait for kernels: what finds none left goes by a kernel.
TEST_F(TurnCopiesTest, take_only_what_is_page_locked_already) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto data = pattern(kBytes, 5);
  std::byte* source = allocate(kBytes);
  ASSERT_OK(copy(source, data.data(), kBytes));
  const unsigned before = turns();
  std::vector<CopyTicket> tickets(16);
  std::vector<std::byte*> ends;
  for (CopyTicket& ticket : tickets) {
    ends.push_back(allocate(kBytes));
    const Copy one{.dst = ends.back(), .src = source, .row_bytes = kBytes};
    ASSERT_OK(copies_.begin(driver(), 0, {&one, 1}, ticket));
  }
  if (fake_cuda() != nullptr) {
    EXPECT_LT(before, turns());
  }
  for (CopyTicket& ticket : tickets)
    for (bool done = false; !done;) ASSERT_OK(copies_.done(driver(), ticket, done));
  for (std::byte* end : ends) EXPECT_EQ(data, contents(end, kBytes));
}

// Staging keeps what it has once had.
TEST_F(TurnCopiesTest, wait_for_no_turn_where_others_have_taken_all_that_was_idle) {
  constexpr std::size_t kBytes = std::size_t{128} << 10;
  std::vector<void*> taken;
  while (void* const idle = host_memory_.take(4096)) taken.push_back(idle);
  const auto data = pattern(kBytes, 6);
  std::byte* source = allocate(kBytes);
  ASSERT_OK(copy(source, data.data(), kBytes));
  const unsigned before = turns();
  std::vector<CopyTicket> tickets(4);
  std::vector<std::byte*> ends;
  for (int round = 0; round < 3; ++round) {
    for (CopyTicket& ticket : tickets) {
      ends.push_back(allocate(kBytes));
      const Copy one{.dst = ends.back(), .src = source, .row_bytes = kBytes};
      ASSERT_OK(copies_.begin(driver(), 0, {&one, 1}, ticket));
    }
    for (CopyTicket& ticket : tickets)
      for (bool done = false; !done;) ASSERT_OK(copies_.done(driver(), ticket, done));
  }
  EXPECT_EQ(before, turns());
  for (std::byte* end : ends) EXPECT_EQ(data, contents(end, kBytes));
  for (void* const idle : taken) host_memory_.free(&driver(), idle, 4096);
}

TEST_F(TurnCopiesTest, go_as_ever_where_nobody_shares) {
  TurnCopies alone(host_memory_);
  const auto data = pattern(8, 4);
  std::byte* memory = allocate(8);
  const Copy one{.dst = memory, .src = data.data(), .row_bytes = 8};
  const unsigned before = turns();
  EXPECT_OK(alone.copy(driver(), 0, {&one, 1}));
  if (fake_cuda() != nullptr) {
    EXPECT_EQ(before + 1, turns());
  }
  EXPECT_EQ(data, contents(memory, 8));
}

}  // namespace
}  // namespace accord::device
