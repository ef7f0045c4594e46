// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned allreduce by kernels on GPUs: first whether it is right, then how fast it is beside a
// kernel that makes the data, against that kernel and ncclAllReduce on the same stream, and against
// the kernel, a synchronisation and MPI_Allreduce. Run by hand, with Accord preloaded, a rank a
// GPU:
//
//   accord run -n 2 accord_partitioned_allreduce_gpu_mpich [iterations [most MiB]]
//
// Time is that from the launch of the kernel to the completion of the collective; "with start" also
// has MPI_Start. Without a libnccl (ACCORD_NCCL_LIBRARY names one) that column is missing. Results
// are checked, but not while time is taken.
#include <accord/partitioned.h>
#include <cuda_runtime.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "partitioned_nccl.h"

namespace {

constexpr int kThreads = 256;
constexpr std::size_t kBlockFloats = 4096;  // at least, of the kernel that makes the data

int rank = 0;
int size = 0;
int failures = 0;

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, call, cudaGetErrorString(result));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

__host__ __device__ float first_term(int of_rank, std::size_t i) {
  return static_cast<float>(of_rank * 100 + static_cast<int>(i % 1000));
}
__host__ __device__ float second_term(std::size_t i) { return static_cast<float>(i % 7); }

__global__ void make_terms(float* a, float* b, std::size_t count, int of_rank) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    a[i] = first_term(of_rank, i);
    b[i] = second_term(i);
  }
}

// to = a + b + round, cut into partitions of which each is made by a number of blocks in a row.
struct Production {
  float* to;
  const float* a;
  const float* b;
  std::size_t per_partition;
  int blocks_per_partition;
};
__device__ void add(const Production& work, int round) {
  const auto blocks = static_cast<std::size_t>(work.blocks_per_partition);
  const std::size_t partition = blockIdx.x / blocks;
  const std::size_t block = blockIdx.x % blocks;
  const std::size_t first = partition * work.per_partition + block * work.per_partition / blocks;
  const std::size_t end =
      partition * work.per_partition + (block + 1) * work.per_partition / blocks;
  const float shift = static_cast<float>(round % 100);
  for (std::size_t i = first + threadIdx.x; i < end; i += blockDim.x)
    work.to[i] = work.a[i] + work.b[i] + shift;
}
__global__ void add_and_mark(Production work, int round, MPIX_Prequest request) {
  add(work, round);
  MPIX_Pready_block(static_cast<int>(blockIdx.x) / work.blocks_per_partition, request);
}
__global__ void add_only(Production work, int round) { add(work, round); }

struct Case {
  std::size_t bytes = 0;
  int partitions = 1;
  bool in_place = false;
  float* from = nullptr;  // the buffers of the program
  float* to = nullptr;
  float* a = nullptr;
  float* b = nullptr;
  cudaStream_t stream = nullptr;

