// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the tests of windows share: numbers in device memory, a window over them, and what is
// expected of both.
#pragma once

#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "device_buffer.h"
#include "message_test.h"

namespace accord::test {

inline constexpr int kCount = 64;
inline int size = 0;
inline std::string way;  // of operations on another rank

inline int right() { return (rank + 1) % size; }
inline int left() { return (rank + size - 1) % size; }

// start, start + 1, ...
inline std::vector<int> numbers(int start, int count = kCount) {
  std::vector<int> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), start);
  return list;
}
inline std::vector<int> of_rank(int one) { return numbers(1000 * (one + 1)); }

inline void expect_equal(const std::vector<int>& found, const std::vector<int>& wanted,
                         const std::string& what) {
  const auto [one, other] = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
  if (one == found.end() && other == wanted.end()) return;
  expect(false, what + ": element " + std::to_string(one - found.begin()) + " is " +
                    (one == found.end() ? "missing" : std::to_string(*one)) + ", not " +
                    (other == wanted.end() ? "there" : std::to_string(*other)));
}

inline void expect_way() {
  const char* const path = accord_last_path();
  const std::string taken = path == nullptr ? "" : path;
  expect(taken == "window-" + way, "it went by " + taken);
}

// A window over numbers of this rank.
class Window {
 public:
  explicit Window(const std::vector<int>& content, MPI_Info info = MPI_INFO_NULL)
      : memory_(on_device(content)) {
    MPI_Win_create(memory_.pointer(), static_cast<MPI_Aint>(content.size() * sizeof(int)),
                   sizeof(int), info, MPI_COMM_WORLD, &win_);
    MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN);
  }
  ~Window() { MPI_Win_free(&win_); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  MPI_Win handle() const { return win_; }
  void* start() const { return memory_.pointer(); }
  std::vector<int> content() const { return contents(memory_); }

 private:
  DeviceBuffer memory_;
  MPI_Win win_ = MPI_WIN_NULL;
};

}  // namespace accord::test
