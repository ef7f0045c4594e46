// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One-sided calls on windows in device memory: each call once, with what it must bring by the
// standard. The argument says by which way operations on another rank go: "direct" or "messages";
// or that windows which need messages are "refused", or that "threads" use one.
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "window_errors.h"
#include "window_handles.h"
#include "window_host_memory.h"
#include "window_test.h"

namespace {

using namespace accord::test;

void put_and_get_between_fences() {
  test_name = "put and get between fences";
  const Window window(numbers(-kCount));
  const DeviceBuffer origin = on_device(of_rank(rank));
  MPI_Win_fence(0, window.handle());
  MPI_Put(origin.pointer(), kCount / 2, MPI_INT, right(), 0, kCount / 2, MPI_INT, window.handle());
  expect_way();
  MPI_Win_fence(0, window.handle());
  std::vector<int> wanted = numbers(-kCount);
  const std::vector<int> put = of_rank(left());
  std::copy_n(put.begin(), kCount / 2, wanted.begin());
  expect_equal(window.content(), wanted, "the window");

  const DeviceBuffer on = on_device(std::vector<int>(kCount));
  std::vector<int> host(kCount);
  MPI_Get(on.pointer(), kCount, MPI_INT, right(), 0, kCount, MPI_INT, window.handle());
  MPI_Get(host.data(), kCount, MPI_INT, right(), 0, kCount, MPI_INT, window.handle());
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window.handle());
  const std::vector<int> put_by_me = of_rank(rank);
  std::copy_n(put_by_me.begin(), kCount / 2, wanted.begin());
  expect_equal(contents(on), wanted, "what came to the device");
  expect_equal(host, wanted, "what came to the host");
}

void derived_types_at_both_ends() {
  test_name = "derived types at both ends";
  const Window window(std::vector<int>(kCount, -1));
  const DeviceBuffer origin = on_device(of_rank(rank));
  MPI_Datatype pairs = MPI_DATATYPE_NULL;    // two of each three
  MPI_Datatype singles = MPI_DATATYPE_NULL;  // each second
  MPI_Type_vector(6, 2, 3, MPI_INT, &pairs);
  MPI_Type_vector(12, 1, 2, MPI_INT, &singles);
  MPI_Type_commit(&pairs);
  MPI_Type_commit(&singles);
  MPI_Win_fence(0, window.handle());
  MPI_Put(origin.pointer(), 1, pairs, right(), 5, 1, singles, window.handle());
  MPI_Win_fence(0, window.handle());
  std::vector<int> wanted(kCount, -1);
  for (std::size_t i = 0; i < 12; ++i) wanted[5 + 2 * i] = of_rank(left())[i / 2 * 3 + i % 2];
  expect_equal(window.content(), wanted, "the window");

  const DeviceBuffer back = on_device(std::vector<int>(kCount, -2));
  MPI_Get(back.pointer(), 1, pairs, right(), 5, 12, singles, window.handle());  // too many
  MPI_Get(back.pointer(), 1, pairs, right(), 5, 1, singles, window.handle());
  MPI_Win_fence(0, window.handle());
  std::vector<int> returned(kCount, -2);
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t at = i / 2 * 3 + i % 2;
    returned[at] = of_rank(rank)[at];
  }
  expect_equal(contents(back), returned, "what came back");
  MPI_Type_free(&pairs);
  MPI_Type_free(&singles);
}

void post_start_complete_wait() {
  test_name = "post, start, complete, wait";
  const Window window(std::vector<int>(kCount, -1));
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group origins = MPI_GROUP_NULL;
  MPI_Group targets = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  const int from = left();
  const int to = right();
  MPI_Group_incl(all, 1, &from, &origins);
  MPI_Group_incl(all, 1, &to, &targets);
  for (int round = 0; round < 4; ++round) {
    const DeviceBuffer origin = on_device(numbers(100 * round + rank));
    MPI_Win_post(origins, 0, window.handle());
    MPI_Win_start(targets, 0, window.handle());
    MPI_Put(origin.pointer(), kCount, MPI_INT, to, 0, kCount, MPI_INT, window.handle());
    MPI_Win_complete(window.handle());
    if (round % 2 == 0) {
      MPI_Win_wait(window.handle());
    } else {
      int done = 0;
      while (done == 0) MPI_Win_test(window.handle(), &done);
    }
    expect_equal(window.content(), numbers(100 * round + from), "the window");
  }
  MPI_Group_free(&all);
  MPI_Group_free(&origins);
  MPI_Group_free(&targets);
}

