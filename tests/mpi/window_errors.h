// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What windows say of themselves and of mistakes: once, by the call that shall, and with no lock
// held that an error handler could need.
#pragma once

#include "window_test.h"

namespace accord::test {

inline void attributes_and_errors() {
  test_name = "attributes and errors";
  const Window window(of_rank(rank));
  void* base = nullptr;
  MPI_Aint* bytes = nullptr;
  int* unit = nullptr;
  int* flavor = nullptr;
  int found = 0;
  MPI_Win_get_attr(window.handle(), MPI_WIN_BASE, &base, &found);
  expect(found != 0 && base == window.start(), "MPI_WIN_BASE");
  MPI_Win_get_attr(window.handle(), MPI_WIN_SIZE, &bytes, &found);
  expect(found != 0 && *bytes == kCount * static_cast<MPI_Aint>(sizeof(int)), "MPI_WIN_SIZE");
  MPI_Win_get_attr(window.handle(), MPI_WIN_DISP_UNIT, &unit, &found);
  expect(found != 0 && *unit == sizeof(int), "MPI_WIN_DISP_UNIT");
  MPI_Win_get_attr(window.handle(), MPI_WIN_CREATE_FLAVOR, &flavor, &found);
  expect(found != 0 && *flavor == MPI_WIN_FLAVOR_CREATE, "MPI_WIN_CREATE_FLAVOR");
  MPI_Win_fence(0, window.handle());
  int value = 0;
  int error = MPI_SUCCESS;
  MPI_Error_class(MPI_Put(&value, 1, MPI_INT, right(), kCount, 1, MPI_INT, window.handle()),
                  &error);
  expect(error == MPI_ERR_RMA_RANGE, "behind its end: class " + std::to_string(error));
  MPI_Error_class(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, window.handle()), &error);
  expect(error != MPI_SUCCESS, "a rank that is not");
  expect(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window.handle()) == MPI_SUCCESS,
         "MPI_PROC_NULL");
  MPI_Win_fence(0, window.handle());
  MPI_Error_class(MPI_Win_unlock(right(), window.handle()), &error);
  expect(error == MPI_ERR_RMA_SYNC, "not locked: class " + std::to_string(error));
}

// Operations on what is not attached; within a node the host MPI has those.
inline void errors_are_told_once() {
  test_name = "errors are told once";
  if (way != "messages") return;
  int value = 0;
  MPI_Aint there = 0;
  MPI_Get_address(&value, &there);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
  MPI_Rget(&value, 1, MPI_INT, right(), there, 1, MPI_INT, win, &request);
  expect(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_RMA_RANGE, "by its request");
  expect(MPI_Win_unlock(right(), win) == MPI_SUCCESS, "by the end of the epoch, too");
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, right(), there, 1, MPI_INT, win);
  expect(class_of(MPI_Win_free(&win)) == MPI_ERR_RMA_RANGE, "by MPI_Win_free");
  expect(win == MPI_WIN_NULL, "the window is there still");
}

inline MPI_Group own_group = MPI_GROUP_NULL;
inline void post_to_own_group(MPI_Win* win, int*, ...) { MPI_Win_post(own_group, 0, *win); }

inline void an_error_handler_that_posts() {
  test_name = "an error handler that posts";
  const DeviceBuffer memory = on_device(numbers(0));
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory.pointer(), kCount * static_cast<MPI_Aint>(sizeof(int)), sizeof(int),
                 MPI_INFO_NULL, MPI_COMM_SELF, &win);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Win_create_errhandler(post_to_own_group, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_group(MPI_COMM_SELF, &own_group);
  const int value = 77;
  MPI_Win_post(all, 0, win);  // with ranks that the window does not have
  MPI_Win_start(own_group, 0, win);
  MPI_Put(&value, 1, MPI_INT, 0, 3, 1, MPI_INT, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  expect(contents(memory)[3] == value, "the window");
  MPI_Group_free(&all);
  MPI_Group_free(&own_group);
  MPI_Errhandler_free(&handler);
  MPI_Win_free(&win);
}

}  // namespace accord::test
