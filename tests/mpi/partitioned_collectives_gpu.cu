// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned collectives by kernels on GPUs: whether they are right, whether they go by kernels,
// and how fast they are beside a kernel that makes the data, against that kernel and what NCCL has
// for it on the same stream, and against the kernel, a synchronisation and the ordinary call. Run
// by hand, with Accord preloaded, a rank a GPU:
//
//   accord run -n 2 accord_partitioned_collectives_gpu_mpich [collective|all [iterations [most
//   MiB]]]
//
// Sizes are those of a block: what a rank gives to one other. Time is that from the launch of the
// kernel to the completion on the slowest rank. Results are checked, but not while time is taken.
#include <accord/partitioned.h>
#include <cuda_runtime.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "partitioned_nccl.h"

namespace {

constexpr int kThreads = 256;
constexpr int kRoot = 0;
constexpr std::size_t kBlockFloats = 4096;  // at least, of the kernel that makes the data

int rank = 0;
int size = 0;
int failures = 0;

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, call, cudaGetErrorString(result));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

enum class Name { allreduce, bcast, reduce, reduce_scatter, allgather, gather, scatter, alltoall };

struct Kind {
  Name name;
  const char* text;
  bool reduces;
  bool scatters;    // the contribution has a block for each rank
  bool gathers;     // the result has a block of each rank
  bool root_gives;  // alone
  bool root_gets;
};
constexpr Kind kKinds[] = {
    {Name::allreduce, "allreduce", true, false, false, false, false},
    {Name::bcast, "bcast", false, false, false, true, false},
    {Name::reduce, "reduce", true, false, false, false, true},
    {Name::reduce_scatter, "reduce_scatter_block", true, true, false, false, false},
    {Name::allgather, "allgather", false, false, true, false, false},
    {Name::gather, "gather", false, false, true, false, true},
    {Name::scatter, "scatter", false, true, false, true, false},
    {Name::alltoall, "alltoall", false, true, true, false, false}};

// Whole numbers, so that sums are exact.
__host__ __device__ float value(int of_rank, int round, std::size_t i) {
  return static_cast<float>(of_rank * 100 + round % 100 + static_cast<int>(i % 1000));
}

// A contribution, cut into partitions, each a piece of every block and made by some blocks of the
// kernel in a row.
struct Production {
  float* to;
  int rank;
  int blocks;  // of the contribution
  std::size_t block_floats;
  std::size_t per_partition;
  int makers;  // blocks of the kernel that make a partition
};
__device__ void make(const Production& work, int round) {
  const auto makers = static_cast<std::size_t>(work.makers);
  const std::size_t partition = blockIdx.x / makers;
  const std::size_t maker = blockIdx.x % makers;
  const std::size_t first = partition * work.per_partition + maker * work.per_partition / makers;
  const std::size_t end =
      partition * work.per_partition + (maker + 1) * work.per_partition / makers;
  for (int block = 0; block < work.blocks; ++block) {
    const std::size_t start = static_cast<std::size_t>(block) * work.block_floats;
    for (std::size_t i = start + first + threadIdx.x; i < start + end; i += blockDim.x)
      work.to[i] = value(work.rank, round, i);
  }
}
__global__ void make_and_mark(Production work, int round, MPIX_Prequest request) {
  make(work, round);
  MPIX_Pready_block(static_cast<int>(blockIdx.x) / work.makers, request);
}
__global__ void make_only(Production work, int round) { make(work, round); }
__global__ void look_at_way(MPIX_Prequest request, int* on_node) {
  *on_node = accord_partitioned::view(request).on_node ? 1 : 0;
}

struct Case {
  Kind kind{};
  std::size_t bytes = 0;  // of a block
  int partitions = 1;
  float* from = nullptr;
  float* to = nullptr;
  int* flag = nullptr;
  cudaStream_t stream = nullptr;

