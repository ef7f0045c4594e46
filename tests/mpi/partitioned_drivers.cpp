// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Kernels of partitioned communication where a driver refuses something or makes it wait, as the
// embedded host runtime does when it is asked to: another device that kernels do not reach
// ("oneself"), calls that wait for a kernel ("waited"), no page-locked memory ("unpinned").
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>
#include <unistd.h>

#include <accord/partitioned.cuh>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "partitioned_kernels.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

// To oneself: by the kernel on one device, by a copy engine to another one, which its kernels need
// not reach (ACCORD_HOST_DEVICES=2).
void to_oneself() {
  const Info info{{"accord_partitioned_copy", "kernel"}};
  for (int other = 0; other < accord_device_count(); ++other) {
    (void)accord_set_device(0);
    Ints from(kInts, true);
    (void)accord_set_device(other);
    Ints to(kInts, true);
    MPI_Request both[2];
    MPI_Psend_init(from.pointer(), kPartitions, kInts / kPartitions, MPI_INT, 0, 0, MPI_COMM_SELF,
                   info.get(), &both[0]);
    MPI_Precv_init(to.pointer(), 1, kInts, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &both[1]);
    MPIX_Prequest send = MPIX_PREQUEST_NULL;
    MPIX_Prequest_create(&send, both[0]);
    for (int round = 0; round < 2; ++round) {
      const std::vector<int> values(kInts, 10 * other + round);
      from.set(values);
      MPI_Startall(2, both);
      MPIX_Pbuf_prepare_all(2, both);
      launch(kPartitions, [=](int i) { (void)MPIX_Pready_block(i, send); });
      expect(moved_by(other == 0 ? Mover::kernel : Mover::engine, send, kPartitions),
             "who moves between devices");
      expect_ok(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), "to oneself");
      expect(to.get() == values, "what was sent to oneself");
    }
    for (MPI_Request& request : both) MPI_Request_free(&request);
  }
  (void)accord_set_device(0);
}

// A kernel runs until it has seen everything arrive, and its host, which has prepared nothing, only
// waits: it may call nothing that waits for that kernel. In the first round the data may go some
// other way; from the second one on the kernel moves it.
void only_waited_for(const char* kernel_file) {
  const Info info{{"accord_partitioned_copy", "kernel"}};
  Pair pair(on_device(info.get()));
  MPIX_Prequest send = MPIX_PREQUEST_NULL;
  MPIX_Prequest receive = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&send, pair.send);
  MPIX_Prequest_create(&receive, pair.receive);
  const std::string waited_file = std::string(kernel_file) + ".waited";
  for (int round = 0; round < 3; ++round) {
    // Not before all senders have started does a receiver say how it is reached.
    pair.fill(round);
    MPI_Start(&pair.send);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&pair.receive);
    if (round > 0) MPI_Barrier(MPI_COMM_WORLD);  // the receiver has started
    std::fclose(std::fopen(kernel_file, "w"));
    bool arrived = false;
    bool moved = false;
    std::thread kernel([&] {
      for (int i = 0; i < kPartitions; ++i) (void)MPIX_Pready_block(i, send);
      moved = moved_by(Mover::kernel, send, kPartitions);
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!arrived && std::chrono::steady_clock::now() < give_up) {
        arrived = true;
        for (int i = 0; i < 4; ++i) arrived = arrived && MPIX_Parrived(i, receive) != 0;
        std::this_thread::yield();
      }
      std::remove(kernel_file);
    });
    pair.wait();
    kernel.join();
    expect(arrived, "a kernel waits for a host that waits for it");
    if (std::getenv("ACCORD_TEST_PARTITIONED") == nullptr)
      expect(moved || round == 0, "who moves in a round that was not prepared");
    pair.check(round, "only waited for");
    expect(std::remove(waited_file.c_str()) != 0, "a host that waits for a kernel");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  pair.free();
}

