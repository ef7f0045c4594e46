// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the model tells of failures: a program that is cut down keeps its symptom, and a hang says
// what every thread is doing.
#include "shrink.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "symptom.h"

namespace accord::model {
namespace {

Event message(int tag) {
  Event event{.elements = 1, .tag = tag};
  event.parts = {{0, 0, false, {}, {}}, {1, 0, false, {}, {}}};
  return event;
}

// Rank 0 sends them all to rank 1, by blocking calls.
Program messages(int count) {
  Program program;
  program.ranks = 3;
  program.comms = {{0, 1, 2}};
  program.lists.resize(3);
  for (int number = 0; number < count; ++number) {
    program.events.push_back(message(100 + number));
    program.lists[0].push_back({Action::Verb::block, {{number, 0, 0}}});
    program.lists[1].push_back({Action::Verb::block, {{number, 0, 1}}});
  }
  return program;
}

std::size_t calls_of(const Program& program, int event) {
  std::size_t calls = 0;
  for (const auto& list : program.lists)
    for (const Action& action : list)
      for (const Ref& ref : action.refs) calls += ref.event == event ? 1 : 0;
  return calls;
}

// As long as event 1 is there the data is wrong; without it the rest hangs, as most programs do
// that a mistake has spoilt.
TEST(Shrink, KeepsTheSymptom) {
  const RunProgram fails = [](const Program& program, const RunOptions& options) {
    if (options.backend == RunOptions::Backend::reference) return std::string();
    return calls_of(program, 1) != 0
               ? std::string("rank 1, event e1 round 0: receive buffer: element 0 of 1 is 0x1")
               : std::string("deadlock: every thread polls and nothing changes");
  };
  const Program program = messages(3);
  const Failure small = shrink(program, {}, fails(program, {}), fails);
  EXPECT_EQ(name_of(symptom_of(small.message)), name_of(Symptom::wrong_data)) << small.text();
  EXPECT_EQ(small.program.ranks, 2);
  EXPECT_EQ(calls_of(small.program, 0), 0u);
  EXPECT_EQ(calls_of(small.program, 1), 2u);
  EXPECT_EQ(calls_of(small.program, 2), 0u);
}

TEST(Symptom, IsToldByTheMessage) {
  const std::pair<const char*, Symptom> messages[] = {
      {"", Symptom::none},
      {"deadlock: every thread polls and nothing changes\n    rank 0 thread 0: at its end",
       Symptom::hang},
      {"the run does not end: 10000000 steps", Symptom::hang},
      {"the ranks matched different calls: collective number 2 of communicator 0",
       Symptom::mismatch},
      {"rank 0, event e1 round 0: scan, receive buffer: element 0 of 1 is 0x0",
       Symptom::wrong_data},
      {"a collective's send buffer was changed while the host MPI owned it", Symptom::mpi_misuse},
      {"a copy touches device memory outside of the allocation", Symptom::device_error},
      {"an inbox exchange that is late was polled before it was begun again",
       Symptom::device_error},
      {"an inbox exchange was never awaited", Symptom::left_over},
      {"staging memory was not given back", Symptom::left_over},
      {"rank 1: node: rank 0 has given up this communicator", Symptom::call_error}};
  for (const auto& [message, symptom] : messages)
    EXPECT_EQ(symptom_of(message), symptom) << message << ": " << name_of(symptom_of(message));
}

// Rank 1 waits for a message that rank 0 never sends; rank 2 has nothing to do.
Program hanging() {
  Program program = messages(1);
  program.lists[0].clear();
  return program;
}

TEST(Hang, SaysWhatAllRanksAreDoing) {
  const std::string message = run(hanging(), {});
  EXPECT_EQ(symptom_of(message), Symptom::hang) << message;
  for (const char* state : {"rank 0 thread 0: at its end", "rank 1 thread 0: e0: recv(",
                            "rank 2 thread 0: at its end (has ended)"})
    EXPECT_NE(message.find(state), std::string::npos) << state << " is not in: " << message;
}

TEST(HangDeathTest, SaysWhatAllThreadsThatReallyRunAreDoing) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        (void)setenv("ACCORD_MODEL_HANG_SECONDS", "0.5", 1);
        RunOptions options;
        options.mode = Scheduler::Mode::free;
        (void)run(hanging(), options);
      },
      "deadlock: no event for 500 ms; seed of the run: 1\n"
      "    rank 0 thread 0: at its end.*\n"
      "    rank 1 thread 0: e0: recv\\(.*\n"
      "    rank 2 thread 0: at its end.*");
}

}  // namespace
}  // namespace accord::model
