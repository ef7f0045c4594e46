// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Kernels that mark partitions and see them arrive, on the embedded host runtime: a kernel is a
// number of threads that call the functions of accord/partitioned.cuh, and memory of the device is
// written by accord_memcpy. Kernels and what a driver may refuse or keep waiting are in
// partitioned_drivers.cpp.
#include "partitioned_kernels.h"

#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

// A block marks each partition. Both ways to move, the device request made before or after the
// first start.
void blocks(const char* copy, Mover mover, bool create_first) {
  const Info info{{"accord_partitioned_copy", copy}};
  Pair pair(on_device(info.get()));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest receive = MPIX_PREQUEST_NULL;
  const auto create = [&] {
    expect_ok(MPIX_Prequest_create(&send, pair.send), "Prequest_create of a send");
    expect_ok(MPIX_Prequest_create(&receive, pair.receive), "Prequest_create of a receive");
  };
  if (create_first) create();
  for (int round = 0; round < 4; ++round) {
    pair.start();
    MPI_Request both[] = {pair.send, pair.receive};
    expect_ok(MPIX_Pbuf_prepare_all(2, both), "Pbuf_prepare_all");
    if (round == 0 && !create_first) create();
    pair.fill(round);
    launch(kPartitions, [=](int i) { (void)MPIX_Pready_block(i, send); });
    expect(moved_by(mover, send, kPartitions), std::string("not moved by the ") + copy);
    pair.wait();
    pair.check(round, copy);
  }
  expect_ok(MPIX_Prequest_free(&send), "Prequest_free");
  expect(send == MPIX_PREQUEST_NULL, "a freed device request");
  pair.free();  // and with it that of the receiver
  expect(MPIX_Prequest_free(&receive) != MPI_SUCCESS, "a device request freed twice");
}

// Nobody prepares: what kernels mark before the receiver has started is held.
void early() {
  const Info info{{"accord_partitioned_copy", "kernel"}};
  Pair pair(on_device(info.get()));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  for (int round = 0; round < 3; ++round) {
    MPI_Start(&pair.send);
    pair.fill(round);
    launch(kPartitions, [=](int i) { (void)MPIX_Pready(i, send); });
    expect(moved_by(Mover::engine, send, kPartitions), "moved before the receiver was ready");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&pair.receive);
    pair.wait();
    pair.check(round, "early");
  }
  pair.free();
}

// Whether all of a receive does so before long, while this rank makes no call.
bool arrives(MPIX_Prequest receive) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool arrived = false;
  while (!arrived && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    arrived = true;
    for (int i = 0; i < 4; ++i) arrived = arrived && MPIX_Parrived(i, receive) != 0;
  }
  return arrived;
}

// The progress thread moves what a kernel asks for while the program makes no call.
void unattended() {
  const Info info{{"accord_partitioned_copy", "engine"}};
  Pair pair(on_device(info.get()));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest receive = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  MPIX_Prequest_create(&receive, pair.receive);
  for (int round = 0; round < 3; ++round) {
    pair.start();
    MPI_Request both[] = {pair.send, pair.receive};
    MPIX_Pbuf_prepare_all(2, both);
    pair.fill(round);
    launch(kPartitions, [=](int i) { (void)MPIX_Pready_block(i, send); });
    expect(arrives(receive), "nobody moves what a kernel asks for");
    pair.wait();
    pair.check(round, "unattended");
  }
  pair.free();
}

// So does the host MPI while a call of its own waits, where it lets others go on from there.
void blocked() {
  const Info info{{"accord_partitioned_copy", "engine"}};
  Pair pair(on_device(info.get()));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest receive = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  MPIX_Prequest_create(&receive, pair.receive);
  for (int round = 0; round < 2; ++round) {
    pair.start();
    MPI_Request both[] = {pair.send, pair.receive};
    MPIX_Pbuf_prepare_all(2, both);
    pair.fill(round);
    std::thread kernels([=] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      for (int i = 0; i < kPartitions; ++i) (void)MPIX_Pready_block(i, send);
    });
    if (rank != round)
      expect(arrives(receive), "nobody moves what a kernel of a waiting rank asks for");
    MPI_Comm both_ranks = MPI_COMM_NULL;
    expect_ok(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &both_ranks), "Comm_split");
    MPI_Comm_free(&both_ranks);
    kernels.join();
    pair.wait();
    pair.check(round, "blocked");
  }
  pair.free();
}

