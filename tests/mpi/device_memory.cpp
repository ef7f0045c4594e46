// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How much device memory the library takes for itself: so many communicators, each with collectives
// up to so many bytes, and messages where asked for. Prints a row of the table in
// bench/results/1xh100; fails where a rank has taken more than so many MiB at any time, or more
// than one is left once all communicators are freed.
//
//   device_memory COMMUNICATORS LARGEST_BYTES MOST_MIB [messages | idle]
//
// idle: no more than 16 MiB are left once nobody has called for a while
// (ACCORD_TEST_DEVICE_IDLE_MS), and later calls are right.
#include <accord/accord.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

constexpr double kMi = 1024.0 * 1024.0;
constexpr int kCalls = 4;  // of one kind: from the third on buffers are lent

double own_mib(const char* key) {
  std::string text(accord_info_json(nullptr, 0), '\0');
  (void)accord_info_json(text.data(), text.size());
  const std::size_t at = text.find("\"" + std::string(key) + "\": ");
  return at == std::string::npos
             ? -1
             : std::strtod(text.c_str() + at + std::strlen(key) + 4, nullptr) / kMi;
}

double of_all(double mine, MPI_Op op) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  return all;
}

// Of the smallest size that goes from device to device up to the largest one.
void call(MPI_Comm comm, const DeviceBuffer& in, const DeviceBuffer& out, std::size_t most_bytes) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  for (std::size_t bytes = std::min<std::size_t>(1024, most_bytes); bytes <= most_bytes;
       bytes *= 4) {
    const int count = static_cast<int>(bytes / sizeof(float));
    for (int i = 0; i < kCalls; ++i) {
      MPI_Allreduce(in.pointer(), out.pointer(), count, MPI_FLOAT, MPI_SUM, comm);
      MPI_Bcast(out.pointer(), count, MPI_FLOAT, 0, comm);
      MPI_Alltoall(in.pointer(), count / size, MPI_FLOAT, out.pointer(), count / size, MPI_FLOAT,
                   comm);
    }
  }
}

void send(const DeviceBuffer& in, const DeviceBuffer& out, std::size_t most_bytes) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (std::size_t bytes = 1024; bytes <= most_bytes; bytes *= 4) {
    for (int i = 0; i < kCalls; ++i)
      MPI_Sendrecv(in.pointer(), static_cast<int>(bytes), MPI_BYTE, (rank + 1) % size, 0,
                   out.pointer(), static_cast<int>(bytes), MPI_BYTE, (rank + size - 1) % size, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

bool sums_up(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  constexpr int kCount = 1 << 18;
  const DeviceBuffer in = accord::test::on_device(std::vector<int>(kCount, 3));
  const DeviceBuffer out = accord::test::on_device(std::vector<int>(kCount, 0));
  bool right = true;
  for (int i = 0; i < kCalls; ++i) {
    MPI_Allreduce(in.pointer(), out.pointer(), kCount, MPI_INT, MPI_SUM, comm);
    right = right && accord::test::contents(out) == std::vector<int>(kCount, 3 * size);
  }
  return right;
}

// What a rank still has at most after calls of any kind, in which what has been given up is freed.
// The library spends a hundredth of the time on that: a look that took 10 ms on a busy machine is
// followed by the next one a second later. So there are calls until little is left, for 20 s.
double left_mib(double little_mib) {
  constexpr int kCallsMax = 20'000;
  double left = 0;
  for (int i = 0; i < kCallsMax; ++i) {
    usleep(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (i % 32 != 31) continue;
    left = of_all(own_mib("own_device_bytes"), MPI_MAX);
    if (left <= little_mib) break;
  }
  return left;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 4) return 2;
  const int communicators = std::atoi(argv[1]);
  const std::size_t most_bytes = std::strtoull(argv[2], nullptr, 10);
  const double most_mib = std::strtod(argv[3], nullptr);
  const bool sends = argc > 4 && std::strcmp(argv[4], "messages") == 0;
  (void)accord_set_device(rank % std::max(1, accord_device_count()));
  std::vector<MPI_Comm> comms(static_cast<std::size_t>(communicators));
  int failures = 0;
  {
    const DeviceBuffer in(std::vector<std::byte>(most_bytes, std::byte(0)));
    const DeviceBuffer out(std::vector<std::byte>(most_bytes, std::byte(0)));
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (MPI_Comm comm : comms) call(comm, in, out, most_bytes);
    if (sends) send(in, out, most_bytes);
    const double now = of_all(own_mib("own_device_bytes"), MPI_MAX);
    const double most = of_all(own_mib("most_own_device_bytes"), MPI_MAX);
    const double sum = of_all(own_mib("most_own_device_bytes"), MPI_SUM);
    if (rank == 0) {
      std::printf("| communicators | ranks | calls up to | a rank | at most | all ranks |\n");
      std::printf("| %d | %d | %.3f MiB%s | %.1f MiB | %.1f MiB | %.1f MiB |\n", communicators,
                  size, static_cast<double>(most_bytes) / kMi, sends ? ", messages" : "", now, most,
                  sum);
    }
    failures += most <= 0 || most > most_mib ? 1 : 0;
    if (argc > 4 && std::strcmp(argv[4], "idle") == 0) {
      const double idle = left_mib(16);
      if (rank == 0) std::printf("when idle: %.1f MiB a rank\n", idle);
      failures += idle > 16 ? 1 : 0;
      for (MPI_Comm comm : comms) failures += sums_up(comm) ? 0 : 1;
    }
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  }
  const double left = left_mib(1);
  if (rank == 0) std::printf("once all are freed: %.1f MiB a rank\n", left);
  failures += left > 1 ? 1 : 0;
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
