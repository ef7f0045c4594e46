// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What faults.py does something to: rounds of collectives and messages on device memory, each
// checked, until the file `end` stands in FAULTS_FOLDER or a peer is gone.
// Arguments: `collectives`, `messages`, both where none is named; `wait`: not before the file
// `go` is there; `communicators=N`: collectives go by so many in turn;
// `die=RANK:ROUND:MICROSECONDS`: this rank is killed so long after it has begun that round. Then no
// rank may rely on the host MPI any more, and rounds end with the first error.
#include <accord/accord.h>
#include <dlfcn.h>

#include <cstdio>
#include <numeric>
#include <vector>

#include "../mpi/device_buffer.h"
#include "report.h"

namespace {

using namespace accord::test;

constexpr int kWarmRounds = 34;  // by then all ways are open
constexpr int kRoundsMax = 1000000;
constexpr int kShort = 64;
constexpr int kLong = 1 << 14;
constexpr int kLongest = 1 << 17;
constexpr int kTag = 7;

std::set<std::string> paths;
std::vector<MPI_Comm> comms;
long right = 0;

std::vector<int> numbers(int count, int first) {
  std::vector<int> made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), first);
  return made;
}

// Memory of the program's own; while it is made and checked no call is refused (refuse.c).
class Own {
 public:
  Own() { set(0); }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  ~Own() { set(1); }

 private:
  static void set(int refuses) {
    using Function = void (*)(int);
    static const auto function =
        reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, "accord_faults_refuse"));
    if (function != nullptr) function(refuses);
  }
};

// The buffers of the longest call, the same ones in all rounds, so that they are lent.
struct Buffers {
  DeviceBuffer in;
  DeviceBuffer out;
};
Buffers make_buffers() {
  const Own own;
  const std::vector<std::byte> zeros(static_cast<std::size_t>(kLongest) * sizeof(int));
  return {DeviceBuffer(zeros), DeviceBuffer(zeros)};
}

// Whether a result is what it must be; after an error nothing is promised.
bool check(const char* what, int code, const DeviceBuffer& out, const std::vector<int>& expected) {
  if (const std::string path = accord_last_path(); paths.insert(path).second) tell("path", path);
  if (code != MPI_SUCCESS) {
    tell_error(code);
    return false;
  }
  std::vector<int> result(expected.size());
  if (accord_memcpy(result.data(), out.pointer(), result.size() * sizeof(int)) != ACCORD_OK ||
      result != expected) {
    const auto at = std::mismatch(result.begin(), result.end(), expected.begin()).first;
    tell("wrong", std::string(what) + ", element " + std::to_string(at - result.begin()) + " of " +
                      std::to_string(expected.size()) + ", by " + accord_last_path());
    return false;
  }
  ++right;
  return true;
}

void put(const DeviceBuffer& buffer, const std::vector<int>& contents) {
  accord_memcpy(buffer.pointer(), contents.data(), contents.size() * sizeof(int));
}

MPI_Comm comm_of(int round) { return comms[static_cast<std::size_t>(round) % comms.size()]; }

bool allreduce(const Buffers& buffers, int count, int round) {
  put(buffers.in, numbers(count, round + rank));
  const int code = MPI_Allreduce(buffers.in.pointer(), buffers.out.pointer(), count, MPI_INT,
                                 MPI_SUM, comm_of(round));
  std::vector<int> expected = numbers(count, round);
  for (int& number : expected) number = number * size + size * (size - 1) / 2;
  return check("MPI_Allreduce", code, buffers.out, expected);
}

bool bcast(const Buffers& buffers, int count, int round) {
  const int root = round % size;
  put(buffers.out, numbers(count, rank == root ? round : -1));
  const int code = MPI_Bcast(buffers.out.pointer(), count, MPI_INT, root, comm_of(round));
  return check("MPI_Bcast", code, buffers.out, numbers(count, round));
}

bool alltoall(const Buffers& buffers, int round) {
  constexpr int count = 1 << 12;
  std::vector<int> sent;
  std::vector<int> expected;
  for (int peer = 0; peer < size; ++peer) {
    const auto to = numbers(count, round + 1000 * rank + peer);
    const auto from = numbers(count, round + 1000 * peer + rank);
    sent.insert(sent.end(), to.begin(), to.end());
    expected.insert(expected.end(), from.begin(), from.end());
  }
  put(buffers.in, sent);
  const int code = MPI_Alltoall(buffers.in.pointer(), count, MPI_INT, buffers.out.pointer(), count,
                                MPI_INT, comm_of(round));
  return check("MPI_Alltoall", code, buffers.out, expected);
}

