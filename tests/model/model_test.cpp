// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The adversarial model test of the core. Random legal programs over a fake host MPI that delays,
// reorders and never progresses by itself; a failure is cut down and printed with its seed.
//   ACCORD_MODEL_COUNT=20000   how many programs          ACCORD_MODEL_SEED=17   the first one's
//   seed
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "reach.h"
#include "runner.h"
#include "shrink.h"

namespace accord::model {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

const char* name_of(Failing::Kind kind) {
  static const char* const names[] = {"nothing", "a copy", "memory", "a host call", "a rank"};
  return names[static_cast<std::size_t>(kind)];
}

// The number that CI runs: it reaches all that the marks name.
constexpr std::uint64_t kCountMin = 3000;

void test_random_programs(const GeneratorOptions& generator, std::uint64_t percent) {
  const std::uint64_t first = setting("ACCORD_MODEL_SEED", 1);
  const std::uint64_t count = setting("ACCORD_MODEL_COUNT", kCountMin) * percent / 100;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = generate(seed, generator);
    RunOptions options;
    options.backend = RunOptions::Backend::reference;
    std::string message = run(program, options);
    ASSERT_EQ(message, "") << "program " << seed << " is not legal:\n" << to_text(program);
    options.backend = RunOptions::Backend::accord;
    options.seed = seed;
    message = run(program, options);
    if (message.empty()) continue;
    FAIL() << "program " << seed << ": " << message
           << "\ncut down: " << shrink(program, options, message).text();
  }
}

// One failure in each: whoever gets an error stops. What a call without an error has brought is
// right, and nobody hangs but in the host MPI. Not entangled: the model knows a rank that is gone
// by its rank in the world, and a program may probe for ever for a message of such a rank.
TEST(Model, ProgramsWithAFailure) {
  const std::uint64_t first = setting("ACCORD_MODEL_SEED", 1);
  const std::uint64_t count = setting("ACCORD_MODEL_COUNT", kCountMin) / 5;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = generate(seed, {.entangled = false});
    Random random(seed);
    RunOptions options;
    options.seed = seed;
    options.mutation = Mutation::rank_dies;
    options.failure.kind = static_cast<Failing::Kind>(1 + random.below(4));
    options.failure.rank_of =
        static_cast<int>(random.below(static_cast<std::uint64_t>(program.ranks)));
    options.failure.after = static_cast<long>(random.below(random.percent(50) ? 12 : 80));
    const std::string message = run(program, options);
    if (dead_ranks != 0) reached("stopped ranks by a failure of", name_of(options.failure.kind));
    if (message.empty()) continue;
    FAIL() << "program " << seed << ", a failure of " << name_of(options.failure.kind) << " "
           << options.failure.after << " of rank " << options.failure.rank_of << ": " << message
           << "\ncut down: " << shrink(program, options, message).text();
  }
}

// Behind the programs: after all of them, it judges what they have reached.
class ReachReport : public testing::Environment {
 public:
  void SetUp() override {
    expect_programs({.threads_max = 3});
    for (const Failing::Kind kind : {Failing::Kind::copy, Failing::Kind::memory,
                                     Failing::Kind::host_call, Failing::Kind::rank})
      expect_reached("stopped ranks by a failure of", name_of(kind));
  }
  void TearDown() override {
    std::printf("%s", reach_report().c_str());
    const bool is_whole =
        testing::GTEST_FLAG(filter) == "*" && setting("ACCORD_MODEL_COUNT", kCountMin) >= kCountMin;
    if (!is_whole || testing::UnitTest::GetInstance()->Failed()) return;
    EXPECT_EQ(never_reached(), "") << "none of the programs has reached this";
  }
};
const testing::Environment* const report = testing::AddGlobalTestEnvironment(new ReachReport);

TEST(Model, RandomPrograms) { test_random_programs({}, 60); }
TEST(Model, LongPrograms) { test_random_programs({.length_max = 60}, 10); }
TEST(Model, RanksWithThreads) { test_random_programs({.ranks_max = 3, .threads_max = 3}, 30); }

}  // namespace
}  // namespace accord::model
