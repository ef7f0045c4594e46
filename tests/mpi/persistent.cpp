// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Persistent collectives on device memory: each round gives what it should and goes the way that
// the command line names ("inbox", "node", "node-direct", "two-level", or a library's), whatever
// order the ranks start and wait in, and whatever happens to the communicator meanwhile.
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "device_buffer.h"

// Open MPI 4 has them by names of its own.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Bcast_init MPIX_Bcast_init
#endif

#if MPI_VERSION >= 4 || defined(OMPI_MAJOR_VERSION)

namespace {

using accord::test::DeviceBuffer;
using Numbers = std::vector<int>;

constexpr int kCount = 301;
constexpr int kRounds = 5;

int rank = 0;
int size = 0;
int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}
void expect_way(const std::string& way, const std::string& what) {
  expect(accord_last_path() == way, what + " went by " + accord_last_path());
}

// One buffer, on this rank's device or host.
class Buffer {
 public:
  Buffer(int count, bool on_device) : host_(static_cast<std::size_t>(count)) {
    if (on_device) replace();
  }
  void* pointer() { return device_ ? device_->pointer() : host_.data(); }
  // New memory on the device.
  void replace() {
    device_.reset();
    device_ = std::make_unique<DeviceBuffer>(std::vector<std::byte>(host_.size() * sizeof(int)));
  }
  void set(const Numbers& numbers) {
    if (device_) {
      accord_memcpy(pointer(), numbers.data(), numbers.size() * sizeof(int));
    } else {
      host_ = numbers;
    }
  }
  Numbers get() {
    Numbers numbers = host_;
    if (device_) accord_memcpy(numbers.data(), pointer(), numbers.size() * sizeof(int));
    return numbers;
  }

 private:
  Numbers host_;
  std::unique_ptr<DeviceBuffer> device_;
};

int value(int sender, int round, int i) { return (sender + 1) * 1000 + round * 7 + i; }

// An allreduce that is started again and again.
class Sum {
 public:
  Sum(MPI_Comm comm, int count, bool on_device)
      : count_(count), send_(count, on_device), recv_(count, on_device) {
    MPI_Allreduce_init(send_.pointer(), recv_.pointer(), count, MPI_INT, MPI_SUM, comm,
                       MPI_INFO_NULL, &request);
  }
  void start() {
    prepare();
    MPI_Start(&request);
  }
  // Before MPI_Startall.
  void prepare() {
    Numbers numbers(static_cast<std::size_t>(count_));
    for (int i = 0; i < count_; ++i) numbers[static_cast<std::size_t>(i)] = value(rank, round_, i);
    send_.set(numbers);
    recv_.set(Numbers(numbers.size(), -1));
  }
  // Frees what it sends from and takes as much again; whether that lies where the other lay.
  bool replace_memory() {
    const void* const before = send_.pointer();
    send_.replace();
    return send_.pointer() == before;
  }
  // Once this round is complete.
  void check(const std::string& what) {
    const Numbers numbers = recv_.get();
    bool good = true;
    for (int i = 0; i < count_; ++i) {
      int wanted = 0;
      for (int peer = 0; peer < size; ++peer) wanted += value(peer, round_, i);
      good = good && numbers[static_cast<std::size_t>(i)] == wanted;
    }
    expect(good, what + ": wrong sum");
    ++round_;
  }

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  int count_;
  Buffer send_;
  Buffer recv_;
  int round_ = 0;
};

// Every rank starts and waits in an order of its own.
void any_order(const std::string& way) {
  std::vector<std::unique_ptr<Sum>> sums;
  for (int one = 0; one < 4; ++one) {
    sums.push_back(std::make_unique<Sum>(MPI_COMM_WORLD, kCount + one, true));
    expect_way(way, "the initialisation");
  }
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::size_t> order(sums.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::rotate(order.begin(), order.begin() + (rank + round) % 4, order.end());
    for (const std::size_t one : order) sums[one]->start();
    if ((rank + round) % 2 == 0) std::reverse(order.begin(), order.end());
    for (const std::size_t one : order) {
      MPI_Wait(&sums[one]->request, MPI_STATUS_IGNORE);
      expect_way(way, "a round");
      sums[one]->check("in any order");
    }
  }
  for (auto& sum : sums) MPI_Request_free(&sum->request);
}