// Several marks make a partition, several partitions a transfer.
void gathered(const char* copy, Mover mover) {
  const Info info{{"accord_partitioned_copy", copy},
                  {"accord_marks", "3"},
                  {"accord_transfer_partitions", "3"}};
  Pair pair(on_device(info.get()));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  for (int round = 0; round < 3; ++round) {
    pair.start();
    MPI_Request both[] = {pair.send, pair.receive};
    MPIX_Pbuf_prepare_all(2, both);
    pair.fill(round);
    launch(3, [=](int) { (void)MPIX_Pready_range(0, kPartitions - 2, send); });
    launch(2, [=](int) { (void)MPIX_Pready_warp(kPartitions - 1, send); });
    expect(!moved_by(mover, send, 3), "moved before all marks were there");
    (void)MPIX_Pready_warp(kPartitions - 1, send);
    expect(moved_by(mover, send, 3), "gathered transfers are not moved");
    pair.wait();
    pair.check(round, "gathered");
  }
  expect_ok(MPI_Start(&pair.send), "Start");
  expect(MPI_Pready(0, pair.send) != MPI_SUCCESS, "the host marks what kernels gather");
  MPI_Start(&pair.receive);
  launch(3, [=](int) { (void)MPIX_Pready_range(0, kPartitions - 1, send); });
  pair.wait();
  pair.free();
}

// Host and kernel mark partitions of one round.
void shared() {
  Pair pair(on_device(MPI_INFO_NULL));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  for (int round = 0; round < 3; ++round) {
    pair.start();
    pair.fill(round);
    launch(kPartitions / 2, [=](int i) { (void)MPIX_Pready_thread(2 * i, send); });
    for (int i = 1; i < kPartitions; i += 2) MPI_Pready(i, pair.send);
    pair.wait();
    pair.check(round, "shared");
  }
  pair.free();
}

// One kernel for all rounds on either side: it waits for the start of each, and sees what arrives.
void resident() {
  constexpr unsigned kRounds = 5;
  Pair pair(on_device(MPI_INFO_NULL));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest receive = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  MPIX_Prequest_create(&receive, pair.receive);
  std::atomic<unsigned> seen{0};
  std::thread kernel([&] {
    for (unsigned round = 1; round <= kRounds; ++round) {
      while (MPIX_Pround(send) != round) std::this_thread::yield();
      pair.fill(static_cast<int>(round));
      for (int i = 0; i < kPartitions; ++i) (void)MPIX_Pready_block(i, send);
      while (MPIX_Pround(receive) != round) std::this_thread::yield();
      std::vector<int> missing = {3, 2, 1, 0};
      while (!missing.empty()) {
        const int found =
            MPIX_Parrived_any(static_cast<int>(missing.size()), missing.data(), receive);
        if (found < 0) {
          std::this_thread::yield();
        } else {
          missing.erase(missing.begin() + found);
          ++seen;
        }
      }
    }
  });
  for (unsigned round = 1; round <= kRounds; ++round) {
    MPI_Start(&pair.receive);
    MPI_Start(&pair.send);
    pair.wait();
    pair.check(static_cast<int>(round), "resident");
    // A kernel that still asked for this round would be told of the next one.
    while (seen < 4 * round) std::this_thread::yield();
  }
  kernel.join();
  pair.free();
}

// What comes from nobody is there at once, for kernels as for the host.
void nobody() {
  Ints ints(8, true);
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Precv_init(ints.pointer(), 2, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &receive);
  MPIX_Prequest request = MPIX_PREQUEST_NULL;
  expect_ok(MPIX_Prequest_create(&request, receive), "Prequest_create of MPI_PROC_NULL");
  MPI_Start(&receive);
  expect(MPIX_Parrived(1, request) == 1, "nothing from nobody has not arrived");
  expect_ok(MPI_Wait(&receive, MPI_STATUS_IGNORE), "MPI_PROC_NULL");
  MPI_Request_free(&receive);
}

// A wrong use does nothing but make the round an error, on this side alone.
void mistakes() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  PairOptions options = on_device(MPI_INFO_NULL);
  options.comm = comm;
  Pair pair(options);
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest second = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  expect(MPIX_Prequest_create(&second, pair.send) != MPI_SUCCESS, "a second device request");
  Pair on_host({.sends = 1, .receives = 1, .ints = 4, .tag = 3, .comm = comm});
  expect(MPIX_Prequest_create(&second, on_host.send) != MPI_SUCCESS,
         "a device request of host memory");
  on_host.free();
  expect(MPIX_Pready(0, send) == ACCORD_PARTITION_NOT_STARTED, "a kernel before the start");
  for (int mistake = 0; mistake < 4; ++mistake) {
    pair.start();
    pair.fill(mistake);
    (void)MPIX_Pready_range(0, kPartitions - 1, send);
    if (mistake == 0) expect(MPIX_Pready(-1, send) == ACCORD_PARTITION_OUT_OF_RANGE, "negative");
    if (mistake == 1)
      expect(MPIX_Pready(kPartitions, send) == ACCORD_PARTITION_OUT_OF_RANGE, "out of range");
    if (mistake == 2) expect(MPIX_Pready_block(1, send) == ACCORD_PARTITION_TWICE, "twice");
    if (mistake == 3) expect(MPIX_Parrived(0, send) == 0, "arrived on a send");
    expect(MPIX_Prequest_free(&send) != MPI_SUCCESS, "a device request freed while active");
    int error_class = MPI_SUCCESS;
    MPI_Error_class(MPI_Wait(&pair.send, MPI_STATUS_IGNORE), &error_class);
    expect(error_class == MPI_ERR_ARG, "no error of a kernel's mistake");
    expect_ok(MPI_Wait(&pair.receive, MPI_STATUS_IGNORE), "the other side of a mistake");
    pair.check(mistake, "after a kernel's mistake");
  }
  pair.start();
  pair.fill(9);
  (void)MPIX_Pready_range(0, kPartitions - 1, send);
  pair.wait();
  pair.check(9, "without a mistake again");
  pair.free();
  MPI_Comm_free(&comm);
}

