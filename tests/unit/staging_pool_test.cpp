// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/staging_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <map>

#include "base/config.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

constexpr std::size_t kKilo = 1024;
constexpr std::size_t kMega = 1024 * 1024;

// A runtime that only lends host memory, and knows what it has lent.
class LendingRuntime final : public DeviceRuntime {
 public:
  const char* name() const noexcept override { return "lending"; }
  bool active() noexcept override { return true; }
  bool present() noexcept override { return true; }
  bool classify(const void*, PointerInfo&) noexcept override { return false; }
  Status copy(int, std::span<const Copy>) override { return none(); }
  Status copy_begin(int, std::span<const Copy>, CopyTicket&) override { return none(); }
  Status copy_done(CopyTicket&, bool&) override { return none(); }
  Status host_allocate(std::size_t size_bytes, void*& pointer) override {
    if (refuses) return Status(StatusCode::no_memory, "refused");
    ACCORD_TRY(host_runtime().host_allocate(size_bytes, pointer));
    lent[pointer] = size_bytes;
    lent_bytes += size_bytes;
    return Status();
  }
  void host_free(void* pointer, std::size_t size_bytes) noexcept override {
    EXPECT_EQ(1U, lent.count(pointer));
    EXPECT_EQ(lent[pointer], size_bytes);
    lent.erase(pointer);
    lent_bytes -= size_bytes;
    host_runtime().host_free(pointer, size_bytes);
  }
  Status allocate(int, MemoryKind, std::size_t, void*&) override { return none(); }
  Status free(void*) override { return none(); }
  Status export_memory(const void*, ExportedMemory&) override { return none(); }
  Status open_memory(int, const ExportedMemory&, void*&) override { return none(); }
  Status close_memory(void*) override { return none(); }
  int device_count() override { return 0; }
  int device_in_use() noexcept override { return -1; }
  Status describe(int, DeviceDescription&) override { return none(); }

  std::map<void*, std::size_t> lent;
  std::size_t lent_bytes = 0;
  bool refuses = false;

 private:
  static Status none() { return Status(StatusCode::unsupported, "only lends"); }
};

TEST(staging_pool, only_what_is_kept) {
  LendingRuntime runtime;
  StagingPool pool(kMega);
  StagingBuffer first;
  StagingBuffer second;
  EXPECT_FALSE(pool.acquire_kept(&runtime, 4 * kKilo, first));
  EXPECT_FALSE(pool.acquire_kept(&runtime, 0, first));
  ASSERT_TRUE(pool.acquire(&runtime, 3 * kKilo, first).ok());
  void* const memory = first.data();
  first.reset();
  EXPECT_EQ(4 * kKilo, pool.counters().kept_bytes);
  EXPECT_FALSE(pool.acquire_kept(&runtime, 5 * kKilo, first));
  ASSERT_TRUE(pool.acquire_kept(&runtime, 4 * kKilo, first));
  EXPECT_EQ(memory, first.data());
  EXPECT_EQ(0U, pool.counters().kept_bytes);
  EXPECT_FALSE(pool.acquire_kept(&runtime, 4 * kKilo, second));
  EXPECT_EQ(1U, runtime.lent.size());
}

// The smallest that is large enough, which goes back to where it belongs.
TEST(staging_pool, only_what_is_kept_of_any_size) {
  LendingRuntime runtime;
  StagingPool pool(kMega);
  StagingBuffer small;
  StagingBuffer large;
  ASSERT_TRUE(pool.acquire(&runtime, 16 * kKilo, small).ok());
  ASSERT_TRUE(pool.acquire(&runtime, 64 * kKilo, large).ok());
  void* const smaller = small.data();
  void* const larger = large.data();
  small.reset();
  large.reset();
  ASSERT_TRUE(pool.acquire_kept(&runtime, 1, small));
  EXPECT_EQ(smaller, small.data());
  ASSERT_TRUE(pool.acquire_kept(&runtime, 5 * kKilo, large));
  EXPECT_EQ(larger, large.data());
  EXPECT_EQ(0U, pool.counters().kept_bytes);
  large.reset();
  EXPECT_EQ(64 * kKilo, pool.counters().kept_bytes);
  ASSERT_TRUE(pool.acquire_kept(&runtime, 64 * kKilo, large));
  EXPECT_EQ(larger, large.data());
}

