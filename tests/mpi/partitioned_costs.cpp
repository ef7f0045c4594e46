// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the calls around partitioned communication cost on this machine, in memory of its device, in
// a ring of ranks: the first time, and the median and mean of all later ones. What arrives is
// checked.
//
//   accord run -n 2 accord_partitioned_costs_mpich [times]
//
// "mapped" is a request on memory that another one of the same two ranks uses already, as is the
// rule; the first row of all has the mapping in it, and what is made once a process.
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "partitioned.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

constexpr int kPartitions = 16;
constexpr int kInts = 16 * 1024;
constexpr int kRounds = 8;  // of each request

// Microseconds, in the order in which they were taken.
struct Cost {
  const char* name;
  std::vector<double> us;

  template <class Call>
  void take(Call call) {
    const double start = MPI_Wtime();
    call();
    us.push_back((MPI_Wtime() - start) * 1e6);
  }
  void print() const {
    if (us.size() < 2) return;
    std::vector<double> later(us.begin() + 1, us.end());
    std::ranges::sort(later);
    std::printf(
        "%-44s first %8.1f us, later: median %6.2f us, mean %6.2f us\n", name, us.front(),
        later[later.size() / 2],
        std::accumulate(later.begin(), later.end(), 0.0) / static_cast<double>(later.size()));
  }
};

struct Costs {
  Cost send_init{"MPI_Psend_init", {}};
  Cost receive_init{"MPI_Precv_init", {}};
  Cost create{"MPIX_Prequest_create", {}};
  Cost start{"MPI_Startall of a send and a receive", {}};
  Cost first_prepare{"MPIX_Pbuf_prepare_all, first of a request", {}};
  Cost later_prepare{"MPIX_Pbuf_prepare_all, later rounds", {}};
  Cost release{"MPIX_Prequest_free", {}};

  void print() const {
    for (const Cost* cost :
         {&send_init, &receive_init, &create, &start, &first_prepare, &later_prepare, &release})
      cost->print();
  }
};

struct Requests {
  MPI_Request both[2];  // receive, send
  MPIX_Prequest on_device = MPIX_PREQUEST_NULL;

  Requests(Ints& from, Ints& to, Costs& costs) {
    const int count = kInts / kPartitions;
    MPI_Barrier(MPI_COMM_WORLD);
    costs.receive_init.take([&] {
      MPI_Precv_init(to.pointer(), kPartitions, count, MPI_INT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    });
    costs.send_init.take([&] {
      MPI_Psend_init(from.pointer(), kPartitions, count, MPI_INT, (rank + 1) % size, 0,
                     MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    });
    costs.create.take([&] { MPIX_Prequest_create(&on_device, both[1]); });
  }
  void round(Cost& start, Cost& prepare) {
    MPI_Barrier(MPI_COMM_WORLD);
    start.take([&] { MPI_Startall(2, both); });
    prepare.take([&] { MPIX_Pbuf_prepare_all(2, both); });
    MPI_Pready_range(0, kPartitions - 1, both[1]);
    expect_ok(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), "Waitall");
  }
  void free(Cost& release) {
    release.take([&] { MPIX_Prequest_free(&on_device); });
    for (MPI_Request& request : both) MPI_Request_free(&request);
  }
};

void measure(int times) {
  Ints from(kInts, true);
  Ints to(kInts, true);
  Costs costs;
  Requests keeper(from, to, costs);
  keeper.round(costs.start, costs.first_prepare);
  Cost aside{"", {}};
  for (int i = 0; i < times; ++i) {
    Requests requests(from, to, costs);
    from.set(std::vector<int>(kInts, 100 * rank + i));
    to.set(std::vector<int>(kInts, -1));
    for (int round = 0; round < kRounds; ++round)
      requests.round(round == 0 ? aside : costs.start,
                     round == 0 ? costs.first_prepare : costs.later_prepare);
    expect(to.get() == std::vector<int>(kInts, 100 * ((rank + size - 1) % size) + i),
           "what has arrived");
    requests.free(costs.release);
  }
  keeper.free(costs.release);
  if (rank == 0) costs.print();
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  MPI_Init(&argc, &argv);
  start();
  measure(argc > 1 ? std::atoi(argv[1]) : 50);
  return finish();
}

#else

int main() { return 77; }

#endif