// All calls that take arrays, with messages of the host MPI among the requests. Blocking calls in
// between are nobody's business.
void arrays() {
  Sum first(MPI_COMM_WORLD, kCount, true);
  Sum second(MPI_COMM_WORLD, 2 * kCount, true);
  for (int round = 0; round < 2 * kRounds; ++round) {
    const int next = (rank + 1) % size;
    const int before = (rank + size - 1) % size;
    int sent = rank;
    int received = -1;
    first.prepare();
    second.prepare();
    MPI_Request requests[4] = {first.request, second.request, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Startall(2, requests);
    MPI_Irecv(&received, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&sent, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[3]);
    if (round % 2 == 0) MPI_Barrier(MPI_COMM_WORLD);
    int flag = 0;
    int done = 0;
    int indices[4];
    switch (round % 5) {
      case 0:
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        break;
      case 1:
        while (flag == 0) MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
        break;
      case 2:
        for (int one = 0; one < 4; ++one) MPI_Waitany(4, requests, indices, MPI_STATUS_IGNORE);
        break;
      case 3:
        for (int some = 0; done < 4; done += some)
          MPI_Waitsome(4, requests, &some, indices, MPI_STATUSES_IGNORE);
        break;
      default:
        while (flag == 0) MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
    expect(received == before, "a message went astray");
    first.check("in an array");
    second.check("in an array");
  }
  MPI_Request_free(&first.request);
  MPI_Request_free(&second.request);
}

// Where some ranks have theirs on the host, all go the same way; where all do, it is the host
// MPI's.
void mixed(const std::string& way) {
  const DeviceBuffer in_use(std::vector<std::byte>(1));
  Sum some(MPI_COMM_WORLD, kCount, rank == 0);
  expect_way(way, "one rank on its device");
  Sum none(MPI_COMM_WORLD, kCount, false);
  for (int round = 0; round < kRounds; ++round) {
    none.start();
    some.start();
    MPI_Wait(&some.request, MPI_STATUS_IGNORE);
    expect_way(way, "one rank on its device");
    MPI_Wait(&none.request, MPI_STATUS_IGNORE);
    some.check("on one device");
    none.check("on no device");
  }
  MPI_Request_free(&some.request);
  MPI_Request_free(&none.request);
}

// What goes pair by pair, and a root.
void movements(const std::string& way) {
  const auto at = [](int peer) { return static_cast<std::size_t>(peer); };
  Numbers counts(at(size));
  Numbers places(at(size));
  for (int peer = 0; peer < size; ++peer) {
    counts[at(peer)] = kCount * (rank + peer + 1);
    places[at(peer)] = peer == 0 ? 0 : places[at(peer - 1)] + counts[at(peer - 1)];
  }
  const int total = places.back() + counts.back();
  Buffer send(total, true);
  Buffer recv(total, true);
  Buffer shared(kCount, true);
  MPI_Request pairs = MPI_REQUEST_NULL;
  MPI_Request bcast = MPI_REQUEST_NULL;
  MPI_Alltoallv_init(send.pointer(), counts.data(), places.data(), MPI_INT, recv.pointer(),
                     counts.data(), places.data(), MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &pairs);
  MPI_Bcast_init(shared.pointer(), kCount, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &bcast);
  expect_way(way, "bcast");
  for (int round = 0; round < kRounds; ++round) {
    send.set(Numbers(at(total), value(rank, round, 0)));
    recv.set(Numbers(at(total), -1));
    shared.set(Numbers(at(kCount), value(rank, round, 1)));
    MPI_Start(rank % 2 == 0 ? &pairs : &bcast);
    MPI_Start(rank % 2 == 0 ? &bcast : &pairs);
    MPI_Wait(&bcast, MPI_STATUS_IGNORE);
    MPI_Wait(&pairs, MPI_STATUS_IGNORE);
    // Across nodes that is the host MPI's.
    if (way != "two-level") expect_way(way == "nccl" ? way : "node-pairs", "alltoallv");
    expect(shared.get() == Numbers(at(kCount), value(size - 1, round, 1)), "bcast: wrong data");
    const Numbers numbers = recv.get();
    for (int peer = 0; peer < size; ++peer) {
      const auto first = numbers.begin() + places[at(peer)];
      expect(std::all_of(first, first + counts[at(peer)],
                         [&](int number) { return number == value(peer, round, 0); }),
             "alltoallv: wrong data");
    }
  }
  MPI_Request_free(&pairs);
  MPI_Request_free(&bcast);
}

// A request outlives its communicator.
void outliving(const std::string& way) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Sum sum(comm, kCount, true);
  sum.start();
  MPI_Comm_free(&comm);
  for (int round = 0; round < kRounds; ++round) {
    if (round != 0) sum.start();
    MPI_Wait(&sum.request, MPI_STATUS_IGNORE);
    expect_way(way, "without its communicator");
    sum.check("without its communicator");
  }
  MPI_Request_free(&sum.request);
}

// To start a round in the middle of one is a mistake, which does the round no harm.
void started_twice() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  Sum sum(comm, kCount, true);
  sum.start();
  expect(MPI_Start(&sum.request) != MPI_SUCCESS, "no error of a second start");
  MPI_Wait(&sum.request, MPI_STATUS_IGNORE);
  sum.check("started twice");
  MPI_Request_free(&sum.request);
  MPI_Comm_free(&comm);
}

