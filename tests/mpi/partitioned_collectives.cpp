// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Every partitioned collective against the ordinary one of the host MPI, with counts as long as all
// partitions together, on random data in host and device memory: partitions marked in random orders
// by the host and by threads that stand for kernels, in several rounds, several requests at once.
// With an argument "kernels" or "messages" only those of device memory alone, which have to go that
// way within a node.
#include "partitioned_collectives.h"

#include <mpi.h>

#include <complex>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "partitioned_makers.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

using Maker = Collective (*)(const Drawn&);
constexpr Maker kMakers[] = {allgather,
                             allgatherv,
                             allreduce,
                             alltoall,
                             alltoallv,
                             alltoallw,
                             bcast,
                             exscan,
                             gather,
                             gatherv,
                             reduce,
                             reduce_scatter,
                             reduce_scatter_block,
                             scan,
                             scatter,
                             scatterv,
                             neighbor_allgather,
                             neighbor_allgatherv,
                             neighbor_alltoall,
                             neighbor_alltoallv,
                             neighbor_alltoallw};
static_assert(std::size(kMakers) == 21);

// A few at once, in any order on each rank.
void run(Random& common, Random& own, const Made& made, Maker only) {
  constexpr int kRounds = 3;
  const int requests = only != nullptr ? 1 : 1 + common.below(4);
  std::vector<std::unique_ptr<Running>> all;
  for (int i = 0; i < requests; ++i) {
    const Maker maker =
        only != nullptr ? only : kMakers[common.below(static_cast<int>(std::size(kMakers)))];
    all.push_back(std::make_unique<Running>(maker(draw(common, made)), own));
  }
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto each = [&](auto&& what) {
    std::shuffle(order.begin(), order.end(), own.engine());
    for (const std::size_t i : order) what(*all[i]);
  };
  for (int round = 0; round < kRounds; ++round) {
    each([&](Running& one) { one.start(round); });
    if (common.below(3) == 0) each([](Running& one) { one.prepare(); });
    each([](Running& one) { one.mark(); });
    if (common.below(2) == 0) each([](Running& one) { one.watch(); });
    each([](Running& one) { one.complete(); });
    for (auto& one : all) one->check();
  }
  for (auto& one : all) one->free();
}

// In place, results would lie over what other ranks have yet to read.
bool kernels_may(const Collective& what) {
  constexpr std::string_view kNotInPlace[] = {"alltoall", "alltoallv",      "alltoallw",
                                              "exscan",   "reduce_scatter", "reduce_scatter_block",
                                              "scan"};
  return !what.in_place || std::ranges::find(kNotInPlace, what.name) == std::end(kNotInPlace);
}

Drawn of_ints(int partitions, int count, int root, bool in_place, MPI_Comm comm) {
  Drawn drawn{};
  drawn.partitions = partitions;
  drawn.count = count;
  drawn.root = root;
  drawn.in_place = in_place;
  drawn.comm = comm;
  MPI_Comm_rank(comm, &drawn.own);
  MPI_Comm_size(comm, &drawn.ranks);
  drawn.datatype = MPI_INT;
  drawn.extent = sizeof(int);
  drawn.operation = {MPI_INT, MPI_SUM};
  int next = 0;
  for (int i = 0; i < drawn.ranks; ++i) {
    drawn.counts.push_back(count + i);
    drawn.whole.push_back(drawn.counts.back() * partitions);
    drawn.offsets.push_back(next);
    next += drawn.whole.back() + 1;
  }
  return drawn;
}

