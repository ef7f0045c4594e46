// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Kernels on GPUs that live longer than a call or than a round of partitioned communication: one
// that waits for what its host only waits for, a graph of one that is launched each round, and one
// for all rounds. Ranks work in pairs, 0 with 1, 2 with 3, a GPU each, or all on one. Run by hand,
// with Accord preloaded:
//
//   accord run -n 2 accord_partitioned_graphs_gpu_mpich
//
// Kernels give up after some seconds, so that a host that waits for them is an error and no hang.
#include <accord/partitioned.h>
#include <cuda_runtime.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <cstdio>
#include <vector>

namespace {

constexpr int kPartitions = 8;
constexpr int kThreads = 128;
constexpr int kPerBlock = 512;  // floats
constexpr int kCount = kPartitions * kPerBlock;
constexpr int kRounds = 6;
constexpr long long kGiveUpNs = 5'000'000'000;

int rank = 0;
int failures = 0;

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, call, cudaGetErrorString(result));
  MPI_Abort(MPI_COMM_WORLD, 1);
}
void expect(bool good, const char* what, int round) {
  if (good) return;
  std::fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
  ++failures;
}

__host__ __device__ float value(int sender, unsigned round, int i) {
  return static_cast<float>(sender * 10000 + static_cast<int>(round % 100) * 100 + i % 100);
}

__device__ long long now_ns() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
// Whether the partition has arrived in time; by the first thread of a block, for all.
__device__ bool wait_for(int partition, MPIX_Prequest request) {
  __shared__ int arrived;
  if (threadIdx.x == 0) {
    const long long give_up = now_ns() + kGiveUpNs;
    do {
      arrived = MPIX_Parrived(partition, request);
    } while (arrived == 0 && now_ns() < give_up);
  }
  __syncthreads();
  return arrived != 0;
}
__device__ void make(float* to, int sender, unsigned round) {
  const int first = static_cast<int>(blockIdx.x) * kPerBlock;
  for (int i = first + static_cast<int>(threadIdx.x); i < first + kPerBlock; i += kThreads)
    to[i] = value(sender, round, i);
}
__device__ void count_wrong(const float* from, int sender, unsigned round, unsigned* wrong) {
  const int first = static_cast<int>(blockIdx.x) * kPerBlock;
  for (int i = first + static_cast<int>(threadIdx.x); i < first + kPerBlock; i += kThreads)
    if (from[i] != value(sender, round, i)) atomicAdd(wrong, 1);
}

// The round is the request's own: the same launch, recorded once, serves any.
__global__ void make_and_mark(float* to, int own, MPIX_Prequest send) {
  make(to, own, MPIX_Pround(send));
  MPIX_Pready_block(static_cast<int>(blockIdx.x), send);
}
// What comes the other way is there before this kernel ends.
__global__ void exchange(float* to, const float* from, int own, int peer, MPIX_Prequest send,
                         MPIX_Prequest receive, unsigned* wrong, unsigned* late) {
  const unsigned round = MPIX_Pround(send);
  make(to, own, round);
  MPIX_Pready_block(static_cast<int>(blockIdx.x), send);
  if (!wait_for(static_cast<int>(blockIdx.x), receive)) {
    if (threadIdx.x == 0) atomicAdd(late, 1);
    return;
  }
  count_wrong(from, peer, round, wrong);
}
// Launched once: each block looks for the start of each round. The host does not begin the next one
// before all blocks have seen this one through, which `done` counts.
__global__ void serve(float* to, const float* from, int own, int peer, MPIX_Prequest send,
                      MPIX_Prequest receive, unsigned* wrong, unsigned* late, unsigned* done) {
  for (unsigned round = 1; round <= kRounds; ++round) {
    __shared__ int started;
    if (threadIdx.x == 0) {
      const long long give_up = now_ns() + kGiveUpNs;
      do {
        started = MPIX_Pround(send) == round && MPIX_Pround(receive) == round;
      } while (started == 0 && now_ns() < give_up);
    }
    __syncthreads();
    bool good = started != 0;
    if (good) {
      make(to, own, round);
      MPIX_Pready_block(static_cast<int>(blockIdx.x), send);
      good = wait_for(static_cast<int>(blockIdx.x), receive);
    }
    if (!good) {
      if (threadIdx.x == 0) atomicAdd(late, 1);
      return;
    }
    count_wrong(from, peer, round, wrong);
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence_system();
      atomicAdd_system(done, 1);
    }
  }
}

