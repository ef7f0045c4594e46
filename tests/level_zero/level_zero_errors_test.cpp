// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Every function of Level Zero that the runtime calls fails once, a few calls later, and for good:
// each time in a process of its own, where the runtime must answer with an error or another way,
// never with wrong bytes, work again once the function does, and have kept nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/device_runtime.h"
#include "device/inbox_server.h"
#include "device/layout_copy.h"
#include "driver_control.h"

namespace accord::device {
DeviceRuntime& level_zero_runtime();
}

namespace {

using namespace accord;
using namespace accord::device;
using test::Held;
using test::level_zero::DriverControl;

constexpr std::size_t kBytes = 20000;

// What a process says with its exit status.
enum class Verdict { good = 0, wrong_bytes = 3, unclear_error = 4, does_not_recover = 5 };

[[noreturn]] void leave(Verdict verdict, const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(static_cast<int>(verdict));
}

class Scenario {
 public:
  // Whether all of it went well.
  bool run() {
    good_ = true;
    std::vector<std::byte> bytes(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::managed, MemoryKind::pinned}) {
      void* memory = nullptr;
      if (!tried(runtime_.allocate(1, kind, kBytes, memory))) continue;
      for (const std::size_t length : {std::size_t{64}, kBytes}) move(memory, bytes, length);
      if (kind == MemoryKind::device) {
        lend(memory, bytes);
        reduce(memory, bytes);
        gather(memory, bytes);
        exchange(memory, bytes);
      }
      tried(runtime_.free(memory));
    }
    void* host = nullptr;
    if (tried(runtime_.host_allocate(kBytes, host))) {
      std::memset(host, 1, kBytes);
      runtime_.host_free(host, kBytes);
    }
    DeviceDescription description;
    tried(runtime_.describe(0, description));
    return good_;
  }

 private:
  bool tried(const Status& status) {
    if (!status.ok() && status.message().find("level_zero") == std::string::npos)
      leave(Verdict::unclear_error, status.message());
    good_ = good_ && status.ok();
    return status.ok();
  }

  // There and back, by one copy and by several, awaited and asked after.
  void move(void* memory, const std::vector<std::byte>& bytes, std::size_t length) {
    auto* const there = static_cast<std::byte*>(memory);
    std::vector<std::byte> back(length);
    const Copy in{.dst = there, .src = bytes.data(), .row_bytes = length};
    const Copy out[2] = {{.dst = back.data(),
                          .src = there,
                          .row_bytes = length / 4,
                          .rows = 2,
                          .dst_pitch_bytes = length / 2,
                          .src_pitch_bytes = length / 2},
                         {.dst = back.data() + length / 4,
                          .src = there + length / 4,
                          .row_bytes = length / 4,
                          .rows = 2,
                          .dst_pitch_bytes = length / 2,
                          .src_pitch_bytes = length / 2}};
    if (tried(runtime_.copy(1, {&in, 1})) && tried(runtime_.copy(1, out))) check(back, bytes);
    CopyTicket ticket;
    if (tried(begin(in, ticket)) && tried(finish(ticket)) && tried(begin(out[0], ticket)) &&
        tried(finish(ticket)) && tried(runtime_.copy_begin(1, out, ticket)) &&
        tried(finish(ticket))) {
      check(back, bytes);
    }
  }

  Status begin(const Copy& copy, CopyTicket& ticket) {
    return runtime_.copy_begin(1, {&copy, 1}, ticket);
  }
  Status finish(CopyTicket& ticket) {
    for (bool done = false; !done;) ACCORD_TRY(runtime_.copy_done(ticket, done));
    return Status();
  }

  void lend(void* memory, const std::vector<std::byte>& bytes) {
    const Copy in{.dst = memory, .src = bytes.data(), .row_bytes = kBytes};
    const bool filled = tried(runtime_.copy(1, {&in, 1}));
    ExportedMemory exported;
    if (!tried(runtime_.export_memory(memory, exported))) return;
    void* opened = nullptr;
    if (tried(runtime_.open_memory(0, exported, opened))) {
      std::vector<std::byte> back(kBytes);
      const Copy out{.dst = back.data(), .src = opened, .row_bytes = kBytes};
      if (filled && tried(runtime_.copy(0, {&out, 1}))) check(back, bytes);
      tried(runtime_.close_memory(opened));
    }
    ::close(exported.file_descriptor);
  }