// Rank 1 changes and reads rank 0's memory. Without messages rank 0 makes no MPI call meanwhile.
void passive_target() {
  test_name = "a passive target";
  const Window window(of_rank(rank));
  if (rank == 1) {
    const DeviceBuffer origin = on_device(numbers(7));
    const DeviceBuffer result = on_device(std::vector<int>(kCount));
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.handle());
    MPI_Put(origin.pointer(), 4, MPI_INT, 0, 8, 4, MPI_INT, window.handle());
    MPI_Win_flush(0, window.handle());
    MPI_Get(result.pointer(), kCount, MPI_INT, 0, 0, kCount, MPI_INT, window.handle());
    MPI_Win_flush_local(0, window.handle());
    std::vector<int> wanted = of_rank(0);
    for (int i = 0; i < 4; ++i) wanted[static_cast<std::size_t>(8 + i)] = 7 + i;
    expect_equal(contents(result), wanted, "what was read");
    MPI_Win_unlock(0, window.handle());
  }
  if (rank == 0 && way == "direct") {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (window.content()[9] != 8 && std::chrono::steady_clock::now() < give_up) {
    }
    expect(window.content()[9] == 8, "nothing comes while the target makes no call");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.handle());
    expect(window.content()[9] == 8, "the target does not see it");
    MPI_Win_unlock(0, window.handle());
  }
}

// Many ranks add to one element, by each call that does so: none is lost, and each value is seen
// once.
void updates_are_atomic() {
  test_name = "updates are atomic";
  constexpr int kTimes = 40;
  const Window window(std::vector<int>(kCount, 0));
  const DeviceBuffer one = on_device(std::vector<int>(kCount, 1));
  const DeviceBuffer seen = on_device(std::vector<int>(kTimes, -1));
  MPI_Win_lock_all(0, window.handle());
  for (int i = 0; i < kTimes; ++i) {
    MPI_Accumulate(one.pointer(), kCount / 2, MPI_INT, 0, 2, kCount / 2, MPI_INT, MPI_SUM,
                   window.handle());
    auto* const result =
        static_cast<std::byte*>(seen.pointer()) + sizeof(int) * static_cast<unsigned>(i);
    MPI_Fetch_and_op(one.pointer(), result, MPI_INT, 0, 0, MPI_SUM, window.handle());
  }
  MPI_Win_flush_all(window.handle());
  // A lock: whoever puts its number in place of 0 adds to the second element by get and put.
  for (int i = 0; i < 5; ++i) {
    const int mine = rank + 1;
    const int free = 0;
    int found = -1;
    do {
      MPI_Compare_and_swap(&mine, &free, &found, MPI_INT, 0, kCount - 1, window.handle());
      MPI_Win_flush(0, window.handle());
    } while (found != 0);
    int value = 0;
    MPI_Get(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, window.handle());
    MPI_Win_flush(0, window.handle());
    ++value;
    MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, window.handle());
    MPI_Win_flush(0, window.handle());
    MPI_Fetch_and_op(&free, &found, MPI_INT, 0, kCount - 1, MPI_REPLACE, window.handle());
    MPI_Win_flush(0, window.handle());
    expect(found == mine, "the lock was " + std::to_string(found) + "'s");
  }
  MPI_Win_unlock_all(window.handle());
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<int> all(static_cast<std::size_t>(kTimes * size));
  const std::vector<int> mine = contents(seen);
  MPI_Gather(mine.data(), kTimes, MPI_INT, all.data(), kTimes, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  const std::vector<int> found = window.content();
  std::vector<int> wanted(kCount, 0);
  std::fill_n(wanted.begin() + 2, kCount / 2, kTimes * size);
  wanted[0] = kTimes * size;
  wanted[1] = 5 * size;
  expect_equal(found, wanted, "the window");
  std::sort(all.begin(), all.end());
  expect_equal(all, numbers(0, kTimes * size), "what was seen");
}

struct DoubleInt {
  double value;
  int index;
};

