// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages of an ordinary length from a device to a rank of the same node, two ranks: they go by
// headers, and nobody can tell. Run with an outbox of 64 KiB. "threads" is as where several threads
// may receive.
#pragma once

#include <accord/accord.h>
#include <mpi.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "device_buffer.h"
#include "message_test.h"

namespace accord::test {

using Numbers = std::vector<int>;

constexpr int kCount = 2000;    // of ints in an ordinary message
constexpr int kHeaderInts = 8;  // as long as a header
constexpr int kTicketInts = 2;  // as what goes in the stead of shorter messages
constexpr int kTag = 5;
constexpr int kOtherTag = 6;

inline Numbers numbers(int first, int count = kCount) {
  Numbers made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = first + i;
  return made;
}
inline std::vector<std::byte> bytes_of(const Numbers& values) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(int)};
}
inline DeviceBuffer empty(int count = kCount) {
  return on_device(Numbers(static_cast<std::size_t>(count), -1));
}

inline void check_status(const MPI_Status& status, int count, int tag) {
  int told = -1;
  MPI_Get_count(&status, MPI_INT, &told);
  expect(told == count, "the status counts " + std::to_string(told));
  expect(status.MPI_SOURCE == 0, "came from " + std::to_string(status.MPI_SOURCE));
  expect(status.MPI_TAG == tag, "came with tag " + std::to_string(status.MPI_TAG));
  int cancelled = -1;
  MPI_Test_cancelled(&status, &cancelled);
  expect(cancelled == 0, "the status tells of a cancelled message");
}
// As a program may have it on its stack, of a call before.
inline MPI_Status used_status() {
  MPI_Status status{};
  MPI_Status_set_elements(&status, MPI_INT, 3);
  MPI_Status_set_cancelled(&status, 1);
  status.MPI_SOURCE = 17;
  status.MPI_TAG = 18;
  return status;
}
inline void check_path(const std::string& path) {
  expect(accord_last_path() == path, std::string("went by ") + accord_last_path());
}

inline void send(int first, int tag = kTag, int count = kCount) {
  const DeviceBuffer buffer = on_device(numbers(first, count));
  MPI_Send(buffer.pointer(), count, MPI_INT, 1, tag, MPI_COMM_WORLD);
}
// The peers open each other's memory within a few messages.
inline void warm_up() {
  test_name = "first messages";
  const DeviceBuffer out = on_device(numbers(0));
  const DeviceBuffer in = empty();
  for (int round = 0; round < 8; ++round) {
    MPI_Sendrecv(out.pointer(), kCount, MPI_INT, 1 - rank, kTag, in.pointer(), kCount, MPI_INT,
                 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  check_path("node-p2p");
  expect(contents(in) == numbers(0), "wrong data");
}

// What main() does with its arguments and the tests. They run while a receive is open that is too
// short for a header, so that it keeps nobody from getting any.
inline int run_messages(int argc, char** argv, const std::function<void()>& tests) {
  const std::string mode = argc > 1 ? argv[1] : "single";
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, mode == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int word = 0;
  MPI_Request request;
  MPI_Irecv(&word, 1, MPI_INT, rank, kOtherTag, MPI_COMM_WORLD, &request);
  warm_up();
  tests();
  MPI_Send(&rank, 1, MPI_INT, rank, kOtherTag, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}

}  // namespace accord::test
