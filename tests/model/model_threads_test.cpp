// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The random programs again with threads that really run at once, several a rank, and the engine's
// own progress thread: for the sanitizers, which watch the core at work. A deadlock ends the
// process with the seed.
//   ACCORD_MODEL_THREADS_COUNT=2000   how many programs          ACCORD_MODEL_SEED=17   the first
//   one's seed
#include <gtest/gtest.h>

#include <cstdlib>

#include "runner.h"
#include "user_buffer.h"

namespace accord::model {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void test_random_programs(const GeneratorOptions& generator) {
  const std::uint64_t first = setting("ACCORD_MODEL_SEED", 1);
  const std::uint64_t count = setting("ACCORD_MODEL_THREADS_COUNT", 500);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = generate(seed, generator);
    RunOptions options;
    options.mode = Scheduler::Mode::free;
    options.seed = seed;
    ASSERT_EQ(run(program, options), "") << "program " << seed << ":\n" << to_text(program);
  }
}

TEST(ModelThreads, OneThreadARank) { test_random_programs({}); }
TEST(ModelThreads, ThreadsOfARank) { test_random_programs({.ranks_max = 3, .threads_max = 3}); }

// One thread blocks in the host MPI while nothing is active; then the other starts an operation and
// leaves MPI. Only the engine's thread can make it go on, and the peer waits for just that before
// it lets the first go.
TEST(ModelThreads, OperationStartedWhileAnotherThreadBlocks) {
  constexpr std::size_t kElements = 40;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Program program;
    program.threads = 2;
    program.comms = {{0, 1}, {0, 1}};
    Event dup{.kind = Event::Kind::collective, .collective = Collective::dup, .children = {1}};
    Event reduce{.kind = Event::Kind::collective,
                 .comm = 1,
                 .elements = kElements,
                 .collective = Collective::allreduce};
    reduce.op = Op::sum;
    Event barrier{.kind = Event::Kind::collective};
    for (int rank = 0; rank < 2; ++rank) {
      dup.parts.push_back({rank, 0, false, {}, {}});
      barrier.parts.push_back({rank, 0, false, {}, {}});
      reduce.parts.push_back({rank, 1, false, {Place::device_a, 0}, {Place::device_a, 0}});
    }
    program.events = {dup, reduce, barrier};
    using Verb = Action::Verb;
    program.lists = {{{Verb::block, {{0, 0, 0}}},
                      {Verb::open, {}},
                      {Verb::block, {{2, 0, 0}}},
                      {Verb::wait, {{1, 0, 0}}}},
                     {{Verb::await, {}}, {Verb::start, {{1, 0, 0}}}},
                     {{Verb::block, {{0, 0, 1}}},
                      {Verb::open, {}},
                      {Verb::wait, {{1, 0, 1}}},
                      {Verb::block, {{2, 0, 1}}}},
                     {{Verb::await, {}}, {Verb::start, {{1, 0, 1}}}}};
    RunOptions options;
    options.mode = Scheduler::Mode::free;
    options.seed = seed;
    ASSERT_EQ(run(program, options), "");
  }
}

}  // namespace
}  // namespace accord::model
