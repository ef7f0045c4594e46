// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The parts of the benchmark that need no MPI: data, statistics, options.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <set>
#include <vector>

#include "bench/element.h"
#include "bench/options.h"
#include "bench/statistics.h"

namespace accord::bench {
namespace {

constexpr std::size_t kCount = 3000;  // more than one block of the reducing loop

template <class T>
std::vector<T> drawn(const Element& element, const Pattern& pattern, int rank,
                     std::size_t first = 0) {
  std::vector<T> values(kCount);
  element.source(pattern, rank, {first, kCount}, values.data());
  return values;
}

TEST(bench_element, ranks_epochs_and_positions_differ) {
  const Element& element = *find_element("int32");
  std::set<std::vector<std::int32_t>> seen;
  for (std::uint64_t epoch = 1; epoch <= 8; ++epoch) {
    for (int rank = 0; rank < 8; ++rank) {
      const auto pattern = make_pattern(element, std::nullopt, 8, epoch);
      EXPECT_TRUE(seen.insert(drawn<std::int32_t>(element, pattern, rank)).second);
      EXPECT_TRUE(seen.insert(drawn<std::int32_t>(element, pattern, rank, 1)).second);
    }
  }
}

TEST(bench_element, pieces_are_parts_of_the_whole) {
  const Element& element = *find_element("float64");
  const auto pattern = make_pattern(element, ReduceOp::sum, 3, 1);
  const auto whole = drawn<double>(element, pattern, 2);
  double piece[7];
  element.source(pattern, 2, {1500, 7}, piece);
  EXPECT_EQ(std::memcmp(piece, &whole[1500], sizeof piece), 0);
}

TEST(bench_element, float_reductions_are_exact_in_any_order) {
  const Element& element = *find_element("float32");
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
    constexpr int kRanks = 64;
    const auto pattern = make_pattern(element, op, kRanks, 5);
    std::vector<float> expected(kCount);
    element.reduced(pattern, op, {0, kRanks}, {0, kCount}, expected.data());
    auto backwards = drawn<float>(element, pattern, kRanks - 1);
    for (int rank = kRanks - 2; rank >= 0; --rank) {
      const auto values = drawn<float>(element, pattern, rank);
      for (std::size_t i = 0; i < kCount; ++i) {
        float& value = backwards[i];
        if (op == ReduceOp::sum) value += values[i];
        if (op == ReduceOp::prod) value *= values[i];
        if (op == ReduceOp::min) value = std::min(value, values[i]);
        if (op == ReduceOp::max) value = std::max(value, values[i]);
      }
    }
    EXPECT_EQ(element.mismatch(expected.data(), backwards.data(), kCount), kCount);
  }
}

TEST(bench_element, eight_bit_sums_stay_in_range) {
  const Element& element = *find_element("int8");
  constexpr int kRanks = 16;
  const auto pattern = make_pattern(element, ReduceOp::sum, kRanks, 3);
  std::vector<int> sums(kCount);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto values = drawn<std::int8_t>(element, pattern, rank);
    for (std::size_t i = 0; i < kCount; ++i) sums[i] += values[i];
  }
  for (const int sum : sums) EXPECT_TRUE(sum >= -128 && sum <= 127) << sum;
}

TEST(bench_element, complex_products_match) {
  const Element& element = *find_element("complex64");
  const auto pattern = make_pattern(element, ReduceOp::prod, 2, 1);
  const auto a = drawn<std::complex<float>>(element, pattern, 0);
  const auto b = drawn<std::complex<float>>(element, pattern, 1);
  std::vector<std::complex<float>> products(kCount), expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) products[i] = a[i] * b[i];
  element.reduced(pattern, ReduceOp::prod, {0, 2}, {0, kCount}, expected.data());
  EXPECT_EQ(element.mismatch(expected.data(), products.data(), kCount), kCount);
}

TEST(bench_element, half_precision_holds_the_integers_it_is_given) {
  const Element& element = *find_element("float16");
  const auto pattern = make_pattern(element, ReduceOp::sum, 4, 1);
  const auto wide = make_pattern(*find_element("float32"), std::nullopt, 1, 1);
  ASSERT_LE(pattern.mask * 4, 2048U);
  auto same_width = wide;
  same_width.mask = pattern.mask;
  const auto halves = drawn<std::uint16_t>(element, pattern, 1);
  const auto floats = drawn<float>(*find_element("float32"), same_width, 1);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(element.text(&halves[i]), find_element("float32")->text(&floats[i]));
  }
}