  // Half of the bytes and the other half, made one by exclusive or in their place; not where there
  // are no kernels.
  void reduce(void* memory, const std::vector<std::byte>& bytes) {
    for (const Element element : {Element::uint8, Element::uint32}) reduce(memory, bytes, element);
  }
  void reduce(void* memory, const std::vector<std::byte>& bytes, Element element) {
    constexpr std::size_t kHalf = kBytes / 2;
    if (!runtime_.can_reduce(ReduceOp::bxor, element)) return;
    auto* const there = static_cast<std::byte*>(memory);
    const Copy in{.dst = memory, .src = bytes.data(), .row_bytes = kBytes};
    const void* const sources[] = {there, there + kHalf};
    CopyTicket ticket;
    if (!tried(runtime_.copy(1, {&in, 1})) ||
        !tried(runtime_.reduce_begin(
            1, {there, sources, kHalf / element_bytes(element), ReduceOp::bxor, element},
            ticket)) ||
        !tried(finish(ticket))) {
      return;
    }
    std::vector<std::byte> back(kHalf);
    std::vector<std::byte> wanted(kHalf);
    for (std::size_t i = 0; i < kHalf; ++i) wanted[i] = bytes[i] ^ bytes[kHalf + i];
    const Copy out{.dst = back.data(), .src = memory, .row_bytes = kHalf};
    if (tried(runtime_.copy(1, {&out, 1}))) check(back, wanted);
  }

  // Half of the bytes through an inbox of their own to the other half's place; not where there are
  // no kernels.
  void exchange(void* memory, const std::vector<std::byte>& bytes) {
    constexpr std::size_t kHalf = kBytes / 2;
    auto* const there = static_cast<std::byte*>(memory);
    InboxServer* server = nullptr;
    void* inbox = nullptr;
    const Status found = runtime_.inbox_server(1, server);
    if (found.code() == StatusCode::unsupported) return;
    if (!tried(found) ||
        !tried(runtime_.allocate(1, MemoryKind::device, inbox_bytes(1, kBytes), inbox))) {
      return;
    }
    std::vector<std::byte> content(inbox_bytes(1, kBytes));
    std::memcpy(content.data(), &inbox, sizeof inbox);
    const Copy in[2] = {{.dst = memory, .src = bytes.data(), .row_bytes = kBytes},
                        {.dst = inbox, .src = content.data(), .row_bytes = content.size()}};
    InboxTicket ticket;
    ticket.exchange = {.inbox = static_cast<std::byte*>(inbox),
                       .inbox_number = 1,
                       .lane_bytes = kBytes,
                       .epoch = 1,
                       .src = there,
                       .dst = there + kHalf,
                       .block_bytes = kHalf,
                       .send_to = inbox_bit(0),
                       .receive_from = inbox_bit(0)};
    std::vector<std::byte> back(kHalf);
    const Copy out{.dst = back.data(), .src = there + kHalf, .row_bytes = kHalf};
    if (tried(runtime_.copy(1, in)) && tried(finish(*server, ticket)) &&
        tried(runtime_.copy(1, {&out, 1}))) {
      check(back, bytes);
    }
    tried(runtime_.free(inbox));
  }
  static Status finish(InboxServer& server, InboxTicket& ticket) {
    ACCORD_TRY(server.begin(ticket));
    for (bool done = false; !done;) {
      ACCORD_TRY(server.poll(ticket, done));
      if (ticket.state == InboxTicket::State::late) ACCORD_TRY(server.begin(ticket));
    }
    return Status();
  }

  // Ever sparser bytes to other memory, by a kernel or row by row.
  void gather(void* memory, const std::vector<std::byte>& bytes) {
    constexpr std::size_t kCount = 100;
    std::vector<device::Run> runs;
    for (std::size_t i = 0; i < kCount; ++i)
      runs.push_back({.offset_bytes = static_cast<std::ptrdiff_t>(i * i),
                      .length_bytes = 1,
                      .packed_bytes = 0});
    void* other = nullptr;
    if (!tried(runtime_.allocate(0, MemoryKind::device, kCount, other))) return;
    const Copy in{.dst = memory, .src = bytes.data(), .row_bytes = kBytes};
    CopyBatch batch;
    batch.append({.type = std::make_shared<const Typemap>(runs, kBytes),
                  .elements = static_cast<std::byte*>(memory),
                  .other = static_cast<std::byte*>(other),
                  .first_bytes = 0,
                  .length_bytes = kCount,
                  .direction = LayoutCopy::Direction::pack});
    std::vector<std::byte> back(kCount);
    std::vector<std::byte> wanted(kCount);
    for (std::size_t i = 0; i < kCount; ++i) wanted[i] = bytes[i * i];
    const Copy out{.dst = back.data(), .src = other, .row_bytes = kCount};
    if (tried(runtime_.copy(1, {&in, 1})) && tried(runtime_.copy_batch(1, batch)) &&
        tried(runtime_.copy(1, {&out, 1}))) {
      check(back, wanted);
    }
    tried(runtime_.free(other));
  }

