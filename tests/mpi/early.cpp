// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A receive that begins before this process uses a device, two ranks: nobody would look for a
// header in it, so that its rank is sent none, by itself neither, while the other one is.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

constexpr int kBytes = 8000;
constexpr int kTag = 5;
constexpr int kEarlyTag = 6;
constexpr int kOwnTag = 7;

int rank = 0;
int failures = 0;

void expect(bool good, const std::string& how) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, how.c_str());
  ++failures;
}
void check_path(const std::string& path) {
  expect(accord_last_path() == path, std::string("went by ") + accord_last_path());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int peer = 1 - rank;
  const std::vector<std::byte> sent(kBytes, std::byte{7});
  std::vector<std::byte> received(kBytes);
  std::vector<std::byte> own(kBytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Request own_request = MPI_REQUEST_NULL;
  if (rank == 1) {
    MPI_Irecv(received.data(), kBytes, MPI_BYTE, 0, kEarlyTag, MPI_COMM_WORLD, &request);
    MPI_Irecv(own.data(), kBytes, MPI_BYTE, 1, kOwnTag, MPI_COMM_WORLD, &own_request);
  }
  const DeviceBuffer out(sent);
  const DeviceBuffer in(received);
  for (int round = 0; round < 8; ++round) {
    MPI_Sendrecv(out.pointer(), kBytes, MPI_BYTE, peer, kTag, in.pointer(), kBytes, MPI_BYTE, peer,
                 kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Send(out.pointer(), kBytes, MPI_BYTE, peer, rank == 0 ? kEarlyTag : kTag, MPI_COMM_WORLD);
  check_path(rank == 0 ? "staged" : "node-p2p");
  if (rank == 0) {
    MPI_Recv(received.data(), kBytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_path("node-p2p");
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(received == sent, "wrong data");
  if (rank == 0) MPI_Irecv(own.data(), kBytes, MPI_BYTE, 0, kOwnTag, MPI_COMM_WORLD, &own_request);
  MPI_Send(out.pointer(), kBytes, MPI_BYTE, rank, kOwnTag, MPI_COMM_WORLD);
  check_path(rank == 0 ? "node-p2p" : "staged");
  MPI_Wait(&own_request, MPI_STATUS_IGNORE);
  expect(own == sent, "wrong data from itself");
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
