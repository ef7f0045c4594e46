// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The resident kernel of the CUDA runtime, one rank that sends to itself: what it moves and
// combines, that it gives up in time, and that nothing the program does waits for it longer than it
// lingers. Part of cuda_runtime_test; needs a GPU.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "cuda_program.h"
#include "cuda_test.h"
#include "device/inbox_server.h"

namespace accord::test {
namespace {

using device::InboxServer;
using device::InboxTicket;
using device::MemoryKind;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLaneBytes = std::size_t{1} << 20;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// An inbox on device 0 whose owner is rank 0 of two; the other never sends.
class Rig {
 public:
  Status open() {
    ACCORD_TRY(cuda_runtime().inbox_server(0, server_));
    const std::size_t inbox_bytes = device::inbox_bytes(2, kLaneBytes);
    for (auto [pointer, size_bytes] :
         {std::pair{&inbox_, inbox_bytes}, {&src_, kLaneBytes}, {&dst_, kLaneBytes}}) {
      void* memory = nullptr;
      ACCORD_TRY(cuda_runtime().allocate(0, MemoryKind::device, size_bytes, memory));
      *pointer = static_cast<std::byte*>(memory);
    }
    const std::vector<std::byte> zeros(inbox_bytes);
    ACCORD_TRY(copy_one(inbox_, zeros.data(), zeros.size()));
    return copy_one(inbox_, &inbox_, sizeof inbox_);
  }

  std::byte* src() const { return src_; }
  std::byte* dst() const { return dst_; }
  InboxServer& server() const { return *server_; }

  InboxTicket ticket(std::size_t size_bytes) {
    InboxTicket made;
    made.exchange.inbox = inbox_;
    made.exchange.inbox_number = 1;
    made.exchange.lane_bytes = kLaneBytes;
    made.exchange.epoch = ++epoch_;
    made.exchange.src = src_;
    made.exchange.dst = dst_;
    made.exchange.block_bytes = size_bytes;
    made.exchange.send_to = made.exchange.receive_from = device::inbox_bit(0);
    return made;
  }

  Status run(InboxTicket& ticket) {
    bool done = false;
    ACCORD_TRY(server_->begin(ticket));
    while (!done && ticket.state != InboxTicket::State::late)
      ACCORD_TRY(server_->poll(ticket, done));
    return {};
  }
  Status run(std::size_t size_bytes) {
    InboxTicket made = ticket(size_bytes);
    return run(made);
  }

 private:
  InboxServer* server_ = nullptr;
  std::byte* inbox_ = nullptr;
  std::byte* src_ = nullptr;
  std::byte* dst_ = nullptr;
  std::uint32_t epoch_ = 0;
};

class CudaInbox : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda::driver() == nullptr) GTEST_SKIP() << "no NVIDIA driver";
    if (cuda_runtime().device_count() == 0) GTEST_SKIP() << "no CUDA device";
    const Status opened = rig_.open();
    if (opened.code() == StatusCode::unsupported) GTEST_SKIP() << opened.message();
    ASSERT_OK(opened);
  }

  Rig rig_;
};

TEST_F(CudaInbox, bytes_arrive_whatever_their_number_and_place) {
  for (const std::size_t size_bytes :
       {1, 7, 8, 15, 16, 17, 512, 8191, 8192, 8193, 100001, 1 << 20}) {
    for (const std::size_t shift : {0, 1, 4}) {
      if (size_bytes + shift > kLaneBytes) continue;
      const auto data = pattern(size_bytes, static_cast<unsigned>(size_bytes + shift));
      ASSERT_OK(copy_one(rig_.src() + shift, data.data(), size_bytes));
      InboxTicket ticket = rig_.ticket(size_bytes);
      ticket.exchange.src = rig_.src() + shift;
      ticket.exchange.dst = rig_.dst() + 2 * shift;
      if (size_bytes + 2 * shift > kLaneBytes) continue;
      ASSERT_OK(rig_.run(ticket));
      ASSERT_EQ(InboxTicket::State::idle, ticket.state);
      ASSERT_EQ(data, contents(rig_.dst() + 2 * shift, size_bytes)) << size_bytes << " " << shift;
    }
  }
}

TEST_F(CudaInbox, an_exchange_may_be_in_place) {
  const auto data = pattern(50000, 3);
  ASSERT_OK(copy_one(rig_.src(), data.data(), data.size()));
  InboxTicket ticket = rig_.ticket(data.size());
  ticket.exchange.dst = rig_.src();
  ASSERT_OK(rig_.run(ticket));
  EXPECT_EQ(data, contents(rig_.src(), data.size()));
}

TEST_F(CudaInbox, who_does_not_send_is_not_waited_for_long) {
  InboxTicket ticket = rig_.ticket(100);
  ticket.exchange.receive_from |= device::inbox_bit(1);
  for (const auto patience :
       {InboxTicket::Patience::short_wait, InboxTicket::Patience::long_wait}) {
    ticket.patience = patience;
    const auto start = Clock::now();
    ASSERT_OK(rig_.run(ticket));
    EXPECT_EQ(InboxTicket::State::late, ticket.state);
    EXPECT_TRUE(ticket.sent);
    EXPECT_GT(50, ms_since(start));
  }
  bool done = false;
  rig_.server().stop(ticket, done);
  EXPECT_TRUE(done);
  EXPECT_OK(rig_.run(100));  // others have their turn
}

TEST_F(CudaInbox, nothing_waits_for_a_resident_kernel_longer_than_it_lingers) {
  EXPECT_EQ(0, run_child({"--child=resident"}));
}

TEST_F(CudaInbox, a_program_may_end_while_the_kernel_lingers) {
  EXPECT_EQ(0, run_child({"--child=resident_exit"}));
}

#define CHECK(condition)                                                 \
  if (!(condition)) {                                                    \
    std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    return 1;                                                            \
  }

constexpr const char* kLinger = "30000";  // us: what waits for it shows
constexpr double kLingerMs = 30;
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

}  // namespace

int resident_child() {
  setenv("ACCORD_LINGER_US", kLinger, 1);
  Context context = nullptr;
  CHECK(cuda_runtime().device_count() > 0);
  CHECK(driver().primary_context_retain(&context, 0) == Result::success);
  CHECK(driver().context_push(context) == Result::success);
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
      CHECK(program().context_synchronize() == Result::success);
      CHECK(rig.run(size_bytes).ok());
      CHECK(rig.run(size_bytes).ok());
      const auto start = Clock::now();
      const bool done = action.run();
      const double took_ms = ms_since(start);
      std::printf("after %zu B, %s: %.2f ms\n", size_bytes, action.name, took_ms);
      CHECK(done && took_ms <= action.at_most_ms);
    }
  }
  return 0;
}

int resident_exit_child() {
  setenv("ACCORD_LINGER_US", kLinger, 1);
  Rig rig;
  CHECK(rig.open().ok());
  CHECK(rig.run(100).ok());
  return 0;
}

}  // namespace accord::test
