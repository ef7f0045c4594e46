// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Eight threads over the host runtime, the registry and the staging pool at once; run under
// ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "device/registry.h"
#include "device/staging_pool.h"
#include "support.h"

namespace accord::device {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 150;

// Runs body(thread number) in kThreads threads.
template <class Body>
void in_threads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(device_threads, allocate_copy_classify_free) {
  DeviceRuntime& runtime = default_runtime();
  // One buffer that stays: the others' traffic must never hide or change it.
  void* shared = nullptr;
  ASSERT_OK(runtime.allocate(0, MemoryKind::device, 1000, shared));
  const std::uint64_t shared_id = classify(shared).buffer_id;
  std::atomic<int> failures{0};
  in_threads([&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t size_bytes = 1 + random() % 20000;
      const auto kind = round % 3 == 0 ? MemoryKind::managed : MemoryKind::device;
      void* pointer = nullptr;
      if (!runtime.allocate(0, kind, size_bytes, pointer).ok()) ++failures;
      const auto data = test::pattern(size_bytes, static_cast<unsigned>(random()));
      std::vector<unsigned char> seen(size_bytes);
      const Copy in{pointer, data.data(), size_bytes};
      const Copy out{seen.data(), pointer, size_bytes};
      if (!runtime.copy(0, {&in, 1}).ok()) ++failures;
      CopyTicket ticket;
      bool done = false;
      if (!runtime.copy_begin(0, {&out, 1}, ticket).ok()) ++failures;
      while (!done) {
        if (!runtime.copy_done(ticket, done).ok()) ++failures;
      }
      if (seen != data) ++failures;
      const PointerInfo info = classify(static_cast<std::byte*>(pointer) + size_bytes - 1);
      if (info.kind != kind || info.base != pointer || info.size_bytes != size_bytes) ++failures;
      if (!must_stage(pointer) || must_stage(seen.data()) || must_stage(&info)) ++failures;
      if (classify(shared).buffer_id != shared_id) ++failures;
      if (!runtime.free(pointer).ok()) ++failures;
    }
  });
  EXPECT_EQ(0, failures.load());
  EXPECT_OK(runtime.free(shared));
}

TEST(device_threads, staging_pool) {
  StagingPool pool(std::size_t{256} << 10);  // small: returning, evicting and freeing all happen
  std::atomic<int> failures{0};
  in_threads([&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread) + 100);
    std::vector<StagingBuffer> held;
    for (int round = 0; round < kRounds * 4; ++round) {
      StagingBuffer buffer;
      const std::size_t size_bytes = std::size_t{1} << (random() % 18);
      if (!pool.acquire(&default_runtime(), size_bytes, buffer).ok()) ++failures;
      // Each buffer belongs to one thread at a time: its mark must still be there when it goes
      // back.
      std::memset(buffer.data(), thread, size_bytes);
      held.push_back(std::move(buffer));
      if (held.size() == 5) {
        const std::size_t victim = random() % held.size();
        const auto* bytes = static_cast<const unsigned char*>(held[victim].data());
        for (std::size_t i = 0; i < held[victim].size_bytes(); ++i) {
          if (bytes[i] != thread) ++failures;
        }
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
  });
  EXPECT_EQ(0, failures.load());
  const StagingCounters counters = pool.counters();
  EXPECT_LE(counters.kept_bytes, std::size_t{256} << 10);
  EXPECT_EQ(static_cast<std::uint64_t>(kThreads) * kRounds * 4, counters.hits + counters.misses);
  pool.trim();
  EXPECT_EQ(0U, pool.counters().kept_bytes);
}

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  setenv("ACCORD_RUNTIME", "host", 1);
  setenv("ACCORD_TEST_COPY_POLLS", "2", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