// The host and a kernel mark the same partition, in either order: whoever comes second is told, and
// the round is the other one's.
void marked_by_both(const char* copy) {
  const Info info{{"accord_partitioned_copy", copy}};
  Pair pair(on_device(info.get()));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  for (int round = 0; round < 4; ++round) {
    pair.start();
    MPI_Request both[] = {pair.send, pair.receive};
    MPIX_Pbuf_prepare_all(2, both);
    pair.fill(round);
    if (round % 2 == 0) {
      expect_ok(MPI_Pready(2, pair.send), "Pready");
      expect(MPIX_Pready(2, send) == ACCORD_PARTITION_TWICE, "a kernel's mark after the host's");
    } else {
      expect(MPIX_Pready(2, send) == 0, "a kernel's mark");
      expect(MPI_Pready(2, pair.send) != MPI_SUCCESS, "the host's mark after a kernel's");
    }
    for (int i = 0; i < kPartitions; ++i)
      if (i != 2) expect(MPIX_Pready(i, send) == 0, "another mark");
    const bool went_well = MPI_Wait(&pair.send, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    expect(went_well == (round % 2 != 0), "the error of a kernel's second mark");
    expect_ok(MPI_Wait(&pair.receive, MPI_STATUS_IGNORE), "Wait of a receive");
    pair.check(round, "marked by both");
  }
  pair.free();
}

// A mark between rounds counts for none, and is an error of the next one.
void between_rounds() {
  Pair pair(on_device(MPI_INFO_NULL));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  for (int round = 0; round < 4; ++round) {
    const bool early = round % 2 == 0;
    if (early) expect(MPIX_Pready(0, send) != 0, "a mark between rounds");
    pair.start();
    pair.fill(round);
    expect(MPIX_Pready_range(0, kPartitions - 1, send) == 0, "marks after one between rounds");
    const bool went_well = MPI_Wait(&pair.send, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    expect(went_well == !early, "the error of a mark between rounds");
    expect_ok(MPI_Wait(&pair.receive, MPI_STATUS_IGNORE), "Wait of a receive");
    pair.check(round, "between rounds");
  }
  pair.free();
}

// What MPI_Finalize calls when it deletes the attributes of MPI_COMM_SELF, as the last moment at
// which a library may free what it has.
struct Last {
  MPI_Request request = MPI_REQUEST_NULL;
  MPIX_Prequest on_device = MPIX_PREQUEST_NULL;
};
int free_at_last(MPI_Comm, int, void* value, void*) {
  Last& last = *static_cast<Last*>(value);
  expect_ok(MPIX_Prequest_free(&last.on_device), "Prequest_free in MPI_Finalize");
  expect(last.on_device == MPIX_PREQUEST_NULL, "a device request freed in MPI_Finalize");
  expect_ok(MPI_Request_free(&last.request), "Request_free in MPI_Finalize");
  return MPI_SUCCESS;
}
void freed_at_last() {
  static Last last;
  static Ints ints(8, true);
  MPI_Psend_init(ints.pointer(), 2, 4, MPI_INT, 0, 77, MPI_COMM_SELF, MPI_INFO_NULL, &last.request);
  expect_ok(MPIX_Prequest_create(&last.on_device, last.request), "Prequest_create");
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_at_last, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &last);
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  // Threads here do not call MPI.
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  start();
  if (std::string(accord_runtime_name()) != "host") {
    std::puts("skipped: kernels of the host runtime alone");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (argc > 1 && std::string(argv[1]) == "unattended") {
    unattended();
    return finish();
  }
  if (argc > 1 && std::string(argv[1]) == "blocked") {
    blocked();
    return finish();
  }
  for (const bool create_first : {true, false}) {
    blocks("kernel", Mover::kernel, create_first);
    blocks("engine", Mover::engine, create_first);
  }
  early();
  gathered("kernel", Mover::kernel);
  gathered("engine", Mover::engine);
  shared();
  for (const char* const copy : {"kernel", "engine"}) marked_by_both(copy);
  between_rounds();
  resident();
  nobody();
  mistakes();
  freed_at_last();
  return finish();
}

#else

#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no partitioned communication");
  return 77;
}

#endif
