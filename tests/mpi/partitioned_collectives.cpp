// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Every partitioned collective against the ordinary one of the host MPI, with counts as long as all
// partitions together, on random data in host and device memory: partitions marked in random orders
// by the host and by threads that stand for kernels, in several rounds, several requests at once.
#include "partitioned_collectives.h"

#include <mpi.h>

#include <complex>
#include <cstdlib>
#include <iterator>

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
  const int cases = argc > 1 ? std::atoi(argv[1]) : 100;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Random common(seed);
  Random own(seed * 100 + static_cast<unsigned>(rank));
  Made made;
  for (const Maker maker : kMakers)
    for (int i = 0; i < 4; ++i) run(common, own, made, maker);
  for (int i = 0; i < cases && failures == 0; ++i) run(common, own, made, nullptr);
  types();
  made.free();
  return finish();
}
#else
int main() { return 77; }
#endif
