// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// An error handler that throws, two ranks: the call that has failed ends by that, what others have
// under way comes to its end, and Accord works on.
#include <accord/accord.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;

constexpr int kTag = 5;
constexpr int kReadyTag = 6;
constexpr int kUnusedTag = 7;
constexpr int kRows = 3000;
constexpr int kColumns = 3;

int rank = 0;
int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}

Numbers rows(int first) {
  Numbers numbers(static_cast<std::size_t>(kRows) * kColumns);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void throw_error(MPI_Comm*, int* code, ...) {
  throw std::runtime_error("MPI error " + std::to_string(*code));
}

bool throws(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

// As programs would go on.
void check_calls(const std::string& after) {
  const int peer = 1 - rank;
  const DeviceBuffer sent = on_device(rows(rank));
  const DeviceBuffer received = on_device(rows(-1));
  const int count = kRows * kColumns;
  MPI_Sendrecv(sent.pointer(), count, MPI_INT, peer, kTag, received.pointer(), count, MPI_INT, peer,
               kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect(contents(received) == rows(peer), after + ": a message is wrong");
  MPI_Allreduce(sent.pointer(), received.pointer(), count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  expect(contents(received) == rows(1), after + ": a reduction is wrong");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(sent.pointer(), received.pointer(), count, MPI_INT, MPI_MIN, MPI_COMM_WORLD,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(contents(received) == rows(0), after + ": a non-blocking reduction is wrong");
}

void test_truncation(const std::string& how, const std::function<void(void*)>& receive) {
  constexpr int kLong = 2000;
  const DeviceBuffer buffer = on_device(Numbers(kLong, rank));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Send(buffer.pointer(), kLong, MPI_INT, 1, kTag, MPI_COMM_WORLD);
  } else {
    expect(throws([&] { receive(buffer.pointer()); }), how + " has not thrown");
  }
  check_calls(how);
}

// What has come for the others of an array arrives, and their sender goes on.
void test_truncation_between_others() {
  constexpr int kMessages = 3;
  constexpr int kRounds = 50;
  const int count = kRows * kColumns;
  const DeviceBuffer sent = on_device(rows(0));
  const DeviceBuffer received[kMessages] = {on_device(rows(0)), on_device(rows(0)),
                                            on_device(rows(0))};
  for (int round = 0; round < kRounds; ++round) {
    const Numbers wanted = rows(round + 1);
    (void)accord_memcpy(sent.pointer(), wanted.data(), wanted.size() * sizeof(int));
    MPI_Request requests[kMessages];
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < kMessages; ++i) {
      if (rank == 0)
        MPI_Isend(sent.pointer(), count, MPI_INT, 1, kTag, MPI_COMM_WORLD, &requests[i]);
      else
        MPI_Irecv(received[i].pointer(), i == 1 ? 10 : count, MPI_INT, 0, kTag, MPI_COMM_WORLD,
                  &requests[i]);
    }
    const auto wait = [&] { MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE); };
    expect(throws(wait) == (rank == 1), "MPI_Waitall throws or does not");
    for (int i = 0; i < kMessages && rank == 1; i += 2) {
      if (requests[i] != MPI_REQUEST_NULL) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      expect(contents(received[i]) == wanted, "a message beside a truncated one is wrong");
    }
  }
  check_calls("truncated messages between others");
}

// The same by calls that complete what they find.
void test_truncation_of_some() {
  constexpr int kShort = 10;
  constexpr int kRounds = 20;
  using Complete = std::function<void(MPI_Request*)>;
  const std::pair<const char*, Complete> ways[] = {
      {"MPI_Waitall", [](MPI_Request* requests) { MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); }},
      {"MPI_Waitsome",
       [](MPI_Request* requests) {
         int indices[2];
         for (int count = 0; count != MPI_UNDEFINED;)
           MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
       }},
      {"MPI_Testsome",
       [](MPI_Request* requests) {
         int indices[2];
         for (int count = 0; count != MPI_UNDEFINED;)
           MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
       }},
      {"MPI_Testall",
       [](MPI_Request* requests) {
         for (int done = 0; done == 0;) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
       }},
  };
  for (const auto& [name, complete] : ways) {
    for (const bool is_short : {true, false}) {
      const int count = is_short ? 2 * kShort : kRows * kColumns;
      const std::string how = std::string(name) + (is_short ? " of short ones" : "");
      for (int round = 0; round < kRounds; ++round) {
        const Numbers wanted(static_cast<std::size_t>(count), round);
        const DeviceBuffer sent = on_device(wanted);
        const DeviceBuffer received = on_device(Numbers(wanted.size(), -1));
        const DeviceBuffer cut = on_device(Numbers(wanted.size(), -1));
        MPI_Request requests[2];
        if (rank == 1) {
          MPI_Irecv(received.pointer(), count, MPI_INT, 0, kTag, MPI_COMM_WORLD, &requests[0]);
          MPI_Irecv(cut.pointer(), kShort, MPI_INT, 0, kTag, MPI_COMM_WORLD, &requests[1]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
          for (MPI_Request& request : requests)
            MPI_Isend(sent.pointer(), count, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
          MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
          ::usleep(2000);  // both have come
          expect(throws([&] { complete(requests); }), how + " has not thrown");
          if (requests[0] != MPI_REQUEST_NULL) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
          expect(contents(received) == wanted, how + ": the other message is wrong");
        }
      }
    }
  }
  check_calls("some of an array");
}

// What goes out is the program's again when the call has thrown.
void test_truncated_sendrecv() {
  constexpr int kRounds = 20;
  const int count = kRows * kColumns;
  const int peer = 1 - rank;
  const DeviceBuffer received = on_device(rows(0));
  for (int round = 0; round < kRounds; ++round) {
    const DeviceBuffer sent = on_device(rows(round));
    const auto exchange = [&](int room) {
      MPI_Sendrecv(sent.pointer(), count, MPI_INT, peer, kTag, received.pointer(), room, MPI_INT,
                   peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    };
    if (rank == 0) ::usleep(1000);
    expect(throws([&] { exchange(rank == 0 ? count : 10); }) == (rank == 1),
           "MPI_Sendrecv throws or does not");
    const Numbers other(static_cast<std::size_t>(count), -5);
    (void)accord_memcpy(sent.pointer(), other.data(), other.size() * sizeof(int));
    if (rank == 0)
      expect(contents(received) == rows(round), "what a truncated MPI_Sendrecv sends is wrong");
  }
  check_calls("a truncated MPI_Sendrecv");
}

// Which a call for another one finds.
void test_truncated_persistent() {
  const int count = 100 * kRows;
  const DeviceBuffer cut = on_device(Numbers(25, -1));
  const DeviceBuffer buffer = on_device(Numbers(static_cast<std::size_t>(count), rank));
  MPI_Request persistent = MPI_REQUEST_NULL;
  if (rank == 1) {
    MPI_Recv_init(cut.pointer(), 25, MPI_INT, 0, kTag, MPI_COMM_WORLD, &persistent);
    MPI_Start(&persistent);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const Numbers numbers(50, 7);
    MPI_Send(numbers.data(), 50, MPI_INT, 1, kTag, MPI_COMM_WORLD);
    MPI_Send(buffer.pointer(), count, MPI_INT, 1, kReadyTag, MPI_COMM_WORLD);
  } else {
    ::usleep(2000);
    MPI_Request other = MPI_REQUEST_NULL;
    MPI_Irecv(buffer.pointer(), count, MPI_INT, 0, kReadyTag, MPI_COMM_WORLD, &other);
    expect(!throws([&] { MPI_Wait(&other, MPI_STATUS_IGNORE); }),
           "a call throws for another request");
    expect(contents(buffer) == Numbers(static_cast<std::size_t>(count), 0),
           "a message beside a persistent one is wrong");
    expect(throws([&] { MPI_Wait(&persistent, MPI_STATUS_IGNORE); }),
           "a persistent receive has not thrown");
    if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
  }
  check_calls("a truncated persistent receive");
}

// Which its user has freed: whoever is in a call then, or in a later one, gets what is thrown where
// the host MPI has found it, and what the call waits for has ended. Of a header nobody is told.
void test_truncated_orphan() {
  constexpr int kRounds = 10;
  const int count = kRows * kColumns;
  for (int round = 0; round < kRounds; ++round) {
    const DeviceBuffer sent = on_device(rows(round));
    const DeviceBuffer cut = on_device(rows(-1));
    const DeviceBuffer received = on_device(rows(-1));
    if (rank == 1) {
      MPI_Request orphan = MPI_REQUEST_NULL;
      MPI_Irecv(cut.pointer(), 10, MPI_INT, 0, kTag, MPI_COMM_WORLD, &orphan);
      MPI_Request_free(&orphan);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Send(sent.pointer(), count, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      MPI_Send(sent.pointer(), count, MPI_INT, 1, kReadyTag, MPI_COMM_WORLD);
    } else {
      bool has_thrown = throws([&] {
        MPI_Recv(received.pointer(), count, MPI_INT, 0, kReadyTag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      });
      const auto look = [] {
        int found = 0;
        MPI_Iprobe(0, kUnusedTag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      };
      const double end = MPI_Wtime() + 0.1;
      while (!has_thrown && MPI_Wtime() < end) has_thrown = throws(look);
    }
    check_calls("a truncated receive that was freed");
  }
}

void test_throws() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(throw_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  int number = 0;
  const DeviceBuffer buffer = on_device(rows(0));
  const std::pair<const char*, std::function<void()>> mistakes[] = {
      {"MPI_Send", [&] { MPI_Send(&number, 1, MPI_INT, 77, kTag, MPI_COMM_WORLD); }},
      {"MPI_Send of a device",
       [&] { MPI_Send(buffer.pointer(), kRows, MPI_INT, 77, kTag, MPI_COMM_WORLD); }},
      {"MPI_Send with a wrong tag",
       [&] { MPI_Send(buffer.pointer(), kRows, MPI_INT, 1 - rank, -7, MPI_COMM_WORLD); }},
      {"MPI_Isend with a wrong tag",
       [&] {
         MPI_Request request = MPI_REQUEST_NULL;
         MPI_Isend(buffer.pointer(), kRows, MPI_INT, 1 - rank, -7, MPI_COMM_WORLD, &request);
       }},
      {"MPI_Recv",
       [&] {
         MPI_Recv(buffer.pointer(), 1, MPI_INT, 77, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       }},
      {"MPI_Bcast", [&] { MPI_Bcast(&number, 1, MPI_INT, 77, MPI_COMM_WORLD); }},
      {"MPI_Bcast of a device",
       [&] { MPI_Bcast(buffer.pointer(), kRows, MPI_INT, 77, MPI_COMM_WORLD); }},
      {"MPI_Ibcast of a device",
       [&] {
         MPI_Request request = MPI_REQUEST_NULL;
         MPI_Ibcast(buffer.pointer(), kRows, MPI_INT, 77, MPI_COMM_WORLD, &request);
         MPI_Wait(&request, MPI_STATUS_IGNORE);  // where it has had to wait for its turn
       }},
      {"MPI_Reduce of a device",
       [&] { MPI_Reduce(buffer.pointer(), nullptr, kRows, MPI_INT, MPI_SUM, 77, MPI_COMM_WORLD); }},
      {"MPI_Iprobe", [&] { MPI_Iprobe(77, kTag, MPI_COMM_WORLD, &number, MPI_STATUS_IGNORE); }},
  };
  for (const auto& [name, mistake] : mistakes) {
    expect(throws(mistake), std::string(name) + " has not thrown");
    check_calls(name);
    MPI_Request request = MPI_REQUEST_NULL;  // while something of ours is under way
    const DeviceBuffer result = on_device(rows(-1));
    MPI_Iallreduce(buffer.pointer(), result.pointer(), kRows, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                   &request);
    expect(throws(mistake), std::string(name) + " has not thrown in company");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_calls(std::string(name) + " in company");
  }
  test_truncation("a truncated MPI_Recv", [](void* to) {
    MPI_Recv(to, 10, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  test_truncation("a truncated MPI_Irecv", [](void* to) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(to, 10, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  test_truncation("a truncated MPI_Irecv in an array", [](void* to) {
    MPI_Request requests[2];
    MPI_Irecv(to, 10, MPI_INT, 0, kTag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(to, 0, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  });
  test_truncation_between_others();
  test_truncation_of_some();
  test_truncated_sendrecv();
  test_truncated_persistent();
  test_truncated_orphan();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  test_throws();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
