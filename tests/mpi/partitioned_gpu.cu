// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned communication by kernels on GPUs: first whether it is right, then how fast it is
// against a kernel, a synchronisation and MPI_Send. Ranks work in pairs, 0 with 1, 2 with 3, a GPU
// each; the first pair prints. Run by hand, with Accord preloaded, on a machine with at least two
// GPUs:
//
//   accord run -n 2 accord_partitioned_gpu_mpich [iterations]
//
// Time is half of a round trip: from the launch of the kernel that makes the data to the completion
// of the receive, as goodput has it. Every message is checked, but not while time is taken.
#include <accord/partitioned.h>
#include <cuda_runtime.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

constexpr int kThreads = 256;
constexpr std::size_t kBytesMax = std::size_t{1} << 20;

int rank = 0;
int failures = 0;

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, call, cudaGetErrorString(result));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

__host__ __device__ float value(int sender, int round, std::size_t i) {
  return static_cast<float>(sender * 1000 + round % 100 + static_cast<int>(i % 1000));
}

enum class Group { thread, warp, block };

// c = a + b where a is the place and b the rest. A block makes a partition.
__device__ void add(float* to, std::size_t per_block, int sender, int round) {
  const std::size_t first = blockIdx.x * per_block;
  for (std::size_t i = first + threadIdx.x; i < first + per_block; i += blockDim.x)
    to[i] = value(sender, round, i);
}
__global__ void add_and_mark(float* to, std::size_t per_block, int sender, int round, Group group,
                             MPIX_Prequest request) {
  add(to, per_block, sender, round);
  const int partition = static_cast<int>(blockIdx.x);
  if (group == Group::block) {
    MPIX_Pready_block(partition, request);
  } else if (group == Group::warp) {
    MPIX_Pready_warp(partition, request);
  } else {
    MPIX_Pready_thread(partition, request);
  }
}
__global__ void add_only(float* to, std::size_t per_block, int sender, int round) {
  add(to, per_block, sender, round);
}
// Sees each partition arrive, and what it holds then.
__global__ void watch(const float* from, std::size_t per_block, int sender, int round,
                      MPIX_Prequest request, unsigned* wrong) {
  if (threadIdx.x == 0) {
    while (MPIX_Parrived(static_cast<int>(blockIdx.x), request) == 0) {
    }
  }
  __syncthreads();
  const std::size_t first = blockIdx.x * per_block;
  for (std::size_t i = first + threadIdx.x; i < first + per_block; i += blockDim.x)
    if (from[i] != value(sender, round, i)) atomicAdd(wrong, 1);
}

// Both directions of a pair.
struct Exchange {
  float* to = nullptr;
  float* from = nullptr;
  std::size_t bytes = 0;
  int blocks = 0;
  int peer = 0;
  cudaStream_t stream = nullptr;
  unsigned* wrong = nullptr;

  std::size_t per_block() const { return bytes / sizeof(float) / static_cast<std::size_t>(blocks); }
  void check_received(int round, const char* what) const {
    std::vector<float> got(bytes / sizeof(float));
    check(cudaMemcpy(got.data(), from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] == value(peer, round, i)) continue;
      std::fprintf(stderr, "rank %d: %s, %zu B, round %d: %g instead of %g at %zu\n", rank, what,
                   bytes, round, got[i], value(peer, round, i), i);
      ++failures;
      return;
    }
  }
};

