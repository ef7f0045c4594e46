// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Mistakes in partitioned communication, requests whose end has been told, what is refused where
// the host MPI carries it ("host"), and who carries it if nobody says ("default").
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "partitioned.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

void expect_error(int code, const std::string& what) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  expect(error_class == MPI_ERR_ARG, "no error of " + what);
}

// Mistakes are told, and do the round no harm.
void mistakes() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (MPI_Comm one : {comm, MPI_COMM_WORLD}) MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN);
  Pair pair({.sends = 3,
             .receives = 3,
             .ints = 33,
             .send_on_device = true,
             .receive_on_device = true,
             .comm = comm});
  expect_error(MPI_Pready(0, pair.send), "a Pready before the start");
  expect_error(MPIX_Pbuf_prepare(pair.send), "a Pbuf_prepare before the start");
  pair.start();
  pair.fill(1);
  expect_error(MPI_Start(&pair.send), "a second start");
  expect_error(MPI_Pready(3, pair.send), "a partition out of range");
  expect_error(MPI_Pready(-1, pair.send), "a negative partition");
  expect_error(MPI_Pready_range(1, 0, pair.send), "an empty range");
  expect_error(MPI_Pready(0, pair.receive), "a Pready of a receive");
  int flag = 0;
  expect_error(MPI_Parrived(pair.send, 0, &flag), "a Parrived of a send");
  expect_error(MPI_Parrived(pair.receive, 3, &flag), "a Parrived out of range");
  expect_error(MPI_Request_free(&pair.send), "freeing an active send");
  expect_error(MPI_Request_free(&pair.receive), "freeing an active receive");
  MPI_Pready(0, pair.send);
  expect_error(MPI_Pready(0, pair.send), "a second Pready");
  MPI_Request null = MPI_REQUEST_NULL;
  expect_error(MPIX_Pbuf_prepare(null), "preparing nothing");
  MPI_Pready_range(1, 2, pair.send);
  pair.wait();
  pair.check(1, "after mistakes");
  MPIX_Prequest none = MPIX_PREQUEST_NULL;
  expect_error(MPIX_Prequest_free(&none), "freeing no device request");
  pair.free();
  // Errors of arguments are the host MPI's own, or ours where it has none.
  MPI_Request request = MPI_REQUEST_NULL;
  Ints ints(4, true);
  expect(MPI_Psend_init(ints.pointer(), 1, 4, MPI_INT, size, 0, comm, MPI_INFO_NULL, &request) !=
             MPI_SUCCESS,
         "no error of a rank that there is not");
  MPI_Comm_free(&comm);
}

// More marks of a partition than can be counted, for either kind of request, are refused.
void too_many_marks() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Info_create(&info);
  Ints ints(4, true);
  const auto make_both = [&](const char* marks) {
    MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Info_set(info, "accord_marks", marks);
    const int code =
        MPI_Psend_init(ints.pointer(), 2, 2, MPI_INT, (rank + 1) % size, 9, comm, info, &both[0]);
    const int code_of_all = MPIX_Pallreduce_init(MPI_IN_PLACE, ints.pointer(), 2, 2, MPI_INT,
                                                 MPI_SUM, comm, info, &both[1]);
    for (MPI_Request& request : both)
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    return std::pair(code, code_of_all);
  };
  for (const char* const marks : {"2147483648", "4294967295", "99999999999999999999"}) {
    const auto [code, code_of_all] = make_both(marks);
    expect_error(code, "so many marks of a send");
    expect_error(code_of_all, "so many marks of a collective");
  }
  const auto [code, code_of_all] = make_both("2147483647");
  expect_ok(code, "a send of as many marks as can be");
  expect_ok(code_of_all, "a collective of as many marks as can be");
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
}

// What MPI_Request_get_status has told to be complete is still to be completed, by any call.
void told() {
  Pair pair({.sends = 2, .receives = 2, .ints = 16});
  for (int round = 0; round < 4; ++round) {
    pair.start();
    pair.fill(round);
    pair.mark_backwards();
    MPI_Request both[] = {pair.send, pair.receive};
    for (MPI_Request one : both)
      for (int flag = 0; flag == 0;) MPI_Request_get_status(one, &flag, MPI_STATUS_IGNORE);
    for (int left = 2; left > 0;) {
      int done = 0;
      int flag = 1;
      int indices[2] = {};
      if (round == 0) MPI_Waitsome(2, both, &done, indices, MPI_STATUSES_IGNORE);
      if (round == 1) MPI_Testsome(2, both, &done, indices, MPI_STATUSES_IGNORE);
      if (round == 2) MPI_Waitany(2, both, &indices[0], MPI_STATUS_IGNORE);
      if (round == 3) MPI_Testany(2, both, &indices[0], &flag, MPI_STATUS_IGNORE);
      if (round >= 2) done = indices[0] == MPI_UNDEFINED ? MPI_UNDEFINED : flag;
      expect(done != MPI_UNDEFINED, "a request that is told to be complete is passed over");
      left = done == MPI_UNDEFINED ? 0 : left - done;
    }
    pair.check(round, "told");
  }
  pair.free();
}