// To the next rank. Of a round's own tag, so that what has been lost does not shift what follows.
bool ring(const Buffers& buffers, int count, int round) {
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;
  put(buffers.in, numbers(count, round + rank));
  put(buffers.out, numbers(count, -1));
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const int tag = kTag + round % 10000;
  int code = MPI_Irecv(buffers.out.pointer(), count, MPI_INT, last, tag, MPI_COMM_WORLD, requests);
  if (code != MPI_SUCCESS) tell_error(code);
  code = MPI_Isend(buffers.in.pointer(), count, MPI_INT, next, tag, MPI_COMM_WORLD, requests + 1);
  if (code != MPI_SUCCESS) tell_error(code);
  const int received = MPI_Wait(requests, MPI_STATUS_IGNORE);
  const bool good = check("a message", received, buffers.out, numbers(count, round + last));
  code = MPI_Wait(requests + 1, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) tell_error(code);
  return good && code == MPI_SUCCESS;
}

struct Plan {
  bool collectives = false;
  bool messages = false;
  bool waits = false;
  int communicators = 1;
  int dies = -1;  // rank
  int dies_in_round = 0;
  int dies_after_us = 0;
};

Plan plan_of(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    plan.collectives = plan.collectives || word == "collectives";
    plan.messages = plan.messages || word == "messages";
    plan.waits = plan.waits || word == "wait";
    std::sscanf(argv[i], "communicators=%d", &plan.communicators);
    std::sscanf(argv[i], "die=%d:%d:%d", &plan.dies, &plan.dies_in_round, &plan.dies_after_us);
  }
  if (!plan.collectives && !plan.messages) plan.collectives = plan.messages = true;
  return plan;
}

// Whether all of it was right; all of it is tried, since the peers do so, too.
bool go(const Plan& plan, const Buffers& buffers, int round) {
  bool good = true;
  if (plan.collectives) {
    for (const int count : {kShort, kLong, kLongest}) {
      good = allreduce(buffers, count, round) && good;
      good = bcast(buffers, count, round) && good;
    }
    good = alltoall(buffers, round) && good;
  }
  if (plan.messages)
    for (const int count : {kShort, kLong, kLongest}) good = ring(buffers, count, round) && good;
  return good;
}

// By the host MPI, whose ranks all live where this is asked.
bool all_have_ended() {
  int is_over = rank == 0 && is_there("end") ? 1 : 0;
  const int code = MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (code != MPI_SUCCESS) tell_error(code);
  return code != MPI_SUCCESS || is_over != 0;
}

// The first one is MPI_COMM_WORLD; the others inherit its error handler.
void make_communicators(int number) {
  comms = {MPI_COMM_WORLD};
  for (int i = 1; i < number; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm); code != MPI_SUCCESS)
      tell_error(code);
    else
      comms.push_back(comm);
  }
}

int run(const Plan& plan) {
  const Buffers buffers = make_buffers();
  make_communicators(plan.communicators);
  int round = 0;
  for (; round < kRoundsMax; ++round) {
    if (round == kWarmRounds) tell("warm", "");
    if (rank == plan.dies && round == plan.dies_in_round) die_later(plan.dies_after_us);
    const bool good = go(plan, buffers, round);
    if (plan.dies < 0 ? all_have_ended() : !good) break;
  }
  // A second call on what has an error is none that waits.
  if (plan.dies >= 0) go(plan, buffers, round);
  for (std::size_t i = 1; i < comms.size(); ++i) MPI_Comm_free(&comms[i]);
  return round + 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (!begin_report(argc, argv)) return 2;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const Plan plan = plan_of(argc, argv);
  while (plan.waits && !is_there("go")) ::usleep(2000);
  const int rounds = run(plan);
  // With a peer gone MPI_Finalize of the host MPI need not end.
  if (plan.dies < 0) MPI_Finalize();
  tell("done", std::to_string(rounds) + " rounds, " + std::to_string(right) + " right, " +
                   std::to_string(errors) + " errors");
  if (plan.dies >= 0) ::_exit(0);
  return 0;
}