TEST(staging_pool, size_classes) {
  EXPECT_EQ(0U, StagingPool::capacity_bytes(0));
  EXPECT_EQ(4 * kKilo, StagingPool::capacity_bytes(1));
  EXPECT_EQ(4 * kKilo, StagingPool::capacity_bytes(4 * kKilo));
  EXPECT_EQ(8 * kKilo, StagingPool::capacity_bytes(4 * kKilo + 1));
  EXPECT_EQ(kMega, StagingPool::capacity_bytes(kMega / 2 + 1));
  EXPECT_EQ(kMega, StagingPool::capacity_bytes(kMega));
  EXPECT_EQ(kMega + kMega / 4, StagingPool::capacity_bytes(kMega + 1));
  EXPECT_EQ(2 * kMega, StagingPool::capacity_bytes(2 * kMega));
  EXPECT_EQ(2 * kMega + kMega / 2, StagingPool::capacity_bytes(2 * kMega + 1));
  // Every class: large enough, its own capacity, and never more than twice (a quarter above 1 MiB)
  // too large.
  for (std::size_t size = 1; size < (std::size_t{1} << 40); size += size / 7 + 1) {
    const std::size_t capacity = StagingPool::capacity_bytes(size);
    EXPECT_GE(capacity, size);
    EXPECT_EQ(capacity, StagingPool::capacity_bytes(capacity));
    if (size > 4 * kKilo) {
      EXPECT_LT(capacity, 2 * size);
    }
    if (size > kMega) {
      EXPECT_LE(capacity, size + size / 4);
    }
  }
}

TEST(staging_pool, a_returned_buffer_is_lent_again) {
  LendingRuntime runtime;
  StagingPool pool(kMega);
  void* first = nullptr;
  {
    StagingBuffer buffer;
    EXPECT_TRUE(buffer.empty());
    ASSERT_OK(pool.acquire(&runtime, 5000, buffer));
    EXPECT_EQ(5000U, buffer.size_bytes());
    first = buffer.data();
    std::memset(first, 1, 8 * kKilo);
    EXPECT_EQ(0U, pool.counters().kept_bytes);
  }
  EXPECT_EQ(8 * kKilo, pool.counters().kept_bytes);
  StagingBuffer again;
  ASSERT_OK(pool.acquire(&runtime, 8000, again));
  EXPECT_EQ(first, again.data());
  StagingBuffer another;
  ASSERT_OK(pool.acquire(&runtime, 8000, another));
  EXPECT_NE(first, another.data());
  const StagingCounters counters = pool.counters();
  EXPECT_EQ(1U, counters.hits);
  EXPECT_EQ(2U, counters.misses);
  again.reset();
  EXPECT_TRUE(again.empty());
  again.reset();
  EXPECT_EQ(8 * kKilo, pool.counters().kept_bytes);
}

TEST(staging_pool, handles_move) {
  LendingRuntime runtime;
  StagingPool pool(kMega);
  StagingBuffer first;
  ASSERT_OK(pool.acquire(&runtime, 100, first));
  void* const memory = first.data();
  StagingBuffer second = std::move(first);
  EXPECT_TRUE(first.empty());  // NOLINT: a moved-from handle is empty
  EXPECT_EQ(memory, second.data());
  StagingBuffer third;
  ASSERT_OK(pool.acquire(&runtime, 100, third));
  third = std::move(second);
  EXPECT_EQ(memory, third.data());
  EXPECT_EQ(4 * kKilo, pool.counters().kept_bytes) << "what third held went back";
  ASSERT_OK(
      pool.acquire(&runtime, 100, third));  // what it held goes back before the new one is taken
  EXPECT_EQ(memory, third.data());
}

TEST(staging_pool, kept_bytes_are_bounded) {
  LendingRuntime runtime;
  StagingPool pool(64 * kKilo);
  std::vector<StagingBuffer> buffers(20);
  for (StagingBuffer& buffer : buffers) ASSERT_OK(pool.acquire(&runtime, 8 * kKilo, buffer));
  EXPECT_EQ(160 * kKilo, runtime.lent_bytes);
  buffers.clear();
  EXPECT_EQ(64 * kKilo, pool.counters().kept_bytes);
  EXPECT_EQ(64 * kKilo, runtime.lent_bytes);
  StagingBuffer large;
  ASSERT_OK(pool.acquire(&runtime, 65 * kKilo, large));
  large.reset();
  EXPECT_EQ(64 * kKilo, runtime.lent_bytes) << "larger than the bound: never kept";
  StagingPool nothing_kept(0);
  ASSERT_OK(nothing_kept.acquire(&runtime, 1, large));
  large.reset();
  EXPECT_EQ(0U, nothing_kept.counters().kept_bytes);
}

