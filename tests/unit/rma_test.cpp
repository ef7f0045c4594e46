// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One-sided operations: the runs of both ends, what happens to a target's memory under its locks,
// and what a window tells and keeps.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "idle_port.h"
#include "node/life_line.h"
#include "rma_world.h"

namespace accord::test {
namespace {

TEST(rma_pieces, follow_the_type_and_join_what_is_next_to_each_other) {
  const auto two_of_three = std::make_shared<const core::Typemap>(
      std::vector<device::Run>{{.offset_bytes = 0, .length_bytes = 8, .packed_bytes = 0}}, 12);
  const Pieces pieces = pieces_of({two_of_three, 3, 0}, 100);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[2].offset_bytes, 124);
  EXPECT_EQ(size_of(pieces), 24U);
  EXPECT_EQ(pieces_of({core::Typemap::contiguous(4), 5, 0}).size(), 1U);
}

TEST(rma_pieces, are_cut_anywhere) {
  const Pieces pieces = ints({{0, 2}, {5, 3}});
  const Pieces cut = slice(pieces, 6, 8);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[0].offset_bytes, 6);
  EXPECT_EQ(cut[0].length_bytes, 2U);
  EXPECT_EQ(cut[1].offset_bytes, 20);
  EXPECT_EQ(cut[1].length_bytes, 6U);
  EXPECT_TRUE(slice(pieces, 20, 4).empty());
}

TEST(rma_pieces, move_between_layouts_that_differ_and_leave_gaps_alone) {
  const OnDevice device(counted(0, 8));
  std::vector<int> host(10, -1);
  EXPECT_OK(move(on_host(host), ints({{1, 1}, {4, 3}}), device.place(), ints({{0, 3}, {6, 1}})));
  EXPECT_EQ(host, (std::vector<int>{-1, 0, -1, -1, 1, 2, 6, -1, -1, -1}));
}

TEST(rma_batch, does_what_it_has_taken_once_it_is_finished) {
  const OnDevice window(std::vector<int>(400, 0));
  std::vector<int> host = counted(1, 200);
  IdlePort port;
  core::Engine engine(port);
  Batch batch;
  for (int i = 0; i < 200; ++i)
    EXPECT_OK(batch.add(Batch::Direction::put, {window.place(), ints({{2 * i, 1}})},
                        {on_host(host), ints({{i, 1}})}));
  EXPECT_OK(batch.finish(engine));
  EXPECT_OK(batch.finish(engine));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(window.content()[static_cast<std::size_t>(2 * i)], i + 1);
  EXPECT_EQ(window.content()[399], 0);
}

TEST(rma_words, know_what_is_attached_of_devices) {
  Words words;
  DeviceRanges& ranges = words.device_ranges;
  const auto at = [](std::int64_t first, std::uint64_t length) { return Pieces{{first, length}}; };
  const auto start = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  const auto add = [&](std::uint64_t base, std::uint64_t size_bytes) {
    DeviceRanges::Entry entry;
    if (!ranges.next(entry)) return false;
    entry.base = base;
    entry.size_bytes = size_bytes;
    entry.memory.buffer_id = base;
    ranges.add(entry);
    return true;
  };
  EXPECT_FALSE(ranges.touch(at(1000, 8)));
  EXPECT_TRUE(add(1000, 100));
  EXPECT_TRUE(add(5000, 8));
  EXPECT_FALSE(ranges.touch(at(992, 8)));
  EXPECT_TRUE(ranges.touch(at(992, 9)));
  EXPECT_TRUE(ranges.touch(at(1099, 8)));
  EXPECT_FALSE(ranges.touch(at(1100, 8)));
  EXPECT_TRUE(ranges.touch(Pieces{{0, 4}, {5004, 4}}));
  DeviceRanges::Entry found;
  EXPECT_FALSE(ranges.find(at(1099, 8), found));
  EXPECT_FALSE(ranges.find(Pieces{{1000, 4}, {5004, 4}}, found));
  ASSERT_TRUE(ranges.find(Pieces{{5000, 4}, {5004, 4}}, found));
  EXPECT_EQ(found.memory.buffer_id, 5000U);
  EXPECT_EQ(found.generation, 1U);
  EXPECT_TRUE(ranges.remove(start(1000)));
  EXPECT_FALSE(ranges.remove(start(1000)));
  EXPECT_FALSE(ranges.touch(at(1000, 100)));
  std::uintptr_t next = 10000;
  while (add(next, 1)) next += 10;
  ASSERT_TRUE(ranges.find(at(10000, 1), found));
  EXPECT_EQ(found.generation, 2U);  // where the first one was
  EXPECT_TRUE(ranges.remove(start(10000)));
  EXPECT_TRUE(add(20000, 4));
  EXPECT_FALSE(ranges.empty());
}