  std::size_t count() const { return bytes / sizeof(float); }
  float* source() const { return in_place ? to : from; }
  Production production() const {
    const std::size_t per_partition = count() / static_cast<std::size_t>(partitions);
    const auto blocks = static_cast<int>(std::clamp<std::size_t>(
        per_partition / kBlockFloats, 1, static_cast<std::size_t>(std::max(1, 1024 / partitions))));
    return {source(), a, b, per_partition, blocks};
  }
  unsigned blocks(const Production& work) const {
    return static_cast<unsigned>(partitions * work.blocks_per_partition);
  }
  void check_result(int round, const char* what) const {
    std::vector<float> got(count());
    check(cudaMemcpy(got.data(), to, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (std::size_t i = 0; i < got.size(); ++i) {
      float expected = 0;
      for (int from_rank = 0; from_rank < size; ++from_rank)
        expected += first_term(from_rank, i) + second_term(i) + static_cast<float>(round % 100);
      if (got[i] == expected) continue;
      std::fprintf(stderr, "rank %d: %s, %zu B, %d partitions, round %d: %g instead of %g at %zu\n",
                   rank, what, bytes, partitions, round, got[i], expected, i);
      ++failures;
      return;
    }
  }
};

class Partitioned {
 public:
  explicit Partitioned(const Case& on) : on_(on), work_(on.production()) {
    MPI_Info info;
    char marks[16];
    std::snprintf(marks, sizeof marks, "%d", work_.blocks_per_partition);
    MPI_Info_create(&info);
    MPI_Info_set(info, "accord_marks", marks);
    MPIX_Pallreduce_init(on.in_place ? MPI_IN_PLACE : on.from, on.to, on.partitions,
                         static_cast<MPI_Count>(work_.per_partition), MPI_FLOAT, MPI_SUM,
                         MPI_COMM_WORLD, info, &request_);
    MPI_Info_free(&info);
    MPIX_Prequest_create(&device_, request_);
  }
  ~Partitioned() { MPI_Request_free(&request_); }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  void begin() {
    const double start = MPI_Wtime();
    MPI_Start(&request_);
    start_us_ = (MPI_Wtime() - start) * 1e6;
    MPIX_Pbuf_prepare(request_);
  }
  void run(int round) {
    add_and_mark<<<on_.blocks(work_), kThreads, 0, on_.stream>>>(work_, round, device_);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
  }
  double start_us() const { return start_us_; }

 private:
  const Case& on_;
  const Production work_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  MPIX_Prequest device_ = MPIX_PREQUEST_NULL;
  double start_us_ = 0;
};

class Plain {
 public:
  explicit Plain(const Case& on) : on_(on), work_(on.production()) {}
  void begin() {}
  void run(int round) {
    add_only<<<on_.blocks(work_), kThreads, 0, on_.stream>>>(work_, round);
    check(cudaStreamSynchronize(on_.stream), "cudaStreamSynchronize");
    MPI_Allreduce(on_.in_place ? MPI_IN_PLACE : on_.from, on_.to, static_cast<int>(on_.count()),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  double start_us() const { return 0; }

 private:
  const Case& on_;
  const Production work_;
};

class OnStream {
 public:
  OnStream(const Case& on, const Nccl& nccl) : on_(on), work_(on.production()), nccl_(nccl) {}
  void begin() {}
  void run(int round) {
    add_only<<<on_.blocks(work_), kThreads, 0, on_.stream>>>(work_, round);
    nccl_.all_reduce(on_.source(), on_.to, on_.count(), Nccl::kFloat, Nccl::kSum, nccl_.comm,
                     on_.stream);
    check(cudaStreamSynchronize(on_.stream), "cudaStreamSynchronize");
  }
  double start_us() const { return 0; }

 private:
  const Case& on_;
  const Production work_;
  const Nccl& nccl_;
};

struct Times {
  double us = 0;
  double with_start_us = 0;
};

double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// The slowest rank's median.
template <class Way>
Times time_of(Way& way, const Case& on, int iterations, const char* what) {
  std::vector<double> times;
  std::vector<double> with_start;
  for (int round = 0; round < iterations + 2; ++round) {
    way.begin();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    way.run(round);
    const double us = (MPI_Wtime() - start) * 1e6;
    if (round >= 2) times.push_back(us);
    if (round >= 2) with_start.push_back(us + way.start_us());
    if (round == 0 || round == iterations + 1) {
      check(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
      on.check_result(round, what);
    }
  }
  double both[] = {median(times), median(with_start)};
  MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return {both[0], both[1]};
}

// Rounds of all kinds of sizes, also such as no vector fits.
void check_results(Case& on, std::size_t bytes_max) {
  for (const bool in_place : {false, true}) {
    on.in_place = in_place;
    for (const std::size_t floats : {1ul, 3ul, 32ul, 1000ul, 4099ul, 100003ul}) {
      for (const int partitions : {1, 2, 7, 64}) {
        on.partitions = partitions;
        on.bytes = floats * static_cast<std::size_t>(partitions) * sizeof(float);
        if (on.bytes > bytes_max) continue;
        Partitioned way(on);
        for (int round = 0; round < 4; ++round) {
          way.begin();
          way.run(round);
          check(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
          on.check_result(round, in_place ? "in place" : "partitioned");
        }
      }
    }
  }
  on.in_place = false;
}

// What the calls around it cost, in microseconds: the first time and on average.
void print_overheads(Case& on) {
  constexpr int kTimes = 20;
  const char* const names[] = {"MPIX_Pallreduce_init", "MPIX_Prequest_create", "MPI_Start",
                               "MPIX_Pbuf_prepare", "later rounds: MPI_Start and Pbuf_prepare"};
  constexpr int kCalls = 5;
  double first[kCalls] = {};
  double sum[kCalls] = {};
  on.bytes = 1 << 20;
  on.partitions = 16;
  const auto count = static_cast<MPI_Count>(on.count() / 16);
  for (int i = 0; i < kTimes; ++i) {
    MPI_Request request;
    MPIX_Prequest device = MPIX_PREQUEST_NULL;
    double at[kCalls + 1];
    MPI_Barrier(MPI_COMM_WORLD);
    at[0] = MPI_Wtime();
    MPIX_Pallreduce_init(on.from, on.to, 16, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                         MPI_INFO_NULL, &request);
    at[1] = MPI_Wtime();
    MPIX_Prequest_create(&device, request);
    at[2] = MPI_Wtime();
    MPI_Start(&request);
    at[3] = MPI_Wtime();
    MPIX_Pbuf_prepare(request);
    at[4] = MPI_Wtime();
    MPI_Pready_range(0, 15, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    const double again = MPI_Wtime();
    MPI_Start(&request);
    MPIX_Pbuf_prepare(request);
    at[5] = MPI_Wtime();
    for (int call = 0; call < kCalls; ++call) {
      const double us = (at[call + 1] - (call + 1 < kCalls ? at[call] : again)) * 1e6;
      (i == 0 ? first : sum)[call] += us;
    }
    MPI_Pready_range(0, 15, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
  if (rank != 0) return;
  for (int call = 0; call < kCalls; ++call)
    std::printf("%-40s first %8.1f us, then mean %8.1f us\n", names[call], first[call],
                sum[call] / (kTimes - 1));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int devices = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < size) {
    if (rank == 0) std::printf("skipped: needs a GPU a rank\n");
    MPI_Finalize();
    return 77;
  }
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 100;
  const std::size_t bytes_max = static_cast<std::size_t>(argc > 2 ? std::atoi(argv[2]) : 256) << 20;
  check(cudaSetDevice(rank), "cudaSetDevice");
  Case on;
  for (float** memory : {&on.from, &on.to, &on.a, &on.b})
    check(cudaMalloc(memory, bytes_max), "cudaMalloc");
  check(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  make_terms<<<256, kThreads, 0, on.stream>>>(on.a, on.b, bytes_max / sizeof(float), rank);
  check(cudaStreamSynchronize(on.stream), "make_terms");
  // The driver loads a kernel when it is first needed, which waits for those that run.
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, add_and_mark), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, add_only), "cudaFuncGetAttributes");
  Nccl nccl;
  const bool has_nccl = nccl.open(rank, size);
  print_overheads(on);
  check_results(on, bytes_max);
  if (rank == 0)
    std::printf("%10s %10s %12s %12s %10s %10s %9s %9s %9s\n", "bytes", "partitions", "partitioned",
                "with start", "nccl us", "mpi us", "GB/s", "nccl/p", "mpi/p");
  for (on.bytes = 64 << 10; on.bytes <= bytes_max; on.bytes *= 4) {
    const int times = on.bytes >= (64 << 20) ? std::min(iterations, 20) : iterations;
    for (on.partitions = 1; on.partitions <= 64; on.partitions *= 4) {
      Times nccl_time;
      Partitioned partitioned(on);
      const Times ours = time_of(partitioned, on, times, "partitioned");
      if (has_nccl) {
        OnStream on_stream(on, nccl);
        nccl_time = time_of(on_stream, on, times, "nccl");
      }
      Plain plain(on);
      const Times mpi = time_of(plain, on, times, "mpi");
      if (rank == 0)
        std::printf("%10zu %10d %12.1f %12.1f %10.1f %10.1f %9.1f %8.2fx %8.2fx\n", on.bytes,
                    on.partitions, ours.us, ours.with_start_us, nccl_time.us, mpi.us,
                    static_cast<double>(on.bytes) / ours.us / 1e3, nccl_time.us / ours.us,
                    mpi.us / ours.us);
    }
  }
  if (has_nccl) nccl.comm_destroy(nccl.comm);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