// More than there is room for is an error of the receiver's alone.
void truncated() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  Ints from(40, true);
  Ints to(40, true);
  to.set(std::vector<int>(40, -1));
  MPI_Request send;
  MPI_Request receive;
  MPI_Psend_init(from.pointer(), 4, 10, MPI_INT, (rank + 1) % size, 0, comm, MPI_INFO_NULL, &send);
  MPI_Precv_init(to.pointer(), 2, 10, MPI_INT, (rank + size - 1) % size, 0, comm, MPI_INFO_NULL,
                 &receive);
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&send);
    MPI_Start(&receive);
    MPI_Pready_range(0, 3, send);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(MPI_Wait(&receive, MPI_STATUS_IGNORE), &error_class);
    expect(error_class == MPI_ERR_TRUNCATE, "no error of a message that is too long");
    expect_ok(MPI_Wait(&send, MPI_STATUS_IGNORE), "a send that is too long");
  }
  const std::vector<int> got = to.get();
  expect(std::ranges::count(got, -1) == 40, "a message that is too long was written");
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Comm_free(&comm);
}

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// Of a broadcast from rank 0, which alone marks partitions, and a reduction to it, which alone sees
// them arrive.
void collective_mistakes() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  Ints ints(6, true);
  Ints sums(6, true);
  MPI_Request bcast = MPI_REQUEST_NULL;
  MPI_Request reduce = MPI_REQUEST_NULL;
  const auto make = [&](int partitions, int count, MPI_Op op, int root) {
    return class_of(MPIX_Preduce_init(ints.pointer(), sums.pointer(), partitions, count, MPI_INT,
                                      op, root, comm, MPI_INFO_NULL, &reduce));
  };
  expect(make(0, 2, MPI_SUM, 0) == MPI_ERR_ARG, "no error of no partitions");
  expect(make(3, -1, MPI_SUM, 0) == MPI_ERR_COUNT, "no error of a negative count");
  expect(make(3, 2, MPI_OP_NULL, 0) == MPI_ERR_OP, "no error of no operation");
  expect(make(3, 2, MPI_MAXLOC, 0) == MPI_ERR_OP, "no error of an operation on another type");
  expect(make(3, 2, MPI_SUM, size) == MPI_ERR_ROOT, "no error of a root that there is not");
  expect(class_of(MPIX_Pbcast_init(ints.pointer(), 3, 2, MPI_DATATYPE_NULL, 0, comm, MPI_INFO_NULL,
                                   &bcast)) == MPI_ERR_TYPE,
         "no error of no datatype");
  expect(class_of(MPIX_Pbcast_init(nullptr, 3, 2, MPI_INT, 0, comm, MPI_INFO_NULL, &bcast)) ==
             MPI_ERR_BUFFER,
         "no error of no buffer");
  expect(bcast == MPI_REQUEST_NULL && reduce == MPI_REQUEST_NULL, "a request after an error");
  // The mistakes have been made alike on all ranks, which still find each other.
  expect(make(3, 2, MPI_SUM, 0) == MPI_SUCCESS, "Preduce_init fails");
  expect_ok(MPIX_Pbcast_init(ints.pointer(), 3, 2, MPI_INT, 0, comm, MPI_INFO_NULL, &bcast),
            "Pbcast_init");
  int flag = 0;
  expect_error(MPI_Pready(0, reduce), "a Pready before the start");
  ints.set(std::vector<int>(6, rank == 0 ? 7 : -1));
  MPI_Start(&bcast);
  if (rank != 0) expect_error(MPI_Pready(0, bcast), "a Pready where nothing is given");
  expect_error(MPI_Parrived(bcast, 3, &flag), "a Parrived out of range");
  expect_error(MPI_Request_free(&bcast), "freeing an active broadcast");
  if (rank == 0) {
    expect_error(MPI_Pready(3, bcast), "a partition out of range");
    MPI_Pready_range(0, 1, bcast);
    expect_error(MPI_Pready(1, bcast), "a second Pready");
    MPI_Pready(2, bcast);
  }
  expect_ok(MPI_Wait(&bcast, MPI_STATUS_IGNORE), "a broadcast after mistakes");
  expect(ints.get() == std::vector<int>(6, 7), "a broadcast after mistakes is wrong");
  MPI_Start(&reduce);
  if (rank != 0) expect_error(MPI_Parrived(reduce, 0, &flag), "a Parrived where nothing comes");
  MPI_Pready_range(0, 2, reduce);
  expect_ok(MPI_Wait(&reduce, MPI_STATUS_IGNORE), "a reduction after mistakes");
  if (rank == 0)
    expect(sums.get() == std::vector<int>(6, 7 * size), "a reduction after mistakes is wrong");
  MPI_Request_free(&bcast);
  MPI_Request_free(&reduce);
  MPI_Comm_free(&comm);
}

