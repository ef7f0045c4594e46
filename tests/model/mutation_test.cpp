// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Does the model test have teeth? Each deliberate mistake in the shim must be found, as what it is,
// within a bounded number of random programs.
#include <gtest/gtest.h>

#include "runner.h"
#include "shrink.h"

namespace accord::model {
namespace {

struct Mistake {
  const char* name;
  Mutation mutation;
  const char* symptom;  // part of the message
};

class Mutations : public testing::TestWithParam<Mistake> {};

TEST_P(Mutations, AreFound) {
  constexpr std::uint64_t kProgramsMax = 400;
  RunOptions options;
  options.mutation = GetParam().mutation;
  for (std::uint64_t seed = 1; seed <= kProgramsMax; ++seed) {
    const Program program = generate(seed, GeneratorOptions());
    options.seed = seed;
    const std::string message = run(program, options);
    if (message.find(GetParam().symptom) == std::string::npos) continue;
    // It still is one when cut down to what a person can read.
    const Failure small = shrink(program, options, message);
    std::size_t calls = 0;
    for (const auto& list : small.program.lists) calls += list.size();
    std::printf("found in program %d, %zu calls when cut down: %s\n", static_cast<int>(seed), calls,
                small.text().c_str());
    EXPECT_LE(calls, 30u);
    return;
  }
  FAIL() << "not found in " << kProgramsMax << " programs";
}

INSTANTIATE_TEST_SUITE_P(
    Model, Mutations,
    testing::Values(Mistake{"BlockWithoutProgress", Mutation::block_without_progress, "deadlock"},
                    Mistake{"NoProgressThread", Mutation::no_progress_thread, "deadlock"},
                    Mistake{"SkipQueue", Mutation::skip_queue, "matched different calls"},
                    Mistake{"LatestMode", Mutation::latest_mode, "matched different calls"},
                    Mistake{"NoFinish", Mutation::no_finish, "receive buffer"},
                    Mistake{"LocalForm", Mutation::local_form, "matched different calls"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

}  // namespace
}  // namespace accord::model
