// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A host MPI that reports failures of calls which it has made, on one rank. Whatever call of the
// host it is, Accord reports an error there, no rank waits for ever, what is called good is right,
// and afterwards a communicator that has seen none works. Each trial is a few calls of one kind on
// a communicator of its own, of which one more host call than in the trial before is the one that
// fails: the first ones, in which the ranks vote and join, and later ones. With "late" only these:
// ranks of several nodes are not told of a vote that has failed.
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../mpi/device_buffer.h"

extern "C" void accord_adversary_fail(std::uint64_t nth, const char* function);
extern "C" std::uint64_t accord_adversary_faults();

namespace {

using accord::test::DeviceBuffer;

constexpr int kNumbers = 5000;
constexpr int kCallsBefore[] = {0, 4};  // the ranks vote on the way in calls 1, 2 and 4
constexpr unsigned kTrialSeconds = 20;
constexpr std::uint64_t kTrialsMax = 60;
int rank = 0;
int size = 0;
char trial[200] = "";

void tell_hang(int) {
  (void)!write(STDERR_FILENO, trial, std::strlen(trial));
  std::abort();
}

std::vector<int> numbers(int first) {
  std::vector<int> made(static_cast<std::size_t>(kNumbers));
  for (int i = 0; i < kNumbers; ++i) made[static_cast<std::size_t>(i)] = first + i;
  return made;
}

// What a call is made with; the codes of all are kept.
struct Calls {
  MPI_Comm comm = MPI_COMM_NULL;
  DeviceBuffer in = accord::test::on_device(numbers(rank));
  DeviceBuffer out = accord::test::on_device(std::vector<int>(kNumbers * 8));
  int failed = 0;
  int wrong = 0;
  bool keep(int code) {
    failed += code != MPI_SUCCESS;
    return code == MPI_SUCCESS;
  }
  // What `blocks` blocks of `out` hold is what `wanted` says of each.
  template <class Wanted>
  void check(const DeviceBuffer& buffer, int blocks, Wanted wanted) {
    const auto got = accord::test::contents<int>(buffer);
    for (int i = 0; i < blocks * kNumbers; ++i)
      if (got[static_cast<std::size_t>(i)] != wanted(i / kNumbers, i % kNumbers)) {
        ++wrong;
        return;
      }
  }
};

int sum(int, int i) { return size * (size - 1) / 2 + size * i; }

void allreduce(Calls& calls) {
  if (calls.keep(MPI_Allreduce(calls.in.pointer(), calls.out.pointer(), kNumbers, MPI_INT, MPI_SUM,
                               calls.comm)))
    calls.check(calls.out, 1, sum);
}

void iallreduce(Calls& calls) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (calls.keep(MPI_Iallreduce(calls.in.pointer(), calls.out.pointer(), kNumbers, MPI_INT, MPI_SUM,
                                calls.comm, &request)) &&
      calls.keep(MPI_Wait(&request, MPI_STATUS_IGNORE)))
    calls.check(calls.out, 1, sum);
}

void bcast(Calls& calls) {
  if (calls.keep(MPI_Bcast(calls.in.pointer(), kNumbers, MPI_INT, 0, calls.comm)))
    calls.check(calls.in, 1, [](int, int i) { return i; });
}

void allgather(Calls& calls) {
  if (calls.keep(MPI_Allgather(calls.in.pointer(), kNumbers, MPI_INT, calls.out.pointer(), kNumbers,
                               MPI_INT, calls.comm)))
    calls.check(calls.out, size, [](int from, int i) { return from + i; });
}

void sendrecv(Calls& calls) {
  calls.keep(MPI_Sendrecv(calls.in.pointer(), kNumbers, MPI_INT, (rank + 1) % size, 3,
                          calls.out.pointer(), kNumbers, MPI_INT, (rank + size - 1) % size, 3,
                          calls.comm, MPI_STATUS_IGNORE));
}