  void check(const std::vector<std::byte>& got, const std::vector<std::byte>& wanted) {
    if (std::memcmp(got.data(), wanted.data(), got.size()) != 0)
      leave(Verdict::wrong_bytes, "wrong bytes, and no error");
  }

  DeviceRuntime& runtime_ = level_zero_runtime();
  bool good_ = true;
};

// Also in such a process: with nothing but what a driver may refuse, all goes well another way.
[[noreturn]] void play_refused() {
  if (!Scenario().run()) leave(Verdict::unclear_error, "an error");
  std::_Exit(0);
}

// In a process of its own, with ACCORD_TEST_ZE_FAIL set. Says on `held` what it holds at the end.
[[noreturn]] void play(int held_pipe) {
  DeviceRuntime& runtime = level_zero_runtime();
  if (runtime.device_count() == 0) {  // found out at once, and for good
    DeviceDescription description;
    void* memory = nullptr;
    const Status status = runtime.allocate(0, MemoryKind::device, 100, memory);
    if (status.message().find("level_zero ze") == std::string::npos ||
        runtime.describe(0, description).ok() || runtime.present() ||
        runtime.problem().message() != status.message()) {
      leave(Verdict::unclear_error, status.message());
    }
    std::_Exit(0);
  }
  Scenario scenario;
  scenario.run();
  const DriverControl driver;
  driver.fail("");
  if (!scenario.run()) leave(Verdict::does_not_recover, "does not work again");
  const Held held = driver.held();
  const bool told = ::write(held_pipe, &held, sizeof held) == sizeof held;
  std::_Exit(told ? 0 : 1);
}

struct Outcome {
  int status = 0;
  Held held;
};

Outcome outcome_with(const std::string& failure) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("ACCORD_TEST_ZE_FAIL", failure.c_str(), 1);
    play(ends[1]);
  }
  ::close(ends[1]);
  Outcome outcome;
  if (::read(ends[0], &outcome.held, sizeof outcome.held) != sizeof outcome.held) outcome.held = {};
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, &outcome.status, 0), child);
  return outcome;
}

class Errors : public testing::TestWithParam<std::string> {};

TEST_P(Errors, end_in_a_status) {
  static const Outcome whole = outcome_with("");
  ASSERT_EQ(whole.status, 0);
  ASSERT_GT(whole.held.objects, 0);
  const std::string function = GetParam();
  for (const char* when : {":1", ":2", ":3", ":6", ":1+", ":2+", ":6+"}) {
    const Outcome outcome = outcome_with(function + when);
    EXPECT_TRUE(WIFEXITED(outcome.status)) << function << when << " ends the process";
    EXPECT_EQ(WEXITSTATUS(outcome.status), 0) << function << when;
    if (outcome.held == Held{} || test::level_zero::kReleasing.contains(function)) continue;
    const auto expect_same = [&](long Held::*what) {
      // A module that was refused is asked for no more.
      if (function == "zeModuleCreate")
        EXPECT_LE(outcome.held.*what, whole.held.*what) << when;
      else
        EXPECT_EQ(outcome.held.*what, whole.held.*what) << function << when;
    };
    for (long Held::*what :
         {&Held::objects, &Held::allocations, &Held::descriptors, &Held::mappings})
      expect_same(what);
  }
}

int refused(const std::string& failure) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("ACCORD_TEST_ZE_FAIL", failure.c_str(), 1);
    play_refused();
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// From the first on, or when the module by which the device was tried is there: by a code that the
// interface lists nowhere, by an argument's that it does, but never when the device is lost.
TEST(Refusals, take_another_way) {
  for (const char* function :
       {"zeModuleCreate", "zeKernelCreate", "zeKernelSetGroupSize", "zeKernelSetIndirectAccess"}) {
    for (const char* when : {":1+", ":2+", ":1+@7fff0001", ":2+@78000004"})
      EXPECT_EQ(refused(std::string(function) + when), 0) << function << when;
    EXPECT_EQ(refused(std::string(function) + ":2+@70000001"),
              static_cast<int>(Verdict::unclear_error))
        << function;
  }
}

INSTANTIATE_TEST_SUITE_P(level_zero, Errors, testing::ValuesIn(test::level_zero::kFunctions),
                         [](const auto& test) { return test.param; });

}  // namespace
