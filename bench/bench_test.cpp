// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The parts of the benchmark that need no MPI: data, statistics, options, what is printed and
// recorded, and NVSHMEM's interface over a library that only looks like it (fake_nvshmem.c).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/element.h"
#include "bench/environment.h"
#include "bench/nvshmem_library.h"
#include "bench/options.h"
#include "bench/plan.h"
#include "bench/record.h"
#include "bench/statistics.h"
#include "bench/table.h"

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
      {"accord_bench", "bcast", "--window", "0"},
  };
  for (const auto& arguments : bad) {
    const auto parsed = parse_options(arguments, kNames);
    EXPECT_EQ(parsed.exit_code, 2) << arguments.back();
    EXPECT_NE(parsed.message, "");
  }
}

WaySummary measured(const char* name, double time_us, double ours_us) {
  WaySummary way;
  way.way = name;
  way.time_us.median = time_us;
  way.against_ours.ratio = {time_us / ours_us, 0.01};
  return way;
}

SizeSummary with_peers() {
  SizeSummary row;
  row.operation = "allreduce";
  row.size_bytes = 8;
  row.ways = {measured("accord", 5, 5), measured("nccl", 20, 5), measured("nccl-window", 10, 5),
              measured("nvshmem", 4, 5), measured("staged", 1, 5)};
  row.ways[2].detail = "NCCL 2.29.2, symmetric windows";
  row.ways[3].fault = "rank 0: element 0: expected 1, got 2";
  row.ways[4].why_not = "not here";
  return row;
}

TEST(bench_peers, the_best_is_the_fastest_that_is_right) {
  EXPECT_EQ(best_peer(with_peers())->way, "nccl-window");
  SizeSummary alone;
  alone.ways = {measured("accord", 5, 5)};
  EXPECT_EQ(best_peer(alone), nullptr);
}

TEST(bench_peers, the_table_compares_with_the_best) {
  std::set<std::string> said;
  Table table("allreduce, sum", said);
  testing::internal::CaptureStdout();
  table.print(with_peers());
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("|       best peer         ratio |"), std::string::npos) << text;
  EXPECT_NE(text.find("|     nccl-window   2.000±0.010 |"), std::string::npos) << text;
}

std::vector<nlohmann::json> written_records(const RunFacts& facts) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("bench_test." + std::to_string(::getpid()));
  Options options;
  options.json_path = path;
  RecordWriter(options, facts).write(with_peers());
  std::ifstream file(path);
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(file, line);) records.push_back(nlohmann::json::parse(line));
  std::filesystem::remove(path);
  return records;
}

TEST(bench_peers, the_record_names_the_best_and_its_setting) {
  const std::vector<nlohmann::json> records = written_records({});
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records[0]["best_peer"], "nccl-window");
  EXPECT_DOUBLE_EQ(records[0]["best_ratio"]["value"], 2);
  EXPECT_EQ(records[2]["detail"], "NCCL 2.29.2, symmetric windows");
  EXPECT_FALSE(records[2].contains("best_peer"));
}

TEST(record, tells_the_settings_of_accord_that_are_no_defaults) {
  const auto settings = accord_settings(
      R"({"settings": [{"name": "ACCORD_NODE_BYTES", "value": "1", "origin": "environment"},
                       {"name": "ACCORD_REGION_BYTES", "value": "8M", "origin": "default"}]})");
  EXPECT_EQ(settings, (std::map<std::string, std::string>{{"ACCORD_NODE_BYTES", "1"}}));
  EXPECT_TRUE(accord_settings("no JSON").empty());
  RunFacts facts;
  facts.settings = settings;
  const std::vector<nlohmann::json> records = written_records(facts);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0]["settings"], (nlohmann::json{{"ACCORD_NODE_BYTES", "1"}}));
}

TEST(record, tells_the_driver_of_devices) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("bench_test.driver." + std::to_string(::getpid()));
  std::ofstream(path) << "580.95.05\nmore\n";
  EXPECT_EQ(driver_version(path), "580.95.05");
  std::filesystem::remove(path);
  EXPECT_EQ(driver_version(path), "");
  EXPECT_EQ(written_records({})[0]["machine"]["driver"], "") << "no device, no driver";
}

TEST(record, tells_whether_mps_serves_the_devices) {
  const auto info = [](const std::string& device) {
    return R"({"default_runtime": "cuda", "runtimes": [{"name": "host", "devices": [{"mps": false}]},
               {"name": "cuda", "devices": [)" +
           device + "]}]}";
  };
  EXPECT_EQ(under_mps(info(R"({"mps": true})")), true);
  EXPECT_EQ(under_mps(info(R"({"mps": false})")), false);
  EXPECT_EQ(under_mps(info(R"({"name": "of a runtime without"})")), std::nullopt);
  EXPECT_EQ(under_mps("no JSON"), std::nullopt);
  RunFacts facts;
  EXPECT_FALSE(written_records(facts)[0]["machine"].contains("mps"));
  facts.mps = true;
  EXPECT_EQ(written_records(facts)[0]["machine"]["mps"], true);
}

TEST(record, tells_the_commit_and_the_machine_in_words) {
  const std::string info = R"({"version": "9.9.9", "commit": "0123456789ab-dirty"})";
  RunFacts facts;
  facts.accord_version = accord_version(info);
  facts.accord_commit = accord_commit(info);
  facts.device_count = 4;
  facts.device_name = "Device 7";
  const std::vector<nlohmann::json> records = written_records(facts);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0]["accord"]["version"], "9.9.9");
  EXPECT_EQ(records[0]["accord"]["commit"], "0123456789ab-dirty");
  const std::string machine = records[0]["machine"]["name"];
  facts.device_name = "";
  EXPECT_EQ(machine, "4 x Device 7, " + machine_name(facts));
  EXPECT_EQ(accord_commit("no JSON"), "");
  EXPECT_EQ(accord_commit(R"({"version": "0.1.0"})"), "") << "a library that tells none";
}

