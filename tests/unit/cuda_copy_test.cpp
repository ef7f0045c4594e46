// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies and staging memory of the CUDA runtime: part of cuda_runtime_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "cuda_fixture.h"
#include "device/cuda/copy.h"
#include "fake_cuda_control.h"

namespace accord::device {
namespace {

using cuda::Context;
using test::contents;
using test::copy_one;
using test::Cuda;
using test::driver;
using test::pattern;

TEST_F(Cuda, copies_both_ways) {
  for (std::size_t size_bytes : {std::size_t{1}, std::size_t{8}, std::size_t{4096},
                                 std::size_t{65537}, (std::size_t{3} << 20) + 5}) {
    const auto data = pattern(size_bytes, 1);
    std::byte* first = allocate(size_bytes + 3);
    std::byte* second = allocate(size_bytes);
    EXPECT_OK(copy_one(first + 3, data.data(), size_bytes));
    EXPECT_OK(copy_one(second, first + 3, size_bytes));
    EXPECT_EQ(data, contents(second, size_bytes)) << size_bytes;

    void* staging = nullptr;
    ASSERT_OK(runtime_.host_allocate(size_bytes, staging));
    EXPECT_EQ(MemoryKind::pinned, info(staging).kind);
    EXPECT_OK(copy_one(staging, first + 3, size_bytes));
    EXPECT_EQ(0, std::memcmp(staging, data.data(), size_bytes));
    std::memset(staging, 7, size_bytes);
    EXPECT_OK(copy_one(second, staging, size_bytes));
    EXPECT_EQ(std::vector<unsigned char>(size_bytes, 7), contents(second, size_bytes));
    runtime_.host_free(staging, size_bytes);
    // Sizes of the staging pool's small classes are cut from a slab, which stays.
    const bool of_a_slab = size_bytes == 4096;
    EXPECT_EQ(of_a_slab ? MemoryKind::pinned : MemoryKind::host, info(staging).kind) << size_bytes;
  }
}

TEST_F(Cuda, small_host_memory_is_cut_from_slabs) {
  constexpr std::size_t kSlabBytes = std::size_t{2} << 20;
  constexpr std::size_t kBytes = std::size_t{64} << 10;
  (void)allocate(1);  // a context, without which nothing is page-locked
  std::vector<void*> pieces(3 * kSlabBytes / kBytes);
  for (void*& piece : pieces) ASSERT_OK(runtime_.host_allocate(kBytes, piece));
  std::vector<void*> ordered = pieces;
  std::sort(ordered.begin(), ordered.end());
  std::size_t pinned = 0;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (info(ordered[i]).kind == MemoryKind::pinned) ++pinned;
    EXPECT_TRUE(i == 0 || static_cast<std::byte*>(ordered[i - 1]) + kBytes <= ordered[i]);
    std::memset(ordered[i], static_cast<int>(i), kBytes);
  }
  // Not more than the slab of an earlier test, which has reset the device since.
  EXPECT_GE(pinned, 2 * kSlabBytes / kBytes);
  for (std::size_t i = 0; i < ordered.size(); ++i)
    EXPECT_EQ(static_cast<unsigned char>(i), *static_cast<unsigned char*>(ordered[i]));
  for (void* piece : pieces) runtime_.host_free(piece, kBytes);
  void* again = nullptr;
  ASSERT_OK(runtime_.host_allocate(kBytes, again));
  EXPECT_TRUE(std::binary_search(ordered.begin(), ordered.end(), again)) << "given out anew";
  runtime_.host_free(again, kBytes);
}

TEST_F(Cuda, every_copy_mode_copies) {
  const auto data = pattern(5000, 2);
  std::byte* memory = allocate(5000);
  for (cuda::CopyMode mode : {cuda::CopyMode::stream_poll, cuda::CopyMode::legacy_stream,
                              cuda::CopyMode::stream_synchronize}) {
    cuda::copy_mode = mode;
    const auto zero = std::vector<unsigned char>(5000, 0);
    EXPECT_OK(copy_one(memory, zero.data(), zero.size()));
    EXPECT_OK(copy_one(memory, data.data(), data.size()));
    EXPECT_EQ(data, contents(memory, 5000));
  }
}

TEST_F(Cuda, batches) {
  const auto data = pattern(1000, 3);
  std::byte* memory = allocate(1000);
  std::vector<Copy> batch;
  for (std::size_t i = 0; i < 10; ++i) {
    batch.push_back({memory + (9 - i) * 100, data.data() + i * 100, 100});
  }
  batch.push_back({memory, data.data(), 0});
  batch.push_back({memory, data.data(), 8, 0});
  EXPECT_OK(runtime_.copy(0, batch));
  EXPECT_OK(runtime_.copy(0, {}));
  const auto seen = contents(memory, 1000);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(0, std::memcmp(seen.data() + (9 - i) * 100, data.data() + i * 100, 100)) << i;
  }
}

