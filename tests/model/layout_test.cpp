// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Typemaps, copy lists and staged buffers against a byte-by-byte reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/staged_buffer.h"
#include "fake_device.h"

namespace accord::core {
namespace {

using model::FakeDevice;
using model::Random;

constexpr std::size_t kAreaBytes = 4096;
constexpr std::ptrdiff_t kOriginBytes = 2048;  // of the buffer in its area: runs may lie below it

// A random type: disjoint runs in any order, and an extent of either sign that keeps elements apart
// or, for sources, may let them overlap.
struct RandomType {
  std::vector<Run> runs;
  std::ptrdiff_t extent_bytes = 0;
};

RandomType random_type(Random& random) {
  RandomType type;
  std::vector<Run> layout;
  std::ptrdiff_t at = static_cast<std::ptrdiff_t>(random.below(20)) - 10;
  const std::ptrdiff_t low = at;
  const std::size_t runs = random.below(5);
  for (std::size_t i = 0; i < runs; ++i) {
    const std::size_t length = random.below(9);
    if (random.percent(10)) layout.push_back({kPadding, 1 + random.below(4), 0});
    layout.push_back({at, length, 0});
    at += static_cast<std::ptrdiff_t>(length + (random.percent(40) ? 0 : random.below(6)));
  }
  for (std::size_t i = layout.size(); i > 1; --i) {
    if (random.percent(30)) std::swap(layout[i - 1], layout[random.below(i)]);
  }
  type.runs = layout;
  type.extent_bytes =
      at - low + static_cast<std::ptrdiff_t>(random.percent(50) ? 0 : random.below(8));
  if (random.percent(15)) type.extent_bytes = -type.extent_bytes;
  return type;
}

// Offsets, from the buffer's address, of the packed bytes of a segment in order; kPadding where
// there is no byte.
std::vector<std::ptrdiff_t> reference_bytes(const RandomType& type, std::size_t count,
                                            std::ptrdiff_t offset) {
  std::vector<std::ptrdiff_t> bytes;
  for (std::size_t element = 0; element < count; ++element) {
    for (const Run& run : type.runs) {
      for (std::size_t i = 0; i < run.length_bytes; ++i) {
        if (run.offset_bytes == kPadding) {
          bytes.push_back(kPadding);
          continue;
        }
        bytes.push_back(offset + static_cast<std::ptrdiff_t>(element) * type.extent_bytes +
                        run.offset_bytes + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  return bytes;
}

Segment segment_of(const RandomType& type, std::size_t count, std::ptrdiff_t offset) {
  return {std::make_shared<const Typemap>(type.runs, type.extent_bytes), count, offset};
}

TEST(Typemap, MergesRunsAndKnowsItsBounds) {
  const Typemap merged({{0, 4, 0}, {4, 4, 0}, {8, 0, 0}, {12, 2, 0}}, 16);
  ASSERT_EQ(merged.runs().size(), 2u);
  EXPECT_EQ(merged.runs()[0].length_bytes, 8u);
  EXPECT_EQ(merged.runs()[1].packed_bytes, 8u);
  EXPECT_EQ(merged.size_bytes(), 10u);
  EXPECT_EQ(merged.high_bytes(), 14);
  EXPECT_FALSE(merged.dense());
  EXPECT_TRUE(Typemap::contiguous(8)->dense());
  EXPECT_FALSE(Typemap({{0, 8, 0}}, 12).dense());
  EXPECT_TRUE(Typemap({{4, 8, 0}}, 8).dense());  // shifted, yet without gaps
}

TEST(Layout, PiecesAreTheBytesInTypemapOrder) {
  Random random(1);
  for (int round = 0; round < 20'000; ++round) {
    const RandomType type = random_type(random);
    const std::size_t count = random.below(5);
    const auto offset = static_cast<std::ptrdiff_t>(random.below(64)) - 32;
    const auto wanted = reference_bytes(type, count, offset);
    const Segment segment = segment_of(type, count, offset);
    ASSERT_EQ(segment.size_bytes(), wanted.size());
    for (const std::ptrdiff_t at : wanted) {
      if (at == kPadding) continue;
      ASSERT_LE(segment.low_bytes(), at);
      ASSERT_GT(segment.high_bytes(), at);
    }
    const std::size_t first = random.below(wanted.size() + 1);
    const std::size_t length = random.below(wanted.size() - first + 1);
    std::vector<std::ptrdiff_t> found(length, kPadding);
    std::size_t reached = first;
    for_each_piece(segment, first, length,
                   [&](std::ptrdiff_t at, std::size_t packed, std::size_t bytes) {
                     ASSERT_GE(packed, reached);  // in order
                     reached = packed + bytes;
                     ASSERT_LE(reached, first + length);
                     for (std::size_t i = 0; i < bytes; ++i)
                       found[packed - first + i] = at + static_cast<std::ptrdiff_t>(i);
                   });
    const auto from = wanted.begin() + static_cast<std::ptrdiff_t>(first);
    ASSERT_EQ(found, std::vector<std::ptrdiff_t>(from, from + static_cast<std::ptrdiff_t>(length)));
  }
}

TEST(Layout, FindsTheFirstCommonByte) {
  Random random(4);
  std::vector<std::byte> area(kAreaBytes);
  int with_one = 0;
  for (int round = 0; round < 20'000; ++round) {
    Segment segments[2];
    std::set<std::ptrdiff_t> bytes[2];
    for (int i = 0; i < 2; ++i) {
      const RandomType type = random_type(random);
      const std::size_t count = random.below(6);
      const auto offset = kOriginBytes + static_cast<std::ptrdiff_t>(random.below(64));
      segments[i] = segment_of(type, count, offset);
      for (const std::ptrdiff_t at : reference_bytes(type, count, offset))
        if (at != kPadding) bytes[i].insert(at);
    }
    std::vector<std::ptrdiff_t> common;
    std::ranges::set_intersection(bytes[0], bytes[1], std::back_inserter(common));
    const std::byte* const wanted = common.empty() ? nullptr : area.data() + common.front();
    ASSERT_EQ(first_common_byte(segments[0], area.data(), segments[1], area.data()), wanted);
    with_one += common.empty() ? 0 : 1;
  }
  EXPECT_GT(with_one, 2'000);
  EXPECT_LT(with_one, 18'000);
}

// Which source address each destination byte comes from.
std::map<const void*, const void*> moves_of(const CopyList& list) {
  std::map<const void*, const void*> moves;
  for (const device::Copy& copy : list.copies()) {
    for (std::size_t row = 0; row < copy.rows; ++row) {
      for (std::size_t i = 0; i < copy.row_bytes; ++i) {
        moves[static_cast<std::byte*>(copy.dst) + row * copy.dst_pitch_bytes + i] =
            static_cast<const std::byte*>(copy.src) + row * copy.src_pitch_bytes + i;
      }
    }
  }
  return moves;
}

TEST(CopyList, JoinsWithoutMovingOtherBytes) {
  Random random(2);
  std::vector<std::byte> user(kAreaBytes);
  std::vector<std::byte> host(kAreaBytes);
  for (int round = 0; round < 5'000; ++round) {
    const RandomType type = random_type(random);
    const std::size_t count = random.below(random.percent(50) ? 6 : 24);
    const auto bytes = reference_bytes(type, count, kOriginBytes);
    const Segment segment = segment_of(type, count, kOriginBytes);
    std::size_t first = random.below(bytes.size() + 1);
    std::size_t length = random.below(bytes.size() - first + 1);
    if (count > 0 && random.percent(50)) {  // whole elements
      const std::size_t element = bytes.size() / count;
      const std::size_t skipped = random.below(count + 1);
      first = skipped * element;
      length = random.below(count - skipped + 1) * element;
    }
    CopyList list;
    list.append_rows(
        packed_copy(segment, user.data(), first, length, host.data(), LayoutCopy::Direction::pack));
    std::map<const void*, const void*> wanted;
    for (std::size_t i = 0; i < length; ++i) {
      if (bytes[first + i] != kPadding) wanted[host.data() + i] = user.data() + bytes[first + i];
    }
    ASSERT_EQ(moves_of(list), wanted);
  }
}

TEST(CopyList, MakesRectanglesOfEqualSteps) {
  std::vector<std::byte> dst(256);
  std::vector<std::byte> src(256);
  CopyList list;
  for (std::size_t row = 0; row < 5; ++row)
    list.append(dst.data() + row * 16, src.data() + row * 24, 8);
  ASSERT_EQ(list.copies().size(), 1u);
  EXPECT_EQ(list.copies()[0].rows, 5u);
  list.append(dst.data() + 200, src.data() + 200, 8);  // another step
  EXPECT_EQ(list.copies().size(), 2u);
  CopyList rows;
  rows.append_rows({dst.data(), src.data(), 8, 4, 4, 4});  // rows that overlap make no rectangle
  EXPECT_TRUE(rows.copies().size() > 1 || rows.copies()[0].rows == 1);
  EXPECT_EQ(moves_of(rows).size(), 20u);
}

// {short, int} and the like, of which there may be millions.
TEST(CopyList, MakesARectangleOfEachRunOfManyElements) {
  constexpr std::size_t kCount = 100;
  std::vector<std::byte> user(kCount * 8);
  std::vector<std::byte> host(kCount * 6);
  const Segment segment{
      std::make_shared<const Typemap>(std::vector<core::Run>{{0, 2, 0}, {4, 4, 0}}, 8), kCount, 0};
  for (const bool to_host : {true, false}) {
    CopyList list;
    list.append_rows(
        packed_copy(segment, user.data(), 60, 240, host.data(),
                    to_host ? LayoutCopy::Direction::pack : LayoutCopy::Direction::unpack));
    ASSERT_EQ(list.copies().size(), 2u);
    for (const device::Copy& copy : list.copies()) EXPECT_EQ(copy.rows, 40u);
    const auto& last = list.copies()[1];
    EXPECT_EQ(to_host ? last.src : last.dst, user.data() + 84);
    EXPECT_EQ(to_host ? last.dst : last.src, host.data() + 2);
    // Cut within elements: what is left of the first and of the last one goes beside the whole
    // ones.
    CopyList cut;
    cut.append_rows(
        packed_copy(segment, user.data(), 61, 240, host.data(),
                    to_host ? LayoutCopy::Direction::pack : LayoutCopy::Direction::unpack));
    EXPECT_LE(cut.copies().size(), 6u);
  }
}

// A buffer on a fake device: the call reads and writes exactly the declared bytes.
TEST(StagedBuffer, MovesExactlyTheDeclaredBytes) {
  Random random(3);
  FakeDevice& device = FakeDevice::get(0);
  void* area = nullptr;
  ASSERT_TRUE(device.allocate(0, device::MemoryKind::device, kAreaBytes, area).ok());
  std::byte* const user = static_cast<std::byte*>(area) + kOriginBytes;
  std::byte* const bytes = device.behind(user);
  for (int round = 0; round < 4'000; ++round) {
    for (std::size_t i = 0; i < kAreaBytes; ++i)
      bytes[static_cast<std::ptrdiff_t>(i) - kOriginBytes] = std::byte(random.next());
    const std::vector<std::byte> before(bytes - kOriginBytes, bytes - kOriginBytes + kAreaBytes);
    StagedBuffer buffer = StagedBuffer::staged(user, FakeDevice::classify_any(user));
    std::vector<std::ptrdiff_t> reads;
    std::vector<std::ptrdiff_t> writes;
    std::set<std::ptrdiff_t> written_once;
    for (std::size_t i = random.below(3) + 1; i > 0; --i) {
      RandomType type = random_type(random);
      const std::size_t count = random.below(5);
      const auto offset = static_cast<std::ptrdiff_t>(random.below(600)) - 300;
      const bool written = random.percent(60);
      const auto part = reference_bytes(type, count, offset);
      if (written) {
        // No byte may be written twice, as in MPI.
        const auto twice = [&](std::ptrdiff_t at) {
          return at != kPadding && written_once.contains(at);
        };
        if (std::any_of(part.begin(), part.end(), twice)) continue;
        written_once.insert(part.begin(), part.end());
      }
      (written ? writes : reads).insert((written ? writes : reads).end(), part.begin(), part.end());
      written ? buffer.writes(segment_of(type, count, offset))
              : buffer.reads(segment_of(type, count, offset));
    }
    ASSERT_TRUE(buffer.open().ok());
    ASSERT_TRUE(buffer.copy_in().ok());
    auto* shadow = static_cast<std::byte*>(buffer.host());
    for (const std::ptrdiff_t at : reads) {
      ASSERT_TRUE(at == kPadding || shadow[at] == bytes[at]) << at;
    }
    std::vector<std::byte> wanted = before;
    const std::size_t limit =
        random.percent(50) ? StagedBuffer::kAll : random.below(writes.size() + 2);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (writes[i] == kPadding) continue;
      shadow[writes[i]] = std::byte(random.next());
      if (i < limit) wanted[static_cast<std::size_t>(kOriginBytes + writes[i])] = shadow[writes[i]];
    }
    ASSERT_TRUE(buffer.copy_out(limit).ok());
    ASSERT_EQ(std::vector<std::byte>(bytes - kOriginBytes, bytes - kOriginBytes + kAreaBytes),
              wanted);
  }
  ASSERT_TRUE(device.free(area).ok());
  device::staging_pool().trim();
  EXPECT_EQ(device.live_host_allocations(), 0u);
}

TEST(StagedBuffer, UntouchedIsHandedOverAsItIs) {
  int value = 0;
  StagedBuffer buffer = StagedBuffer::untouched(&value);
  buffer.writes({Typemap::contiguous(4), 1, 0});
  ASSERT_TRUE(buffer.open().ok());
  EXPECT_EQ(buffer.host(), &value);
  EXPECT_TRUE(buffer.copy_out().ok());
}

TEST(StagedBuffer, NothingToMoveStillHasAPointer) {
  FakeDevice& device = FakeDevice::get(1);
  void* user = nullptr;
  ASSERT_TRUE(device.allocate(0, device::MemoryKind::device, 64, user).ok());
  StagedBuffer buffer = StagedBuffer::staged(user, FakeDevice::classify_any(user));
  buffer.writes({Typemap::contiguous(4), 0, 0});
  ASSERT_TRUE(buffer.open().ok());
  EXPECT_NE(buffer.host(), nullptr);
  EXPECT_EQ(FakeDevice::owner(buffer.host()), nullptr);
  ASSERT_TRUE(device.free(user).ok());
}

}  // namespace
}  // namespace accord::core
