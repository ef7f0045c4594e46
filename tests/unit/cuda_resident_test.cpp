// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Programs that end, fork, synchronise and fail while a kernel of an inbox exchange is on their
// device. Each is a child process, since it claims the device and may spoil it; part of
// cuda_runtime_test, which therefore must not claim it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "cuda_fixture.h"
#include "cuda_inbox_rig.h"
#include "fake_cuda_control.h"

namespace accord::test {
namespace {

#define CHECK(condition)                                                 \
  if (!(condition)) {                                                    \
    std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    return 1;                                                            \
  }

constexpr const char* kLinger = "30000";  // us: what waits for it shows
constexpr double kLingerMs = 30;
constexpr int kAttempts = 3;     // other programs may be in the way
constexpr double kUsualMs = 20;  // of what is timed below, at most, on a busy machine

bool allocate_and_free() {
  void* memory = nullptr;
  return cuda_runtime().allocate(0, MemoryKind::device, std::size_t{64} << 20, memory).ok() &&
         cuda_runtime().free(memory).ok();
}

bool copy_on_a_stream_of_its_own(Rig& rig) {
  unsigned char byte = 0;
  return copy_one(&byte, rig.dst(), 1).ok();
}

bool capture_around_an_exchange(Rig& rig) {
  Stream stream = nullptr;
  void* graph = nullptr;
  const bool captured =
      driver().stream_create(&stream, device::cuda::kStreamNonBlocking) == Result::success &&
      program().capture_begin(stream, CaptureMode::global) == Result::success &&
      rig.run(100).ok() && program().capture_end(stream, &graph) == Result::success;
  return captured && program().graph_destroy(graph) == Result::success &&
         program().stream_destroy(stream) == Result::success;
}

bool fork_a_child() {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

int nothing_waits_long() {
  Rig rig;
  CHECK(rig.open().ok());
  struct Action {
    const char* name;
    std::function<bool()> run;
    double at_most_ms;
  };
  const Action actions[] = {
      {"synchronize", [] { return program().context_synchronize() == Result::success; },
       kLingerMs + kUsualMs},
      {"allocate and free", allocate_and_free, kLingerMs + kUsualMs},
      {"a copy on another stream", [&] { return copy_on_a_stream_of_its_own(rig); }, kLingerMs / 2},
      {"capture", [&] { return capture_around_an_exchange(rig); }, kLingerMs + kUsualMs},
      {"fork", fork_a_child, kLingerMs + kUsualMs},
      {"another exchange", [&] { return rig.run(100).ok(); }, kLingerMs / 2},
  };
  for (const std::size_t size_bytes : {std::size_t{100}, std::size_t{100000}}) {
    for (const Action& action : actions) {
      double took_ms = action.at_most_ms + 1;
      for (int attempt = 0; attempt < kAttempts && took_ms > action.at_most_ms; ++attempt) {
        CHECK(program().context_synchronize() == Result::success);
        CHECK(rig.run(size_bytes).ok());
        CHECK(rig.run(size_bytes).ok());
        const auto start = Clock::now();
        CHECK(action.run());
        took_ms = ms_since(start);
        std::printf("after %zu B, %s: %.2f ms\n", size_bytes, action.name, took_ms);
      }
      CHECK(took_ms <= action.at_most_ms);
    }
  }
  return 0;
}

int ends_while_it_lingers() {
  Rig rig;
  CHECK(rig.open().ok());
  CHECK(rig.run(100).ok());
  return 0;
}

int another_process_is_refused() {
  Rig rig;
  CHECK(rig.open().ok());
  CHECK(run_child({"--child=resident_refused"}) == 0);
  return 0;
}

int refused() {
  const Status status = Rig().open();
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message().find("another process") != std::string::npos);
  return 0;
}

// There a launch returns when the kernel has left: it must not linger.
int launches_block() {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  Rig rig;
  CHECK(rig.open().ok());
  constexpr int kCalls = 5;
  const auto start = Clock::now();
  for (int call = 0; call < kCalls; ++call) CHECK(rig.run(call % 2 == 0 ? 100 : 100000).ok());
  CHECK(ms_since(start) < kCalls * kLingerMs / 2);
  return 0;
}

// Whether an exchange ends at once with this error.
bool fails(Rig& rig, std::size_t size_bytes, const Status& expected) {
  InboxTicket ticket = rig.ticket(size_bytes);
  const auto start = Clock::now();
  const Status status = rig.try_to_run(ticket);
  return status.code() == expected.code() && status.message() == expected.message() &&
         ticket.state != InboxTicket::State::running && ms_since(start) < 1000;
}

int launch_fails() {
  Rig rig;
  CHECK(rig.open().ok());
  CHECK(rig.run(100).ok());
  CHECK(program().context_synchronize() == Result::success);
  setenv("FAKE_CUDA_NO_LAUNCH", "1", 1);
  InboxTicket ticket = rig.ticket(100);
  const Status failure = rig.try_to_run(ticket);
  CHECK(failure.code() == StatusCode::no_memory);
  CHECK(failure.message().find("cuLaunchKernel") != std::string::npos);
  CHECK(ticket.state == InboxTicket::State::idle);
  unsetenv("FAKE_CUDA_NO_LAUNCH");
  CHECK(fails(rig, 100, failure));
  CHECK(fails(rig, 200, failure));
  CHECK(rig.run(100000).ok());  // by another kernel, which has not failed
  return 0;
}

// It cannot say so itself: the host has to look after it.
int kernel_dies() {
  Rig rig;
  CHECK(rig.open().ok());
  CHECK(rig.run(100).ok());
  InboxTicket ticket = rig.ticket(100);
  ticket.exchange.src = reinterpret_cast<void*>(device::kInboxUnitBytes);  // nobody's memory
  const Status failure = rig.try_to_run(ticket);
  CHECK(failure.code() == StatusCode::device_error);
  CHECK(ticket.state == InboxTicket::State::idle);
  CHECK(fails(rig, 100, failure));
  CHECK(!rig.run(100000).ok());  // nothing runs in such a context any more
  return 0;
}

struct Child {
  const char* name;
  int (*run)();
};
constexpr Child kChildren[] = {{"resident_waits", nothing_waits_long},
                               {"resident_ends", ends_while_it_lingers},
                               {"resident_claims", another_process_is_refused},
                               {"resident_refused", refused},
                               {"resident_blocks", launches_block},
                               {"resident_unlaunched", launch_fails},
                               {"resident_dies", kernel_dies}};

class CudaResident : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!runtime_.can_reduce(device::ReduceOp::sum, device::Element::int32))
      GTEST_SKIP() << "no kernels";
  }
};