class Partitioned {
 public:
  Partitioned(const Exchange& on, const char* copy, Group group, const char* marks)
      : on_(on), group_(group) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accord_partitioned_copy", copy);
    MPI_Info_set(info, "accord_marks", marks);
    const MPI_Count count = static_cast<MPI_Count>(on.per_block());
    MPI_Psend_init(on.to, on.blocks, count, MPI_FLOAT, on.peer, 0, MPI_COMM_WORLD, info, &send_);
    MPI_Precv_init(on.from, on.blocks, count, MPI_FLOAT, on.peer, 0, MPI_COMM_WORLD, info,
                   &receive_);
    MPI_Info_free(&info);
    MPIX_Prequest_create(&device_send_, send_);
    MPIX_Prequest_create(&device_receive_, receive_);
  }
  ~Partitioned() {
    MPI_Request_free(&send_);
    MPI_Request_free(&receive_);
  }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  void begin() {
    MPI_Request both[] = {receive_, send_};
    MPI_Startall(2, both);
    MPIX_Pbuf_prepare_all(2, both);
  }
  void make(int round) {
    add_and_mark<<<on_.blocks, kThreads, 0, on_.stream>>>(on_.to, on_.per_block(), rank, round,
                                                          group_, device_send_);
    MPI_Wait(&send_, MPI_STATUS_IGNORE);
  }
  void take() { MPI_Wait(&receive_, MPI_STATUS_IGNORE); }
  void watch_arrivals(int round, cudaStream_t stream) {
    watch<<<on_.blocks, kThreads, 0, stream>>>(on_.from, on_.per_block(), on_.peer, round,
                                               device_receive_, on_.wrong);
  }

 private:
  const Exchange& on_;
  Group group_;
  MPI_Request send_ = MPI_REQUEST_NULL;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  MPIX_Prequest device_send_ = MPIX_PREQUEST_NULL;
  MPIX_Prequest device_receive_ = MPIX_PREQUEST_NULL;
};

