// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How layouts are followed: by the arithmetic of the kernels, and by copies of rows; then by the
// host runtime, also with ACCORD_TEST_PACK set.
#include "device/host/pack.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "device/registry.h"
#include "pack_check.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

using test::kLayoutBytes;
using test::pattern;
using Runs = std::vector<device::Run>;  // Run is a name of testing::Test

TEST(Typemap, finds_nested_steps) {
  test::Random random(1);
  for (int round = 0; round < 500; ++round) {
    const std::size_t levels = test::below(random, 5);
    const auto drawn = test::nested_type(random, levels, 1 + test::below(random, 4));
    ASSERT_TRUE(drawn.type->regular()) << round;
    EXPECT_LE(drawn.type->steps().level_count, levels);
  }
  EXPECT_FALSE(Typemap({{0, 4, 0}, {8, 4, 0}, {24, 4, 0}}, 32).regular());
  EXPECT_FALSE(Typemap({{0, 4, 0}, {8, 2, 0}}, 16).regular());
  EXPECT_FALSE(Typemap({{0, 10, 0}, {kPadding, 6, 0}}, 16).regular());
  // The face of a box of doubles: planes of 8 rows, of which 2 numbers each.
  Runs face;
  for (std::ptrdiff_t plane = 0; plane < 6; ++plane) {
    for (std::ptrdiff_t row = 0; row < 8; ++row)
      face.push_back({(plane * 10 + row) * 80 + 16, 16, 0});
  }
  const Typemap typemap(face, 4800);
  ASSERT_EQ(2U, typemap.steps().level_count);
  EXPECT_EQ(8U, typemap.steps().levels[0].count);
  EXPECT_EQ(800, typemap.steps().levels[1].step_bytes);
  EXPECT_EQ(6U, typemap.rectangles());
}

// However many rows a column has, it is one block; so is what programs write as an index of rows.
TEST(Typemap, takes_the_memory_of_its_making) {
  constexpr std::size_t kRows = std::size_t{1} << 40;
  const Block column = Block::run(8).repeated(kRows, 4096);
  EXPECT_TRUE(Typemap(column, 4096).regular());
  EXPECT_EQ(kRows, Typemap(column, 4096).run_count());
  EXPECT_EQ(kRows,
            column.repeated(2, static_cast<std::ptrdiff_t>(kRows * 4096)).levels()[0].count / 2)
      << "one step";
  BlockRow row;
  for (std::ptrdiff_t i = 0; i < 5; ++i) row.append(column.moved(i * 16));
  const Block face = std::move(row).finish();
  ASSERT_EQ(2U, face.levels().size());
  EXPECT_EQ(5U, face.levels()[1].count);
  BlockRow two;
  two.append(Block::run(4));
  two.append(Block::run(8).moved(8));
  const Typemap structs(std::move(two).finish().repeated(kRows, 16), 16);
  EXPECT_FALSE(structs.regular());
  EXPECT_EQ(2U, structs.repeated()->run_count());
  // What such a copy follows are structs, of which any number has two runs.
  CopyBatch batch;
  batch.append({std::make_shared<const Typemap>(structs.block(), 16), nullptr, nullptr, 0,
                structs.size_bytes(), LayoutCopy::Direction::pack});
  ASSERT_EQ(1U, batch.laid_out.size());
  EXPECT_EQ(2U, batch.laid_out[0].type->run_count());
  EXPECT_TRUE(kernel_pays(batch.laid_out[0]) || std::getenv("ACCORD_TEST_PACK") != nullptr);
  // From the middle, without a walk to there.
  std::ptrdiff_t found = 0;
  for_each_piece(structs, 12 * (kRows / 2), 4,
                 [&](std::ptrdiff_t offset, std::size_t, std::size_t) { found = offset; });
  EXPECT_EQ(static_cast<std::ptrdiff_t>(8 * kRows), found);
}