void messages(Calls& calls) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  calls.keep(MPI_Irecv(calls.out.pointer(), kNumbers, MPI_INT, (rank + size - 1) % size, 4,
                       calls.comm, &requests[0]));
  calls.keep(MPI_Isend(calls.in.pointer(), kNumbers, MPI_INT, (rank + 1) % size, 4, calls.comm,
                       &requests[1]));
  calls.keep(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

struct Kind {
  const char* name;
  void (*call)(Calls& calls);
};
constexpr Kind kKinds[] = {{"allreduce", allreduce}, {"iallreduce", iallreduce},
                           {"bcast", bcast},         {"allgather", allgather},
                           {"sendrecv", sendrecv},   {"messages", messages}};

// Whether the fault was reported by the host MPI; `wrong` counts what Accord made of it.
bool try_once(const Kind& kind, int calls_before, std::uint64_t nth, int victim, int& wrong) {
  std::snprintf(trial, sizeof trial,
                "rank %d hangs in %s, after %d calls host call %lu of rank %d fails\n", rank,
                kind.name, calls_before, static_cast<unsigned long>(nth), victim);
  alarm(kTrialSeconds);
  Calls calls;
  MPI_Comm_dup(MPI_COMM_WORLD, &calls.comm);
  MPI_Comm_set_errhandler(calls.comm, MPI_ERRORS_RETURN);
  const std::uint64_t before = accord_adversary_faults();
  for (int i = 0; i < calls_before; ++i) kind.call(calls);
  if (rank == victim) accord_adversary_fail(nth, nullptr);
  for (int i = 0; i < 3; ++i) kind.call(calls);  // on all ranks as many
  if (rank == victim) accord_adversary_fail(0, nullptr);
  int fired = accord_adversary_faults() > before ? 1 : 0;
  if (rank == victim && (fired != 0) != (calls.failed != 0)) {
    std::fprintf(stderr, "%s: %d faults of the host MPI, %d errors (%s)\n", kind.name, fired,
                 calls.failed, trial);
    ++wrong;
  }
  if (calls.wrong != 0) {
    std::fprintf(stderr, "%s: %d results are wrong (%s)\n", kind.name, calls.wrong, trial);
    ++wrong;
  }
  MPI_Bcast(&fired, 1, MPI_INT, victim, MPI_COMM_WORLD);
  if (fired == 0) MPI_Comm_free(&calls.comm);
  alarm(0);
  return fired != 0;
}

int try_all(const Kind& kind, int calls_before, int victim, int& wrong) {
  std::uint64_t nth = 1;
  while (nth <= kTrialsMax && try_once(kind, calls_before, nth, victim, wrong)) ++nth;
  const int faults = static_cast<int>(nth) - 1;
  if (rank == victim)
    std::printf("%s after %d calls: %d faults on rank %d\n", kind.name, calls_before, faults,
                victim);
  std::fflush(stdout);
  return faults;
}

// Who the ranks are is asked of the host MPI, more than once: a partitioned collective must not
// begin without an answer.
int refuses_unknown_ranks() {
  Calls calls;
  MPI_Comm_dup(MPI_COMM_WORLD, &calls.comm);
  MPI_Comm_set_errhandler(calls.comm, MPI_ERRORS_RETURN);
  allreduce(calls);
  std::uint64_t faults = 0;
  for (bool fails = true; fails; faults += fails ? 1 : 0) {
    const std::uint64_t before = accord_adversary_faults();
    accord_adversary_fail(faults + 1, "Group_translate_ranks");
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPIX_Pallreduce_init(calls.in.pointer(), calls.out.pointer(), 1, kNumbers,
                                          MPI_INT, MPI_SUM, calls.comm, MPI_INFO_NULL, &request);
    accord_adversary_fail(0, nullptr);
    fails = accord_adversary_faults() > before;
    if (code == MPI_SUCCESS) MPI_Request_free(&request);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    if (error_class == (fails ? MPI_ERR_BUFFER : MPI_SUCCESS)) continue;
    std::fprintf(stderr, "rank %d: not refused at fault %lu\n", rank, faults + 1);
    return 1;
  }
  MPI_Comm_free(&calls.comm);
  return faults > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::signal(SIGALRM, tell_hang);
  int wrong = refuses_unknown_ranks();
  int faults = 0;
  const bool only_late = argc > 1 && std::strcmp(argv[1], "late") == 0;
  for (const Kind& kind : kKinds) {
    for (const int calls_before : kCallsBefore) {
      if (only_late && calls_before == 0) continue;
      for (int victim = 0; victim < 2; ++victim)
        faults += try_all(kind, calls_before, victim, wrong);
    }
  }
  if (rank == 0) std::printf("host_faults: %d faults in all\n", faults);
  MPI_Finalize();
  return wrong != 0;
}
