// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether packets of 16 bytes (device/cuda/inbox_packets.h) are ever seen torn: kernels of one
// device write them into memory of another, or of the same, as fast as they can, where kernels
// there read them. What a packet says follows from its last word. As a control the same by two
// accesses of 8 bytes each, which must be seen torn, or the test could not find anything.
//   accord_torn_packets_gpu [PACKETS]
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "device/cuda/inbox_packets.h"

namespace {

using namespace accord::device::cuda;

constexpr unsigned kBlocks = 32;
constexpr unsigned kThreads = 512;
constexpr unsigned kLines = 64;                          // packets of each pair of threads
constexpr unsigned long long kLimitNs = 20'000'000'000;  // of a reader whose writer never ends

struct Seen {
  unsigned long long read;     // packets
  unsigned long long changed;  // other ones than the same thread saw there before
  unsigned long long torn;
};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(error == cudaErrorPeerAccessUnsupported ? 77 : 1);
}

__device__ uint4 packet_of_number(std::uint32_t number) {
  return {number * 2654435761u, ~number, number ^ 0x5a5a5a5au, number};
}

template <bool kWhole>
__device__ void store(uint4* at, uint4 packet) {
  if (kWhole) return store_packet(at, packet.x, packet.y, packet.z, packet.w);
  asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};"
               :
               : "l"(at), "r"(packet.x), "r"(packet.y)
               : "memory");
  asm volatile("st.relaxed.sys.global.v2.u32 [%0+8], {%1, %2};"
               :
               : "l"(at), "r"(packet.z), "r"(packet.w)
               : "memory");
}

// Neighbours write neighbouring packets, as exchanges do; every fourth round alone, with gaps.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads) write(uint4* packets, std::uint32_t rounds, int* done) {
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  for (std::uint32_t number = 1; number <= rounds; ++number) {
    const bool alone = number % 4 == 0 && threadIdx.x % 3 != 0;
    const unsigned line = number * 7 % kLines;
    if (!alone)
      store<kWhole>(packets + line * kBlocks * kThreads + thread, packet_of_number(number));
  }
  __threadfence_system();
  if (threadIdx.x == 0) atomicAdd_system(done, 1);
}

__global__ void __launch_bounds__(kThreads)
    read(const uint4* packets, const int* done, Seen* seen) {
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  Seen mine{};
  std::uint32_t last[kLines] = {};
  const unsigned long long start = now_ns();
  for (bool over = false; !over;) {
    over = *reinterpret_cast<const volatile int*>(done) == static_cast<int>(kBlocks) ||
           now_ns() - start > kLimitNs;
    for (unsigned line = 0; line < kLines; ++line) {
      const uint4 got = load_packet(packets + line * kBlocks * kThreads + thread);
      const uint4 whole = packet_of_number(got.w);
      const bool fresh = got.x == 0 && got.y == 0 && got.z == 0 && got.w == 0;
      ++mine.read;
      mine.changed += got.w != last[line] ? 1 : 0;
      mine.torn += !fresh && (got.x != whole.x || got.y != whole.y || got.z != whole.z) ? 1 : 0;
      last[line] = got.w;
    }
  }
  atomicAdd(&seen->read, mine.read);
  atomicAdd(&seen->changed, mine.changed);
  atomicAdd(&seen->torn, mine.torn);
}

template <bool kWhole>
Seen run(int writer, int reader, std::uint32_t rounds) {
  constexpr std::size_t kBytes = std::size_t{kLines} * kBlocks * kThreads * sizeof(uint4);
  uint4* packets = nullptr;
  Seen* seen = nullptr;
  int* done = nullptr;
  cudaStream_t streams[2];
  check(cudaSetDevice(reader), "device");
  check(cudaMalloc(&packets, kBytes), "packets");
  check(cudaMemset(packets, 0, kBytes), "packets");
  check(cudaMalloc(&done, sizeof *done), "done");
  check(cudaMemset(done, 0, sizeof *done), "done");
  check(cudaMalloc(&seen, sizeof *seen), "seen");
  check(cudaMemset(seen, 0, sizeof *seen), "seen");
  check(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking), "stream");
  check(cudaDeviceSynchronize(), "ready");
  check(cudaSetDevice(writer), "device");
  check(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking), "stream");
  check(cudaSetDevice(reader), "device");
  read<<<kBlocks, kThreads, 0, streams[0]>>>(packets, done, seen);
  check(cudaGetLastError(), "reader");
  check(cudaSetDevice(writer), "device");
  write<kWhole><<<kBlocks, kThreads, 0, streams[1]>>>(packets, rounds, done);
  check(cudaGetLastError(), "writer");
  check(cudaStreamSynchronize(streams[1]), "writer");
  check(cudaSetDevice(reader), "device");
  check(cudaStreamSynchronize(streams[0]), "reader");
  Seen result{};
  check(cudaMemcpy(&result, seen, sizeof result, cudaMemcpyDeviceToHost), "seen");
  for (void* memory :
       {static_cast<void*>(packets), static_cast<void*>(done), static_cast<void*>(seen)})
    check(cudaFree(memory), "free");
  return result;
}

bool passes(int writer, int reader, std::uint32_t rounds) {
  const Seen whole = run<true>(writer, reader, rounds);
  const Seen halves = run<false>(writer, reader, rounds);
  std::printf(
      "device %d to %d: %.3g packets written; read %llu, changed %llu, torn %llu; "
      "in halves: changed %llu, torn %llu\n",
      writer, reader, static_cast<double>(rounds) * kBlocks * kThreads * 5 / 6, whole.read,
      whole.changed, whole.torn, halves.changed, halves.torn);
  std::fflush(stdout);
  return whole.torn == 0 && whole.changed > 1000;
}

}  // namespace

int main(int argc, char** argv) {
  const double packets = argc > 1 ? std::atof(argv[1]) : 1e9;
  const auto rounds = static_cast<std::uint32_t>(packets / (kBlocks * kThreads) * 6 / 5) + 1;
  // A kernel that is loaded at its first launch waits for the device, on which the reader waits for
  // it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 77;
  bool all = passes(0, 0, rounds);
  if (devices > 1) {
    check(cudaSetDevice(0), "device");
    check(cudaDeviceEnablePeerAccess(1, 0), "peer access");
    check(cudaSetDevice(1), "device");
    check(cudaDeviceEnablePeerAccess(0, 0), "peer access");
    all = passes(0, 1, rounds) && all;
    all = passes(1, 0, rounds) && all;
  }
  return all ? 0 : 1;
}
