// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Neighbourhood collectives on device memory: on grids, rings of few ranks where both sides are the
// same rank, and graphs with several edges between two ranks, each block comes from the edge that
// it should, in all forms. They go by the path that the command line names.
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "device_buffer.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT 1
#else
#define HAS_PERSISTENT 0
#endif

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;
using Ranks = std::vector<int>;

constexpr int kBlock = 600;
constexpr int kRoom = 2 * kBlock;  // from one block to the next

int rank = 0;
int size = 0;
int failures = 0;
std::string path;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}

// Element i of what `sender` has in its block.
int value(int sender, int block, int i) { return sender * 100000 + block * 1000 + i; }

// Neighbours of all ranks, by block; absent ones are MPI_PROC_NULL.
struct Topology {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;
  bool is_grid = false;
  std::vector<Ranks> in{};
  std::vector<Ranks> out{};

  // Which block of its sender this rank gets in `block`: on a grid that of the opposite side, else
  // the one of as many between the two.
  int origin(int block) const {
    if (is_grid) return block ^ 1;
    const Ranks& mine = in[at(rank)];
    const int sender = mine[at(block)];
    const auto before = std::count(mine.begin(), mine.begin() + block, sender);
    const Ranks& theirs = out[at(sender)];
    int origin = -1;
    for (std::ptrdiff_t seen = -1; seen < before;)
      if (theirs[at(++origin)] == rank) ++seen;
    return origin;
  }
};

Topology grid(const std::string& name, std::vector<int> dims, std::vector<int> periods) {
  Topology made{.name = name, .is_grid = true};
  MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(dims.size()), dims.data(), periods.data(), 0,
                  &made.comm);
  for (int one = 0; one < size; ++one) {
    Ranks sides;
    std::vector<int> place(dims.size());
    MPI_Cart_coords(made.comm, one, static_cast<int>(dims.size()), place.data());
    for (std::size_t d = 0; d < dims.size(); ++d) {
      for (const int step : {-1, 1}) {
        std::vector<int> there = place;
        there[d] += step;
        const bool outside = there[d] < 0 || there[d] >= dims[d];
        int side = MPI_PROC_NULL;
        if (!outside || periods[d] != 0) MPI_Cart_rank(made.comm, there.data(), &side);
        sides.push_back(side);
      }
    }
    made.in.push_back(sides);
    made.out.push_back(sides);
  }
  return made;
}

// Three edges to the next rank, one to the rank itself.
Topology directed_graph() {
  Topology made{.name = "directed graph"};
  for (int one = 0; one < size; ++one) {
    const int next = (one + 1) % size;
    const int last = (one + size - 1) % size;
    made.in.push_back({last, last, one, last});
    made.out.push_back({next, one, next, next});
  }
  const Ranks& in = made.in[at(rank)];
  const Ranks& out = made.out[at(rank)];
  const std::vector<int> weights(in.size(), 1);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(in.size()), in.data(),
                                 weights.data(), static_cast<int>(out.size()), out.data(),
                                 weights.data(), MPI_INFO_NULL, 0, &made.comm);
  return made;
}

Topology graph() {
  Topology made{.name = "graph"};
  std::vector<int> index;
  std::vector<int> edges;
  for (int one = 0; one < size; ++one) {
    made.in.push_back({(one + 1) % size, (one + size - 1) % size});
    edges.insert(edges.end(), made.in.back().begin(), made.in.back().end());
    index.push_back(static_cast<int>(edges.size()));
  }
  made.out = made.in;
  MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &made.comm);
  return made;
}

// Nobody has neighbours but rank 0, which has itself.
Topology loner() {
  Topology made{.name = "loner", .in = std::vector<Ranks>(at(size))};
  made.in[0] = {0};
  made.out = made.in;
  const int count = rank == 0 ? 1 : 0;
  const int self = 0;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, count, &self, MPI_UNWEIGHTED, count, &self,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made.comm);
  return made;
}

enum class Form { blocking, nonblocking, persistent };

void complete(Form form, MPI_Request* request) {
  if (form == Form::persistent) MPI_Start(request);
  if (form != Form::blocking) MPI_Wait(request, MPI_STATUS_IGNORE);
  if (form == Form::persistent) MPI_Request_free(request);
}

#if HAS_PERSISTENT
#define IN_FORM(form, name, ...)                                                           \
  do {                                                                                     \
    MPI_Request request = MPI_REQUEST_NULL;                                                \
    if (form == Form::blocking) MPI_##name(__VA_ARGS__);                                   \
    if (form == Form::nonblocking) MPI_I##name(__VA_ARGS__, &request);                     \
    if (form == Form::persistent) MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
    complete(form, &request);                                                              \
  } while (false)