void updates_of_pairs_and_types() {
  test_name = "updates of pairs and derived types";
  std::vector<DoubleInt> pairs(4, {1.5, 10});
  const DeviceBuffer memory = on_device(pairs);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory.pointer(), static_cast<MPI_Aint>(sizeof(DoubleInt) * pairs.size()),
                 sizeof(DoubleInt), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  const std::vector<DoubleInt> origin{{2.5 + rank, rank}, {0.5, rank}};
  MPI_Accumulate(origin.data(), 2, MPI_DOUBLE_INT, 0, 1, 2, MPI_DOUBLE_INT, MPI_MAXLOC, win);
  MPI_Win_fence(0, win);
  if (rank == 0) {
    const auto found = contents<DoubleInt>(memory);
    expect(found[1].value == 2.5 + size - 1 && found[1].index == size - 1, "the larger one");
    expect(found[2].value == 1.5 && found[2].index == 10, "the one that stays");
  }
  MPI_Win_free(&win);

  const Window window(numbers(0));
  MPI_Datatype each_third = MPI_DATATYPE_NULL;
  MPI_Type_vector(5, 1, 3, MPI_INT, &each_third);
  MPI_Type_commit(&each_third);
  const DeviceBuffer ten = on_device(std::vector<int>(5, 10));
  const DeviceBuffer before = on_device(std::vector<int>(5, -1));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.handle());
  MPI_Rget_accumulate(ten.pointer(), 5, MPI_INT, before.pointer(), 5, MPI_INT, right(), 1, 1,
                      each_third, MPI_PROD, window.handle(), &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_equal(contents(before), {1, 4, 7, 10, 13}, "before");
  // Nothing is done, but read.
  MPI_Get_accumulate(nullptr, 0, MPI_INT, before.pointer(), 5, MPI_INT, right(), 1, 1, each_third,
                     MPI_NO_OP, window.handle());
  MPI_Win_unlock(right(), window.handle());
  expect_equal(contents(before), {10, 40, 70, 100, 130}, "after");
  MPI_Type_free(&each_third);
}

// With requests of other kinds in one call.
void requests_among_others() {
  test_name = "requests among others";
  const Window window(of_rank(rank));
  const DeviceBuffer origin = on_device(numbers(5));
  const DeviceBuffer result = on_device(std::vector<int>(kCount));
  int sent = rank;
  int received = -1;
  MPI_Request all[5];
  MPI_Win_lock_all(0, window.handle());
  MPI_Irecv(&received, 1, MPI_INT, left(), 3, MPI_COMM_WORLD, &all[0]);
  MPI_Rput(origin.pointer(), 8, MPI_INT, right(), 0, 8, MPI_INT, window.handle(), &all[1]);
  MPI_Rget(result.pointer(), 8, MPI_INT, right(), 8, 8, MPI_INT, window.handle(), &all[2]);
  MPI_Isend(&sent, 1, MPI_INT, right(), 3, MPI_COMM_WORLD, &all[3]);
  MPI_Rput(origin.pointer(), 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window.handle(), &all[4]);
  MPI_Waitall(5, all, MPI_STATUSES_IGNORE);
  expect(received == left(), "the message");
  const std::vector<int> rest = of_rank(right());
  std::vector<int> found = contents(result);
  found.resize(8);
  expect_equal(found, {rest.begin() + 8, rest.begin() + 16}, "what was read");
  MPI_Win_unlock_all(window.handle());
  MPI_Barrier(MPI_COMM_WORLD);
  found = window.content();
  found.resize(8);
  expect_equal(found, numbers(5, 8), "what was put");
}

void exclusive_locks_exclude() {
  test_name = "exclusive locks";
  const Window window(std::vector<int>(kCount, 0));
  for (int i = 0; i < 20; ++i) {
    int value = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.handle());
    MPI_Get(&value, 1, MPI_INT, 0, 3, 1, MPI_INT, window.handle());
    MPI_Win_flush(0, window.handle());
    ++value;
    MPI_Put(&value, 1, MPI_INT, 0, 3, 1, MPI_INT, window.handle());
    MPI_Win_unlock(0, window.handle());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) expect(window.content()[3] == 20 * size, std::to_string(window.content()[3]));
}

// Rank 0 reads its own memory, which is no operation.
void a_lock_of_all_ranks_protects_local_loads() {
  test_name = "a lock of all ranks";
  const Window window(std::vector<int>(kCount, 0));
  if (rank == 0) MPI_Win_lock_all(0, window.handle());
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    expect(window.content()[5] == 0, "another rank has it at the same time");
    MPI_Win_unlock_all(window.handle());
  }
  if (rank == 1) {
    const int value = 7;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.handle());
    MPI_Put(&value, 1, MPI_INT, 0, 5, 1, MPI_INT, window.handle());
    MPI_Win_unlock(0, window.handle());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) expect(window.content()[5] == 7, "nobody gets it afterwards");
}

