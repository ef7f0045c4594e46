// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages of several threads, two ranks. By headers (messages.cpp) where another thread of the
// receiver probes: a probe takes messages out of the host MPI's queue, and receives have to find
// them all the same. "staged": none goes by a header.
#include <accord/accord.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "message_buffers.h"
#include "message_test.h"

namespace {

using namespace accord::test;

// Messages of both ranks at once while another thread of rank 1 probes without end, and takes each
// of them out of the host MPI's queue.
void exchanges_while_probing(const Buffers& buffers) {
  constexpr int kRounds = 150;
  test_name = "exchanges while probing";
  std::atomic<bool> stop{false};
  std::thread prober;
  meet();
  if (rank == 1) {
    prober = std::thread([&] {
      int flag = 0;
      while (!stop) MPI_Iprobe(0, kTag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    });
  }
  for (int i = 0; rank < 2 && i < kRounds; ++i) {
    const int peer = 1 - rank;
    const Numbers expected = numbers(10 * i + peer);
    write(buffers.out, numbers(10 * i + rank));
    MPI_Sendrecv(buffers.out.pointer(), kCount, MPI_INT, peer, kTag, buffers.in.pointer(), kCount,
                 MPI_INT, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (contents(buffers.in) != expected) expect(false, "wrong data");
    MPI_Sendrecv_replace(buffers.out.pointer(), kCount, MPI_INT, peer, kTag, peer, kTag,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (contents(buffers.out) != expected) expect(false, "wrong data in place");
  }
  stop = true;
  if (prober.joinable()) prober.join();
  meet();
}

// Many messages that are there at once, received in their order by calls that do not find them
// where the other thread has put them unless the two take turns.
void order_while_probing() {
  constexpr int kMessages = 400;
  test_name = "order while probing";
  Numbers all;
  for (int i = 0; i < kMessages; ++i) all.insert(all.end(), kCount, i);
  meet();
  if (rank == 0) {
    const DeviceBuffer out = on_device(all);
    std::vector<MPI_Request> requests(kMessages);
    for (int i = 0; i < kMessages; ++i) {
      MPI_Isend(static_cast<std::byte*>(out.pointer()) +
                    static_cast<std::size_t>(i) * kCount * sizeof(int),
                kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
    }
    MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
  }
  if (rank == 1) {
    std::atomic<bool> stop{false};
    std::thread prober([&] {
      int flag = 0;
      while (!stop) MPI_Iprobe(0, kTag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    });
    Numbers in(kCount);
    for (int i = 0; i < kMessages; ++i) {
      MPI_Sendrecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, in.data(), kCount, MPI_INT, 0, kTag,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (in[0] != i || in[kCount - 1] != i)
        expect(false, "got " + std::to_string(in[0]) + " instead of " + std::to_string(i));
    }
    stop = true;
    prober.join();
  }
  meet();
}

// Two threads meet types that nobody has used before.
void new_types() {
  constexpr int kTypes = 200;
  constexpr int kThreads = 2;
  constexpr int kStep = 3;
  test_name = "new types";
  if (rank > 1) return;
  const DeviceBuffer out = on_device(Numbers(kCount * kStep, rank));
  std::vector<MPI_Datatype> types(kTypes);
  for (int i = 0; i < kTypes; ++i) {
    MPI_Type_vector(kCount - i, 1, kStep, MPI_INT, &types[static_cast<std::size_t>(i)]);
    MPI_Type_commit(&types[static_cast<std::size_t>(i)]);
  }
  std::atomic<int> at{0};
  const auto exchange = [&](int thread) {
    const DeviceBuffer in = on_device(Numbers(kCount * kStep, -1));
    const int tag = kTag + 1 + thread;
    for (int i = 0; i < kTypes; ++i) {
      for (++at; at < kThreads * (i + 1);) std::this_thread::yield();  // both at once
      const MPI_Datatype type = types[static_cast<std::size_t>(i)];
      MPI_Sendrecv(out.pointer(), 1, type, 1 - rank, tag, in.pointer(), 1, type, 1 - rank, tag,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    Numbers wanted(kCount * kStep, -1);
    for (std::size_t i = 0; i < kCount; ++i) wanted[i * kStep] = 1 - rank;
    if (contents(in) != wanted) expect(false, "wrong data");
  };
  std::thread other(exchange, 1);
  exchange(0);
  other.join();
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

// While another thread begins and ends what is under way.
void replaces_in_company() {
  constexpr int kRounds = 300;
  test_name = "replaces in company";
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  const DeviceBuffer own = on_device(Numbers(kCount, 1));
  const DeviceBuffer sum = on_device(Numbers(kCount, 0));
  std::thread company([&] {
    for (int i = 0; i < kRounds; ++i) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Iallreduce(own.pointer(), sum.pointer(), kCount, MPI_INT, MPI_SUM, other, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  });
  const DeviceBuffer buffer = on_device(Numbers(kCount, rank));
  for (int i = 0; rank < 2 && i < kRounds; ++i) {
    const int code = MPI_Sendrecv_replace(buffer.pointer(), kCount, MPI_INT, 1 - rank, kTag,
                                          1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) expect(false, "an error of MPI_Sendrecv_replace");
  }
  if (rank < 2) expect(contents(buffer) == Numbers(kCount, rank), "wrong data");
  company.join();
  MPI_Comm_free(&other);
}

void all_tests() {
  test_name = "an early probe";
  MPI_Status status;
  std::thread prober;
  if (rank == 1) {
    prober = std::thread([&] { MPI_Probe(0, kEarlyTag, MPI_COMM_WORLD, &status); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  const Buffers buffers;
  buffers.warm_up(rank);
  if (rank == 0) {
    MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kEarlyTag, MPI_COMM_WORLD);
    expect(std::string(accord_last_path()) == "node-p2p",
           std::string("went by ") + accord_last_path());
  }
  if (rank == 1) {
    prober.join();
    int count = 0;
    MPI_Get_count(&status, MPI_INT, &count);
    expect(count == kCount, "counts " + std::to_string(count));
    MPI_Recv(buffers.in.pointer(), kCount, MPI_INT, 0, kEarlyTag, MPI_COMM_WORLD, &status);
    expect(contents(buffers.in) == numbers(0), "wrong data");
  }
  exchanges_while_probing(buffers);
  for (int round = 0; round < 6; ++round) order_while_probing();
  new_types();
  replaces_in_company();
}

}  // namespace

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expect(provided == MPI_THREAD_MULTIPLE, "threads are refused");
  if (argc > 1 && std::string(argv[1]) == "staged") {
    new_types();
    replaces_in_company();
  } else {
    all_tests();
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