TEST_F(CudaResident, nothing_waits_for_it_longer_than_it_lingers) {
  EXPECT_EQ(0, run_child({"--child=resident_waits"}));
}

TEST_F(CudaResident, a_program_may_end_while_it_lingers) {
  EXPECT_EQ(0, run_child({"--child=resident_ends"}));
}

TEST_F(CudaResident, one_process_a_device) { EXPECT_EQ(0, run_child({"--child=resident_claims"})); }

TEST_F(CudaResident, it_does_not_linger_where_launches_block) {
  EXPECT_EQ(0, run_child({"--child=resident_blocks"}));
}

TEST_F(CudaResident, exchanges_fail_at_once_after_a_launch_that_failed) {
  if (fake_cuda() == nullptr) GTEST_SKIP() << "only the fake driver fails when told to";
  EXPECT_EQ(0, run_child({"--child=resident_unlaunched"}));
}

TEST_F(CudaResident, exchanges_fail_after_it_has_died) {
  EXPECT_EQ(0, run_child({"--child=resident_dies"}));
}

}  // namespace

int resident_child(const std::string& name) {
  setenv("ACCORD_LINGER_US", kLinger, 1);
  Context context = nullptr;
  CHECK(cuda_runtime().device_count() > 0);
  CHECK(driver().primary_context_retain(&context, 0) == Result::success);
  CHECK(driver().context_push(context) == Result::success);
  for (const Child& child : kChildren)
    if (name == child.name) return child.run();
  return 1;
}

}  // namespace accord::test