#else
#define IN_FORM(form, name, ...)                                          \
  do {                                                                    \
    MPI_Request request = MPI_REQUEST_NULL;                               \
    if (form == Form::nonblocking) {                                      \
      MPI_I##name(__VA_ARGS__, &request);                                 \
    } else {                                                              \
      MPI_##name(__VA_ARGS__);                                            \
    }                                                                     \
    complete(form == Form::persistent ? Form::blocking : form, &request); \
  } while (false)
#endif
// The names of MPI's non-blocking functions have a small letter.
#define MPI_INeighbor_allgather MPI_Ineighbor_allgather
#define MPI_INeighbor_allgatherv MPI_Ineighbor_allgatherv
#define MPI_INeighbor_alltoall MPI_Ineighbor_alltoall
#define MPI_INeighbor_alltoallv MPI_Ineighbor_alltoallv
#define MPI_INeighbor_alltoallw MPI_Ineighbor_alltoallw

enum class Call { allgather, allgatherv, alltoall, alltoallv, alltoallw };
constexpr const char* kNames[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};

// What an edge moves: as much for all, or not.
int length(Call call, int sender, int block) {
  if (call == Call::allgather || call == Call::alltoall) return kBlock;
  return kBlock + 7 * sender + (call == Call::allgatherv ? 0 : block);
}

void check(const Topology& topology, Call call, Form form) {
  const std::string what = topology.name + ": " + kNames[static_cast<int>(call)] + ", form " +
                           std::to_string(static_cast<int>(form));
  const Ranks& in = topology.in[at(rank)];
  const Ranks& out = topology.out[at(rank)];
  const bool gathers = call == Call::allgather || call == Call::allgatherv;
  const bool dense = call == Call::allgather || call == Call::alltoall;
  const int room = dense ? kBlock : kRoom;
  const auto origin = [&](int block) { return gathers ? 0 : topology.origin(block); };

  Numbers sent(std::max<std::size_t>(1, out.size()) * at(room), -1);
  std::vector<int> counts(out.size());
  std::vector<int> places(out.size());
  for (int block = 0; block < static_cast<int>(std::max<std::size_t>(1, out.size())); ++block) {
    const int count = length(call, rank, gathers ? 0 : block);
    if (at(block) < out.size()) counts[at(block)] = count;
    if (at(block) < out.size()) places[at(block)] = block * room;
    for (int i = 0; i < count; ++i) sent[at(block * room + i)] = value(rank, block, i);
  }
  // The last block first.
  std::vector<int> got_counts(in.size());
  std::vector<int> got_places(in.size());
  for (int block = 0; block < static_cast<int>(in.size()); ++block) {
    got_places[at(block)] = dense ? block * room : (static_cast<int>(in.size()) - 1 - block) * room;
    if (in[at(block)] != MPI_PROC_NULL)
      got_counts[at(block)] = length(call, in[at(block)], origin(block));
  }
  const DeviceBuffer send = on_device(sent);
  const DeviceBuffer recv = on_device(Numbers(std::max<std::size_t>(1, in.size()) * at(room), -1));
  switch (call) {
    case Call::allgather:
      IN_FORM(form, Neighbor_allgather, send.pointer(), kBlock, MPI_INT, recv.pointer(), kBlock,
              MPI_INT, topology.comm);
      break;
    case Call::allgatherv:
      IN_FORM(form, Neighbor_allgatherv, send.pointer(), length(call, rank, 0), MPI_INT,
              recv.pointer(), got_counts.data(), got_places.data(), MPI_INT, topology.comm);
      break;
    case Call::alltoall:
      IN_FORM(form, Neighbor_alltoall, send.pointer(), kBlock, MPI_INT, recv.pointer(), kBlock,
              MPI_INT, topology.comm);
      break;
    case Call::alltoallv:
      IN_FORM(form, Neighbor_alltoallv, send.pointer(), counts.data(), places.data(), MPI_INT,
              recv.pointer(), got_counts.data(), got_places.data(), MPI_INT, topology.comm);
      break;
    case Call::alltoallw: {
      const std::vector<MPI_Datatype> types(std::max(in.size(), out.size()), MPI_INT);
      std::vector<MPI_Aint> from(places.begin(), places.end());
      std::vector<MPI_Aint> to(got_places.begin(), got_places.end());
      for (MPI_Aint& place : from) place *= static_cast<MPI_Aint>(sizeof(int));
      for (MPI_Aint& place : to) place *= static_cast<MPI_Aint>(sizeof(int));
      IN_FORM(form, Neighbor_alltoallw, send.pointer(), counts.data(), from.data(), types.data(),
              recv.pointer(), got_counts.data(), to.data(), types.data(), topology.comm);
      break;
    }
  }
  if (form == Form::blocking)
    expect(accord_last_path() == path, what + " went by " + accord_last_path());
  const Numbers got = contents(recv);
  Numbers wanted(got.size(), -1);
  for (int block = 0; block < static_cast<int>(in.size()); ++block)
    for (int i = 0; i < got_counts[at(block)] && in[at(block)] != MPI_PROC_NULL; ++i)
      wanted[at(got_places[at(block)] + i)] = value(in[at(block)], origin(block), i);
  expect(got == wanted, what + ": wrong result");
}