TEST(bench_peers, nccl_is_either_plain_or_without_windows) {
  ::unsetenv("NCCL_SYM_NOWIN_ENABLE");
  EXPECT_EQ(nccl_conflict({"nccl", "nccl-window", "nvshmem"}), "");
  EXPECT_EQ(nccl_conflict({"nccl-nowin", "nccl-window"}), "");
  EXPECT_NE(nccl_conflict({"nccl-nowin", "nccl"}), "");
  EXPECT_NE(nccl_conflict({"nccl-grouped", "nccl-nowin"}), "");
  set_nccl_environment({"nccl", "nccl-window"});
  EXPECT_EQ(std::getenv("NCCL_SYM_NOWIN_ENABLE"), nullptr);
  set_nccl_environment({"nccl-nowin"});
  EXPECT_STREQ(std::getenv("NCCL_SYM_NOWIN_ENABLE"), "1");
  EXPECT_NE(nccl_conflict({"nccl"}), "");
  EXPECT_EQ(nccl_conflict({"nccl-nowin"}), "");
  ::unsetenv("NCCL_SYM_NOWIN_ENABLE");
}

TEST(bench_peers, settings_are_told_by_name) {
  ::setenv("BENCH_TEST_B", "2", 1);
  ::setenv("BENCH_TEST_A", "1", 1);
  ::setenv("BENCH_TEST_C", "", 1);
  EXPECT_EQ(settings_in_environment("BENCH_TEST_"), "BENCH_TEST_A=1 BENCH_TEST_B=2");
  EXPECT_EQ(settings_in_environment("BENCH_TEST_D"), "");
}

TEST(bench_nvshmem, is_called_as_its_library_expects) {
  ::setenv("ACCORD_NVSHMEM_LIBRARY", ACCORD_FAKE_NVSHMEM, 1);
  std::string why_not;
  const auto nvshmem = NvshmemLibrary::open(why_not);
  ASSERT_NE(nvshmem, nullptr) << why_not;
  EXPECT_EQ(nvshmem->version(), "3.9.1");
  NvshmemUniqueId id;
  ASSERT_EQ(nvshmem->get_unique_id(&id), 0);
  NvshmemInitAttributes attributes;
  ASSERT_EQ(nvshmem->set_unique_id(2, 3, &id, &attributes), 0);
  EXPECT_EQ(nvshmem->init(NvshmemLibrary::kInitWithUniqueId, &attributes), 0);
  EXPECT_EQ(nvshmem->init_status(), NvshmemLibrary::kIsInitialized);
  EXPECT_NE(nvshmem->collective("sum_reduce", "float32"), nullptr);
  EXPECT_NE(nvshmem->rooted_collective("broadcast", "uint8"), nullptr);
  EXPECT_EQ(nvshmem->collective("sum_reduce", "complex64"), nullptr);
  EXPECT_EQ(nvshmem->collective("and_reduce", "float32"), nullptr);
  const float source[] = {1, 2, 3, 4};
  float result[] = {0, 0, 0, 0};
  EXPECT_EQ(nvshmem->collective("sum_reduce", "float32")(NvshmemLibrary::kWorld, result, source, 3,
                                                         nullptr),
            0);
  EXPECT_EQ(result[2], 9);  // three ranks that all give the same
  EXPECT_EQ(result[3], 0);
  nvshmem->finalize();
  EXPECT_EQ(nvshmem->init_status(), 0);
}

TEST(bench_nvshmem, a_library_that_is_none_is_refused) {
  ::setenv("ACCORD_NVSHMEM_LIBRARY", "/no/such/library.so", 1);
  std::string why_not;
  EXPECT_EQ(NvshmemLibrary::open(why_not), nullptr);
  EXPECT_NE(why_not.find("/no/such/library.so"), std::string::npos);
  ::setenv("ACCORD_NVSHMEM_LIBRARY", "libc.so.6", 1);
  EXPECT_EQ(NvshmemLibrary::open(why_not), nullptr);
  EXPECT_NE(why_not.find("incomplete"), std::string::npos) << why_not;
}

std::string written(const std::string& text) {
  const std::string path = ::testing::TempDir() + "accord_bench_test_plan";
  std::ofstream(path) << text;
  return path;
}

TEST(plan, a_point_a_line_with_the_algorithms_behind_it) {
  const auto plan =
      read_plan(written("allreduce 8 inbox node-two-shot\n\nbcast 4096\n"), {"allreduce", "bcast"});
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan[0].operation, "allreduce");
  EXPECT_EQ(plan[0].size_bytes, 8U);
  EXPECT_EQ(plan[0].algorithms, (std::vector<std::string>{"inbox", "node-two-shot"}));
  EXPECT_EQ(plan[1].size_bytes, 4096U);
  EXPECT_TRUE(plan[1].algorithms.empty());
}

TEST(plan, what_is_no_point_is_named_with_its_line) {
  for (const char* wrong : {"gossip 8", "allreduce", "allreduce many", "allreduce 0"}) {
    const std::string path = written(std::string("allreduce 8\n") + wrong + "\n");
    try {
      read_plan(path, {"allreduce"});
      ADD_FAILURE() << wrong;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(":2: "), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(read_plan("/nowhere/plan", {"allreduce"}), std::runtime_error);
}

}  // namespace
}  // namespace accord::bench
