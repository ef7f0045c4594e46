// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Every function of a vendor that Accord calls fails for good on all ranks, while these make
// calls on device memory: each call gives the right bytes or an MPI error, and once the function
// works again so do the calls, and nothing is kept. With "host": the program has no device memory,
// whatever became of the drivers.
#include <accord/accord.h>
#include <driver_control.h>  // of that vendor
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "../mpi/device_buffer.h"

namespace {

using accord::test::DeviceBuffer;
using accord::test::Held;
using accord::test::on_device;
using accord::test::driver::DriverControl;
using accord::test::driver::kFunctions;
using accord::test::driver::kReleasing;

constexpr int kCount = 3000;

int rank = 0;
int size = 0;
int failures = 0;

void expect(bool good, const std::string& how) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, how.c_str());
  ++failures;
}

std::vector<int> numbers_of(int which, int first, int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), which * 100000 + first);
  return values;
}

// One call, from memory with what this rank has into memory for the result.
struct Call {
  const char* name;
  int count_out;
  int (*make)(void* in, void* out, MPI_Comm comm);
  std::vector<int> (*result)();
};

int block() { return kCount / size; }

// No rank of these calls gives without taking: one that alone meets an error would keep the others
// waiting, as in any MPI.
std::vector<Call> calls() {
  return {
      {"allgather", kCount * size,
       [](void* in, void* out, MPI_Comm comm) {
         return MPI_Allgather(in, kCount, MPI_INT, out, kCount, MPI_INT, comm);
       },
       [] {
         std::vector<int> all;
         for (int peer = 0; peer < size; ++peer) {
           const std::vector<int> next = numbers_of(peer, 0, kCount);
           all.insert(all.end(), next.begin(), next.end());
         }
         return all;
       }},
      {"alltoall", block() * size,
       [](void* in, void* out, MPI_Comm comm) {
         return MPI_Alltoall(in, block(), MPI_INT, out, block(), MPI_INT, comm);
       },
       [] {
         std::vector<int> all;
         for (int peer = 0; peer < size; ++peer) {
           const std::vector<int> next = numbers_of(peer, rank * block(), block());
           all.insert(all.end(), next.begin(), next.end());
         }
         return all;
       }},
      {"allreduce", kCount,
       [](void* in, void* out, MPI_Comm comm) {
         return MPI_Allreduce(in, out, kCount, MPI_INT, MPI_MAX, comm);
       },
       [] { return numbers_of(size - 1, 0, kCount); }},
      {"sendrecv", kCount,
       [](void* in, void* out, MPI_Comm comm) {
         return MPI_Sendrecv(in, kCount, MPI_INT, (rank + 1) % size, 1, out, kCount, MPI_INT,
                             (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
       },
       [] { return numbers_of((rank + size - 1) % size, 0, kCount); }},
  };
}

// Each call on memory of its own, made while `failing` (empty: nothing) fails.
void make_calls(const DriverControl& driver, MPI_Comm comm, const std::string& failing) {
  for (const Call& call : calls()) {
    const std::vector<int> before(static_cast<std::size_t>(call.count_out), -1);
    const DeviceBuffer in = on_device(numbers_of(rank, 0, kCount));
    const DeviceBuffer out = on_device(before);
    driver.fail(failing.empty() ? "" : failing + ":1+");
    const int code = call.make(in.pointer(), out.pointer(), comm);
    driver.fail("");
    const std::string what = std::string(call.name) + " while " + failing + " fails";
    if (failing.empty()) expect(code == MPI_SUCCESS, what + ": an error");
    if (code == MPI_SUCCESS)
      expect(accord::test::contents(out) == call.result(), what + ": wrong result");
  }
}

// On a communicator of its own, so that all that one needs is made and released too.
void play(const DriverControl& driver, const std::string& failing) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  make_calls(driver, comm, failing);
  MPI_Comm_free(&comm);
  MPI_Barrier(MPI_COMM_WORLD);
}

// What all ranks hold. One or two allocations of the last communicator may not be released yet: of
// two ranks that share memory, the one that is done with it last does that, at its next call. So
// what is kept by mistake shows where it is kept several times.
constexpr long kTimes = 6;

Held held_by_all(const DriverControl& driver) {
  const Held mine = driver.held();
  const long counts[4] = {mine.objects, mine.allocations, mine.descriptors, mine.mappings};
  long sums[4];
  MPI_Allreduce(counts, sums, 4, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return {sums[0], sums[1], sums[2], sums[3]};
}

// What all ranks hold more of after `kTimes` of that failure.
Held growth(const DriverControl& driver, const std::string& failing) {
  play(driver, "");
  const Held before = held_by_all(driver);
  for (long i = 0; i < kTimes; ++i) play(driver, failing);
  play(driver, "");
  const Held after = held_by_all(driver);
  return {after.objects - before.objects, after.allocations - before.allocations,
          after.descriptors - before.descriptors, after.mappings - before.mappings};
}

// More may go on at once than ever before, with objects that are kept to be used again; what is
// kept by mistake grows each time.
void expect_nothing_kept(const DriverControl& driver, const std::string& failing) {
  Held least = growth(driver, failing);
  const auto keeps = [&](long Held::*what) { return least.*what >= kTimes; };
  const auto keeps_any = [&] {
    return keeps(&Held::objects) || keeps(&Held::allocations) || keeps(&Held::descriptors) ||
           keeps(&Held::mappings);
  };
  for (int again = 0; again < 2 && keeps_any(); ++again) {
    const Held next = growth(driver, failing);
    for (long Held::*what :
         {&Held::objects, &Held::allocations, &Held::descriptors, &Held::mappings})
      least.*what = std::min(least.*what, next.*what);
  }
  expect(!keeps(&Held::objects), failing + " keeps objects");
  expect(!keeps(&Held::allocations), failing + " keeps allocations");
  expect(!keeps(&Held::descriptors), failing + " keeps descriptors");
  expect(!keeps(&Held::mappings), failing + " keeps mappings");
}

// The first times fill what is kept to be used again: kernels, lanes for as much as goes on at
// once, and staging memory of calls that find no other way.
void play_all() {
  { const DeviceBuffer first = on_device(numbers_of(rank, 0, kCount)); }
  const DriverControl driver;
  expect(driver.found(), "no test driver");
  if (!driver.found()) return;
  for (const std::string& function : kFunctions) play(driver, function);
  for (long i = 0; i < kTimes; ++i) play(driver, "");
  for (const std::string& function : kFunctions)
    if (!kReleasing.contains(function)) expect_nothing_kept(driver, function);
}

void play_on_host() {
  const std::vector<int> in = numbers_of(rank, 0, kCount);
  std::vector<int> out(kCount);
  expect(MPI_Allreduce(in.data(), out.data(), kCount, MPI_INT, MPI_MAX, MPI_COMM_WORLD) ==
                 MPI_SUCCESS &&
             out == numbers_of(size - 1, 0, kCount),
         "allreduce of host memory");
  void* memory = nullptr;
  expect(accord_malloc(&memory, 100, ACCORD_MEMORY_DEVICE) != ACCORD_OK, "device memory");
  expect(*accord_last_error() != '\0', "no reason");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && std::string(argv[1]) == "host") {
    play_on_host();
  } else {
    play_all();
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
