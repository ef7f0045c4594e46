// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The info key "accord_algorithm": what it says counts for its communicator, goes on with a
// duplicate, changes what later calls do, and is taken only where all ranks say the same. The
// argument is the way that calls go where no info counts; or "libraries", of which there are two.
#include <accord/accord.h>
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

constexpr int kCount = 64;

int rank = 0;
int size = 0;
int failures = 0;
std::string by_default;

class Info {
 public:
  explicit Info(const char* algorithm) {
    MPI_Info_create(&handle_);
    if (algorithm != nullptr) MPI_Info_set(handle_, "accord_algorithm", algorithm);
  }
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  ~Info() { MPI_Info_free(&handle_); }
  MPI_Info handle() const { return handle_; }

 private:
  MPI_Info handle_ = MPI_INFO_NULL;
};

MPI_Comm duplicate(MPI_Comm comm, const char* algorithm) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup_with_info(comm, Info(algorithm).handle(), &made);
  return made;
}
void set(MPI_Comm comm, const char* algorithm) {
  MPI_Comm_set_info(comm, Info(algorithm).handle());
}

// Several calls, since the way of the first ones is what is agreed on meanwhile.
void expect_way(MPI_Comm comm, const std::string& way, const char* when) {
  std::vector<int> numbers(kCount, rank + 1);
  std::vector<std::byte> bytes(kCount * sizeof(int));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  const DeviceBuffer send(bytes);
  const DeviceBuffer recv(bytes);
  for (int call = 0; call < 3; ++call)
    MPI_Allreduce(send.pointer(), recv.pointer(), kCount, MPI_INT, MPI_SUM, comm);
  const std::vector<std::byte> sum = recv.contents();
  std::memcpy(numbers.data(), sum.data(), sum.size());
  const bool right = numbers == std::vector<int>(kCount, size * (size + 1) / 2);
  if (right && way == accord_last_path()) return;
  std::fprintf(stderr, "rank %d: %s: went by %s instead of %s%s\n", rank, when, accord_last_path(),
               way.c_str(), right ? "" : ", with a wrong result");
  ++failures;
}

void one_communicator_only() {
  MPI_Comm regions = duplicate(MPI_COMM_WORLD, "node");
  expect_way(regions, "node", "a duplicate with info");
  expect_way(MPI_COMM_WORLD, by_default, "the communicator that it is of");
  MPI_Comm other = duplicate(MPI_COMM_WORLD, "scan:staged,alltoall:node");
  expect_way(other, by_default, "info for other collectives");
  MPI_Comm_free(&other);
  MPI_Comm_free(&regions);
}

void duplicates() {
  MPI_Comm regions = duplicate(MPI_COMM_WORLD, "node");
  MPI_Comm same = MPI_COMM_NULL;
  MPI_Comm_dup(regions, &same);
  expect_way(same, "node", "a duplicate of one with info");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm later = MPI_COMM_NULL;
  MPI_Comm_idup(same, &later, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_way(later, "node", "a non-blocking duplicate");
  MPI_Comm none = duplicate(regions, nullptr);
  expect_way(none, by_default, "a duplicate with an empty info");
  for (MPI_Comm* comm : {&regions, &same, &later, &none}) MPI_Comm_free(comm);
}

// Of calls whose way has been voted on already, too.
void changes() {
  MPI_Comm comm = duplicate(MPI_COMM_WORLD, "inbox");
  expect_way(comm, "inbox", "before the change");
  set(comm, "staged");
  expect_way(comm, "staged", "after MPI_Comm_set_info");
  set(comm, nullptr);
  expect_way(comm, "staged", "after an info without the key");
  set(comm, "inbox");
  expect_way(comm, "inbox", "back again");
  set(comm, "auto");
  expect_way(comm, by_default, "after auto");
  MPI_Comm_free(&comm);
}

void disagreement() {
  MPI_Comm comm = duplicate(MPI_COMM_WORLD, rank == 0 ? "node" : "staged");
  expect_way(comm, by_default, "different values");
  set(comm, rank == 0 ? "node" : nullptr);
  expect_way(comm, by_default, "a value of one rank only");
  MPI_Comm_free(&comm);
  // Nor does what counted before.
  MPI_Comm regions = duplicate(MPI_COMM_WORLD, "node");
  comm = duplicate(regions, rank == 0 ? "inbox" : "staged");
  expect_way(comm, by_default, "a duplicate with different values");
  expect_way(regions, "node", "the communicator that it is of");
  set(regions, rank == 0 ? "inbox" : "staged");
  expect_way(regions, by_default, "different values instead of one");
  MPI_Comm_free(&comm);
  MPI_Comm_free(&regions);
}

// Calls on the same buffers, which are kept and not described anew: a library that was given up for
// another one is not asked by them.
void libraries() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const DeviceBuffer send(std::vector<std::byte>(kCount * sizeof(int)));
  const DeviceBuffer recv(std::vector<std::byte>(kCount * sizeof(int)));
  for (const char* const library : {"nccl", "msccl", "nccl"}) {
    set(comm, library);
    for (int call = 0; call < 8; ++call) {
      MPI_Allreduce(send.pointer(), recv.pointer(), kCount, MPI_INT, MPI_SUM, comm);
      if (std::string(library) == accord_last_path()) continue;
      std::fprintf(stderr, "rank %d, call %d: by %s instead of %s\n", rank, call,
                   accord_last_path(), library);
      ++failures;
    }
  }
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  by_default = argc > 1 ? argv[1] : "inbox";
  const bool overruled = argc > 2;
  if (by_default == "libraries") {
    libraries();
  } else if (overruled) {
    MPI_Comm comm = duplicate(MPI_COMM_WORLD, "node");
    expect_way(comm, by_default, "ACCORD_ALGORITHM counts more");
    MPI_Comm_free(&comm);
  } else {
    one_communicator_only();
    duplicates();
    changes();
    disagreement();
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
