// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What belongs to a window beside its memory: name, group, info, others over the same memory, a
// communicator of some ranks; and calls in their less common forms.
#pragma once

#include "window_test.h"

namespace accord::test {

inline void names_groups_and_info() {
  test_name = "names, groups and info";
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "false");
  MPI_Info_set(info, "accumulate_ordering", "rar,raw,war,waw");
  MPI_Info_set(info, "accumulate_ops", "same_op_no_op");
  MPI_Info_set(info, "same_size", "true");
  MPI_Info_set(info, "same_disp_unit", "true");
  const Window window(of_rank(rank), info);
  MPI_Info_free(&info);
  MPI_Win_set_name(window.handle(), "numbers");
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  MPI_Win_get_name(window.handle(), name, &length);
  expect(std::string(name) == "numbers", "its name");
  MPI_Group group = MPI_GROUP_NULL;
  int ranks = 0;
  MPI_Win_get_group(window.handle(), &group);
  MPI_Group_size(group, &ranks);
  MPI_Group_free(&group);
  expect(ranks == size, "its group");
  expect(MPI_Win_get_info(window.handle(), &info) == MPI_SUCCESS, "its info");
  MPI_Info_free(&info);
  int* model = nullptr;
  int found = 0;
  MPI_Win_get_attr(window.handle(), MPI_WIN_MODEL, &model, &found);
  expect(found != 0 && (*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE), "its model");
}

// Each sees what goes through the other, once an epoch of both has ended.
inline void windows_over_one_buffer() {
  test_name = "two windows over one buffer";
  const DeviceBuffer memory = on_device(of_rank(rank));
  constexpr MPI_Aint kBytes = kCount * static_cast<MPI_Aint>(sizeof(int));
  MPI_Win whole = MPI_WIN_NULL;
  MPI_Win half = MPI_WIN_NULL;
  MPI_Win_create(memory.pointer(), kBytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &whole);
  MPI_Win_create(static_cast<std::byte*>(memory.pointer()) + kBytes / 2, kBytes / 2, sizeof(int),
                 MPI_INFO_NULL, MPI_COMM_WORLD, &half);
  const int value = rank;
  int back = -1;
  MPI_Win_fence(0, half);
  MPI_Put(&value, 1, MPI_INT, right(), 3, 1, MPI_INT, half);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, half);
  MPI_Win_free(&half);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, whole);
  MPI_Get(&back, 1, MPI_INT, right(), kCount / 2 + 3, 1, MPI_INT, whole);
  MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, whole);
  expect(back == rank, "read through the other one: " + std::to_string(back));
  MPI_Win_free(&whole);
  expect(contents(memory)[kCount / 2 + 3] == left(), "the buffer");
}

// The ranks of the window count, not those of the world.
inline void a_window_of_some_ranks() {
  test_name = "a window of some ranks in another order";
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 && size > 2 ? 1 : 0, -rank, &comm);
  int own = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &ranks);
  const DeviceBuffer memory = on_device(numbers(100 * own));
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory.pointer(), kCount * static_cast<MPI_Aint>(sizeof(int)), sizeof(int),
                 MPI_INFO_NULL, comm, &win);
  MPI_Comm_free(&comm);
  const int peer = (own + 1) % ranks;
  int found = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, peer, MPI_MODE_NOCHECK, win);
  MPI_Get(&found, 1, MPI_INT, peer, 7, 1, MPI_INT, win);
  MPI_Win_unlock(peer, win);
  expect(found == 100 * peer + 7, "read: " + std::to_string(found));
  MPI_Win_free(&win);
}

// MPI_Win_test, and operations of large counts where the MPI has them.
inline void tested_and_large() {
  test_name = "an exposure that is tested";
  const Window window(of_rank(rank));
  const DeviceBuffer origin = on_device(numbers(rank));
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Win_get_group(window.handle(), &all);
  MPI_Win_post(all, 0, window.handle());
  MPI_Win_start(all, 0, window.handle());
#if MPI_VERSION >= 4
  MPI_Put_c(origin.pointer(), MPI_Count{4}, MPI_INT, right(), 0, MPI_Count{4}, MPI_INT,
            window.handle());
  MPI_Accumulate_c(origin.pointer(), MPI_Count{4}, MPI_INT, right(), 8, MPI_Count{4}, MPI_INT,
                   MPI_SUM, window.handle());
#else
  MPI_Put(origin.pointer(), 4, MPI_INT, right(), 0, 4, MPI_INT, window.handle());
  MPI_Accumulate(origin.pointer(), 4, MPI_INT, right(), 8, 4, MPI_INT, MPI_SUM, window.handle());
#endif
  MPI_Win_complete(window.handle());
  for (int done = 0; done == 0;) MPI_Win_test(window.handle(), &done);
  MPI_Group_free(&all);
  std::vector<int> wanted = of_rank(rank);
  for (int i = 0; i < 4; ++i) {
    wanted[static_cast<std::size_t>(i)] = left() + i;
    wanted[static_cast<std::size_t>(8 + i)] += left() + i;
  }
  expect_equal(window.content(), wanted, "the window");
}

inline void handles() {
  names_groups_and_info();
  windows_over_one_buffer();
  a_window_of_some_ranks();
  tested_and_large();
}

}  // namespace accord::test