// Every collective but those among neighbours, on devices.
void run_on_devices(Random& own, const Made& made, bool by_kernels) {
  constexpr int kRounds = 4;
  constexpr std::size_t kNotAmongNeighbours = 16;
  const auto run = [&](Maker maker, const Drawn& drawn) {
    const Collective what = maker(drawn);
    const bool kernels = by_kernels && kernels_may(what);
    Running one(what, own, true);
    for (int round = 0; round < kRounds; ++round) {
      one.start(round);
      if (round < kRounds - 1) one.prepare();
      one.mark();
      if (round % 2 == 0) one.watch();
      one.complete();
      one.check();
    }
    one.check_way(kernels);
    one.free();
  };
  for (std::size_t i = 0; i < kNotAmongNeighbours; ++i) {
    for (const bool in_place : {false, true}) {
      for (const int count : {1, 33, 5000})
        for (const int partitions : {1, 5})
          run(kMakers[i],
              of_ints(partitions, count, (count + partitions) % size, in_place, MPI_COMM_WORLD));
      run(kMakers[i], of_ints(7, 40, 0, in_place, made.reversed));
    }
  }
}

// A rank that only gives is through once the root has what it gave: the others may mark theirs
// after that.
void gather_waits_for_the_root() {
  constexpr int kRounds = 3;
  constexpr int kPartitions = 2;
  Ints from(kPartitions, true);
  Ints to(kPartitions * size, true);
  MPI_Request request = MPI_REQUEST_NULL;
  expect_ok(MPIX_Pgather_init(from.pointer(), kPartitions, 1, MPI_INT, to.pointer(), 1, MPI_INT, 0,
                              MPI_COMM_WORLD, MPI_INFO_NULL, &request),
            "Pgather_init");
  for (int round = 0; round < kRounds; ++round) {
    from.set({rank, round});
    MPI_Start(&request);
    MPIX_Pbuf_prepare(request);
    if (rank > 1) MPI_Recv(nullptr, 0, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pready_range(0, kPartitions - 1, request);
    if (rank > 0) expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait of a gather");
    if (rank > 0 && rank + 1 < size) MPI_Send(nullptr, 0, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    if (rank > 0) continue;
    expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait of the root of a gather");
    std::vector<int> wanted;
    for (int of = 0; of < size; ++of) wanted.insert(wanted.end(), {of, round});
    expect(to.get() == wanted, "a gather of ranks one after the other is wrong");
  }
  MPI_Request_free(&request);
}

// Results of a reduce_scatter in place lie where contributions do that are not marked yet, so the
// first one waits for the last of these.
void in_place_waits() {
  constexpr int kPartitions = 3;
  constexpr int kWait = 2000;  // looks
  const auto block = static_cast<std::size_t>(kPartitions);
  std::vector<int> numbers(block * static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = rank + static_cast<int>(i) + 1;
  std::vector<int> wanted(block);
  MPI_Reduce_scatter_block(numbers.data(), wanted.data(), kPartitions, MPI_INT, MPI_SUM,
                           MPI_COMM_WORLD);
  MPI_Request request = MPI_REQUEST_NULL;
  expect_ok(MPIX_Preduce_scatter_block_init(MPI_IN_PLACE, numbers.data(), kPartitions, 1, MPI_INT,
                                            MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
            "Preduce_scatter_block_init");
  const std::vector<int> before = numbers;
  MPI_Start(&request);
  MPI_Pready(0, request);
  int flag = 0;
  for (int i = 0; i < kWait && flag == 0; ++i) MPI_Parrived(request, 0, &flag);
  expect(flag == 0 && numbers == before, "a result lies over what is not marked yet");
  MPI_Pready_range(1, kPartitions - 1, request);
  expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "a reduce_scatter in place");
  numbers.resize(block);
  expect(numbers == wanted, "a reduce_scatter in place is wrong");
  MPI_Request_free(&request);
}

void ones(void*, void* inout, int* count, MPI_Datatype*) {
  std::fill_n(static_cast<std::uint32_t*>(inout), *count, 1u);
}

// The program may free what it has named once the request is made.
void freed_handles() {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  MPI_Op_create(compose, 0, &op);
  MPI_Type_contiguous(1, MPI_UINT32_T, &datatype);
  MPI_Type_commit(&datatype);
  const std::vector<std::uint32_t> mine(6, 0x00030001u + static_cast<unsigned>(rank));
  std::vector<std::uint32_t> wanted(mine.size());
  expect_ok(MPI_Allreduce(mine.data(), wanted.data(), 6, datatype, op, MPI_COMM_WORLD),
            "Allreduce");
  std::vector<std::uint32_t> got(mine.size());
  MPI_Request request = MPI_REQUEST_NULL;
  expect_ok(MPIX_Pallreduce_init(mine.data(), got.data(), 3, 2, datatype, op, MPI_COMM_WORLD,
                                 MPI_INFO_NULL, &request),
            "Pallreduce_init");
  MPI_Op_free(&op);
  MPI_Type_free(&datatype);
  for (int round = 0; round < 2; ++round) {
    // What takes the places of the freed ones.
    MPI_Op other = MPI_OP_NULL;
    MPI_Op_create(ones, 0, &other);
    std::fill(got.begin(), got.end(), 0u);
    MPI_Start(&request);
    MPI_Pready_range(0, 2, request);
    expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "a reduction by a freed operation");
    expect(got == wanted, "a reduction by a freed operation is wrong");
    MPI_Op_free(&other);
  }
  MPI_Request_free(&request);
}

// A rank without neighbours on one side has no buffer for it, and still takes part: in a line, the
// first one gets nothing and the last one gives nothing.
void line() {
  const int before = rank - 1;
  const int next = rank + 1;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank > 0 ? 1 : 0, &before, MPI_UNWEIGHTED,
                                 next < size ? 1 : 0, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &comm);
  const int mine[] = {rank, rank + 100};
  int got[] = {-1, -1};
  MPI_Request request = MPI_REQUEST_NULL;
  expect_ok(MPIX_Pneighbor_allgather_init(next < size ? mine : nullptr, 2, 1, MPI_INT,
                                          rank > 0 ? got : nullptr, 1, MPI_INT, comm, MPI_INFO_NULL,
                                          &request),
            "Pneighbor_allgather_init in a line");
  MPI_Start(&request);
  MPI_Pready_range(0, 1, request);
  expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "a line");
  expect(rank == 0 || (got[0] == before && got[1] == before + 100), "a line is wrong");
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}

