// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which calls of a collective library are recorded and replayed: by all ranks alike, and a
// recording only where every rank has the buffers that it had then.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "coll/library/replays.h"

namespace accord::test {
namespace {

using coll::CclReplays;
using Way = CclReplays::Way;

// Remembers what it was made of.
class Recorded final : public device::Recording {
 public:
  explicit Recorded(const ccl::Work& work) : work_(work) { ++existing; }
  ~Recorded() override { --existing; }
  Status put(void*) override { return {}; }
  const ccl::Work& work() const { return work_; }

  static inline int existing = 0;

 private:
  ccl::Work work_;
};

struct Buffer {
  std::byte* address;
  std::uint64_t id = 1;
};
std::byte bytes[1024];
constexpr Buffer buffer(std::size_t number, std::uint64_t id = 1) { return {bytes + number, id}; }

ccl::Work work_on(const Buffer& buffer) {
  return {ACCORD_CCL_ALLREDUCE,
          ACCORD_CCL_FLOAT32,
          ACCORD_CCL_SUM,
          buffer.address,
          buffer.address,
          100,
          0};
}

// Two ranks, as exchanges use it.
class World {
 public:
  Way call(const Buffer& first, const Buffer& second) {
    const std::array buffers{first, second};
    std::uint64_t common = ~std::uint64_t{0};
    for (std::size_t rank = 0; rank < 2; ++rank)
      common &= ranks_[rank].offer(works(buffers[rank]), buffers[rank].id);
    CclReplays::Decision decision;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CclReplays& replays = ranks_[rank];
      const auto own = replays.decide(common);
      if (rank == 0) decision = own;
      EXPECT_EQ(decision.way, own.way);
      EXPECT_EQ(decision.slot, own.slot);
      const ccl::Work work = work_on(buffers[rank]);
      if (own.way == Way::record && rank == failing_) replays.give_up();
      if (own.way == Way::record && rank != failing_)
        replays.keep(own.slot, works(buffers[rank]), buffers[rank].id,
                     std::make_unique<Recorded>(work));
      if (own.way == Way::replay) {
        EXPECT_EQ(work.send, static_cast<Recorded&>(replays.recording(own.slot)).work().send);
      }
    }
    return decision.way;
  }
  // Calls until it is recorded, or at most so many.
  int calls_until_recorded(const Buffer& first, const Buffer& second, int calls_max = 100) {
    int calls = 1;
    while (calls < calls_max && call(first, second) != Way::record) ++calls;
    return calls;
  }
  void fail_on(std::size_t rank) { failing_ = rank; }

 private:
  static std::vector<ccl::Work> works(const Buffer& buffer) { return {work_on(buffer)}; }
  CclReplays ranks_[2];
  std::size_t failing_ = 2;
};

constexpr int kFirst = CclReplays::kCallsBefore + 1;

TEST(CclReplays, what_comes_often_is_recorded_and_replayed) {
  World world;
  EXPECT_EQ(kFirst, world.calls_until_recorded(buffer(0), buffer(1)));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Way::replay, world.call(buffer(0), buffer(1)));
}

TEST(CclReplays, another_buffer_of_one_rank_is_another_call_of_all) {
  World world;
  world.calls_until_recorded(buffer(0), buffer(1));
  EXPECT_EQ(Way::plain, world.call(buffer(0), buffer(2)));
  EXPECT_EQ(Way::replay, world.call(buffer(0), buffer(1)));
  // Rank 0's buffer is known, so that it has but to come often on rank 1.
  EXPECT_EQ(kFirst - 1, world.calls_until_recorded(buffer(0), buffer(2)));
  EXPECT_EQ(Way::replay, world.call(buffer(0), buffer(1)));
  EXPECT_EQ(Way::replay, world.call(buffer(0), buffer(2)));
  EXPECT_EQ(Way::plain, world.call(buffer(2), buffer(2)));
}

TEST(CclReplays, other_memory_at_the_same_address_is_another_buffer) {
  World world;
  world.calls_until_recorded(buffer(0), buffer(1));
  EXPECT_EQ(Way::plain, world.call(buffer(0, 2), buffer(1)));
  EXPECT_EQ(Way::plain, world.call(buffer(0), buffer(1, 2)));
}

TEST(CclReplays, a_rank_that_cannot_record_keeps_all_from_replaying) {
  World world;
  world.fail_on(1);
  EXPECT_EQ(kFirst, world.calls_until_recorded(buffer(0), buffer(1)));
  EXPECT_EQ(100, world.calls_until_recorded(buffer(0), buffer(1), 100));
  EXPECT_EQ(Way::plain, world.call(buffer(0), buffer(1)));
}

// What others keep for it holds memory that the program may have freed.
TEST(CclReplays, nobody_keeps_a_recording_once_a_rank_cannot_record) {
  World world;
  world.calls_until_recorded(buffer(0), buffer(1));
  ASSERT_EQ(2, Recorded::existing);
  world.fail_on(1);
  world.calls_until_recorded(buffer(2), buffer(3));
  EXPECT_EQ(2, Recorded::existing);  // rank 0's, which has not heard of it
  world.call(buffer(4), buffer(5));
  EXPECT_EQ(0, Recorded::existing);
}

TEST(CclReplays, a_call_that_cannot_be_recorded_ends_no_recording) {
  CclReplays one;
  EXPECT_EQ(Way::plain, one.decide(one.offer_nothing()).way);
  EXPECT_NE(0u, one.offer_nothing());
}

// More calls in turn than there is room for: what is recorded is of use to nobody, and so it ends.
TEST(CclReplays, a_program_that_never_replays_does_not_record_for_ever) {
  World world;
  int recorded = 0;
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < CclReplays::kSlots * 2; ++i)
      if (world.call(buffer(2 * i), buffer(2 * i + 1)) == Way::record) ++recorded;
  }
  EXPECT_GE(recorded, static_cast<int>(CclReplays::kSlots));
  EXPECT_LE(recorded, 200);
}

}  // namespace
}  // namespace accord::test