// Random rectangles against the same loop on plain memory; bytes outside the rectangle must stay.
TEST_F(Cuda, rectangles_match_a_reference) {
  std::mt19937 random(54321);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  constexpr std::size_t kBytes = 8192;
  std::byte* dst = allocate(kBytes);
  std::byte* on_device = allocate(kBytes);
  for (int round = 0; round < 60; ++round) {
    const std::size_t row_bytes = 1 + below(40);
    const std::size_t rows = 1 + below(60);
    const std::size_t dst_pitch = row_bytes + below(50);
    const std::size_t src_pitch = round % 3 == 0 ? below(row_bytes + 1)  // rows overlap
                                                 : row_bytes + below(50);
    const std::size_t offset = below(100);
    const auto source = pattern(kBytes, static_cast<unsigned>(round));
    auto expected = pattern(kBytes, 999);
    EXPECT_OK(copy_one(dst, expected.data(), kBytes));
    const void* src = source.data();
    if (round % 2 == 0) {
      EXPECT_OK(copy_one(on_device, source.data(), kBytes));
      src = on_device;
    }
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(expected.data() + offset + row * dst_pitch, source.data() + row * src_pitch,
                  row_bytes);
    }
    const Copy rectangle{dst + offset, src, row_bytes, rows, dst_pitch, src_pitch};
    EXPECT_OK(runtime_.copy(0, {&rectangle, 1}));
    ASSERT_EQ(expected, contents(dst, kBytes)) << "round " << round;
  }
}

TEST_F(Cuda, tickets) {
  constexpr std::size_t kTickets = 100;  // more than there are streams
  constexpr std::size_t kBytes = 1000;
  std::byte* memory = allocate(kTickets * kBytes);
  void* staging = nullptr;
  ASSERT_OK(runtime_.host_allocate(kTickets * kBytes, staging));
  const auto data = pattern(kTickets * kBytes, 4);
  std::memcpy(staging, data.data(), data.size());
  for (int round = 0; round < 3; ++round) {
    std::vector<CopyTicket> tickets(kTickets);
    for (std::size_t i = 0; i < kTickets; ++i) {
      const Copy one{memory + i * kBytes, static_cast<std::byte*>(staging) + i * kBytes, kBytes};
      ASSERT_OK(runtime_.copy_begin(0, {&one, 1}, tickets[i]));
    }
    for (std::size_t left = kTickets; left > 0;) {
      for (CopyTicket& ticket : tickets) {
        if (ticket.handle == nullptr) continue;
        bool done = false;
        ASSERT_OK(runtime_.copy_done(ticket, done));
        EXPECT_EQ(done, ticket.handle == nullptr);
        if (done) --left;
      }
    }
    EXPECT_EQ(data, contents(memory, data.size()));
    const auto zero = std::vector<unsigned char>(data.size(), 0);
    EXPECT_OK(copy_one(memory, zero.data(), zero.size()));
  }
  runtime_.host_free(staging, kTickets * kBytes);
}

// In a thread of Accord's that has no context, and in one of the program that has.
TEST_F(Cuda, libraries_work_on_a_stream_of_the_primary_context) {
  std::byte* memory = allocate(1000);
  const auto data = pattern(1000, 3);
  std::unique_ptr<LibraryStream> stream;
  ASSERT_OK(runtime_.make_stream(0, stream));
  const auto use = [&](Context before) {
    Context inside = nullptr;
    EXPECT_OK(runtime_.run_on(0, [&] {
      EXPECT_CUDA(driver().context_get_current(&inside));
      return Status();
    }));
    EXPECT_EQ(primary_, inside);
    EXPECT_OK(stream->enqueue([&](void* vendors) {
      EXPECT_NE(nullptr, vendors);
      EXPECT_CUDA(driver().context_get_current(&inside));
      EXPECT_CUDA(driver().copy_async(cuda::address_of(memory), cuda::address_of(data.data()), 1000,
                                      static_cast<cuda::Stream>(vendors)));
      return Status();
    }));
    EXPECT_EQ(primary_, inside);
    bool done = false;
    while (!done) EXPECT_OK(stream->poll(done));
    EXPECT_CUDA(driver().context_get_current(&inside));
    EXPECT_EQ(before, inside);
  };
  use(primary_);
  EXPECT_EQ(data, contents(memory, data.size()));
  std::thread([&] { use(nullptr); }).join();
  const Status refused{StatusCode::device_error, "refused"};
  EXPECT_CODE(device_error, stream->enqueue([&](void*) { return refused; }));
  for (bool done = false; !done;) EXPECT_OK(stream->poll(done));
  EXPECT_NE(0u, runtime_.kernel_place(0).device);
  EXPECT_FALSE(runtime_.run_on(1000, [] { return Status(); }).ok());
}