void dynamic_window() {
  test_name = "a dynamic window";
  MPI_Win win = MPI_WIN_NULL;
  const DeviceBuffer memory = on_device(of_rank(rank));
  std::vector<int> host = numbers(-5, 4);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_attach(win, memory.pointer(), kCount * static_cast<MPI_Aint>(sizeof(int)));
  MPI_Win_attach(win, host.data(), 4 * static_cast<MPI_Aint>(sizeof(int)));
  MPI_Aint mine[2];
  MPI_Get_address(memory.pointer(), &mine[0]);
  MPI_Get_address(host.data(), &mine[1]);
  std::vector<MPI_Aint> all(static_cast<std::size_t>(2 * size));
  MPI_Allgather(mine, 2, MPI_AINT, all.data(), 2, MPI_AINT, MPI_COMM_WORLD);
  const MPI_Aint* const there = &all[static_cast<std::size_t>(2 * right())];
  const DeviceBuffer origin = on_device(numbers(rank));
  MPI_Win_fence(0, win);
  MPI_Put(origin.pointer(), 3, MPI_INT, right(), there[0] + 8, 3, MPI_INT, win);
  const auto went = [&](const std::string& path) {
    expect(accord_last_path() == path, std::string("it went by ") + accord_last_path());
  };
  went("window-" + way);
  MPI_Put(origin.pointer(), 2, MPI_INT, right(), there[1], 2, MPI_INT, win);
  // Within a node the host MPI has what is its own.
  const bool is_host_mpi = way == "direct";
  went(is_host_mpi ? "staged" : "window-messages");
  MPI_Win_fence(0, win);
  std::vector<int> wanted = of_rank(rank);
  for (int i = 0; i < 3; ++i) wanted[static_cast<std::size_t>(2 + i)] = left() + i;
  expect_equal(contents(memory), wanted, "device memory");
  expect_equal(host, {left(), left() + 1, -3, -2}, "host memory");
  MPI_Barrier(MPI_COMM_WORLD);  // all have looked
  for (int i = 0; i < 10; ++i) {
    const int one = 1;
    for (const MPI_Aint at : {there[0], there[1]}) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win);
      MPI_Accumulate(&one, 1, MPI_INT, right(), at, 1, MPI_INT, MPI_SUM, win);
      MPI_Win_unlock(right(), win);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expect_equal({contents(memory)[0], host[0]}, {of_rank(rank)[0] + 10, left() + 10}, "under locks");
  MPI_Win_detach(win, host.data());
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_host_mpi) {
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    int value = 0;
    int code = MPI_Get(&value, 1, MPI_INT, right(), there[1], 1, MPI_INT, win);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(right(), win);
    int error = MPI_SUCCESS;
    MPI_Error_class(code, &error);
    expect(error == MPI_ERR_RMA_RANGE, "of what is not attached: class " + std::to_string(error));
    MPI_Win_unlock(right(), win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
}

void allocated_window() {
  test_name = "an allocated window";
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_memory_alloc_kinds", "cuda:device");
  int* base = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_allocate(kCount * static_cast<MPI_Aint>(sizeof(int)), sizeof(int), info, MPI_COMM_WORLD,
                   static_cast<void*>(&base), &win);
  MPI_Info_free(&info);
  const DeviceBuffer origin = on_device(of_rank(rank));
  MPI_Win_fence(0, win);
  MPI_Put(origin.pointer(), kCount, MPI_INT, right(), 0, kCount, MPI_INT, win);
  expect_way();
  MPI_Win_fence(0, win);
  std::vector<int> found(kCount);
  expect(accord_memcpy(found.data(), base, found.size() * sizeof(int)) == ACCORD_OK, "a copy");
  expect_equal(found, of_rank(left()), "the window");
  MPI_Win_free(&win);
}

// Longer than one message, or one turn of an update.
void long_ones() {
  test_name = "long operations";
  constexpr int kLong = 5 << 20;  // 20 MiB
  const Window window(std::vector<int>(kLong, 1));
  const DeviceBuffer origin = on_device(numbers(rank, kLong));
  const DeviceBuffer result = on_device(std::vector<int>(kLong));
  MPI_Win_fence(0, window.handle());
  MPI_Accumulate(origin.pointer(), kLong, MPI_INT, right(), 0, kLong, MPI_INT, MPI_SUM,
                 window.handle());
  MPI_Win_fence(0, window.handle());
  expect_equal(window.content(), numbers(left() + 1, kLong), "after an update");
  MPI_Barrier(MPI_COMM_WORLD);  // the next epoch has begun: a put may come
  MPI_Put(origin.pointer(), kLong, MPI_INT, right(), 0, kLong, MPI_INT, window.handle());
  MPI_Win_fence(0, window.handle());
  MPI_Get(result.pointer(), kLong, MPI_INT, right(), 0, kLong, MPI_INT, window.handle());
  MPI_Win_fence(0, window.handle());
  expect_equal(contents(result), numbers(rank, kLong), "what was put, read");
}

// Memory that is freed right after its window, made anew at the same address, perhaps.
void memory_is_given_back() {
  test_name = "memory is given back";
  for (int round = 0; round < 6; ++round) {
    const Window window(std::vector<int>(kCount, round));
    int value = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.handle());
    MPI_Get(&value, 1, MPI_INT, right(), kCount - 1, 1, MPI_INT, window.handle());
    MPI_Win_unlock(right(), window.handle());
    expect(value == round, "round " + std::to_string(round) + ": " + std::to_string(value));
  }
}