class Plain {
 public:
  explicit Plain(const Exchange& on) : on_(on) {}
  void begin() {}
  void make(int round) {
    add_only<<<on_.blocks, kThreads, 0, on_.stream>>>(on_.to, on_.per_block(), rank, round);
    check(cudaStreamSynchronize(on_.stream), "cudaStreamSynchronize");
    MPI_Send(on_.to, static_cast<int>(on_.bytes), MPI_BYTE, on_.peer, 1, MPI_COMM_WORLD);
  }
  void take() {
    MPI_Recv(on_.from, static_cast<int>(on_.bytes), MPI_BYTE, on_.peer, 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }

 private:
  const Exchange& on_;
};

// One way, in microseconds: the median.
template <class Way>
double time_of(Way& way, const Exchange& on, int iterations, const char* what) {
  std::vector<double> times;
  for (int round = 0; round < iterations; ++round) {
    way.begin();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (rank % 2 == 0) {
      way.make(round);
      way.take();
    } else {
      way.take();
      way.make(round);
    }
    times.push_back((MPI_Wtime() - start) * 1e6 / 2);
    check(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
    if (round % 16 == 0) on.check_received(round, what);
  }
  std::nth_element(times.begin(), times.begin() + iterations / 2, times.end());
  return times[static_cast<std::size_t>(iterations / 2)];
}

void see_arrivals(const Exchange& on, const char* copy) {
  Partitioned way(on, copy, Group::block, "1");
  for (int round = 0; round < 8; ++round) {
    way.begin();
    // On a stream of its own, and small enough to leave room for the kernel that makes the data.
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    way.watch_arrivals(round, stream);
    way.make(round);
    way.take();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    on.check_received(round, copy);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  unsigned wrong = 0;
  check(cudaMemcpy(&wrong, on.wrong, sizeof wrong, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (wrong != 0) {
    std::fprintf(stderr, "rank %d: %s: a kernel saw %u wrong values arrive\n", rank, copy, wrong);
    ++failures;
  }
}

// What the calls around it cost, in microseconds: the first time and on average.
void print_overheads(const Exchange& on) {
  constexpr int kTimes = 20;
  const char* const names[] = {"MPI_Psend_init", "MPI_Precv_init",    "MPIX_Prequest_create",
                               "MPI_Start",      "MPIX_Pbuf_prepare", "MPIX_Prequest_free"};
  double first[6] = {};
  double sum[6] = {};
  for (int i = 0; i < kTimes; ++i) {
    MPI_Request send;
    MPI_Request receive;
    MPIX_Prequest device = MPIX_PREQUEST_NULL;
    const MPI_Count count = static_cast<MPI_Count>(on.per_block());
    double at[7];
    MPI_Barrier(MPI_COMM_WORLD);
    at[0] = MPI_Wtime();
    MPI_Psend_init(on.to, on.blocks, count, MPI_FLOAT, on.peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &send);
    at[1] = MPI_Wtime();
    MPI_Precv_init(on.from, on.blocks, count, MPI_FLOAT, on.peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &receive);
    at[2] = MPI_Wtime();
    MPIX_Prequest_create(&device, send);
    at[3] = MPI_Wtime();
    MPI_Request both[] = {receive, send};
    MPI_Startall(2, both);
    at[4] = MPI_Wtime();
    MPIX_Pbuf_prepare_all(2, both);
    at[5] = MPI_Wtime();
    MPI_Pready_range(0, on.blocks - 1, send);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    at[6] = MPI_Wtime();
    MPIX_Prequest_free(&device);
    const double freed = MPI_Wtime() - at[6];
    for (int call = 0; call < 6; ++call) {
      const double us = (call < 5 ? at[call + 1] - at[call] : freed) * 1e6;
      if (i == 0) first[call] = us;
      sum[call] += us;
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
  }
  // Of a request that has met its other side: what a round costs.
  Partitioned again(on, "auto", Group::block, "1");
  double prepare = 0;
  for (int i = 0; i <= kTimes; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    again.begin();
    if (i > 0) prepare += (MPI_Wtime() - start) * 1e6 / kTimes;
    again.make(i);
    again.take();
  }
  if (rank != 0) return;
  for (int call = 0; call < 6; ++call)
    std::printf("%-22s first %8.1f us, mean %8.1f us\n", names[call], first[call],
                sum[call] / kTimes);
  std::printf("%-22s %33.1f us\n", "later rounds: MPI_Startall and MPIX_Pbuf_prepare_all", prepare);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0;
  int devices = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 || size % 2 != 0) {
    if (rank == 0) std::printf("skipped: needs GPUs and pairs of ranks\n");
    MPI_Finalize();
    return 77;
  }
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 400;
  check(cudaSetDevice(rank % devices), "cudaSetDevice");
  Exchange on;
  on.peer = rank ^ 1;
  check(cudaMalloc(&on.to, kBytesMax), "cudaMalloc");
  check(cudaMalloc(&on.from, kBytesMax), "cudaMalloc");
  check(cudaMalloc(&on.wrong, sizeof *on.wrong), "cudaMalloc");
  check(cudaMemset(on.wrong, 0, sizeof *on.wrong), "cudaMemset");
  check(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  // The driver loads a kernel when it is first needed, which waits for those that run.
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, add_and_mark), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, add_only), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, watch), "cudaFuncGetAttributes");
  on.bytes = 65536;
  on.blocks = 16;
  print_overheads(on);
  if (rank == 0)
    std::printf("%10s %9s %9s %9s %9s %9s %7s %7s\n", "bytes", "send us", "kernel us", "engine us",
                "warp us", "thread us", "kernel", "engine");
  for (on.bytes = 1024; on.bytes <= kBytesMax; on.bytes *= 2) {
    // Blocks of 1 KiB and more, as many as there are processors to run them at once.
    on.blocks = static_cast<int>(std::clamp<std::size_t>(on.bytes / 4096, 1, 64));
    for (const char* copy : {"kernel", "engine"}) see_arrivals(on, copy);
    Plain plain(on);
    const double send = time_of(plain, on, iterations, "send");
    double times[4] = {};
    const struct {
      const char* copy;
      Group group;
      const char* marks;
    } ways[] = {{"kernel", Group::block, "1"},
                {"engine", Group::block, "1"},
                {"auto", Group::warp, "8"},
                {"auto", Group::thread, "256"}};
    for (int i = 0; i < 4; ++i) {
      Partitioned way(on, ways[i].copy, ways[i].group, ways[i].marks);
      times[i] = time_of(way, on, iterations, ways[i].copy);
    }
    if (rank == 0)
      std::printf("%10zu %9.1f %9.1f %9.1f %9.1f %9.1f %6.2fx %6.2fx\n", on.bytes, send, times[0],
                  times[1], times[2], times[3], send / times[0], send / times[1]);
  }
  int failures_anywhere = 0;
  MPI_Allreduce(&failures, &failures_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures_anywhere);
  MPI_Finalize();
  return failures_anywhere == 0 ? 0 : 1;
}
