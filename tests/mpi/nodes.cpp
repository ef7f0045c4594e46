// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two-level collectives on many communicators: as many as there are tags for go that way, the rest
// through the host, and those that come after they have been freed go that way again. Every result
// is right, and no communicator is made for them. With an argument one rank has tags for that many,
// else all have.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

int wires = 200;
constexpr int kCount = 1000;

int rank = 0;
int size = 0;
int failures = 0;

void expect(bool right, const char* what, int number) {
  if (right) return;
  std::printf("rank %d, communicator %d: %s\n", rank, number, what);
  ++failures;
}

DeviceBuffer of_equal(float number) {
  return accord::test::on_device(std::vector<float>(kCount, number));
}
bool holds(const DeviceBuffer& buffer, float number) {
  return accord::test::contents<float>(buffer) == std::vector<float>(kCount, number);
}

// Whether it went in two levels.
bool sum_on(MPI_Comm comm, int number) {
  const DeviceBuffer in = of_equal(static_cast<float>(rank + number));
  const DeviceBuffer out = of_equal(-1);
  expect(MPI_Allreduce(in.pointer(), out.pointer(), kCount, MPI_FLOAT, MPI_SUM, comm) == 0,
         "an error", number);
  const auto wanted = static_cast<float>(size * (size - 1) / 2 + size * number);
  expect(holds(out, wanted), "a wrong sum", number);
  return std::strcmp(accord_last_path(), "two-level") == 0;
}

int attributes_copied = 0;
int refuse_copy(MPI_Comm, int, void*, void*, void*, int*) {
  ++attributes_copied;
  return MPI_ERR_OTHER;
}

// A sum makes no communicator, so it calls none of the program's attribute functions.
void attributes_stay() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm_set_attr(comm, key, nullptr);
  expect(sum_on(comm, 1), "with an attribute not in two levels", -1);
  expect(attributes_copied == 0, "an attribute was copied", attributes_copied);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_free(&comm);
}

// Some ranks end the first broadcast of a communicator in two levels while others are in a call
// that makes a communicator, with which these cannot go on before. Open MPI makes one at a time.
void beside_a_duplicate() {
  for (int number = 0; number < 10; ++number) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const DeviceBuffer data = of_equal(rank == 0 ? static_cast<float>(number) : -1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.pointer(), kCount, MPI_FLOAT, 0, comm, &request);
    if (rank % 2 == number % 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(holds(data, static_cast<float>(number)), "a wrong broadcast", number);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
  }
}

// Before MPI_Init; by what launchers tell of the rank.
void leave_tags_to_rank_1(const char* number) {
  wires = std::atoi(number);
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    if (std::atoi(value) == 1) setenv("ACCORD_TEST_WIRES", number, 1);
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1)
    leave_tags_to_rank_1(argv[1]);
  else
    setenv("ACCORD_TEST_WIRES", std::to_string(wires).c_str(), 1);
  const int comm_count = wires + 3;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<MPI_Comm> comms(static_cast<std::size_t>(comm_count), MPI_COMM_NULL);
  for (int number = 0; number < comm_count; ++number) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[static_cast<std::size_t>(number)]);
    const bool in_two_levels = sum_on(comms[static_cast<std::size_t>(number)], number);
    expect(in_two_levels == (number < wires), "another way than expected", number);
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Comm again = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  expect(sum_on(again, comm_count), "not in two levels", comm_count);
  MPI_Comm_free(&again);
  // One rank of either node, in another order.
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &pair);
  int pair_rank = 0;
  MPI_Comm_rank(pair, &pair_rank);
  const int first = rank - rank % 2;
  const DeviceBuffer in = of_equal(static_cast<float>(rank));
  const DeviceBuffer out = of_equal(-1);
  MPI_Allreduce(in.pointer(), out.pointer(), kCount, MPI_FLOAT, MPI_MAX, pair);
  expect(holds(out, static_cast<float>(first + 1)), "a wrong maximum", -1);
  expect(std::strcmp(accord_last_path(), "two-level") == 0, "not in two levels", -1);
  MPI_Comm_free(&pair);
  attributes_stay();
  beside_a_duplicate();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