// The same of a collective: one that kernels may do within a node, from a later round on, one that
// combines on the device what comes by messages, and one that only moves.
void collective_only_waited_for(const char* kernel_file, const char* name) {
  constexpr int kRounds = 4;
  constexpr int kCount = 4096;  // of a partition and, but for allreduces, a rank
  const std::string what = name;
  const int blocks = what == "allreduce" ? 1 : size;
  const int ints = kPartitions * kCount;
  Ints from(blocks * ints, true);
  Ints to(what == "alltoall" ? size * ints : ints, true);
  MPI_Request request = MPI_REQUEST_NULL;
  if (what == "allreduce")
    MPIX_Pallreduce_init(from.pointer(), to.pointer(), kPartitions, kCount, MPI_INT, MPI_SUM,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (what == "reduce_scatter")
    MPIX_Preduce_scatter_block_init(from.pointer(), to.pointer(), kPartitions, kCount, MPI_INT,
                                    MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (what == "alltoall")
    MPIX_Palltoall_init(from.pointer(), kPartitions, kCount, MPI_INT, to.pointer(), kCount, MPI_INT,
                        MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPIX_Prequest on_device = MPIX_PREQUEST_NULL;
  expect_ok(MPIX_Prequest_create(&on_device, request), what);
  bool on_node = false;
  for (int round = 0; round < kRounds; ++round) {
    from.set(std::vector<int>(static_cast<std::size_t>(blocks * ints), 1000 * rank + round));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&request);
    std::fclose(std::fopen(kernel_file, "w"));
    bool arrived = false;
    std::thread kernel([&] {
      for (int i = 0; i < kPartitions; ++i) (void)MPIX_Pready_block(i, on_device);
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!arrived && std::chrono::steady_clock::now() < give_up) {
        arrived = true;
        for (int i = 0; i < kPartitions; ++i) arrived = arrived && MPIX_Parrived(i, on_device) != 0;
        std::this_thread::yield();
      }
      std::remove(kernel_file);
    });
    expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), what);
    kernel.join();
    expect(arrived, what + ": a kernel waits for a host that waits for it");
    expect(std::remove((std::string(kernel_file) + ".waited").c_str()) != 0,
           what + ": a host that waits for a kernel");
    on_node = accord_partitioned::view(on_device).on_node;
    const std::vector<int> got = to.get();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const int sender = static_cast<int>(i) / ints;
      const int sum = 1000 * size * (size - 1) / 2 + size * round;
      const int wanted = what == "alltoall" ? 1000 * sender + round : sum;
      if (got[i] == wanted) continue;
      expect(false, what + " that is only waited for is wrong");
      break;
    }
  }
  if (what == "allreduce" && std::getenv("ACCORD_TEST_PARTITIONED") == nullptr)
    expect(on_node, "kernels do not take over an allreduce that nobody prepares");
  MPI_Request_free(&request);
}

// Where memory cannot be page-locked (ACCORD_TEST_PIN=none) kernels get no requests, and the host's
// work all the same.
void without_page_locking() {
  Pair pair(on_device(MPI_INFO_NULL));
  for (MPI_Request one : {pair.send, pair.receive}) {
    MPIX_Prequest none = MPIX_PREQUEST_NULL;
    expect(MPIX_Prequest_create(&none, one) != MPI_SUCCESS && none == MPIX_PREQUEST_NULL,
           "a device request in memory that kernels cannot reach");
  }
  pair.start();
  pair.fill(0);
  pair.mark_backwards();
  pair.wait();
  pair.check(0, "without page-locked memory");
  pair.free();
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  const std::string_view what = argc > 1 ? argv[1] : "";
  char kernel_file[] = "/tmp/accord-kernel-XXXXXX";
  if (what == "waited") {
    ::close(::mkstemp(kernel_file));
    std::remove(kernel_file);
    ::setenv("ACCORD_TEST_KERNEL_FILE", kernel_file, 1);
  }
  // Threads here do not call MPI.
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  start();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (what == "oneself") {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    to_oneself();
  } else if (what == "waited") {
    only_waited_for(kernel_file);
    for (const char* const name : {"allreduce", "reduce_scatter", "alltoall"})
      collective_only_waited_for(kernel_file, name);
  } else if (what == "unpinned") {
    without_page_locking();
  } else {
    expect(false, "oneself, waited or unpinned");
  }
  return finish();
}

#else

#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no partitioned communication");
  return 77;
}

#endif
