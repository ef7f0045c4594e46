// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where one rank has switched Accord off (ACCORD_ENABLE=0), it is off on all of them: calls that
// Accord would vote on are the host MPI's alone. "threads": several threads may call MPI.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what);
  ++failures;
}

void call_collectives(int size) {
  std::vector<double> numbers(1 << 18, 1);
  for (const int count : {1, 1 << 18}) {
    std::vector<double> sum(numbers.size());
    MPI_Allreduce(numbers.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expect(sum[static_cast<std::size_t>(count) - 1] == size, "a sum is wrong");
    MPI_Bcast(numbers.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(numbers.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "threads") {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  call_collectives(size);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