// Nobody would serve the target while it is in a call of the host MPI's.
void windows_that_need_a_thread() {
  test_name = "a window that needs a progress thread";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const DeviceBuffer memory = on_device(of_rank(rank));
  MPI_Win win = MPI_WIN_NULL;
  int error = MPI_SUCCESS;
  MPI_Error_class(MPI_Win_create(memory.pointer(), kCount, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
                  &error);
  expect(error == MPI_ERR_BUFFER, "class " + std::to_string(error));
  // Of this rank alone, none is needed.
  MPI_Win_create(memory.pointer(), kCount, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
  const int value = 5;
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, 0, 4, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  expect(contents(memory)[1] == 5, "a window of one rank");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// Several threads of a rank use one window at once.
void many_threads() {
  test_name = "many threads";
  constexpr int kThreads = 3;
  constexpr int kTimes = 30;
  const Window window(std::vector<int>(kCount, 0));
  std::array<int, kThreads> wrong{};
  MPI_Win_lock_all(0, window.handle());
  const auto work = [&](int thread) {
    const MPI_Aint slot = kThreads * rank + thread + 1;
    const int one = 1;
    for (int i = 0; i < kTimes; ++i) {
      int before = -1;
      int back = -1;
      MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window.handle());
      MPI_Put(&i, 1, MPI_INT, right(), slot, 1, MPI_INT, window.handle());
      MPI_Win_flush(right(), window.handle());
      MPI_Get(&back, 1, MPI_INT, right(), slot, 1, MPI_INT, window.handle());
      MPI_Win_flush_all(window.handle());
      if (back != i || before < 0) ++wrong[static_cast<std::size_t>(thread)];
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  MPI_Win_unlock_all(window.handle());
  MPI_Barrier(MPI_COMM_WORLD);
  for (const int count : wrong) expect(count == 0, std::to_string(count) + " wrong results");
  if (rank == 0)
    expect(window.content()[0] == kThreads * kTimes * size, std::to_string(window.content()[0]));
}

}  // namespace

int main(int argc, char** argv) {
  way = argc > 1 ? argv[1] : "direct";
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, way == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (way == "refused" || way == "threads") {
    if (way == "refused") windows_that_need_a_thread();
    if (way == "threads") many_threads();
    if (way == "threads") a_flush_of_another_thread();
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
  }
  put_and_get_between_fences();
  derived_types_at_both_ends();
  post_start_complete_wait();
  passive_target();
  updates_are_atomic();
  updates_of_pairs_and_types();
  requests_among_others();
  exclusive_locks_exclude();
  a_lock_of_all_ranks_protects_local_loads();
  mixed_memory();
  device_buffers_on_a_host_window();
  more_room_than_data();
  a_flush_completes_requests();
  dynamic_window();
  attributes_and_errors();
  errors_are_told_once();
  an_error_handler_that_posts();
  allocated_window();
  long_ones();
  memory_is_given_back();
  handles();
  MPI_Finalize();
  if (failures == 0 && rank == 0) std::puts("all windows are right");
  return failures == 0 ? 0 : 1;
}
