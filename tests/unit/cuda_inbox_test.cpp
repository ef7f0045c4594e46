// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The resident kernel of the CUDA runtime, one rank that sends to itself: what it moves and
// combines, and that it gives up in time. Runs on a GPU, or over the fake driver (cuda_program.h);
// without either the program exits with 77. Its process claims device 0: see cuda_inbox_rig.h.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cuda_inbox_rig.h"
#include "device/direct_work.h"
#include "device/staging_pool.h"
#include "fake_cuda_control.h"

namespace accord::test {
namespace {

class CudaInbox : public testing::Test {
 protected:
  void SetUp() override {
    if (nothing_to_test() != nullptr) GTEST_SKIP() << nothing_to_test();
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

TEST_F(CudaInbox, results_may_go_to_pinned_memory) {
  void* staging = nullptr;
  ASSERT_OK(cuda_runtime().allocate(0, MemoryKind::pinned, kLaneBytes, staging));
  for (const std::size_t size_bytes : {std::size_t{100}, std::size_t{100000}}) {
    const auto data = pattern(size_bytes, 4);
    ASSERT_OK(copy_one(rig_.src(), data.data(), size_bytes));
    InboxTicket ticket = rig_.ticket(size_bytes);
    ticket.exchange.dst = staging;
    ticket.exchange.dst_on_host = true;
    ASSERT_OK(rig_.run(ticket));
    EXPECT_EQ(0, std::memcmp(staging, data.data(), size_bytes));
  }
  EXPECT_OK(cuda_runtime().free(staging));
}

// The best of a few tries counts: other programs may take the processor.
TEST_F(CudaInbox, who_does_not_send_is_not_waited_for_long) {
  constexpr double kMostMs = 50;
  InboxTicket ticket = rig_.ticket(100);
  ticket.exchange.receive_from |= device::inbox_bit(1);
  for (const auto patience :
       {InboxTicket::Patience::short_wait, InboxTicket::Patience::long_wait}) {
    ticket.patience = patience;
    double took_ms = kMostMs;
    for (int tries = 0; tries < 50 && took_ms >= kMostMs; ++tries) {
      const auto start = Clock::now();
      ASSERT_OK(rig_.try_to_run(ticket));
      took_ms = ms_since(start);
      EXPECT_EQ(InboxTicket::State::late, ticket.state);
      EXPECT_TRUE(ticket.sent);
    }
    EXPECT_GT(kMostMs, took_ms);
  }
  bool done = false;
  rig_.server().stop(ticket, done);
  EXPECT_TRUE(done);
  EXPECT_OK(rig_.run(100));  // others have their turn
}

// The fake device has as many multiprocessors as an H100, 132.
TEST_F(CudaInbox, kernels_of_many_processes_find_room_side_by_side) {
  if (fake_cuda() == nullptr) GTEST_SKIP() << "needs a driver that tells how wide a kernel is";
  const auto blocks_with = [&](int processes, std::size_t size_bytes) {
    rig_.server().share_with(processes);
    const auto data = pattern(size_bytes, 9);
    EXPECT_OK(copy_one(rig_.src(), data.data(), size_bytes));
    while (fake_cuda()->residents() != 0) std::this_thread::yield();
    EXPECT_OK(rig_.run(size_bytes));
    EXPECT_EQ(data, contents(rig_.dst(), size_bytes));
    return fake_cuda()->blocks();
  };
  EXPECT_EQ(32u, blocks_with(4, 1 << 20));
  EXPECT_EQ(8u, blocks_with(5, 1 << 20));
  EXPECT_EQ(8u, blocks_with(1, 1 << 20));  // those do not go away
  EXPECT_EQ(1u, blocks_with(17, 1 << 20));
  EXPECT_EQ(1u, blocks_with(200, 100));
}

// As the steps of a program bring them, with gaps: rows of eight are worth a kernel, pairs are not.
TEST_F(CudaInbox, it_stages_short_runs_that_come_in_rows) {
  constexpr std::size_t kBytes = 8;
  device::StagingBuffer staging;
  ASSERT_OK(device::staging_pool().acquire(&cuda_runtime(), kBytes, staging));
  const auto row = [&](int copies) {
    int quick = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < copies; ++i) {
      device::CopyBatch batch;
      batch.plain.append(staging.data(), rig_.src(), kBytes);
      if (device::stage_quickly(cuda_runtime(), 0, batch)) ++quick;
    }
    return quick;
  };
  for (int i = 0; i < 100; ++i) EXPECT_EQ(0, row(1));
  int quick = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (quick < 4 && std::chrono::steady_clock::now() < end) quick = row(8);
  EXPECT_LE(4, quick);  // 7, but where other programs take the processors' time
  for (int i = 0; i < 100; ++i) (void)row(1);
  EXPECT_EQ(0, row(1));
}

// To staging memory and back again, until the kernel has been found to be worth it.
TEST_F(CudaInbox, it_stages_short_runs_that_follow_close_upon_each_other) {
  constexpr std::size_t kBytes = 24;
  constexpr int kPatience = 100000;  // where other programs take the processors' time
  device::StagingBuffer staging;
  ASSERT_OK(device::staging_pool().acquire(&cuda_runtime(), 2 * kBytes, staging));
  auto* const host = static_cast<std::byte*>(staging.data());
  const auto stage = [&](void* dst, const void* src, std::size_t size_bytes) {
    device::CopyBatch batch;
    batch.plain.append(dst, src, size_bytes);
    return device::stage_quickly(cuda_runtime(), 0, batch);
  };
  const auto data = pattern(kBytes, 11);
  ASSERT_OK(copy_one(rig_.src(), data.data(), kBytes));
  EXPECT_FALSE(stage(host, rig_.src(), kBytes));
  bool went_out = false;
  bool came_back = false;
  for (int i = 0; i < kPatience && !(went_out && came_back); ++i) {
    went_out = stage(host, rig_.src(), kBytes) || went_out;
    if (went_out) came_back = stage(rig_.dst(), host, kBytes);
  }
  ASSERT_TRUE(went_out && came_back);
  EXPECT_EQ(0, std::memcmp(host, data.data(), kBytes));
  EXPECT_EQ(data, contents(rig_.dst(), kBytes));
  std::vector<std::byte> pageable(kBytes);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(stage(pageable.data(), rig_.src(), kBytes));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(stage(rig_.dst(), rig_.src(), kLaneBytes / 2));
}

// As cudaDeviceReset does: what was in the context is gone, the exchange that comes next an error,
// and whoever begins anew gets a server of the new context.
TEST_F(CudaInbox, a_device_that_is_reset_is_an_error) {
  if (fake_cuda() == nullptr) GTEST_SKIP() << "needs a driver that does not mind";
  ASSERT_OK(rig_.run(1000));
  ASSERT_EQ(device::cuda::Result::success, program().primary_reset(0));
  void* anew = nullptr;
  ASSERT_OK(cuda_runtime().allocate(0, device::MemoryKind::device, 5000, anew));
  InboxTicket ticket = rig_.ticket(1000);
  EXPECT_FALSE(rig_.run(ticket).ok());
  EXPECT_FALSE(rig_.run(1000).ok());
  device::InboxServer* server = nullptr;
  ASSERT_OK(cuda_runtime().inbox_server(0, server));
  EXPECT_NE(&rig_.server(), server);
  EXPECT_OK(cuda_runtime().free(anew));
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) { return accord::test::run_cuda_tests(argc, argv); }