TEST(staging_pool, sizes_out_of_use_make_room) {
  LendingRuntime runtime;
  StagingPool pool(64 * kKilo);
  const auto use = [&](std::size_t size_bytes) {
    StagingBuffer buffer;
    EXPECT_OK(pool.acquire(&runtime, size_bytes, buffer));
  };
  use(32 * kKilo);
  for (int i = 0; i < 40; ++i) use(64 * kKilo);
  EXPECT_EQ(64 * kKilo, pool.counters().kept_bytes);
  const std::uint64_t misses = pool.counters().misses;
  use(64 * kKilo);
  EXPECT_EQ(misses, pool.counters().misses) << "the class in use is the one that is kept";
  EXPECT_LT(misses, 22U);
}

TEST(staging_pool, sizes_in_turns_do_not_throw_each_other_out) {
  LendingRuntime runtime;
  StagingPool pool(64 * kKilo);
  const auto use = [&](std::size_t size_bytes) {
    StagingBuffer buffer;
    EXPECT_OK(pool.acquire(&runtime, size_bytes, buffer));
  };
  use(32 * kKilo);
  for (int i = 0; i < 40; ++i) {
    use(64 * kKilo);
    use(32 * kKilo);
  }
  EXPECT_EQ(32 * kKilo, pool.counters().kept_bytes);
  EXPECT_EQ(40U, pool.counters().hits);
}

TEST(staging_pool, two_buffers_take_turns) {
  LendingRuntime runtime;
  StagingPool pool(64 * kMega);
  std::vector<void*> lent;
  for (int i = 0; i < 6; ++i) {
    StagingBuffer buffer;
    ASSERT_OK(pool.acquire(&runtime, 64 * kKilo, buffer));
    lent.push_back(buffer.data());
  }
  EXPECT_NE(lent[0], lent[1]);
  for (std::size_t i = 2; i < lent.size(); ++i) EXPECT_EQ(lent[i - 2], lent[i]);
  EXPECT_EQ(2U, pool.counters().misses);
}

TEST(staging_pool, runtimes_do_not_share_memory) {
  LendingRuntime one;
  LendingRuntime other;
  StagingPool pool(kMega);
  StagingBuffer buffer;
  ASSERT_OK(pool.acquire(&one, 100, buffer));
  ASSERT_OK(pool.acquire(&other, 100, buffer));
  EXPECT_EQ(4 * kKilo, one.lent_bytes);
  EXPECT_EQ(4 * kKilo, other.lent_bytes);
  EXPECT_EQ(1U, other.lent.count(buffer.data()));
}

TEST(staging_pool, errors) {
  LendingRuntime runtime;
  StagingPool pool(kMega);
  StagingBuffer buffer;
  EXPECT_CODE(invalid_argument, pool.acquire(nullptr, 100, buffer));
  EXPECT_CODE(no_memory, pool.acquire(&runtime, SIZE_MAX, buffer));
  runtime.refuses = true;
  EXPECT_CODE(no_memory, pool.acquire(&runtime, 100, buffer));
  EXPECT_TRUE(buffer.empty());
  EXPECT_CODE(no_memory, pool.acquire_sparse(SIZE_MAX / 2, buffer));
  EXPECT_OK(pool.acquire(&runtime, 0, buffer));
  EXPECT_TRUE(buffer.empty());
  EXPECT_OK(pool.acquire_sparse(0, buffer));
  EXPECT_TRUE(buffer.empty());
}

TEST(staging_pool, everything_goes_back_at_the_end) {
  LendingRuntime runtime;
  {
    StagingPool pool(kMega);
    StagingBuffer buffer;
    ASSERT_OK(pool.acquire(&runtime, 100, buffer));
    ASSERT_OK(pool.acquire(&runtime, 100000, buffer));
    EXPECT_EQ(2U, runtime.lent.size());
  }
  EXPECT_EQ(0U, runtime.lent.size());
}

