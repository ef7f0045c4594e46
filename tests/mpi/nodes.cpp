// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two-level collectives on many communicators: as many as there are wires for go that way, the rest
// through the host, and those that come after they have been freed go that way again. Every result
// is right. Where the communicator's duplicate for their messages cannot be made, that is one
// error.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

constexpr int kWires = 128;
constexpr int kComms = kWires + 3;
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

int errors_handled = 0;
void count_error(MPI_Comm*, int*, ...) { ++errors_handled; }
int refuse_copy(MPI_Comm, int, void*, void*, void*, int*) { return MPI_ERR_OTHER; }

// What the program asks for is a sum: it hears once, and of nothing that it has not asked for.
void no_duplicate() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm_set_attr(comm, key, nullptr);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  const DeviceBuffer in = of_equal(1);
  const DeviceBuffer out = of_equal(-1);
  const int code = MPI_Allreduce(in.pointer(), out.pointer(), kCount, MPI_FLOAT, MPI_SUM, comm);
  expect(code != MPI_SUCCESS && errors_handled == 1, "not one error", errors_handled);
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  expect(std::string(text).find("nodes: no communicator") != std::string::npos, text, code);
  // Nothing of it stays.
  MPI_Comm_delete_attr(comm, key);
  expect(sum_on(comm, 1), "not in two levels once it can be made", -1);
  expect(errors_handled == 1, "another error", errors_handled);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<MPI_Comm> comms(kComms, MPI_COMM_NULL);
  for (int number = 0; number < kComms; ++number) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[static_cast<std::size_t>(number)]);
    const bool in_two_levels = sum_on(comms[static_cast<std::size_t>(number)], number);
    expect(in_two_levels == (number < kWires), "another way than expected", number);
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Comm again = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  expect(sum_on(again, kComms), "not in two levels", kComms);
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
  no_duplicate();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
