// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// MPI_Finalize runs the delete functions of MPI_COMM_SELF's attributes first, in which MPI still
// works (MPI 4.1, 11.4.2): libraries close their files there. Any number of ranks; the first two
// exchange messages. "threads": several threads may call MPI.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;

constexpr int kTag = 5;
constexpr int kPendingTag = 6;
constexpr int kCount = 100'000;
constexpr int kColumn = 100;  // every third of so many elements

int rank = 0;
int size = 1;
int failures = 0;
int callbacks = 0;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what);
  ++failures;
}

Numbers counted(int first, int count = kCount) {
  Numbers numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

struct Pending {
  MPI_Request request = MPI_REQUEST_NULL;
  void* buffer = nullptr;  // of device memory, or null where the host's is used
  Numbers host = Numbers(kCount, -1);

  Numbers received() const {
    if (buffer == nullptr) return host;
    Numbers numbers(kCount);
    (void)accord_memcpy(numbers.data(), buffer, kCount * sizeof(int));
    return numbers;
  }
};

// What MPI_Finalize finds begun.
struct Job {
  MPI_Comm own = MPI_COMM_NULL;  // of a library
  std::vector<Pending> pending;
};

// Messages by headers need both ranks to have used a device, and opened what the other lends.
void warm_up() {
  if (rank > 1) return;
  const DeviceBuffer sent = on_device(counted(0, 1000));
  const DeviceBuffer received = on_device(Numbers(1000));
  for (int round = 0; round < 12; ++round) {
    MPI_Sendrecv(sent.pointer(), 1000, MPI_INT, 1 - rank, kTag, received.pointer(), 1000, MPI_INT,
                 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  expect(std::strcmp(accord_last_path(), "staged") != 0, "messages do not go by headers");
}

void begin_messages(Job& job) {
  job.pending.resize(2);
  for (Pending& one : job.pending) {
    const bool is_on_device = rank == 0 || &one == &job.pending[0];
    if (is_on_device && accord_malloc(&one.buffer, kCount * sizeof(int), ACCORD_MEMORY_DEVICE) != 0)
      MPI_Abort(MPI_COMM_WORLD, 1);
    const Numbers start = rank == 0 ? counted(3) : Numbers(kCount, -1);
    if (is_on_device) (void)accord_memcpy(one.buffer, start.data(), kCount * sizeof(int));
    void* const buffer = is_on_device ? one.buffer : one.host.data();
    const int tag = kPendingTag + static_cast<int>(&one - job.pending.data());
    if (rank == 0) MPI_Isend(buffer, kCount, MPI_INT, 1, tag, MPI_COMM_WORLD, &one.request);
    if (rank == 1) MPI_Irecv(buffer, kCount, MPI_INT, 0, tag, MPI_COMM_WORLD, &one.request);
  }
}

void end_messages(Job& job) {
  for (Pending& one : job.pending) {
    MPI_Status status;
    int count = 0;
    MPI_Wait(&one.request, &status);
    if (rank != 1) continue;
    MPI_Get_count(&status, MPI_INT, &count);
    expect(count == kCount, "the status of a pending receive is wrong");
    expect(one.received() == counted(3), "a pending receive has got something else");
  }
}

void reduce(MPI_Comm comm, int count) {
  const Numbers mine = counted(rank, count);
  Numbers host(mine.size());
  MPI_Allreduce(mine.data(), host.data(), count, MPI_INT, MPI_MAX, comm);
  expect(host == counted(size - 1, count), "a reduction on the host is wrong");
  const DeviceBuffer sent = on_device(mine);
  const DeviceBuffer received = on_device(Numbers(mine.size(), -1));
  MPI_Allreduce(sent.pointer(), received.pointer(), count, MPI_INT, MPI_MAX, comm);
  expect(contents(received) == counted(size - 1, count), "a reduction on the device is wrong");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(sent.pointer(), received.pointer(), count, MPI_INT, MPI_MIN, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(contents(received) == counted(0, count), "a non-blocking reduction is wrong");
}

void send_column(MPI_Comm comm) {
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(kColumn / 3, 1, 3, MPI_INT, &column);
  MPI_Type_commit(&column);
  const DeviceBuffer buffer = on_device(rank == 0 ? counted(0, kColumn) : Numbers(kColumn, -1));
  if (rank == 0) MPI_Send(buffer.pointer(), 1, column, 1, kTag, comm);
  if (rank == 1) {
    MPI_Recv(buffer.pointer(), 1, column, 0, kTag, comm, MPI_STATUS_IGNORE);
    Numbers wanted(kColumn, -1);
    for (std::size_t i = 0; i + 2 < kColumn; i += 3) wanted[i] = static_cast<int>(i);
    expect(contents(buffer) == wanted, "a column is wrong");
  }
  MPI_Type_free(&column);
}

int close_library(MPI_Comm, int, void* value, void*) {
  auto& job = *static_cast<Job*>(value);
  ++callbacks;
  int is_finalized = 1;
  MPI_Finalized(&is_finalized);
  expect(is_finalized == 0, "MPI has ended before the delete functions of MPI_COMM_SELF");
  for (const int count : {10, 1000, 1 << 20}) {
    reduce(job.own, count);
    reduce(MPI_COMM_WORLD, count);
  }
  end_messages(job);
  send_column(MPI_COMM_WORLD);
  send_column(job.own);
  MPI_Comm another = MPI_COMM_NULL;  // of which Accord knows nothing yet
  MPI_Comm_dup(job.own, &another);
  reduce(another, 1000);
  MPI_Comm_free(&another);
  MPI_Comm_free(&job.own);
  return MPI_SUCCESS;
}

// A rank alone, with what a library has begun for itself.
int meet_itself(MPI_Comm self, int, void*, void*) {
  ++callbacks;
  const DeviceBuffer sent = on_device(counted(1, 1000));
  const DeviceBuffer received = on_device(Numbers(1000));
  MPI_Sendrecv(sent.pointer(), 1000, MPI_INT, 0, kTag, received.pointer(), 1000, MPI_INT, 0, kTag,
               self, MPI_STATUS_IGNORE);
  expect(contents(received) == counted(1, 1000), "a message of a rank to itself is wrong");
  return MPI_SUCCESS;
}

void set_on_self(MPI_Comm_delete_attr_function* function, Job& job) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, function, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, &job);
  MPI_Comm_free_keyval(&key);
}

}  // namespace

int main(int argc, char** argv) {
  const bool threads = argc > 1 && std::string(argv[1]) == "threads";
  int provided = 0;
  if (threads) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Job job;
  MPI_Comm_dup(MPI_COMM_WORLD, &job.own);
  set_on_self(meet_itself, job);
  set_on_self(close_library, job);
  warm_up();
  begin_messages(job);
  set_on_self(meet_itself, job);
  MPI_Finalize();
  expect(callbacks == 3, "a delete function of MPI_COMM_SELF has not run");
  return failures == 0 ? 0 : 1;
}
