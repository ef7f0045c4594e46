// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Functions of the program that MPI calls, two ranks. "types": the delete functions of a datatype's
// attributes run in MPI_Type_free, though calls with the type are under way, which end well.
// "requests": functions of a generalised request look for messages while something of Accord's is
// under way.
#include <mpi.h>

#include <cstdio>
#include <functional>
#include <numeric>
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
constexpr int kRows = 3000;
constexpr int kColumns = 3;  // of which the first one moves

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
// What a rank has that started with rows(`own`) and got a column of rows(`other`).
Numbers with_column(int own, int other) {
  Numbers numbers = rows(own);
  for (std::size_t i = 0; i < numbers.size(); i += kColumns)
    numbers[i] = other + static_cast<int>(i);
  return numbers;
}

// A column with an attribute, which counts how often it is copied and deleted.
class Column {
 public:
  Column() {
    MPI_Type_create_keyval(
        [](MPI_Datatype, int, void*, void* value, void* copy, int* flag) -> int {
          ++static_cast<Column*>(value)->copies_;
          *static_cast<void**>(copy) = value;
          *flag = 1;
          return MPI_SUCCESS;
        },
        [](MPI_Datatype, int, void* value, void*) -> int {
          ++static_cast<Column*>(value)->deletions_;
          return MPI_SUCCESS;
        },
        &key_, nullptr);
    MPI_Type_vector(kRows, 1, kColumns, MPI_INT, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_set_attr(type_, key_, this);
  }
  ~Column() { MPI_Type_free_keyval(&key_); }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  MPI_Datatype type() const { return type_; }
  void free(const std::string& how) {
    MPI_Type_free(&type_);
    expect(type_ == MPI_DATATYPE_NULL, how + ": the handle of a freed type is left");
  }
  void check(const std::string& how) const {
    expect(deletions_ == 1 && copies_ == 0, how + ": an attribute was deleted " +
                                                std::to_string(deletions_) + " times, copied " +
                                                std::to_string(copies_) + " times");
  }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  int key_ = MPI_KEYVAL_INVALID;
  int copies_ = 0;
  int deletions_ = 0;
};

using Begin = std::function<void(void*, MPI_Datatype, MPI_Request*)>;

// Frees the type of a call that has begun on rank 1, before rank 0 makes its own.
void free_under_way(const std::string& how, bool on_host, const Begin& begin) {
  Column column;
  const Numbers own = rows(100'000 * (rank + 1));
  Numbers host = own;
  const DeviceBuffer device = on_device(own);
  void* const buffer = on_host ? host.data() : device.pointer();
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Recv(nullptr, 0, MPI_INT, 1, kReadyTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  begin(buffer, column.type(), &request);
  column.free(how);
  if (rank == 1) MPI_Send(nullptr, 0, MPI_INT, 0, kReadyTag, MPI_COMM_WORLD);
  MPI_Datatype other = MPI_DATATYPE_NULL;  // which may get the handle
  MPI_Type_contiguous(7, MPI_CHAR, &other);
  MPI_Type_commit(&other);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  column.check(how);
  const Numbers wanted = rank == 1 ? with_column(200'000, 100'000) : own;
  expect((on_host ? host : contents(device)) == wanted, how + ": wrong data");
  MPI_Type_free(&other);
}

void receive_again() {
  Column column;
  const DeviceBuffer device = on_device(rows(100'000 * (rank + 1)));
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1)
    MPI_Recv_init(device.pointer(), 1, column.type(), 0, kTag, MPI_COMM_WORLD, &request);
  if (rank == 0)
    MPI_Send_init(device.pointer(), 1, column.type(), 1, kTag, MPI_COMM_WORLD, &request);
  column.free("a persistent request");
  for (int round = 0; round < 3; ++round) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  column.check("a persistent request");
  if (rank == 1)
    expect(contents(device) == with_column(200'000, 100'000), "a persistent request: wrong data");
}

// Two types at once.
void exchange_columns() {
  Column sent;
  Column received;
  const Numbers own = rows(100'000 * (rank + 1));
  const DeviceBuffer from = on_device(own);
  const DeviceBuffer to = on_device(own);
  const int counts[] = {rank == 0 ? 0 : 1, rank == 0 ? 1 : 0};
  const int displs[] = {0, 0};
  const MPI_Datatype send_types[] = {sent.type(), sent.type()};
  const MPI_Datatype recv_types[] = {received.type(), received.type()};
  MPI_Request requests[2];
  // What comes first keeps the other one waiting for its turn.
  MPI_Iallreduce(MPI_IN_PLACE, from.pointer(), 1, MPI_INT, MPI_MAX, MPI_COMM_SELF, &requests[0]);
  MPI_Ialltoallw(from.pointer(), counts, displs, send_types, to.pointer(), counts, displs,
                 recv_types, MPI_COMM_WORLD, &requests[1]);
  sent.free("MPI_Ialltoallw, sent");
  received.free("MPI_Ialltoallw, received");
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  sent.check("MPI_Ialltoallw, sent");
  received.check("MPI_Ialltoallw, received");
  expect(contents(to) == with_column(100'000 * (rank + 1), 100'000 * (2 - rank)),
         "MPI_Ialltoallw: wrong data");
}

void test_types() {
  const Begin message = [](void* buffer, MPI_Datatype type, MPI_Request* request) {
    if (rank == 0) MPI_Isend(buffer, 1, type, 1, kTag, MPI_COMM_WORLD, request);
    if (rank == 1) MPI_Irecv(buffer, 1, type, 0, kTag, MPI_COMM_WORLD, request);
  };
  const Begin broadcast = [](void* buffer, MPI_Datatype type, MPI_Request* request) {
    MPI_Ibcast(buffer, 1, type, 0, MPI_COMM_WORLD, request);
  };
  for (int round = 0; round < 4; ++round) {
    free_under_way("MPI_Irecv", false, message);
    free_under_way("MPI_Irecv on the host", true, message);
    free_under_way("MPI_Ibcast", false, broadcast);
    free_under_way("MPI_Ibcast on the host", true, broadcast);
    receive_again();
    exchange_columns();
  }
}

// On MPI_COMM_SELF, which MPICH answers without a lock.
void look_for_message() {
  int found = 1;
  MPI_Iprobe(0, kTag, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  expect(found == 0, "MPI_Iprobe finds a message");
}

MPI_Request complete_request() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Grequest_start(
      [](void*, MPI_Status* status) -> int {
        look_for_message();
        status->MPI_SOURCE = MPI_UNDEFINED;
        status->MPI_TAG = MPI_UNDEFINED;
        MPI_Status_set_cancelled(status, 0);
        return MPI_Status_set_elements(status, MPI_INT, 0);
      },
      [](void*) -> int {
        look_for_message();
        return MPI_SUCCESS;
      },
      [](void*, int) -> int { return MPI_SUCCESS; }, nullptr, &request);
  MPI_Grequest_complete(request);
  return request;
}

void test_requests() {
  const std::pair<const char*, std::function<void(MPI_Request*)>> ways[] = {
      {"MPI_Wait", [](MPI_Request* request) { MPI_Wait(request, MPI_STATUS_IGNORE); }},
      {"MPI_Waitall", [](MPI_Request* request) { MPI_Waitall(1, request, MPI_STATUSES_IGNORE); }},
      {"MPI_Test",
       [](MPI_Request* request) {
         for (int done = 0; done == 0;) MPI_Test(request, &done, MPI_STATUS_IGNORE);
       }},
      {"MPI_Waitany",
       [](MPI_Request* request) {
         int index = -1;
         MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE);
       }},
      {"MPI_Waitsome",
       [](MPI_Request* request) {
         int count = 0;
         int index = -1;
         MPI_Waitsome(1, request, &count, &index, MPI_STATUSES_IGNORE);
       }},
      {"MPI_Request_get_status",
       [](MPI_Request* request) {
         for (int done = 0; done == 0;) MPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE);
         MPI_Wait(request, MPI_STATUS_IGNORE);
       }},
  };
  const DeviceBuffer buffer = on_device(rows(0));
  for (const auto& [name, complete] : ways) {
    const DeviceBuffer result = on_device(rows(-1));
    MPI_Request reduction = MPI_REQUEST_NULL;
    // The other rank begins later: the reduction is under way until then.
    if (rank == 0)
      MPI_Iallreduce(buffer.pointer(), result.pointer(), kRows, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                     &reduction);
    MPI_Request own = complete_request();
    complete(&own);
    expect(own == MPI_REQUEST_NULL, std::string(name) + " leaves the request");
    if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 1, kReadyTag, MPI_COMM_WORLD);
    if (rank == 1) {
      int ready = -1;
      MPI_Recv(&ready, 1, MPI_INT, 0, kReadyTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Iallreduce(buffer.pointer(), result.pointer(), kRows, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                     &reduction);
    }
    MPI_Wait(&reduction, MPI_STATUS_IGNORE);
    Numbers wanted = rows(-1);
    std::iota(wanted.begin(), wanted.begin() + kRows, 0);
    expect(contents(result) == wanted, std::string(name) + ": a reduction is wrong");
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string which = argc > 1 ? argv[1] : "";
  (which == "types" ? test_types : test_requests)();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