// Two edges to the next rank, which rank 0 expects in the other order: an error of two ranks, or of
// rank 0 alone, and the next call is as good as ever.
void check_disagreement() {
  Topology made{.name = "disagreement"};
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;
  const int in[] = {last, last};
  const int out[] = {next, next};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, in, MPI_UNWEIGHTED, 2, out, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &made.comm);
  MPI_Comm_set_errhandler(made.comm, MPI_ERRORS_RETURN);
  const DeviceBuffer send = on_device(Numbers(at(2 * kRoom), rank));
  for (const bool wrong : {false, true, false}) {
    const DeviceBuffer recv = on_device(Numbers(at(2 * kRoom), -1));
    const int counts[] = {kBlock, kBlock + 9};
    const int places[] = {0, kRoom};
    const bool mine = wrong && rank == 0;
    const int expected[] = {mine ? counts[1] : counts[0], mine ? counts[0] : counts[1]};
    const int code = MPI_Neighbor_alltoallv(send.pointer(), counts, places, MPI_INT, recv.pointer(),
                                            expected, places, MPI_INT, made.comm);
    const bool may_be_told = wrong && rank == size - 1;
    expect(may_be_told || (code != MPI_SUCCESS) == mine, "an error of somebody else, or none");
    const Numbers got = contents(recv);
    expect(got[0] == (mine ? -1 : last) && got[at(kRoom)] == got[0], "wrong data");
  }
  MPI_Comm_free(&made.comm);
}

// Blocks of a predefined type whose displacements are their addresses: an int to and from each side
// of a ring. These go to the host MPI, of which Open MPI 5.0 mixes up the sides of non-blocking
// calls where both are the same rank.
void check_addresses() {
  const Topology ring = grid("ring", {size}, {1});
  const Numbers mine{2 * rank, 2 * rank + 1};
  const int before = (rank + size - 1) % size;
  const int after = (rank + 1) % size;
  const Numbers expected{2 * before + 1, 2 * after};
  const Numbers ones{1, 1};
  const std::vector<MPI_Datatype> ints(2, MPI_INT);
  for (const bool blocks : {true, false}) {
    if (!blocks && size == 2) continue;
    const DeviceBuffer send = on_device(mine);
    const DeviceBuffer receive = on_device(Numbers{-1, -1});
    MPI_Aint from[2] = {};
    MPI_Aint to[2] = {};
    for (int side = 0; side < 2; ++side) {
      MPI_Get_address(static_cast<int*>(send.pointer()) + side, &from[side]);
      MPI_Get_address(static_cast<int*>(receive.pointer()) + side, &to[side]);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    if (blocks)
      MPI_Neighbor_alltoallw(MPI_BOTTOM, ones.data(), from, ints.data(), MPI_BOTTOM, ones.data(),
                             to, ints.data(), ring.comm);
    else
      MPI_Ineighbor_alltoallw(MPI_BOTTOM, ones.data(), from, ints.data(), MPI_BOTTOM, ones.data(),
                              to, ints.data(), ring.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(contents(receive) == expected, "neighbor_alltoallw of addresses: wrong result");
  }
  MPI_Comm ended = ring.comm;
  MPI_Comm_free(&ended);
}

}  // namespace

int main(int argc, char** argv) {
  path = argc > 1 ? argv[1] : "nccl";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (accord_device_count() > 0) (void)accord_set_device(rank % accord_device_count());
  const bool by_us = path != "staged";  // else graphs are the host MPI's, which some get wrong
  std::vector<Topology> topologies;
  topologies.push_back(grid("line", {size}, {0}));
  topologies.push_back(grid("ring", {size}, {1}));
  topologies.push_back(grid("ring of rings", {1, size}, {1, 1}));
  if (by_us) topologies.push_back(directed_graph());
  if (by_us) topologies.push_back(graph());
  if (by_us) topologies.push_back(loner());
  for (Topology& topology : topologies) {
    for (const Call call :
         {Call::allgather, Call::allgatherv, Call::alltoall, Call::alltoallv, Call::alltoallw}) {
      for (const Form form : {Form::blocking, Form::nonblocking, Form::persistent})
        if (by_us || form == Form::blocking) check(topology, call, form);
    }
    MPI_Comm_free(&topology.comm);
  }
  if (by_us) check_disagreement();
  check_addresses();
  int all_failures = 0;
  MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", all_failures);
  MPI_Finalize();
  return all_failures == 0 ? 0 : 1;
}