  std::size_t count() const { return bytes / sizeof(float); }
  int calls_count() const { return static_cast<int>(count()); }
  MPI_Count per_partition() const { return static_cast<MPI_Count>(count()) / partitions; }
  bool gives() const { return !kind.root_gives || rank == kRoot; }
  bool gets() const { return !kind.root_gets || rank == kRoot; }
  // A bcast has one buffer.
  float* source() const { return kind.name == Name::bcast ? to : from; }
  Production production() const {
    const std::size_t each = count() / static_cast<std::size_t>(partitions);
    const auto makers = static_cast<int>(std::clamp<std::size_t>(
        each / kBlockFloats, 1, static_cast<std::size_t>(std::max(1, 1024 / partitions))));
    return {source(), rank, kind.scatters ? size : 1, count(), each, makers};
  }
  unsigned grid(const Production& work) const {
    return static_cast<unsigned>(partitions * work.makers);
  }
  float expected(int round, int block, std::size_t i) const {
    const std::size_t at = (kind.scatters ? static_cast<std::size_t>(rank) * count() : 0) + i;
    if (!kind.reduces) return value(kind.gathers ? block : kRoot, round, at);
    float sum = 0;
    for (int of = 0; of < size; ++of) sum += value(of, round, at);
    return sum;
  }
  void check_result(int round, const char* way) const {
    std::vector<float> got(count());
    for (int block = 0; block < (kind.gathers ? size : 1) && gets(); ++block) {
      check(cudaMemcpy(got.data(), to + static_cast<std::size_t>(block) * count(), bytes,
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy");
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (got[i] == expected(round, block, i)) continue;
        std::fprintf(stderr, "rank %d: %s %s, %zu B, %d partitions, round %d: %g, not %g, at %zu\n",
                     rank, kind.text, way, bytes, partitions, round, got[i],
                     expected(round, block, i), i);
        ++failures;
        return;
      }
    }
  }
};

int init(const Case& on, MPI_Info info, MPI_Request* request) {
  const MPI_Count count = on.per_partition();
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (on.kind.name) {
    case Name::allreduce:
      return MPIX_Pallreduce_init(on.from, on.to, on.partitions, count, MPI_FLOAT, MPI_SUM, comm,
                                  info, request);
    case Name::bcast:
      return MPIX_Pbcast_init(on.to, on.partitions, count, MPI_FLOAT, kRoot, comm, info, request);
    case Name::reduce:
      return MPIX_Preduce_init(on.from, on.to, on.partitions, count, MPI_FLOAT, MPI_SUM, kRoot,
                               comm, info, request);
    case Name::reduce_scatter:
      return MPIX_Preduce_scatter_block_init(on.from, on.to, on.partitions, count, MPI_FLOAT,
                                             MPI_SUM, comm, info, request);
    case Name::allgather:
      return MPIX_Pallgather_init(on.from, on.partitions, count, MPI_FLOAT, on.to, count, MPI_FLOAT,
                                  comm, info, request);
    case Name::gather:
      return MPIX_Pgather_init(on.from, on.partitions, count, MPI_FLOAT, on.to, count, MPI_FLOAT,
                               kRoot, comm, info, request);
    case Name::scatter:
      return MPIX_Pscatter_init(on.from, on.partitions, count, MPI_FLOAT, on.to, count, MPI_FLOAT,
                                kRoot, comm, info, request);
    case Name::alltoall:
      break;
  }
  return MPIX_Palltoall_init(on.from, on.partitions, count, MPI_FLOAT, on.to, count, MPI_FLOAT,
                             comm, info, request);
}

void ordinary(const Case& on) {
  const int count = on.calls_count();
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (on.kind.name) {
    case Name::allreduce:
      MPI_Allreduce(on.from, on.to, count, MPI_FLOAT, MPI_SUM, comm);
      break;
    case Name::bcast:
      MPI_Bcast(on.to, count, MPI_FLOAT, kRoot, comm);
      break;
    case Name::reduce:
      MPI_Reduce(on.from, on.to, count, MPI_FLOAT, MPI_SUM, kRoot, comm);
      break;
    case Name::reduce_scatter:
      MPI_Reduce_scatter_block(on.from, on.to, count, MPI_FLOAT, MPI_SUM, comm);
      break;
    case Name::allgather:
      MPI_Allgather(on.from, count, MPI_FLOAT, on.to, count, MPI_FLOAT, comm);
      break;
    case Name::gather:
      MPI_Gather(on.from, count, MPI_FLOAT, on.to, count, MPI_FLOAT, kRoot, comm);
      break;
    case Name::scatter:
      MPI_Scatter(on.from, count, MPI_FLOAT, on.to, count, MPI_FLOAT, kRoot, comm);
      break;
    case Name::alltoall:
      MPI_Alltoall(on.from, count, MPI_FLOAT, on.to, count, MPI_FLOAT, comm);
      break;
  }
}

// Gather, scatter and alltoall are groups of messages there.
void by_nccl(const Case& on, const Nccl& nccl) {
  const std::size_t count = on.count();
  constexpr int kFloat = Nccl::kFloat;
  constexpr int kSum = Nccl::kSum;
  const auto stream = on.stream;
  switch (on.kind.name) {
    case Name::allreduce:
      nccl.all_reduce(on.from, on.to, count, kFloat, kSum, nccl.comm, stream);
      return;
    case Name::bcast:
      nccl.broadcast(on.to, on.to, count, kFloat, kRoot, nccl.comm, stream);
      return;
    case Name::reduce:
      nccl.reduce(on.from, on.to, count, kFloat, kSum, kRoot, nccl.comm, stream);
      return;
    case Name::reduce_scatter:
      nccl.reduce_scatter(on.from, on.to, count, kFloat, kSum, nccl.comm, stream);
      return;
    case Name::allgather:
      nccl.all_gather(on.from, on.to, count, kFloat, nccl.comm, stream);
      return;
    default:
      break;
  }
  const Kind& kind = on.kind;
  nccl.group_start();
  for (int peer = 0; peer < size; ++peer) {
    const std::size_t start = static_cast<std::size_t>(peer) * count;
    if (on.gives() && (!kind.root_gets || peer == kRoot))
      nccl.send(on.from + (kind.scatters ? start : 0), count, kFloat, peer, nccl.comm, stream);
    if (on.gets() && (!kind.root_gives || peer == kRoot))
      nccl.receive(on.to + (kind.gathers ? start : 0), count, kFloat, peer, nccl.comm, stream);
  }
  nccl.group_end();
}

class Partitioned {
 public:
  explicit Partitioned(const Case& on) : on_(on), work_(on.production()) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accord_marks", std::to_string(work_.makers).c_str());
    init(on, info, &request_);
    MPI_Info_free(&info);
    MPIX_Prequest_create(&device_, request_);
  }
  ~Partitioned() { MPI_Request_free(&request_); }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  void begin() {
    MPI_Start(&request_);
    MPIX_Pbuf_prepare(request_);
  }
  void run(int round) {
    if (on_.gives())
      make_and_mark<<<on_.grid(work_), kThreads, 0, on_.stream>>>(work_, round, device_);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
  }
  void check_way() const {
    int on_node = 0;
    look_at_way<<<1, 1, 0, on_.stream>>>(device_, on_.flag);
    check(cudaStreamSynchronize(on_.stream), "cudaStreamSynchronize");
    check(cudaMemcpy(&on_node, on_.flag, sizeof on_node, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (on_node != 0) return;
    std::fprintf(stderr, "rank %d: %s does not go by kernels\n", rank, on_.kind.text);
    ++failures;
  }

 private:
  const Case& on_;
  const Production work_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  MPIX_Prequest device_ = MPIX_PREQUEST_NULL;
};

// After the kernel that makes the data: `then()`.
template <class Then>
class Plain {
 public:
  Plain(const Case& on, Then then) : on_(on), work_(on.production()), then_(then) {}
  void begin() {}
  void run(int round) {
    if (on_.gives()) make_only<<<on_.grid(work_), kThreads, 0, on_.stream>>>(work_, round);
    then_();
  }

 private:
  const Case& on_;
  const Production work_;
  const Then then_;
};

// The slowest rank's median, in microseconds.
template <class Way>
double time_of(Way& way, const Case& on, int iterations, const char* what) {
  std::vector<double> times;
  for (int round = 0; round < iterations + 2; ++round) {
    way.begin();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    way.run(round);
    if (round >= 2) times.push_back((MPI_Wtime() - start) * 1e6);
    if (round != 0 && round != iterations + 1) continue;
    check(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
    on.check_result(round, what);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  double median = *middle;
  MPI_Allreduce(MPI_IN_PLACE, &median, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return median;
}

// Rounds of all kinds of sizes, also such as no vector fits.
void check_results(Case& on, std::size_t bytes_max) {
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
        on.check_result(round, "partitioned");
        MPI_Barrier(MPI_COMM_WORLD);
      }
      way.check_way();
    }
  }
}

void compare(Case& on, const Nccl* nccl, int iterations, std::size_t bytes_max) {
  for (on.bytes = 64 << 10; on.bytes <= bytes_max; on.bytes *= 4) {
    const int times = on.bytes >= (64 << 20) ? std::min(iterations, 20) : iterations;
    for (on.partitions = 1; on.partitions <= 64; on.partitions *= 4) {
      Partitioned partitioned(on);
      const double ours = time_of(partitioned, on, times, "partitioned");
      double theirs = 0;
      if (nccl != nullptr) {
        Plain on_stream(on, [&] {
          by_nccl(on, *nccl);
          check(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
        });
        theirs = time_of(on_stream, on, times, "nccl");
      }
      Plain plain(on, [&] {
        check(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
        ordinary(on);
      });
      const double mpi = time_of(plain, on, times, "mpi");
      if (rank == 0)
        std::printf("%-20s %10zu %10d %12.1f %10.1f %10.1f %8.2fx %8.2fx\n", on.kind.text, on.bytes,
                    on.partitions, ours, theirs, mpi, theirs / ours, mpi / ours);
    }
  }
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
  const std::string only = argc > 1 ? argv[1] : "all";
  const int iterations = argc > 2 ? std::atoi(argv[2]) : 100;
  const std::size_t bytes_max = static_cast<std::size_t>(argc > 3 ? std::atoi(argv[3]) : 64) << 20;
  check(cudaSetDevice(rank), "cudaSetDevice");
  Case on;
  for (float** memory : {&on.from, &on.to})
    check(cudaMalloc(memory, bytes_max * static_cast<std::size_t>(size)), "cudaMalloc");
  check(cudaMalloc(&on.flag, sizeof(int)), "cudaMalloc");
  check(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  // The driver loads a kernel when it is first needed, which waits for those that run.
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, make_and_mark), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, make_only), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, look_at_way), "cudaFuncGetAttributes");
  Nccl nccl;
  const bool has_nccl = nccl.open(rank, size);
  if (rank == 0)
    std::printf("%-20s %10s %10s %12s %10s %10s %9s %9s\n", "collective", "block", "partitions",
                "partitioned", "nccl us", "mpi us", "nccl/p", "mpi/p");
  for (const Kind& kind : kKinds) {
    if (only != "all" && only != kind.text) continue;
    on.kind = kind;
    check_results(on, bytes_max);
    compare(on, has_nccl ? &nccl : nullptr, iterations, bytes_max);
  }
  if (has_nccl) nccl.comm_destroy(nccl.comm);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
