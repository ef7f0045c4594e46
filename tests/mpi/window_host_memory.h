// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows in which the host MPI has its part: host memory on some ranks or on all.
#pragma once

#include <atomic>
#include <thread>

#include "window_test.h"

namespace accord::test {

// Device memory on even ranks, host memory on odd ones, nothing on the last.
inline void mixed_memory() {
  test_name = "mixed memory";
  const bool has_none = rank == size - 1 && size > 2;
  const bool on_host = rank % 2 == 1;
  std::vector<int> host = of_rank(rank);
  const DeviceBuffer device = on_device(host);
  void* const base = has_none ? nullptr : on_host ? host.data() : device.pointer();
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(base, has_none ? 0 : kCount * static_cast<MPI_Aint>(sizeof(int)), sizeof(int),
                 MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  const DeviceBuffer origin = on_device(numbers(rank));
  const DeviceBuffer result = on_device(std::vector<int>(kCount));
  const int targets = size > 2 ? size - 1 : size;
  MPI_Win_fence(0, win);
  for (int target = 0; target < targets; ++target)
    MPI_Put(origin.pointer(), 1, MPI_INT, target, rank, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  for (int target = 0; target < targets; ++target)
    MPI_Get(static_cast<std::byte*>(result.pointer()) + sizeof(int) * static_cast<unsigned>(target),
            1, MPI_INT, target, 0, 1, MPI_INT, win);
  MPI_Accumulate(origin.pointer(), 4, MPI_INT, rank % targets, kCount - 4, 4, MPI_INT, MPI_REPLACE,
                 win);
  MPI_Win_fence(0, win);
  std::vector<int> found = contents(result);
  found.resize(static_cast<std::size_t>(targets));
  expect_equal(found, std::vector<int>(found.size(), 0), "what was read");
  if (!has_none) {
    std::vector<int> wanted = of_rank(rank);
    for (int one = 0; one < size; ++one) wanted[static_cast<std::size_t>(one)] = one;
    std::vector<int> now = on_host ? host : contents(device);
    if (size == 2)
      for (int i = 0; i < 4; ++i) wanted[static_cast<std::size_t>(kCount - 4 + i)] = rank + i;
    else
      now.resize(kCount - 4), wanted.resize(kCount - 4);
    expect_equal(now, wanted, "the window");
  }
  MPI_Win_lock_all(0, win);
  MPI_Get(result.pointer(), kCount, MPI_INT, 1 % targets, 0, kCount, MPI_INT, win);
  MPI_Win_flush(1 % targets, win);
  expect(contents(result)[1] == 1, "read in an epoch of all");
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

inline void device_buffers_on_a_host_window() {
  test_name = "device buffers on a window of host memory";
  std::vector<int> host = of_rank(rank);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(host.data(), kCount * static_cast<MPI_Aint>(sizeof(int)), sizeof(int),
                 MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  const DeviceBuffer origin = on_device(numbers(rank));
  const DeviceBuffer result = on_device(std::vector<int>(kCount));
  MPI_Win_fence(0, win);
  MPI_Put(origin.pointer(), 8, MPI_INT, right(), 0, 8, MPI_INT, win);
  MPI_Get(result.pointer(), 8, MPI_INT, right(), 16, 8, MPI_INT, win);
  MPI_Win_fence(0, win);
  std::vector<int> wanted = of_rank(rank);
  for (int i = 0; i < 8; ++i) wanted[static_cast<std::size_t>(i)] = left() + i;
  expect_equal(host, wanted, "the window");
  std::vector<int> found = contents(result);
  expect(found[0] == of_rank(right())[16] && found[7] == of_rank(right())[23] && found[8] == 0,
         "what was read");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
  MPI_Rget(result.pointer(), 4, MPI_INT, right(), 32, 4, MPI_INT, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(contents(result)[3] == of_rank(right())[35], "read by a request");
  MPI_Fetch_and_op(origin.pointer(), result.pointer(), MPI_INT, right(), 40, MPI_SUM, win);
  MPI_Win_unlock(right(), win);
  expect(contents(result)[0] == of_rank(right())[40], "fetched");
  MPI_Win_free(&win);
}

// A window over host memory of this rank.
class HostWindow {
 public:
  HostWindow() {
    MPI_Win_create(memory_.data(), kCount * static_cast<MPI_Aint>(sizeof(int)), sizeof(int),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
  }
  ~HostWindow() { MPI_Win_free(&win_); }
  HostWindow(const HostWindow&) = delete;
  HostWindow& operator=(const HostWindow&) = delete;

  MPI_Win handle() const { return win_; }

 private:
  std::vector<int> memory_ = of_rank(rank);
  MPI_Win win_ = MPI_WIN_NULL;
};

// What is not given stays as it was.
inline void more_room_than_data() {
  test_name = "more room than data";
  const HostWindow window;
  const std::vector<int> before(kCount, -7);
  const DeviceBuffer result = on_device(before);
  MPI_Win_fence(0, window.handle());
  MPI_Get(result.pointer(), kCount, MPI_INT, MPI_PROC_NULL, 0, kCount, MPI_INT, window.handle());
  MPI_Fetch_and_op(result.pointer(), result.pointer(), MPI_INT, MPI_PROC_NULL, 0, MPI_NO_OP,
                   window.handle());
  MPI_Win_fence(0, window.handle());
  expect_equal(contents(result), before, "from MPI_PROC_NULL");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.handle());
  MPI_Rget(result.pointer(), kCount, MPI_INT, MPI_PROC_NULL, 0, kCount, MPI_INT, window.handle(),
           &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_equal(contents(result), before, "from MPI_PROC_NULL, by a request");
  MPI_Rget(result.pointer(), kCount, MPI_INT, right(), 8, 3, MPI_INT, window.handle(), &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  std::vector<int> wanted = before;
  std::copy_n(of_rank(right()).begin() + 8, 3, wanted.begin());
  expect_equal(contents(result), wanted, "by a request");
  MPI_Get(result.pointer(), kCount, MPI_INT, right(), 16, 5, MPI_INT, window.handle());
  MPI_Win_unlock(right(), window.handle());
  std::copy_n(of_rank(right()).begin() + 16, 5, wanted.begin());
  expect_equal(contents(result), wanted, "by the end of an epoch");
}

// Then its buffer is the program's, though the request is there still.
inline void a_flush_completes_requests() {
  test_name = "a flush completes requests";
  const HostWindow window;
  const std::vector<int> later(kCount, -7);
  const std::vector<int> zeros(kCount, 0);
  for (int round = 0; round < 8; ++round) {
    const DeviceBuffer result = on_device(zeros);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.handle());
    MPI_Rget(result.pointer(), kCount, MPI_INT, right(), 0, kCount, MPI_INT, window.handle(),
             &request);
    if (round % 2 == 0) MPI_Win_flush(right(), window.handle());
    if (round % 2 != 0) MPI_Win_unlock(right(), window.handle());
    expect_equal(contents(result), of_rank(right()), "what was read");
    (void)accord_memcpy(result.pointer(), later.data(), later.size() * sizeof(int));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_equal(contents(result), later, "what was written since");
    if (round % 2 == 0) MPI_Win_unlock(right(), window.handle());
  }
}

// It completes what has been begun before it, and leaves alone what is begun meanwhile.
inline void a_flush_of_another_thread() {
  test_name = "a flush of another thread";
  const HostWindow window;
  const DeviceBuffer result = on_device(std::vector<int>(1, -1));
  std::atomic<bool> is_done{false};
  MPI_Win_lock_all(0, window.handle());
  std::thread other([&] {
    while (!is_done) MPI_Win_flush(right(), window.handle());
  });
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    MPI_Get(result.pointer(), 1, MPI_INT, right(), i % kCount, 1, MPI_INT, window.handle());
    MPI_Win_flush(right(), window.handle());
    if (contents(result)[0] != of_rank(right())[static_cast<std::size_t>(i % kCount)]) ++wrong;
  }
  is_done = true;
  other.join();
  expect(wrong == 0, std::to_string(wrong) + " wrong results");
  MPI_Win_unlock_all(window.handle());
}

}  // namespace accord::test