TEST(Pack, arithmetic_finds_every_byte) {
  test::Random random(2);
  std::size_t words_seen = 0;
  for (int round = 0; round < 1500; ++round) {
    auto elements = pattern(kLayoutBytes, 1);
    auto other = pattern(kLayoutBytes, 2);
    auto wanted_elements = elements;
    auto wanted_other = other;
    const auto drawn = test::random_copy(random, reinterpret_cast<std::byte*>(elements.data()),
                                         reinterpret_cast<std::byte*>(other.data()));
    if (drawn.copy.type->run_count() == 0) continue;
    const PackArguments arguments = pack_arguments(drawn.copy);
    const std::size_t largest = pack_word_bytes(drawn.copy, arguments);
    words_seen |= largest;
    ASSERT_EQ(0U, largest & (largest - 1));
    ASSERT_LE(largest, kPackWordBytesMax);
    ASSERT_TRUE(pack_is_narrow(arguments));
    const std::size_t word = largest >> test::below(random, 2);
    pack_on_host(arguments, word == 0 ? 1 : word, round % 2 == 0);
    test::move_bytes(drawn, wanted_elements, wanted_other);
    ASSERT_TRUE(elements == wanted_elements) << round;
    ASSERT_TRUE(other == wanted_other) << round;
  }
  EXPECT_EQ(0x1fU, words_seen) << "words of all sizes";
}

// Offsets beyond 32 bits: no memory is touched, only found.
TEST(Pack, arithmetic_of_huge_types) {
  constexpr std::size_t kHuge = std::size_t{5} << 30;
  auto* const base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44);
  const auto type = std::make_shared<const Typemap>(Runs{{0, kHuge, 0}}, 2 * kHuge);
  const LayoutCopy copy{type, base, base, kHuge + 64, 64, LayoutCopy::Direction::pack};
  const PackArguments arguments = pack_arguments(copy);
  EXPECT_FALSE(pack_is_narrow(arguments));
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  ASSERT_TRUE(locate_word<std::uint64_t>(arguments, 16, 3, dst, src));
  EXPECT_EQ(base + 48, dst);
  EXPECT_EQ(base + 2 * kHuge + 112, src);
}

TEST(Pack, words_fit_addresses_and_layout) {
  const auto word = [](Runs runs, std::ptrdiff_t extent, std::size_t elements, std::size_t other,
                       std::size_t first, std::size_t length) {
    const auto type = std::make_shared<const Typemap>(std::move(runs), extent);
    const LayoutCopy copy{type,
                          reinterpret_cast<std::byte*>(elements),
                          reinterpret_cast<std::byte*>(other),
                          first,
                          length,
                          LayoutCopy::Direction::pack};
    return pack_word_bytes(copy, pack_arguments(copy));
  };
  EXPECT_EQ(16U, word({{0, 32, 0}}, 64, 4096, 8192, 0, 320));
  EXPECT_EQ(8U, word({{0, 32, 0}}, 72, 4096, 8192, 0, 320)) << "extent";
  EXPECT_EQ(16U, word({{0, 32, 0}}, 72, 4096, 8192, 0, 32)) << "one element";
  EXPECT_EQ(4U, word({{0, 12, 0}}, 16, 4096, 8192, 0, 120));
  EXPECT_EQ(2U, word({{0, 32, 0}}, 64, 4098, 8192, 0, 320));
  EXPECT_EQ(1U, word({{0, 32, 0}}, 64, 4096, 8193, 0, 320));
  EXPECT_EQ(8U, word({{0, 32, 0}}, 64, 4096, 8192, 8, 304));
  EXPECT_EQ(4U, word({{0, 32, 0}, {68, 16, 0}}, 96, 4096, 8192, 0, 480)) << "offset";
}

TEST(CopyList, rows_move_the_same_bytes) {
  test::Random random(3);
  for (int round = 0; round < 1000; ++round) {
    auto elements = pattern(kLayoutBytes, 1);
    auto other = pattern(kLayoutBytes, 2);
    auto wanted_elements = elements;
    auto wanted_other = other;
    const auto drawn = test::random_copy(random, reinterpret_cast<std::byte*>(elements.data()),
                                         reinterpret_cast<std::byte*>(other.data()));
    CopyBatch batch;
    if (round % 2 == 0) {
      batch.append(drawn.copy);
    } else {
      batch.plain.append_rows(drawn.copy);
    }
    copy_on_host(batch);
    test::move_bytes(drawn, wanted_elements, wanted_other);
    ASSERT_TRUE(elements == wanted_elements) << round;
    ASSERT_TRUE(other == wanted_other) << round;
  }
}

