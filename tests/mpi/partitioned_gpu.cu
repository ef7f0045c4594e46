// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned communication by kernels on GPUs: first whether it is right, then how fast it is
// against a kernel, a synchronisation and MPI_Send. Ranks work in pairs, 0 with 1, 2 with 3, a GPU
// each; the first pair prints. Run by hand, with Accord preloaded, on a machine with at least two
// GPUs:
//
//   accord run -n 2 accord_partitioned_gpu_mpich [iterations [file]]
//   accord report --html page file
//
// The file gets the lines that `accord report` draws: blocks, warps and threads that mark, and the
// engine, against MPI_Send. What the calls around it cost says accord_partitioned_costs. Time is
// half of a round trip: from the launch of the kernel that makes the data to the completion of the
// receive, as goodput has it. Every message is checked, but not while time is taken.
#include <accord/partitioned.h>
#include <cuda_runtime.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kThreads = 256;
constexpr std::size_t kBytesMax = std::size_t{16} << 20;

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

struct Way {
  const char* name;
  const char* copy;
  Group group;
  const char* marks;
};
// The first one is what the others are drawn against.
constexpr Way kWays[] = {{"block", "kernel", Group::block, "1"},
                         {"engine", "engine", Group::block, "1"},
                         {"warp", "kernel", Group::warp, "8"},
                         {"thread", "kernel", Group::thread, "256"}};
constexpr int kWayCount = 4;

// Where `accord report` reads them: a line for each way and size.
class Records {
 public:
  Records(const char* path, int ranks, const char* command) : ranks_(ranks), command_(command) {
    if (path != nullptr) file_ = std::fopen(path, "w");
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    device_ = properties.name;
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    for (const char* at = text; *at != '\0' && *at != '\n'; ++at)
      if (*at != '"' && *at != '\\' && *at >= ' ') library_ += *at;
  }
  ~Records() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  void write(const char* way, std::size_t bytes, double us, double ours_us, bool correct) {
    if (file_ == nullptr) return;
    std::fprintf(file_,
                 "{\"operation\": \"partitioned\", \"way\": \"%s\", \"ours\": %s, "
                 "\"size_bytes\": %zu, \"median_us\": %.3f, \"bandwidth_gb_s\": %.6f, "
                 "\"bus_bandwidth_gb_s\": %.6f, \"correct\": %s, ",
                 way, way == kWays[0].name ? "true" : "false", bytes, us,
                 static_cast<double>(bytes) / us / 1e3, static_cast<double>(bytes) / us / 1e3,
                 correct ? "true" : "false");
    if (way != kWays[0].name) std::fprintf(file_, "\"ratio\": {\"value\": %.4f}, ", us / ours_us);
    std::fprintf(file_,
                 "\"ranks\": %d, \"type\": \"float32\", \"send_memory\": \"device\", "
                 "\"recv_memory\": \"device\", \"machine\": {\"device\": \"%s\", \"runtime\": "
                 "\"cuda\"}, \"mpi_library\": \"%s\", \"command\": \"%s\"}\n",
                 ranks_, device_.c_str(), library_.c_str(), command_);
    std::fflush(file_);
  }

 private:
  int ranks_;
  const char* command_;
  std::string device_;
  std::string library_;
  std::FILE* file_ = nullptr;
};

void compare(const Exchange& on, int iterations, Records& records) {
  for (const char* copy : {"kernel", "engine"}) see_arrivals(on, copy);
  int failed[kWayCount + 1];
  double times[kWayCount + 1];
  Plain plain(on);
  const int before = failures;
  times[kWayCount] = time_of(plain, on, iterations, "send");
  failed[kWayCount] = failures - before;
  for (int i = 0; i < kWayCount; ++i) {
    const int before_this = failures;
    Partitioned way(on, kWays[i].copy, kWays[i].group, kWays[i].marks);
    times[i] = time_of(way, on, iterations, kWays[i].name);
    failed[i] = failures - before_this;
  }
  MPI_Allreduce(MPI_IN_PLACE, failed, kWayCount + 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank != 0) return;
  std::printf("%10zu %9.1f", on.bytes, times[kWayCount]);
  for (int i = 0; i < kWayCount; ++i) {
    std::printf(" %9.1f", times[i]);
    records.write(kWays[i].name, on.bytes, times[i], times[0], failed[i] == 0);
  }
  records.write("kernel, synchronise, send", on.bytes, times[kWayCount], times[0],
                failed[kWayCount] == 0);
  std::printf(" %6.2fx %6.2fx\n", times[kWayCount] / times[0], times[kWayCount] / times[1]);
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
  Records records(rank == 0 && argc > 2 ? argv[2] : nullptr, size,
                  "accord run accord_partitioned_gpu");
  if (rank == 0) {
    std::printf("%10s %9s", "bytes", "send us");
    for (const Way& way : kWays) std::printf(" %9s", way.name);
    std::printf(" %7s %7s\n", "block", "engine");
  }
  for (on.bytes = 1024; on.bytes <= kBytesMax; on.bytes *= 2) {
    // Blocks of 4 KiB and more, as many as there are processors to run them at once.
    on.blocks = static_cast<int>(std::clamp<std::size_t>(on.bytes / 4096, 1, 64));
    compare(on, on.bytes > (std::size_t{1} << 20) ? iterations / 4 + 1 : iterations, records);
  }
  int failures_anywhere = 0;
  MPI_Allreduce(&failures, &failures_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures_anywhere);
  MPI_Finalize();
  return failures_anywhere == 0 ? 0 : 1;
}