class Exchange {
 public:
  Exchange(const char* copy, int peer) : peer_(peer) {
    check(cudaMalloc(&to_, kCount * sizeof(float)), "cudaMalloc");
    check(cudaMalloc(&from_, kCount * sizeof(float)), "cudaMalloc");
    check(cudaHostAlloc(&counts_, 3 * sizeof(unsigned), cudaHostAllocMapped), "cudaHostAlloc");
    for (int i = 0; i < 3; ++i) counts_[i] = 0;
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accord_partitioned_copy", copy);
    MPI_Psend_init(to_, kPartitions, kPerBlock, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, info,
                   &both_[1]);
    MPI_Precv_init(from_, kPartitions, kPerBlock, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, info,
                   &both_[0]);
    MPI_Info_free(&info);
    MPIX_Prequest_create(&send_, both_[1]);
    MPIX_Prequest_create(&receive_, both_[0]);
  }
  ~Exchange() {
    for (MPI_Request& request : both_) MPI_Request_free(&request);
    check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
    MPI_Barrier(MPI_COMM_WORLD);
    cudaFree(to_);
    cudaFree(from_);
    cudaFreeHost(counts_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Nothing is prepared, and the host calls nothing but MPI_Waitall while the kernel runs.
  void wait_only() {
    for (int round = 1; round <= kRounds; ++round) {
      MPI_Startall(2, both_);
      exchange<<<kPartitions, kThreads, 0, stream_>>>(to_, from_, rank, peer_, send_, receive_,
                                                      &counts_[0], &counts_[1]);
      expect(MPI_Waitall(2, both_, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall", round);
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
      expect_counts(round);
    }
  }
  void by_graph() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t launch = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    make_and_mark<<<kPartitions, kThreads, 0, stream_>>>(to_, rank, send_);
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&launch, graph, 0), "cudaGraphInstantiate");
    for (int round = 1; round <= kRounds; ++round) {
      MPI_Startall(2, both_);
      if (round % 2 == 0) MPIX_Pbuf_prepare_all(2, both_);
      check(cudaGraphLaunch(launch, stream_), "cudaGraphLaunch");
      expect(MPI_Waitall(2, both_, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall", round);
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
      std::vector<float> got(kCount);
      check(cudaMemcpy(got.data(), from_, kCount * sizeof(float), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
      bool good = true;
      for (int i = 0; i < kCount; ++i)
        good = good && got[i] == value(peer_, static_cast<unsigned>(round), i);
      expect(good, "what a graph has sent", round);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    check(cudaGraphExecDestroy(launch), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  void by_one_kernel() {
    // Loaded when it is first needed, which would wait for what runs.
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, serve), "cudaFuncGetAttributes");
    serve<<<kPartitions, kThreads, 0, stream_>>>(to_, from_, rank, peer_, send_, receive_,
                                                 &counts_[0], &counts_[1], &counts_[2]);
    const volatile unsigned& done = counts_[2];
    const volatile unsigned& late = counts_[1];
    for (unsigned round = 1; round <= kRounds && late == 0; ++round) {
      MPI_Startall(2, both_);
      expect(MPI_Waitall(2, both_, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall",
             static_cast<int>(round));
      while (done < round * kPartitions && late == 0) {
      }
    }
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    expect_counts(kRounds);
  }

 private:
  void expect_counts(int round) const {
    expect(counts_[0] == 0, "a kernel saw wrong values arrive", round);
    expect(counts_[1] == 0, "a kernel gave up waiting", round);
  }

  int peer_;
  float* to_ = nullptr;
  float* from_ = nullptr;
  unsigned* counts_ = nullptr;  // wrong, late, done
  cudaStream_t stream_ = nullptr;
  MPI_Request both_[2];  // receive, send
  MPIX_Prequest send_ = MPIX_PREQUEST_NULL;
  MPIX_Prequest receive_ = MPIX_PREQUEST_NULL;
};

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
  check(cudaSetDevice(rank % devices), "cudaSetDevice");
  const int peer = rank ^ 1;
  for (const char* copy : {"kernel", "engine"}) {
    const struct {
      const char* name;
      void (Exchange::*run)();
    } ways[] = {{"a kernel that its host only waits for", &Exchange::wait_only},
                {"a graph", &Exchange::by_graph},
                {"one kernel for all rounds", &Exchange::by_one_kernel}};
    for (const auto& way : ways) {
      const int before = failures;
      Exchange on(copy, peer);
      (on.*way.run)();
      int failed = failures - before;
      MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      if (rank == 0) std::printf("%-8s %-40s %d failures\n", copy, way.name, failed);
    }
  }
  int everywhere = 0;
  MPI_Allreduce(&failures, &everywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return everywhere == 0 ? 0 : 1;
}
