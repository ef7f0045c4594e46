// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Long puts and gets on device memory between nodes, by the way that the argument names: "network"
// (a transport of ours) or "messages". Origin and result memory is freed as soon as MPI allows.
#include <accord/accord.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "window_test.h"

namespace {

using namespace accord::test;

constexpr int kLong = 3 << 18;  // 3 MiB, more than one piece of any design

std::string path() {
  const char* const taken = accord_last_path();
  return taken == nullptr ? "" : taken;
}

// The ranks have to meet first.
void meet_by_network() {
  test_name = "a first long put";
  const Window window(std::vector<int>(kLong, 0));
  const DeviceBuffer origin = on_device(numbers(rank, kLong));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int meets = 0;
  while (meets == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, window.handle());
    MPI_Put(origin.pointer(), kLong, MPI_INT, right(), 0, kLong, MPI_INT, window.handle());
    const int mine = path() == "window-" + way || std::chrono::steady_clock::now() > give_up;
    MPI_Win_unlock(right(), window.handle());
    MPI_Allreduce(&mine, &meets, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  expect_equal(window.content(), numbers(left(), kLong), "the window");
}

void puts_and_gets() {
  test_name = "long puts and gets";
  for (int round = 0; round < 3; ++round) {
    const Window window(std::vector<int>(kLong, -1));
    MPI_Win_fence(0, window.handle());
    {
      const DeviceBuffer origin = on_device(numbers(100 * round + rank, kLong));
      std::vector<int> host = numbers(-round, kLong / 2);
      MPI_Put(origin.pointer(), kLong - 1, MPI_INT, right(), 1, kLong - 1, MPI_INT,
              window.handle());
      expect_way();
      MPI_Win_fence(0, window.handle());
      MPI_Put(host.data(), kLong / 2, MPI_INT, right(), 0, kLong / 2, MPI_INT, window.handle());
      expect_way();
      MPI_Win_fence(0, window.handle());
    }
    std::vector<int> wanted = numbers(100 * round + left() - 1, kLong);
    const std::vector<int> by_host = numbers(-round, kLong / 2);
    std::copy(by_host.begin(), by_host.end(), wanted.begin());
    expect_equal(window.content(), wanted, "the window");
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<int> there = numbers(100 * round + rank - 1, kLong);
    std::copy(by_host.begin(), by_host.end(), there.begin());
    const DeviceBuffer result = on_device(std::vector<int>(kLong, -7));
    std::vector<int> host(kLong, -8);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window.handle());
    MPI_Get(result.pointer(), kLong, MPI_INT, right(), 0, kLong, MPI_INT, window.handle());
    expect_way();
    MPI_Win_flush(right(), window.handle());
    MPI_Get(host.data(), kLong - 5, MPI_INT, right(), 5, kLong - 5, MPI_INT, window.handle());
    expect_way();
    MPI_Win_unlock(right(), window.handle());
    expect_equal(contents(result), there, "what came to the device");
    there.erase(there.begin(), there.begin() + 5);
    there.insert(there.end(), 5, -8);
    expect_equal(host, there, "what came to the host");
  }
}

void many_at_once_and_requests() {
  test_name = "many at once";
  constexpr int kParts = 12;
  constexpr int kPart = kLong / kParts;
  const Window window(std::vector<int>(kLong, -1));
  std::vector<std::unique_ptr<DeviceBuffer>> origins;
  std::vector<MPI_Request> requests(kParts, MPI_REQUEST_NULL);
  MPI_Win_lock_all(0, window.handle());
  for (int part = 0; part < kParts; ++part) {
    origins.emplace_back(new DeviceBuffer(on_device(numbers(part * kPart + rank, kPart))));
    MPI_Rput(origins.back()->pointer(), kPart, MPI_INT, right(), part * kPart, kPart, MPI_INT,
             window.handle(), &requests[static_cast<std::size_t>(part)]);
    expect_way();
    int one = 1;
    MPI_Accumulate(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_NO_OP, window.handle());
  }
  MPI_Waitall(kParts, requests.data(), MPI_STATUSES_IGNORE);
  origins.clear();
  MPI_Win_flush_all(window.handle());
  MPI_Barrier(MPI_COMM_WORLD);
  expect_equal(window.content(), numbers(left(), kLong), "the window");
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const DeviceBuffer result = on_device(std::vector<int>(kLong, -7));
    MPI_Rget(result.pointer(), kLong, MPI_INT, right(), 0, kLong, MPI_INT, window.handle(),
             &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_equal(contents(result), numbers(rank, kLong), "by a request");
  }
  MPI_Win_unlock_all(window.handle());
}

void gaps_and_errors_go_by_messages() {
  test_name = "gaps and errors";
  const Window window(std::vector<int>(kLong, -1));
  MPI_Datatype every_second = MPI_DATATYPE_NULL;
  MPI_Type_vector(kLong / 2, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  const DeviceBuffer origin = on_device(numbers(rank, kLong / 2));
  MPI_Win_fence(0, window.handle());
  MPI_Put(origin.pointer(), kLong / 2, MPI_INT, right(), 0, 1, every_second, window.handle());
  expect(path() == "window-messages", "it went by " + path());
  MPI_Win_fence(0, window.handle());
  std::vector<int> wanted(kLong, -1);
  for (int i = 0; i < kLong / 2; ++i) wanted[static_cast<std::size_t>(2 * i)] = left() + i;
  expect_equal(window.content(), wanted, "the window");
  MPI_Type_free(&every_second);
  int error = MPI_SUCCESS;
  MPI_Error_class(MPI_Put(origin.pointer(), kLong / 2, MPI_INT, right(), kLong, kLong / 2, MPI_INT,
                          window.handle()),
                  &error);
  expect(error == MPI_ERR_RMA_RANGE, "behind its end: class " + std::to_string(error));
  MPI_Win_fence(0, window.handle());
}

}  // namespace

int main(int argc, char** argv) {
  way = argc > 1 ? argv[1] : "network";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  meet_by_network();
  puts_and_gets();
  many_at_once_and_requests();
  gaps_and_errors_go_by_messages();
  MPI_Finalize();
  if (failures == 0 && rank == 0) std::puts("all long puts and gets are right");
  return failures == 0 ? 0 : 1;
}