// Small numbers of one predefined type, with every operation that it is for.
template <class Number, class Make>
void reduce_type(const std::string& name, MPI_Datatype datatype, const std::vector<MPI_Op>& ops,
                 Make number) {
  constexpr int kPartitions = 3;
  constexpr int kCount = 5;
  std::vector<Number> mine;
  for (int i = 0; i < kPartitions * kCount; ++i) mine.push_back(number((rank + i) % 4, rank));
  const auto* const bytes = reinterpret_cast<const std::byte*>(mine.data());
  Bytes from(mine.size() * sizeof(Number), true);
  Bytes to(from.size(), true);
  from.set({bytes, bytes + from.size()});
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::string what = name + " by its operation " + std::to_string(i);
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<Number> wanted(mine.size());
    expect_ok(MPI_Allreduce(mine.data(), wanted.data(), kPartitions * kCount, datatype, ops[i],
                            MPI_COMM_WORLD),
              what);
    expect_ok(MPIX_Pallreduce_init(from.pointer(), to.pointer(), kPartitions, kCount, datatype,
                                   ops[i], MPI_COMM_WORLD, MPI_INFO_NULL, &request),
              what);
    MPI_Start(&request);
    MPI_Pready_range(0, kPartitions - 1, request);
    expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), what);
    MPI_Request_free(&request);
    std::vector<Number> got(mine.size());
    const std::vector<std::byte> result = to.get();
    std::memcpy(static_cast<void*>(got.data()), result.data(), result.size());
    expect(got == wanted, what + " is wrong");
  }
}

template <class Number>
void reduce_numbers(const std::string& name, MPI_Datatype datatype,
                    const std::vector<MPI_Op>& ops) {
  reduce_type<Number>(name, datatype, ops, [](int value, int) {
    return static_cast<Number>(static_cast<short>(value));
  });
}

template <class Value>
struct ValueAndIndex {
  Value value;
  int index;
  bool operator==(const ValueAndIndex&) const = default;
};
template <class Value>
void reduce_pairs(const std::string& name, MPI_Datatype datatype) {
  reduce_type<ValueAndIndex<Value>>(name, datatype, {MPI_MINLOC, MPI_MAXLOC},
                                    [](int value, int index) {
                                      return ValueAndIndex<Value>{static_cast<Value>(value), index};
                                    });
}