// What lies in two allocations stays apart, even where it could be one rectangle.
TEST(CopyBatch, copies_of_other_memory_are_not_joined) {
  std::vector<std::byte> memory(400);
  const auto copy = [&](std::size_t from) {
    CopyBatch batch;
    batch.append({Typemap::contiguous(8), memory.data() + from, memory.data(), from, 8,
                  LayoutCopy::Direction::pack});
    return batch;
  };
  CopyBatch all = copy(100);
  all.add(copy(200));
  all.add(copy(300));
  EXPECT_EQ(3U, all.plain.copies().size());
}

TEST(Pack, kernels_are_for_many_short_rows) {
  if (std::getenv("ACCORD_TEST_PACK") != nullptr) GTEST_SKIP() << "the way is forced";
  const auto pays = [](std::size_t row_bytes, std::size_t pitch_bytes, std::size_t rows) {
    const auto type = std::make_shared<const Typemap>(Runs{{0, row_bytes, 0}},
                                                      static_cast<std::ptrdiff_t>(pitch_bytes));
    return kernel_pays({type, nullptr, nullptr, 0, row_bytes * rows, LayoutCopy::Direction::pack});
  };
  EXPECT_TRUE(pays(8, 16, 1000));
  EXPECT_FALSE(pays(8, 16, 2)) << "a few";
  EXPECT_FALSE(pays(8, 8, 1000)) << "no gaps";
  EXPECT_FALSE(pays(std::size_t{1} << 16, std::size_t{1} << 17, 1000)) << "long rows";
  Runs blocks;
  for (std::ptrdiff_t i = 0; i < 50; ++i) blocks.push_back({i * i * 8192, 4096, 0});
  const auto irregular = std::make_shared<const Typemap>(blocks, 50 * 50 * 8192);
  EXPECT_TRUE(kernel_pays(
      {irregular, nullptr, nullptr, 0, irregular->size_bytes(), LayoutCopy::Direction::pack}))
      << "many copies";
}

// Between a device and a shadow, which is in host memory.
TEST(Pack, engines_fill_shadows_of_types_that_are_mostly_data) {
  if (std::getenv("ACCORD_TEST_PACK") != nullptr) GTEST_SKIP();
  const auto pays = [](std::ptrdiff_t extent_bytes, LayoutCopy::Form form) {
    std::byte memory[1];
    return kernel_pays({std::make_shared<const Typemap>(Runs{{0, 12, 0}}, extent_bytes), memory,
                        memory, 0, 12000, LayoutCopy::Direction::pack, form});
  };
  EXPECT_FALSE(pays(16, LayoutCopy::Form::same));
  EXPECT_TRUE(pays(16, LayoutCopy::Form::packed));
  EXPECT_TRUE(pays(2048, LayoutCopy::Form::same));
}

TEST(CopyBatch, nothing_but_padding_is_nothing) {
  std::byte memory[64]{};
  const auto type = std::make_shared<const Typemap>(Runs{{kPadding, 6, 0}}, 16);
  const LayoutCopy copy{type, memory, memory + 32, 0, 12, LayoutCopy::Direction::pack};
  EXPECT_FALSE(kernel_pays(copy));
  CopyBatch batch;
  batch.append(copy);
  EXPECT_TRUE(batch.empty());
}

TEST(HostPack, device_and_pinned_memory) {
  test::Layouts(host_runtime(), MemoryKind::pinned).check(400, 4);
}
TEST(HostPack, device_memory_alone) {
  test::Layouts(host_runtime(), MemoryKind::device).check(400, 5);
}

TEST(HostPack, elements_must_lie_in_their_allocation) {
  void* memory = nullptr;
  ASSERT_OK(host_runtime().allocate(0, MemoryKind::device, 256, memory));
  std::vector<std::byte> packed(256);
  CopyBatch batch;
  batch.append({std::make_shared<const Typemap>(Runs{{0, 2, 0}}, 4),
                static_cast<std::byte*>(memory), packed.data(), 0, 130,
                LayoutCopy::Direction::pack});
  EXPECT_CODE(invalid_argument, host_runtime().copy_batch(0, batch));
  CopyTicket ticket;
  EXPECT_CODE(invalid_argument, host_runtime().batch_begin(0, batch, ticket));
  EXPECT_CODE(invalid_argument, host_runtime().batch_begin(100, batch, ticket));
  EXPECT_OK(host_runtime().free(memory));
}

}  // namespace
}  // namespace accord::device