// Whose kernels another process's may wait for: those of another device, and those of clients of
// the same MPS server.
TEST_F(Cuda, clients_of_one_server_take_no_turns) {
  if (test::fake_cuda() == nullptr) GTEST_SKIP() << "needs a driver that can be a client or not";
  const KernelPlace alone = runtime_.kernel_place(0);
  EXPECT_TRUE(takes_turns(alone, alone));
  EXPECT_FALSE(takes_turns(alone, runtime_.kernel_place(1)));
  const auto server_of = [&](const std::string& directory) {
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", directory.c_str(), 1);
    return runtime_.kernel_place(0);
  };
  ::setenv("FAKE_CUDA_MPS", "1", 1);
  const std::string daemons = testing::TempDir() + "accord_mps_XXXXXX";
  std::string one = daemons;
  std::string other = daemons;
  for (std::string* const directory : {&one, &other}) {
    ASSERT_NE(nullptr, ::mkdtemp(directory->data()));
    std::ofstream(*directory + "/control");
  }
  EXPECT_FALSE(takes_turns(server_of(one), server_of(one)));
  EXPECT_TRUE(takes_turns(server_of(one), server_of(other)));
  EXPECT_TRUE(takes_turns(server_of(one), alone));
  EXPECT_TRUE(takes_turns(server_of("/nowhere"), server_of("/nowhere")));  // it cannot be told
  ::unsetenv("FAKE_CUDA_MPS");
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  for (const std::string& directory : {one, other}) std::filesystem::remove_all(directory);
}

// What is recorded is not done, but done again each time that it is put on the stream; where the
// work fails nothing is recorded, and the stream is as good as before.
TEST_F(Cuda, libraries_record_what_they_put_on_a_stream) {
  constexpr std::size_t kBytes = 1000;
  std::byte* const memory = allocate(2 * kBytes);
  std::byte* const other = memory + kBytes;
  std::unique_ptr<LibraryStream> stream;
  ASSERT_OK(runtime_.make_stream(0, stream));
  const auto work = [&](void* vendors) {
    EXPECT_CUDA(driver().copy_async(cuda::address_of(other), cuda::address_of(memory), kBytes,
                                    static_cast<cuda::Stream>(vendors)));
    return Status();
  };
  const auto zero = std::vector<unsigned char>(2 * kBytes, 0);
  EXPECT_OK(copy_one(memory, zero.data(), zero.size()));
  std::unique_ptr<Recording> recording;
  const Status refused{StatusCode::device_error, "refused"};
  EXPECT_CODE(device_error, stream->record([&](void*) { return refused; }, recording));
  EXPECT_EQ(nullptr, recording);
  EXPECT_OK(stream->record(work, recording));
  ASSERT_NE(nullptr, recording);
  bool done = false;
  EXPECT_OK(stream->poll(done));
  EXPECT_TRUE(done);
  for (unsigned round = 1; round <= 3; ++round) {
    const auto data = pattern(kBytes, round);
    EXPECT_OK(copy_one(memory, data.data(), kBytes));
    EXPECT_NE(data, contents(other, kBytes));
    EXPECT_OK(stream->enqueue([&](void* vendors) { return recording->put(vendors); }));
    for (done = false; !done;) EXPECT_OK(stream->poll(done));
    EXPECT_EQ(data, contents(other, kBytes));
  }
}

TEST_F(Cuda, threads_without_a_context_copy_and_stay_without) {
  std::byte* memory = allocate(8 * 1000);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 8; ++i) {
    threads.emplace_back([this, memory, i] {
      for (unsigned round = 0; round < 20; ++round) {
        const auto data = pattern(1000, i * 100 + round);
        std::byte* own = memory + i * 1000;
        const Copy in{own, data.data(), 1000};
        CopyTicket ticket;
        bool done = false;
        EXPECT_OK(runtime_.copy_begin(0, {&in, 1}, ticket));
        while (!done) EXPECT_OK(runtime_.copy_done(ticket, done));
        EXPECT_EQ(data, contents(own, 1000));
        EXPECT_EQ(MemoryKind::device, info(own).kind);
      }
      Context current = primary_;
      EXPECT_CUDA(driver().context_get_current(&current));
      EXPECT_EQ(nullptr, current);
      auto mode = cuda::CaptureMode::global;
      EXPECT_CUDA(driver().exchange_capture_mode(&mode));
      EXPECT_EQ(cuda::CaptureMode::global, mode) << "the thread's capture mode has changed";
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace accord::device