// Two ranks that make different calls, or the same one of different lengths, are told instead of
// waiting for each other. (Of more, those that exchange nothing with the one that differs wait.)
void collectives_differ() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  Ints ints(60, true);
  Ints sums(60, true);
  for (int how = 0; how < 3; ++how) {
    const bool differs = rank == 0;
    MPI_Request request = MPI_REQUEST_NULL;
    const int partitions = how == 0 && differs ? 2 : 3;
    const int count = how == 1 && differs ? 4 : 5;
    if (how == 2 && differs) {
      MPIX_Pscan_init(ints.pointer(), sums.pointer(), partitions, count, MPI_INT, MPI_SUM, comm,
                      MPI_INFO_NULL, &request);
    } else {
      MPIX_Pallreduce_init(ints.pointer(), sums.pointer(), partitions, count, MPI_INT, MPI_SUM,
                           comm, MPI_INFO_NULL, &request);
    }
    MPI_Start(&request);
    MPI_Pready_range(0, partitions - 1, request);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "no error of what differs");
    MPI_Request_free(&request);
  }
  MPI_Comm_free(&comm);
}

// Where one side fails the other one's round ends with an error too. Here a buffer is gone: of the
// sender, or, where it is the receiver that writes there, of the receiver.
void broken(bool at_sender, bool receive_on_device) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  void* from = nullptr;
  void* on_device = nullptr;
  accord_malloc(&from, 8 * sizeof(int), ACCORD_MEMORY_DEVICE);
  accord_malloc(&on_device, 8 * sizeof(int), ACCORD_MEMORY_DEVICE);
  int on_host[8] = {};
  MPI_Request send = MPI_REQUEST_NULL;
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Psend_init(from, 2, 4, MPI_INT, (rank + 1) % size, 0, comm, MPI_INFO_NULL, &send);
  MPI_Precv_init(receive_on_device ? on_device : on_host, 2, 4, MPI_INT, (rank + size - 1) % size,
                 0, comm, MPI_INFO_NULL, &receive);
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&receive);
    MPI_Start(&send);
    if (round == 1) {
      MPI_Barrier(MPI_COMM_WORLD);  // all are through with what is freed now
      accord_free(at_sender ? from : on_device);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    // In the last round of a broken receiver the sender has something left to do when it is told.
    MPI_Pready(0, send);
    if (at_sender || round == 0) MPI_Pready(1, send);
    const int received = MPI_Wait(&receive, MPI_STATUS_IGNORE);
    const int sent = MPI_Wait(&send, MPI_STATUS_IGNORE);
    expect((received == MPI_SUCCESS) == (round == 0), "the receiver of a broken round");
    expect((sent == MPI_SUCCESS) == (round == 0), "the sender of a broken round");
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Barrier(MPI_COMM_WORLD);
  accord_free(at_sender ? on_device : from);
  MPI_Comm_free(&comm);
}

// A sender whose round has failed does not wait for a receiver that looks for no messages: here
// rank 1 waits for what rank 0 does after that.
void nobody_receives() {
  // Fewer pieces than may be on their way, but none that the host MPI sends ahead.
  constexpr int kPartitionInts = 1 << 18;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  char file[] = "/tmp/accord-unreceived-XXXXXX";
  if (rank == 0) ::close(::mkstemp(file));
  MPI_Bcast(file, sizeof file, MPI_CHAR, 0, MPI_COMM_WORLD);
  void* memory = nullptr;
  if (rank < 2) accord_malloc(&memory, 2 * sizeof(int) * kPartitionInts, ACCORD_MEMORY_DEVICE);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Psend_init(memory, 2, kPartitionInts, MPI_INT, 1, 0, comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPIX_Pbuf_prepare(request);
    MPI_Pready(0, request);
    accord_free(memory);
    MPI_Pready(1, request);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "no error of a lost buffer");
    std::remove(file);
  } else if (rank == 1) {
    MPI_Precv_init(memory, 2, kPartitionInts, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPIX_Pbuf_prepare(request);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (::access(file, F_OK) == 0 && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    expect(::access(file, F_OK) != 0, "a failed sender waits for its receiver");
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "no error of a failed sender");
  }
  if (rank < 2) MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) accord_free(memory);
  MPI_Comm_free(&comm);
}