TEST(rma_words, are_locked_by_one_or_shared) {
  Words words;
  EXPECT_TRUE(try_lock(words, LockKind::shared, 0));
  EXPECT_TRUE(try_lock(words, LockKind::shared, 1));
  EXPECT_FALSE(try_lock(words, LockKind::exclusive, 2));
  unlock(words, LockKind::shared);
  unlock(words, LockKind::shared);
  EXPECT_TRUE(try_lock(words, LockKind::exclusive, 2));
  EXPECT_FALSE(try_lock(words, LockKind::shared, 0));
  unlock(words, LockKind::exclusive);
  EXPECT_TRUE(try_lock(words, LockKind::shared, 0));
}

TEST(rma_words, name_a_holder_whose_process_has_ended) {
  Words words;
  LifeLines lines(3);
  lines[2] = cut_line();
  words.update_holder = 3;
  UpdateTurn turn;
  const Status taken = turn.take(words, 0, lines);
  EXPECT_EQ(taken.code(), StatusCode::device_error);
  EXPECT_NE(taken.message().find("rank 2"), std::string::npos);
  EXPECT_OK(check_lock(words, lines));
  EXPECT_TRUE(try_lock(words, LockKind::exclusive, 2));
  EXPECT_CODE(device_error, check_lock(words, lines));
}

// So that others come in between, if they may.
Status add_slowly(const Update& update, const std::byte* in, std::byte* inout,
                  std::size_t size_bytes) {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  return add(update, in, inout, size_bytes);
}

TEST(rma_target, updates_of_many_threads_are_all_there) {
  const OnDevice window(std::vector<int>(4, 0));
  Words words;
  const LifeLines lines(1);
  const Target target(window.place(), &words, 0, &lines, add_slowly);
  constexpr int kThreads = 4;
  constexpr int kTimes = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      const int one = 1;
      int before = -1;
      for (int time = 0; time < kTimes; ++time)
        EXPECT_OK(target.update(kSum, ints({{1, 1}}), reinterpret_cast<const std::byte*>(&one),
                                reinterpret_cast<std::byte*>(&before)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(window.content(), (std::vector<int>{0, kThreads * kTimes, 0, 0}));
}

TEST(rma_target, a_kernel_updates_where_neither_end_has_gaps) {
  const OnDevice window(counted(0, 8));
  const OnDevice origin(counted(100, 8));
  Words words;
  const LifeLines lines(1);
  const Target target(window.place(), &words, 0, &lines, nullptr);
  Update update = kSum;
  update.device_op = device::ReduceOp::sum;
  update.element = device::Element::int32;
  const Pieces whole = ints({{2, 4}});
  EXPECT_FALSE(target.can_reduce(update, whole, origin.place(), ints({{0, 2}, {4, 2}})));
  ASSERT_TRUE(target.can_reduce(update, whole, origin.place(), whole));
  EXPECT_OK(target.reduce(update, whole.front(), origin.place(), whole.front()));
  EXPECT_EQ(window.content(), (std::vector<int>{0, 1, 104, 106, 108, 110, 6, 7}));
  EXPECT_EQ(words.update_holder.load(), 0U);
}

TEST(rma_target, a_dynamic_window_has_what_is_attached) {
  std::vector<int> memory = counted(0, 8);
  Attached attached;
  Words words;
  const LifeLines lines(1);
  const Target target(Place::absolute(), &words, 0, &lines, add, &attached);
  const Pieces there{{static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&memory[2])), 12}};
  int found[3] = {};
  const Pieces all = ints({{0, 3}});
  EXPECT_CODE(out_of_window, target.get(there, Place::host(found), all));
  attached.add(memory.data(), 4 * sizeof(int));  // two parts that follow one another
  EXPECT_CODE(out_of_window, target.get(there, Place::host(found), all));
  attached.add(&memory[4], 4 * sizeof(int));
  EXPECT_OK(target.get(there, Place::host(found), all));
  EXPECT_EQ(found[2], 4);
  EXPECT_TRUE(attached.remove(memory.data()));
  EXPECT_FALSE(attached.remove(memory.data()));
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A program has as many windows as it likes, in a job of any size.
TEST(rma_window, keeps_no_descriptor_and_tells_few_bytes) {
  IdlePort port;
  core::Engine engine(port);
  const auto alone = [](const void* mine, void* all, std::size_t size_bytes) -> Status {
    EXPECT_LE(size_bytes, 64u);
    std::memcpy(all, mine, size_bytes);
    return {};
  };
  const auto open = [&] {
    auto window = std::make_unique<Window>(engine, 0, 1, add);
    EXPECT_OK(window->open({}, nullptr, alone));
    EXPECT_EQ(window->route(0), Route::direct);
    return window;
  };
  const auto first = open();  // with what all of a process share
  const std::size_t before = open_descriptors();
  std::vector<std::unique_ptr<Window>> windows;
  for (int i = 0; i < 20; ++i) windows.push_back(open());
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace accord::test
