// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies by the kernel that stays on the device.
#include "device/direct_work.h"
#include "outbox_world.h"

namespace accord::test {
namespace {

class DirectCopy : public testing::Test {
 protected:
  bool moves(std::span<const device::Copy> copies) {
    bool done = false;
    EXPECT_OK(worker_.copy(copies, done));
    return done;
  }
  bool moves(void* dst, const void* src, std::size_t size_bytes) {
    const device::Copy copy{.dst = dst, .src = src, .row_bytes = size_bytes};
    return moves({&copy, 1});
  }

  device::DirectWorker worker_{device::host_runtime(), 0};
};

Bytes pattern(std::size_t size_bytes, unsigned seed) {
  Bytes bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + seed);
  return bytes;
}

TEST_F(DirectCopy, moves_any_number_of_bytes_again_and_again) {
  for (const std::size_t size_bytes :
       {std::size_t{1}, kMessageBytes, device::direct_copy_bytes()}) {
    Buffer from(size_bytes);
    Buffer to(size_bytes);
    for (unsigned round = 0; round < 3; ++round) {
      const Bytes sent = pattern(size_bytes, round);
      from.write(sent);
      EXPECT_TRUE(moves(to.address(), from.address(), size_bytes));
      EXPECT_EQ(sent, to.read(size_bytes));
    }
  }
}

TEST_F(DirectCopy, moves_to_page_locked_memory_and_back) {
  const Bytes sent = pattern(kMessageBytes, 3);
  Buffer from(kMessageBytes);
  from.write(sent);
  const Buffer staging(kMessageBytes, device::MemoryKind::pinned);
  Buffer to(kMessageBytes);
  EXPECT_TRUE(moves(staging.address(), from.address(), kMessageBytes));
  EXPECT_TRUE(moves(to.address(), staging.address(), kMessageBytes));
  EXPECT_EQ(sent, to.read(kMessageBytes));
}

// Of several allocations, some in rows that lie apart.
TEST_F(DirectCopy, moves_several_together) {
  constexpr std::size_t kBytes = 100;
  constexpr std::size_t kRows = 7;
  const Bytes sent = pattern(kRows * kBytes, 11);
  Buffer from(sent.size());
  from.write(sent);
  Buffer one(kBytes);
  Buffer apart(2 * kRows * kBytes);
  Bytes wanted(apart.size_bytes(), 0xcc);
  apart.write(wanted);
  const std::array both{device::Copy{.dst = one.address(),
                                     .src = static_cast<const std::byte*>(from.address()) + kBytes,
                                     .row_bytes = kBytes},
                        device::Copy{.dst = apart.address(),
                                     .src = from.address(),
                                     .row_bytes = kBytes,
                                     .rows = kRows,
                                     .dst_pitch_bytes = 2 * kBytes,
                                     .src_pitch_bytes = kBytes}};
  EXPECT_TRUE(moves(both));
  EXPECT_EQ(Bytes(sent.begin() + kBytes, sent.begin() + 2 * kBytes), one.read(kBytes));
  for (std::size_t row = 0; row < kRows; ++row)
    std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(row * kBytes), kBytes,
                wanted.begin() + static_cast<std::ptrdiff_t>(2 * row * kBytes));
  EXPECT_EQ(wanted, apart.read(wanted.size()));
}

TEST_F(DirectCopy, leaves_alone_what_it_cannot_move) {
  const std::size_t most_bytes = device::direct_copy_bytes();
  Buffer from(2 * most_bytes);
  Buffer to(kMessageBytes);
  Bytes host(kMessageBytes);
  EXPECT_TRUE(moves(to.address(), from.address(), kMessageBytes));
  EXPECT_FALSE(moves(to.address(), from.address(), kMessageBytes + 1));
  EXPECT_FALSE(moves(host.data(), from.address(), kMessageBytes));
  EXPECT_FALSE(moves(to.address(), host.data(), kMessageBytes));
  const Buffer large(2 * most_bytes);
  EXPECT_FALSE(moves(large.address(), from.address(), most_bytes + 1));
}

// Rows that end behind their allocation, more than go together, and one that does not go: nothing
// is moved then.
TEST_F(DirectCopy, moves_all_or_nothing) {
  Buffer from(kMessageBytes);
  from.write(pattern(kMessageBytes, 1));
  Buffer to(kMessageBytes);
  const Bytes before(kMessageBytes, 0xcc);
  to.write(before);
  device::Copy rows{.dst = to.address(),
                    .src = from.address(),
                    .row_bytes = 8,
                    .rows = 4,
                    .dst_pitch_bytes = kMessageBytes / 3,
                    .src_pitch_bytes = 16};
  EXPECT_FALSE(moves({&rows, 1}));
  rows = {.dst = to.address(),
          .src = from.address(),
          .row_bytes = 1,
          .rows = device::kDirectCopiesMax + 1,
          .dst_pitch_bytes = 2,
          .src_pitch_bytes = 2};
  EXPECT_FALSE(moves({&rows, 1}));
  Bytes host(8);
  const std::array mixed{
      device::Copy{.dst = to.address(), .src = from.address(), .row_bytes = 8},
      device::Copy{.dst = to.address(), .src = host.data(), .row_bytes = host.size()}};
  EXPECT_FALSE(moves(mixed));
  EXPECT_EQ(before, to.read(kMessageBytes));
}

}  // namespace
}  // namespace accord::test
