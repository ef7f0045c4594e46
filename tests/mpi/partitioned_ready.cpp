// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What partitions gain where data becomes ready over time, in memory of devices: messages from each
// rank of the first half to one of the second, and allreduces, against MPI_Send and MPI_Allreduce
// behind a kernel. On the embedded host runtime, where a thread stands for the kernel: it sleeps
// and marks, so that it takes no core. How long it works is a multiple of what the ordinary call
// takes without it. What arrives is checked. Meant for hosts whose links and copies take their time
// (tests/hosts), where ranks share cores.
//
//   accord_partitioned_ready_mpich [times] [KiB from] [KiB to] [send|allreduce|both] [file for
//   records]
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "partitioned.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  bool reduces;  // else a message
  int partitions;
  int ints;  // of all of them
};

// On each rank alike.
double largest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Work {
 public:
  explicit Work(const Case& one) : case_(one), from_(one.ints, true), to_(one.ints, true) {
    const int count = one.ints / one.partitions;
    if (one.reduces) {
      MPIX_Pallreduce_init(from_.pointer(), to_.pointer(), one.partitions, count, MPI_INT, MPI_SUM,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &request_);
    } else if (sends()) {
      MPI_Psend_init(from_.pointer(), one.partitions, count, MPI_INT, peer(), 0, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &request_);
    } else {
      MPI_Precv_init(to_.pointer(), one.partitions, count, MPI_INT, peer(), 0, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &request_);
    }
    if (gives()) MPIX_Prequest_create(&on_device_, request_);
  }
  ~Work() { MPI_Request_free(&request_); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Microseconds of the slowest rank, with a kernel that takes `kernel_us`, and what starts a
  // round.
  double ordinary(double kernel_us) {
    begin();
    const auto start = Clock::now();
    if (gives()) std::this_thread::sleep_for(us(kernel_us));
    if (case_.reduces) {
      MPI_Allreduce(from_.pointer(), to_.pointer(), case_.ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (sends()) {
      MPI_Send(from_.pointer(), case_.ints, MPI_INT, peer(), 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(to_.pointer(), case_.ints, MPI_INT, peer(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return end(start, "ordinary");
  }
  double partitioned(double kernel_us) {
    begin();
    const auto start = Clock::now();
    MPI_Start(&request_);
    MPIX_Pbuf_prepare(request_);
    std::thread kernel;
    if (gives()) kernel = std::thread([=, this] { mark(kernel_us); });
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
    const double took = end(start, "partitioned");
    if (kernel.joinable()) kernel.join();
    return took;
  }

 private:
  static std::chrono::duration<double, std::micro> us(double count) {
    return std::chrono::duration<double, std::micro>(count);
  }
  bool sends() const { return rank < size / 2; }
  bool gives() const { return case_.reduces || sends(); }
  int peer() const { return sends() ? rank + size / 2 : rank - size / 2; }
  int value(int of, int i) const { return of * 1000000 + round_ * 1009 + i; }

  void mark(double kernel_us) const {
    const auto start = Clock::now();
    for (int i = 0; i < case_.partitions && kernel_us > 0; ++i) {
      std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(
                                                us(kernel_us * (i + 1) / case_.partitions)));
      (void)MPIX_Pready(i, on_device_);
    }
    if (kernel_us == 0) (void)MPIX_Pready_range(0, case_.partitions - 1, on_device_);
  }
  void begin() {
    ++round_;
    std::vector<int> values(static_cast<std::size_t>(case_.ints));
    for (int i = 0; i < case_.ints; ++i) values[static_cast<std::size_t>(i)] = value(rank, i);
    from_.set(values);
    to_.set(std::vector<int>(values.size(), -1));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  double end(Clock::time_point start, const char* what) {
    const double took = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (case_.reduces || !sends()) check(what);
    return largest(took);
  }
  void check(const char* what) {
    const std::vector<int> got = to_.get();
    for (int i = 0; i < case_.ints; ++i) {
      int expected = case_.reduces ? 0 : value(peer(), i);
      for (int of = 0; case_.reduces && of < size; ++of) expected += value(of, i);
      if (got[static_cast<std::size_t>(i)] == expected) continue;
      expect(false, std::string(what) + ": wrong at " + std::to_string(i));
      return;
    }
  }

  const Case case_;
  Ints from_;
  Ints to_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  MPIX_Prequest on_device_ = MPIX_PREQUEST_NULL;
  int round_ = 0;
};

class Report {
 public:
  explicit Report(const char* path)
      : file_(rank == 0 && path != nullptr ? std::fopen(path, "w") : nullptr) {
    if (rank == 0)
      std::printf("%10s %10s %10s %8s %12s %12s %7s\n", "", "bytes", "partitions", "kernel",
                  "ordinary us", "partitioned", "ratio");
  }
  ~Report() {
    if (file_ != nullptr) std::fclose(file_);
  }
  void add(const Case& one, double kernel, double ordinary_us, double partitioned_us) {
    all_correct_ = largest(failures) == 0;
    if (rank != 0) return;
    const char* const what = one.reduces ? "allreduce" : "send";
    std::printf("%10s %10d %10d %7.1fx %12.0f %12.0f %6.2fx\n", what, one.ints * 4, one.partitions,
                kernel, ordinary_us, partitioned_us, ordinary_us / partitioned_us);
    std::fflush(stdout);
    write(one, kernel, "partitioned", partitioned_us);
    write(one, kernel, "ordinary", ordinary_us);
  }

 private:
  void write(const Case& one, double kernel, const char* way, double us) const {
    if (file_ == nullptr) return;
    std::fprintf(file_,
                 "{\"operation\": \"%s in %d partitions over %g x\", \"way\": \"%s\", "
                 "\"ours\": %s, \"size_bytes\": %d, \"median_us\": %.1f, \"correct\": %s, "
                 "\"ranks\": %d, \"type\": \"int32\", \"send_memory\": \"device\", "
                 "\"recv_memory\": \"device\"}\n",
                 one.reduces ? "allreduce" : "send", one.partitions, kernel, way,
                 way[0] == 'p' ? "true" : "false", one.ints * 4, us,
                 all_correct_ ? "true" : "false", size);
    std::fflush(file_);
  }

  std::FILE* file_;
  bool all_correct_ = true;  // so far
};

void measure(const Case& one, int times, Report& report) {
  Work work(one);
  std::vector<double> alone;
  for (int i = 0; i < 3; ++i) {
    alone.push_back(work.ordinary(0));
    work.partitioned(0);
  }
  for (const double kernel : {0.0, 0.5, 1.0, 2.0}) {
    const double kernel_us = kernel * median(alone);
    std::vector<double> ordinary;
    std::vector<double> partitioned;
    for (int i = 0; i < times; ++i) {
      ordinary.push_back(work.ordinary(kernel_us));
      partitioned.push_back(work.partitioned(kernel_us));
    }
    report.add(one, kernel, median(ordinary), median(partitioned));
  }
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  MPI_Init(&argc, &argv);
  start();
  const int times = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 5;
  const int least_kib = argc > 2 ? std::max(std::atoi(argv[2]), 1) : 16;
  const int largest_kib = argc > 3 ? std::atoi(argv[3]) : 1024;
  const std::string what = argc > 4 ? argv[4] : "both";
  {
    Report report(argc > 5 ? argv[5] : nullptr);
    for (const bool reduces : {false, true}) {
      if (what == (reduces ? "send" : "allreduce")) continue;
      for (int kib = least_kib; kib <= largest_kib; kib *= 8)
        for (const int partitions : {4, 16, 64})
          measure({reduces, partitions, kib * 256}, times, report);
    }
  }
  return finish();
}

#else

#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no partitioned communication");
  return 77;
}

#endif