std::size_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long total = 0;
  unsigned long resident = 0;
  if (file == nullptr || std::fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * 4096;
}

TEST(staging_pool, sparse_memory_costs_what_is_touched) {
  StagingPool pool(kMega);
  StagingBuffer buffer;
  const std::size_t span = std::size_t{64} << 30;  // more than this machine has
  const std::size_t before = resident_bytes();
  ASSERT_OK(pool.acquire_sparse(span, buffer));
  auto* bytes = static_cast<unsigned char*>(buffer.data());
  EXPECT_EQ(span, buffer.size_bytes());
  bytes[0] = 1;
  bytes[span / 2] = 2;
  bytes[span - 1] = 3;
  EXPECT_EQ(0, bytes[span / 2 + 1]);
  EXPECT_LT(resident_bytes(), before + 64 * kMega);
  EXPECT_EQ(0U, pool.counters().hits + pool.counters().misses);
  buffer.reset();
  EXPECT_EQ(0U, pool.counters().kept_bytes);
  EXPECT_TRUE(test::faults(bytes, test::Touch::read)) << "given back";
}

TEST(staging_pool, mappings_that_stay_untouched_are_lent_again) {
  constexpr std::size_t kBytes = 64 * kMega;
  StagingPool pool(kBytes);
  StagingBuffer buffer;
  ASSERT_OK(pool.acquire_mapped(kBytes, buffer));
  auto* const first = static_cast<char*>(buffer.data());
  *first = 1;
  buffer.is_untouched();
  buffer.reset();
  ASSERT_OK(pool.acquire_mapped(kBytes / 2, buffer));
  EXPECT_EQ(first, buffer.data());
  EXPECT_EQ(1, *first);
  buffer.reset();  // and has been written to, perhaps
  ASSERT_OK(pool.acquire_mapped(kBytes, buffer));
  EXPECT_EQ(0, *static_cast<char*>(buffer.data()));
  buffer.reset();
  // Of ten that come back four are kept, until the pool is trimmed.
  std::vector<StagingBuffer> many(10);
  std::vector<void*> places;
  for (StagingBuffer& one : many) {
    ASSERT_OK(pool.acquire_mapped(kBytes, one));
    places.push_back(one.data());
    one.is_untouched();
  }
  many.clear();
  const auto there = [&] {
    return std::ranges::count_if(
        places, [](void* place) { return !test::faults(place, test::Touch::read); });
  };
  EXPECT_EQ(4, there());
  pool.trim();
  EXPECT_EQ(0, there());
  ASSERT_OK(pool.acquire_mapped(0, buffer));
  EXPECT_TRUE(buffer.empty());
}

TEST(staging_pool, the_process_has_one) {
  EXPECT_EQ(&staging_pool(), &staging_pool());
  StagingBuffer buffer;
  ASSERT_OK(staging_pool().acquire(&host_runtime(), 100, buffer));
  buffer.reset();
  EXPECT_EQ(4 * kKilo, staging_pool().counters().kept_bytes);
}

// Not a measurement: far above the 50 ns it takes, far below an mmap. Other programs may take the
// processor once and again, so the best of a few tries counts.
TEST(staging_pool, taking_a_kept_buffer_is_fast) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers slow this down";
#endif
  constexpr int kRounds = 200000;
  constexpr double kMostNs = 1000;
  StagingPool pool(kMega);
  StagingBuffer buffer;
  ASSERT_OK(pool.acquire(&host_runtime(), 100, buffer));
  double nanoseconds = kMostNs;
  for (int tries = 0; tries < 20 && nanoseconds >= kMostNs; ++tries) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i) {
      buffer.reset();
      if (!pool.acquire(&host_runtime(), 100, buffer).ok()) FAIL();
    }
    const auto spent = std::chrono::steady_clock::now() - start;
    nanoseconds = static_cast<double>(std::chrono::nanoseconds(spent).count()) / kRounds;
  }
  RecordProperty("nanoseconds", std::to_string(nanoseconds));
  std::printf("take and return: %.1f ns\n", nanoseconds);
  EXPECT_LT(nanoseconds, kMostNs);
}

}  // namespace
}  // namespace accord::device