void types() {
  const std::vector<MPI_Op> of_complex = {MPI_SUM, MPI_PROD};
  const std::vector<MPI_Op> of_floats = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  const std::vector<MPI_Op> logical = {MPI_LAND, MPI_LOR, MPI_LXOR};
  const std::vector<MPI_Op> bitwise = {MPI_BAND, MPI_BOR, MPI_BXOR};
  std::vector<MPI_Op> all = of_floats;
  for (const auto& more : {logical, bitwise}) all.insert(all.end(), more.begin(), more.end());
  reduce_numbers<signed char>("signed char", MPI_SIGNED_CHAR, all);
  reduce_numbers<unsigned char>("unsigned char", MPI_UNSIGNED_CHAR, all);
  reduce_numbers<short>("short", MPI_SHORT, all);
  reduce_numbers<unsigned short>("unsigned short", MPI_UNSIGNED_SHORT, all);
  reduce_numbers<int>("int", MPI_INT, all);
  reduce_numbers<unsigned>("unsigned", MPI_UNSIGNED, all);
  reduce_numbers<long>("long", MPI_LONG, all);
  reduce_numbers<unsigned long>("unsigned long", MPI_UNSIGNED_LONG, all);
  reduce_numbers<long long>("long long", MPI_LONG_LONG, all);
  reduce_numbers<unsigned long long>("unsigned long long", MPI_UNSIGNED_LONG_LONG, all);
  reduce_numbers<MPI_Aint>("MPI_Aint", MPI_AINT, of_floats);
  reduce_numbers<MPI_Offset>("MPI_Offset", MPI_OFFSET, of_floats);
  reduce_numbers<MPI_Count>("MPI_Count", MPI_COUNT, of_floats);
  reduce_numbers<unsigned char>("byte", MPI_BYTE, bitwise);
  reduce_type<unsigned char>("bool", MPI_C_BOOL, logical,
                             [](int value, int) { return static_cast<unsigned char>(value % 2); });
  reduce_numbers<float>("float", MPI_FLOAT, of_floats);
  reduce_numbers<double>("double", MPI_DOUBLE, of_floats);
  reduce_numbers<long double>("long double", MPI_LONG_DOUBLE, of_floats);
  reduce_numbers<std::complex<float>>("float complex", MPI_C_FLOAT_COMPLEX, of_complex);
  reduce_numbers<std::complex<double>>("double complex", MPI_C_DOUBLE_COMPLEX, of_complex);
  reduce_numbers<std::complex<long double>>("long double complex", MPI_C_LONG_DOUBLE_COMPLEX,
                                            of_complex);
  reduce_pairs<float>("float and int", MPI_FLOAT_INT);
  reduce_pairs<double>("double and int", MPI_DOUBLE_INT);
  reduce_pairs<long>("long and int", MPI_LONG_INT);
  reduce_pairs<int>("two int", MPI_2INT);
  reduce_pairs<short>("short and int", MPI_SHORT_INT);
  reduce_pairs<long double>("long double and int", MPI_LONG_DOUBLE_INT);
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  start();
  const std::string way = argc > 1 ? argv[1] : "";
  const int cases = argc > 1 ? std::atoi(argv[1]) : 60;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Random common(seed);
  Random own(seed * 100 + static_cast<unsigned>(rank));
  Made made;
  if (way == "kernels" || way == "messages") {
    run_on_devices(own, made, way == "kernels");
    gather_waits_for_the_root();
    made.free();
    return finish();
  }
  for (const Maker maker : kMakers)
    for (int i = 0; i < 4; ++i) run(common, own, made, maker);
  for (int i = 0; i < cases && failures == 0; ++i) run(common, own, made, nullptr);
  types();
  line();
  freed_handles();
  in_place_waits();
  made.free();
  return finish();
}
#else
#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no partitioned communication");
  return 77;
}
#endif
