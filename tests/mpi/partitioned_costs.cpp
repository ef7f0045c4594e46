// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the calls around partitioned communication cost on this machine, in memory of its device, in
// a ring of ranks: the first time, and the median and mean of all later ones. What arrives is
// checked.
//
//   accord run -n 2 accord_partitioned_costs_mpich [times]
//
//   ACCORD_PARTITIONED=accord accord run -n 2 accord_partitioned_costs_openmpi host [times]
//
// With "host" rounds of requests on host memory, which ACCORD_PARTITIONED=host leaves to the host
// MPI: the two are compared in turns.
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
        "%-44s first %8.1f us, later: best %6.2f us, median %6.2f us, mean %6.2f us\n", name,
        us.front(), later.front(), later[later.size() / 2],
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

struct Cut {
  int partitions;
  int ints;  // of each
};

// Both ways at once, each partition marked by itself.
void measure_on_host(const Cut& cut, int times) {
  const int ints = cut.partitions * cut.ints;
  Ints from(ints, false);
  Ints to(ints, false);
  MPI_Request both[2];
  MPI_Precv_init(to.pointer(), cut.partitions, cut.ints, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
  MPI_Psend_init(from.pointer(), cut.partitions, cut.ints, MPI_INT, (rank + 1) % size, 0,
                 MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
  const std::string name =
      std::to_string(cut.partitions) + " x " + std::to_string(cut.ints * 4) + " B on the host";
  Cost cost{name.c_str(), {}};
  for (int i = 0; i < times; ++i) {
    from.set(std::vector<int>(static_cast<std::size_t>(ints), 100 * rank + i));
    to.set(std::vector<int>(static_cast<std::size_t>(ints), -1));
    MPI_Barrier(MPI_COMM_WORLD);
    cost.take([&] {
      MPI_Startall(2, both);
      for (int partition = 0; partition < cut.partitions; ++partition)
        MPI_Pready(partition, both[1]);
      expect_ok(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), "Waitall");
    });
    const int sent = 100 * ((rank + size - 1) % size) + i;
    expect(to.get() == std::vector<int>(static_cast<std::size_t>(ints), sent), "what has arrived");
  }
  for (MPI_Request& request : both) MPI_Request_free(&request);
  if (rank == 0) cost.print();
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  MPI_Init(&argc, &argv);
  start();
  if (argc > 1 && std::string(argv[1]) == "host") {
    const int times = argc > 2 ? std::atoi(argv[2]) : 20;
    for (const Cut& cut : {Cut{1, 2}, Cut{16, 16}, Cut{kPartitions, kInts / kPartitions},
                           Cut{4096, 1024}, Cut{512, 16384}})
      measure_on_host(cut, times);
    return finish();
  }
  measure(argc > 1 ? std::atoi(argv[1]) : 50);
  return finish();
}

#else

#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no partitioned communication");
  return 77;
}

#endif
