// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Prefix reductions and collectives whose blocks differ by rank, on device memory: each gives what
// it should, and goes the way that the command line names ("inbox" or "node"; blocks that differ
// always go by node). What random calls seldom do is here: blocks out of order, an empty block sent
// from the receive buffer, a sender that disagrees with its receivers.
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;

constexpr int kCount = 301;
constexpr int kUntouched = -77;

int rank = 0;
int size = 0;
int failures = 0;

// Element i of what `sender` contributes.
int value(int sender, int i) { return (sender + 1) * 1000 + i; }

Numbers contribution(int count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = value(rank, i);
  return numbers;
}
Numbers untouched(int count) { return Numbers(static_cast<std::size_t>(count), kUntouched); }
// Elements [first, first + count) of the sum over the first `ranks` ranks.
Numbers sum(int ranks, int first, int count) {
  Numbers numbers(static_cast<std::size_t>(count), 0);
  for (int i = 0; i < count; ++i) {
    for (int from = 0; from < ranks; ++from)
      numbers[static_cast<std::size_t>(i)] += value(from, first + i);
  }
  return numbers;
}

void expect(bool good, const char* what, const std::string& how) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, how.c_str());
  ++failures;
}
void check(const char* what, const DeviceBuffer& buffer, const Numbers& expected,
           const std::string& way) {
  expect(accord_last_path() == way, what, std::string("went by ") + accord_last_path());
  expect(contents(buffer) == expected, what, "wrong result");
}

void prefix_reductions(const std::string& way) {
  const DeviceBuffer send = on_device(contribution(kCount));
  const DeviceBuffer scanned = on_device(untouched(kCount));
  // Again and again: buffers that the ranks know already change nothing.
  for (int call = 0; call < 5; ++call) {
    MPI_Scan(send.pointer(), scanned.pointer(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check("scan", scanned, sum(rank + 1, 0, kCount), way);
  }

  const DeviceBuffer before = on_device(untouched(kCount));
  MPI_Exscan(send.pointer(), before.pointer(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("exscan", before, rank == 0 ? untouched(kCount) : sum(rank, 0, kCount), way);

  // Nothing is written there: so one rank alone may have one address for both.
  const DeviceBuffer again = on_device(untouched(kCount));
  MPI_Exscan(send.pointer(), rank == 0 ? send.pointer() : again.pointer(), kCount, MPI_INT, MPI_SUM,
             MPI_COMM_WORLD);
  check("exscan of one buffer on rank 0", again,
        rank == 0 ? untouched(kCount) : sum(rank, 0, kCount), way);

  const DeviceBuffer both = on_device(contribution(kCount));
  MPI_Exscan(MPI_IN_PLACE, both.pointer(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("exscan in place", both, rank == 0 ? contribution(kCount) : sum(rank, 0, kCount), way);
}

void scattered_reduction(const char* what, const Numbers& counts, const std::string& way) {
  const int total = std::accumulate(counts.begin(), counts.end(), 0);
  const int first = std::accumulate(counts.begin(), counts.begin() + rank, 0);
  const int own = counts[static_cast<std::size_t>(rank)];
  const DeviceBuffer send = on_device(contribution(total));
  const DeviceBuffer receive = on_device(untouched(total));
  MPI_Reduce_scatter(send.pointer(), receive.pointer(), counts.data(), MPI_INT, MPI_SUM,
                     MPI_COMM_WORLD);
  Numbers expected = untouched(total);
  std::ranges::copy(sum(size, first, own), expected.begin());
  check(what, receive, expected, way);
}

// The blocks in the reverse order of the ranks, with a gap before each.
void gathered(const char* what, const Numbers& counts, const std::string& way) {
  constexpr int kGap = 3;
  Numbers places(counts.size());
  int room = 0;
  for (std::size_t peer = counts.size(); peer-- > 0;) {
    places[peer] = room + kGap;
    room = places[peer] + counts[peer];
  }
  const int own = counts[static_cast<std::size_t>(rank)];
  const DeviceBuffer send = on_device(contribution(std::max(own, 1)));
  const DeviceBuffer receive = on_device(untouched(room));
  MPI_Allgatherv(own == 0 ? receive.pointer() : send.pointer(), own, MPI_INT, receive.pointer(),
                 counts.data(), places.data(), MPI_INT, MPI_COMM_WORLD);
  Numbers expected = untouched(room);
  for (int peer = 0; peer < size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    for (int i = 0; i < counts[at]; ++i)
      expected[static_cast<std::size_t>(places[at] + i)] = value(peer, i);
  }
  check(what, receive, expected, way);
}

// Rank 0 sends less than the others expect of it.
void disagreement() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const Numbers counts(static_cast<std::size_t>(size), kCount);
  Numbers places(counts.size());
  for (std::size_t peer = 0; peer < places.size(); ++peer)
    places[peer] = static_cast<int>(peer) * kCount;
  const DeviceBuffer send = on_device(contribution(kCount));
  const DeviceBuffer receive = on_device(untouched(kCount * size));
  const int code = MPI_Allgatherv(send.pointer(), rank == 0 ? kCount - 1 : kCount, MPI_INT,
                                  receive.pointer(), counts.data(), places.data(), MPI_INT, comm);
  expect(code != MPI_SUCCESS, "allgatherv of blocks nobody expects", "no error");
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string way = argc > 1 ? argv[1] : "node";
  Numbers equal(static_cast<std::size_t>(size), kCount);
  Numbers uneven = equal;
  uneven.front() = 0;
  uneven.back() = 60 * kCount;
  prefix_reductions(way);
  scattered_reduction("reduce_scatter of equal blocks", equal, way);
  scattered_reduction("reduce_scatter", uneven, "node");
  gathered("allgatherv of equal blocks", equal, way);
  gathered("allgatherv", uneven, "node");
  disagreement();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