int raised = 0;
void count_error(MPI_Comm*, int*, ...) { ++raised; }

// A request lives longer than its communicator, whose error handler keeps its errors. A new
// communicator that may get the old one's handle gets none of them.
void outlives_its_communicator() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm next = MPI_COMM_NULL;
  MPI_Errhandler counts = MPI_ERRHANDLER_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(count_error, &counts);
  MPI_Comm_set_errhandler(comm, counts);
  MPI_Errhandler_free(&counts);
  Pair pair({.sends = 2,
             .receives = 2,
             .ints = 32,
             .send_on_device = true,
             .receive_on_device = true,
             .comm = comm});
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &next);
  MPI_Comm_set_errhandler(next, MPI_ERRORS_ARE_FATAL);
  for (int round = 0; round < 2; ++round) {
    raised = 0;
    expect_error(MPI_Pready(0, pair.send), "a Pready between rounds");
    expect(raised == 1, "an error that the handler of a freed communicator does not get");
    pair.start();
    pair.fill(round);
    pair.mark_backwards();
    pair.wait();
    pair.check_from((rank + size - 1) % size, round, "without its communicator");
  }
  pair.free();
  MPI_Comm_free(&next);
}

// The host MPI carries them all: it gets no device memory, and kernels get none of its requests.
void left_to_the_host() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Ints ints(8, true);
  MPI_Request request = MPI_REQUEST_NULL;
  int error_class = MPI_SUCCESS;
  MPI_Error_class(
      MPI_Psend_init(ints.pointer(), 2, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
      &error_class);
  expect(error_class == MPI_ERR_BUFFER, "no error of device memory");
  MPI_Error_class(
      MPI_Precv_init(ints.pointer(), 2, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
      &error_class);
  expect(error_class == MPI_ERR_BUFFER, "no error of device memory");
  Pair pair({.sends = 2, .receives = 2, .ints = 8});
  MPIX_Prequest none = MPIX_PREQUEST_NULL;
  expect_error(MPIX_Prequest_create(&none, pair.send), "a device request of the host MPI's");
  expect(class_of(MPIX_Pbcast_init(ints.pointer(), 2, 4, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                                   &request)) == MPI_ERR_BUFFER,
         "no error of a collective that nobody carries");
  pair.start();
  pair.fill(1);
  pair.mark_backwards();
  pair.wait();
  pair.check(1, "by the host MPI");
  pair.free();
}

// What one rank has marked before the other one starts goes on its way in a blocking collective.
void goes_on_in_collectives(Pair& pair, int round) {
  const auto send = [&] {
    MPI_Start(&pair.send);
    pair.fill(round);
    pair.mark_backwards();
  };
  const auto receive = [&] {
    ::usleep(100'000);
    MPI_Start(&pair.receive);
    expect_ok(MPI_Wait(&pair.receive, MPI_STATUS_IGNORE), "Wait");
  };
  for (int sender = 0; sender < 2; ++sender) {
    MPI_Comm made = MPI_COMM_NULL;
    if (rank == sender) send();
    if (rank != sender) receive();
    if (sender == 0) MPI_Barrier(MPI_COMM_WORLD);
    if (sender == 1) MPI_Comm_dup(MPI_COMM_WORLD, &made);
    if (rank == sender) expect_ok(MPI_Wait(&pair.send, MPI_STATUS_IGNORE), "Wait");
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
  }
  pair.check(round, "beside a collective");
}

// Nobody named: who carries it, and that it does.
void by_default(bool by_accord) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Pair pair({.sends = 6, .receives = 4, .ints = 120});
  for (int round = 0; round < 3; ++round) {
    pair.start();
    expect((MPIX_Pbuf_prepare(pair.receive) == MPI_SUCCESS) == by_accord, "carried by the other");
    pair.fill(round);
    pair.mark_backwards();
    pair.wait();
    pair.check(round, "by default");
  }
  goes_on_in_collectives(pair, 3);
  pair.free();
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  MPI_Init(&argc, &argv);
  start();
  if (argc > 1 && std::string(argv[1]) == "host") {
    left_to_the_host();
  } else if (argc > 2 && std::string(argv[1]) == "default") {
    by_default(std::string(argv[2]) == "accord");
  } else {
    mistakes();
    too_many_marks();
    told();
    truncated();
    collective_mistakes();
    if (size == 2) collectives_differ();
    outlives_its_communicator();
    for (const bool receive_on_device : {false, true}) broken(true, receive_on_device);
    // Else the sender writes into the receiver's memory, which it keeps.
    if (std::getenv("ACCORD_TEST_PARTITIONED") != nullptr) {
      broken(false, true);
      nobody_receives();
    }
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