// Buffers are lent once some rounds have used them. New memory at the address of the old is not
// what was lent.
void straight() {
  Sum sum(MPI_COMM_WORLD, kCount, true);
  const auto rounds = [&] {
    for (int round = 0; round < 2 * kRounds; ++round) {
      sum.start();
      MPI_Wait(&sum.request, MPI_STATUS_IGNORE);
      sum.check("straight");
    }
    expect_way("node-direct", "a round on lent buffers");
  };
  rounds();
  int replaced = sum.replace_memory() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &replaced, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (replaced != 0) rounds();
  if (replaced == 0 && rank == 0) std::printf("new memory lies elsewhere: not tested\n");
  MPI_Request_free(&sum.request);
}

// More than there is device memory for: the others go through the host, all give the same.
void many(const std::string& way) {
  constexpr int kMany = 70;
  std::vector<std::unique_ptr<Sum>> sums;
  int by_way = 0;
  for (int one = 0; one < kMany; ++one) {
    sums.push_back(std::make_unique<Sum>(MPI_COMM_WORLD, kCount, true));
    by_way += accord_last_path() == way ? 1 : 0;
  }
  expect(by_way > 0 && by_way < kMany, std::to_string(by_way) + " of many go by " + way);
  for (auto& sum : sums) sum->start();
  for (auto& sum : sums) {
    MPI_Wait(&sum->request, MPI_STATUS_IGNORE);
    sum->check("one of many");
  }
  for (auto& sum : sums) MPI_Request_free(&sum->request);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (accord_device_count() > 0) (void)accord_set_device(rank % accord_device_count());
  const std::string way = argc > 1 ? argv[1] : "node";
  if (way == "node-direct") {
    straight();
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
  }
  any_order(way);
  arrays();
  mixed(way);
  movements(way);
  outliving(way);
  started_twice();
  many(way);
  // One that nobody frees.
  Sum forgotten(MPI_COMM_WORLD, kCount, true);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}

#else

#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no persistent collectives");
  return 77;
}

#endif
