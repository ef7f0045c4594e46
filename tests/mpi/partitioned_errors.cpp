// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Mistakes in partitioned communication, and what is refused where the host MPI carries it
// ("host").
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <string>
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
  pair.start();
  pair.fill(1);
  pair.mark_backwards();
  pair.wait();
  pair.check(1, "by the host MPI");
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
  } else {
    mistakes();
    truncated();
    outlives_its_communicator();
    for (const bool receive_on_device : {false, true}) broken(true, receive_on_device);
    // Else the sender writes into the receiver's memory, which it keeps.
    if (std::getenv("ACCORD_TEST_PARTITIONED") != nullptr) broken(false, true);
  }
  return finish();
}

#else

int main() { return 77; }

#endif
