// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Non-blocking collectives whose arrays of counts, displacements and types are gone as soon as the
// call returns, as in mpi4py: any rank may have to wait for others before the host MPI reads them.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace {

int rank = 0;
int size = 0;
int failures = 0;

void expect(const std::vector<int>& got, const std::vector<int>& wanted, const char* what) {
  if (got == wanted) return;
  std::fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  ++failures;
}

// An int for each rank, at its number or all at the root; unreadable as counts once it is let go.
struct Arrays {
  std::vector<int> ones = std::vector<int>(static_cast<std::size_t>(size), 1);
  std::vector<int> places = std::vector<int>(static_cast<std::size_t>(size));
  std::vector<int> bytes = places;
  std::vector<MPI_Datatype> types = std::vector<MPI_Datatype>(places.size(), MPI_INT);

  Arrays() {
    for (int i = 0; i < size; ++i) {
      places[static_cast<std::size_t>(i)] = i;
      bytes[static_cast<std::size_t>(i)] = i * static_cast<int>(sizeof(int));
    }
  }
  ~Arrays() {
    for (auto* array : {&ones, &places, &bytes})
      std::memset(array->data(), 0x55, array->size() * sizeof(int));
    for (MPI_Datatype& type : types) type = MPI_DATATYPE_NULL;
  }
};

template <class Call>
void wait_without_arrays(Call call) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const auto arrays = std::make_unique<Arrays>();
    call(*arrays, &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void check(int call) {
  const int root = call % size;
  std::vector<int> numbers;
  for (int i = 0; i < size; ++i) numbers.push_back(call + i);
  const std::vector<int> none(numbers.size(), -1);
  const std::vector<int> same(numbers.size(), numbers[static_cast<std::size_t>(rank)]);
  const int mine = call + rank;
  std::vector<int> got = none;
  wait_without_arrays([&](Arrays& a, MPI_Request* request) {
    MPI_Iallgatherv(&mine, 1, MPI_INT, got.data(), a.ones.data(), a.places.data(), MPI_INT,
                    MPI_COMM_WORLD, request);
  });
  expect(got, numbers, "allgatherv");
  got = none;
  wait_without_arrays([&](Arrays& a, MPI_Request* request) {
    MPI_Ialltoallv(same.data(), a.ones.data(), a.places.data(), MPI_INT, got.data(), a.ones.data(),
                   a.places.data(), MPI_INT, MPI_COMM_WORLD, request);
  });
  expect(got, numbers, "alltoallv");
  got = none;
  wait_without_arrays([&](Arrays& a, MPI_Request* request) {
    MPI_Ialltoallw(same.data(), a.ones.data(), a.bytes.data(), a.types.data(), got.data(),
                   a.ones.data(), a.bytes.data(), a.types.data(), MPI_COMM_WORLD, request);
  });
  expect(got, numbers, "alltoallw");
  got = none;
  wait_without_arrays([&](Arrays& a, MPI_Request* request) {
    MPI_Igatherv(&mine, 1, MPI_INT, got.data(), rank == root ? a.ones.data() : nullptr,
                 rank == root ? a.places.data() : nullptr, MPI_INT, root, MPI_COMM_WORLD, request);
  });
  expect(got, rank == root ? numbers : none, "gatherv");
  std::vector<int> one{-1};
  wait_without_arrays([&](Arrays& a, MPI_Request* request) {
    MPI_Iscatterv(rank == root ? numbers.data() : nullptr, rank == root ? a.ones.data() : nullptr,
                  rank == root ? a.places.data() : nullptr, MPI_INT, one.data(), 1, MPI_INT, root,
                  MPI_COMM_WORLD, request);
  });
  expect(one, {mine}, "scatterv");
  wait_without_arrays([&](Arrays& a, MPI_Request* request) {
    MPI_Ireduce_scatter(numbers.data(), one.data(), a.ones.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                        request);
  });
  expect(one, {mine * size}, "reduce_scatter");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int call = 0; call < 20; ++call) check(call);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