TEST(bench_element, every_type_notices_one_wrong_element) {
  for (const Element& element : elements()) {
    const auto pattern = make_pattern(element, std::nullopt, 1, 1);
    std::vector<unsigned char> expected(kCount * element.size_bytes);
    element.source(pattern, 0, {0, kCount}, expected.data());
    auto got = expected;
    EXPECT_EQ(element.mismatch(expected.data(), got.data(), kCount), kCount) << element.name;
    got[1234 * element.size_bytes] ^= 0x11;
    EXPECT_EQ(element.mismatch(expected.data(), got.data(), kCount), 1234U) << element.name;
  }
}

TEST(bench_statistics, quantiles_interpolate) {
  std::vector<double> samples;
  for (int i = 100; i >= 0; --i) samples.push_back(i);
  const Summary summary = summarize(samples);
  EXPECT_DOUBLE_EQ(summary.median, 50);
  EXPECT_DOUBLE_EQ(summary.p5, 5);
  EXPECT_DOUBLE_EQ(summary.p95, 95);
  EXPECT_DOUBLE_EQ(summary.min, 0);
  EXPECT_DOUBLE_EQ(summary.max, 100);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(bench_statistics, a_drift_common_to_both_cancels) {
  std::vector<double> ours, other;
  for (int block = 0; block < 20; ++block) {
    ours.push_back(1 + 0.1 * block);
    other.push_back(1.25 * (1 + 0.1 * block));
  }
  other[7] = 1000;  // one disturbed block
  const Comparison comparison = compare(ours, other);
  EXPECT_NEAR(comparison.ratio.value, 1.25, 1e-12);
  EXPECT_NEAR(comparison.ratio.error, 0, 1e-12);
  EXPECT_LT(comparison.difference.value, 0);
  EXPECT_TRUE(std::isnan(compare({ours.data(), 2}, {other.data(), 2}).ratio.error));
}

TEST(bench_statistics, blocks_cover_all_samples) {
  const std::vector<double> samples = {1, 1, 1, 2, 2, 3, 3};
  EXPECT_EQ(block_medians(samples, 3), (std::vector<double>{1, 1.5, 3}));
}

const KnownNames kNames = {{"allreduce", "bcast"}, {"float32"}, {"sum"}, {"mpi"}};

TEST(bench_options, sizes_and_names) {
  const auto parsed = parse_options({"accord_bench", "all", "bcast", "--min", "4K", "--max=1G",
                                     "--memory", "device", "--recv-memory", "host"},
                                    kNames);
  ASSERT_EQ(parsed.exit_code, -1) << parsed.message;
  EXPECT_EQ(parsed.options.operations, kNames.operations);
  EXPECT_EQ(parsed.options.size_bytes_min, 4096U);
  EXPECT_EQ(parsed.options.size_bytes_max, std::size_t{1} << 30);
  EXPECT_EQ(parsed.options.send_memory, Memory::device);
  EXPECT_EQ(parsed.options.recv_memory, Memory::host);
  EXPECT_EQ(size_text(4096), "4K");
  EXPECT_EQ(size_text(1500), "1500");
}

TEST(bench_options, bad_input_is_refused) {
  const std::vector<std::vector<std::string>> bad = {
      {"accord_bench"},
      {"accord_bench", "allreduc"},
      {"accord_bench", "bcast", "--min", "-8"},
      {"accord_bench", "bcast", "--max", "8X"},
      {"accord_bench", "bcast", "--max", "99999999999G"},
      {"accord_bench", "bcast", "--min", "8K", "--max", "1K"},
      {"accord_bench", "bcast", "--memory", "tape"},
      {"accord_bench", "bcast", "--iterations", "0"},
  };
  for (const auto& arguments : bad) {
    const auto parsed = parse_options(arguments, kNames);
    EXPECT_EQ(parsed.exit_code, 2) << arguments.back();
    EXPECT_NE(parsed.message, "");
  }
}

}  // namespace
}  // namespace accord::bench
