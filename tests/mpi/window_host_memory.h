// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows in which the host MPI has its part: host memory on some ranks or on all.
#pragma once

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

}  // namespace accord::test
