// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the applications need of a device: memory, copies, streams, and kernels that are written
// once. Compiled by nvcc this is CUDA. Compiled by a C++ compiler, device memory is malloc's, or
// accord_malloc's if libaccord is preloaded. The CPU cannot touch the latter, as on a GPU, so a
// kernel works on copies there; that is for tests, not for speed.
//
// All functions throw std::runtime_error. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define ON_DEVICE __device__
#else
#define ON_DEVICE
#include "accord_memory.h"
#endif

namespace app {

#ifdef __CUDACC__

inline void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}

// `memory` is cuda or auto. Ranks take the GPUs in turns.
inline void open_device(const std::string& memory, int rank_in_node) {
  if (memory != "cuda" && memory != "auto") throw std::runtime_error("no memory named " + memory);
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  check(cudaSetDevice(rank_in_node % devices), "cudaSetDevice");
}
inline std::string device_name() { return "cuda"; }

inline void* device_allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}
inline void device_release(void* memory) noexcept { cudaFree(memory); }

// Memory of the CPU from which and to which a device copies fast.
inline void* pinned_allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return memory;
}
inline void pinned_release(void* memory) noexcept { cudaFreeHost(memory); }

// Copies from or to memory of the CPU; returns when the bytes have arrived.
inline void device_copy(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  // From pageable memory cudaMemcpy may return earlier, and our streams do not wait for it.
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

// Adds to a number that other threads of the kernel add to, and returns what it was.
ON_DEVICE inline int fetch_add(int* number, int value) { return atomicAdd(number, value); }

// What is begun on a stream happens in order; streams do not wait for each other.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void copy(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  void synchronise() { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

#else

// `memory` is accord, host, or auto, the first of these that there is.
class Cpu {
 public:
  static Cpu& get() {
    static Cpu cpu;
    return cpu;
  }
  void open(const std::string& memory, int rank_in_node) {
    if (memory != "accord" && memory != "host" && memory != "auto")
      throw std::runtime_error("no memory named " + memory);
    if (memory == "host" || (memory == "auto" && !AccordMemory::is_there())) return;
    if (!AccordMemory::is_there()) throw std::runtime_error("libaccord is not in this process");
    accord_ = std::make_unique<AccordMemory>();
    accord_->use_device_of(rank_in_node);
  }
  const AccordMemory* accord() const { return accord_.get(); }

 private:
  std::unique_ptr<AccordMemory> accord_;
};

inline void open_device(const std::string& memory, int rank_in_node) {
  Cpu::get().open(memory, rank_in_node);
}
inline std::string device_name() {
  const AccordMemory* const accord = Cpu::get().accord();
  return accord == nullptr ? "host" : std::string("accord ") + accord->runtime_name();
}

inline void* pinned_allocate(std::size_t bytes) {
  void* const memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::runtime_error("no memory");
  return memory;
}
inline void pinned_release(void* memory) noexcept { std::free(memory); }

inline void* device_allocate(std::size_t bytes) {
  const AccordMemory* const accord = Cpu::get().accord();
  if (accord == nullptr) return pinned_allocate(bytes);
  void* memory = nullptr;
  accord->check(accord->allocate(&memory, bytes > 0 ? bytes : 1, ACCORD_MEMORY_DEVICE),
                "accord_malloc");
  return memory;
}
inline void device_release(void* memory) noexcept {
  const AccordMemory* const accord = Cpu::get().accord();
  if (accord == nullptr)
    pinned_release(memory);
  else
    accord->release(memory);
}

inline void device_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const AccordMemory* const accord = Cpu::get().accord();
  if (accord == nullptr)
    std::memcpy(to, from, bytes);
  else
    accord->check(accord->copy(to, from, bytes), "accord_memcpy");
}

inline int fetch_add(int* number, int value) { return std::exchange(*number, *number + value); }

// All that is begun is over at once.
class Stream {
 public:
  void copy(void* to, const void* from, std::size_t bytes) { device_copy(to, from, bytes); }
  void synchronise() {}
};

#endif

// Device memory for `count` elements of a type.
template <class T>
class Array {
 public:
  explicit Array(std::size_t count)
      : count_(count), data_(static_cast<T*>(device_allocate(count * sizeof(T)))) {}
  explicit Array(const std::vector<T>& from) : Array(from.size()) { write(from); }
  Array(Array&& from) noexcept : count_(from.count_), data_(std::exchange(from.data_, nullptr)) {}
  ~Array() {
    if (data_ != nullptr) device_release(data_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return data_; }
  std::size_t count() const { return count_; }
  void write(const std::vector<T>& from) const {
    device_copy(data_, from.data(), count_ * sizeof(T));
  }
  std::vector<T> read() const {
    std::vector<T> to(count_);
    device_copy(to.data(), data_, count_ * sizeof(T));
    return to;
  }

 private:
  std::size_t count_;
  T* data_;
};

#ifdef __CUDACC__

constexpr int kThreads = 256;
constexpr int kSumBlocks = 256;

template <class Body>
__global__ void for_each(int count, Body body) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) body(i);
}

// The first thread returns the sum over its block, always taken in the same order.
__device__ inline double sum_of_block(double mine) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = mine;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}
template <class Body>
__global__ void sum_each(int count, Body body, double* sums) {
  double mine = 0;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x))
    mine += body(i);
  const double sum = sum_of_block(mine);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
static __global__ void sum_sums(const double* sums, double* result) {
  static_assert(kSumBlocks == kThreads, "a thread takes the sum of a block");
  const double sum = sum_of_block(sums[threadIdx.x]);
  if (threadIdx.x == 0) *result = sum;
}

// A kernel: first what it reads and writes, then what it does, for instance
//   Kernel kernel(stream);
//   kernel.run(n, Scale{kernel.reads(from), kernel.writes(to), 2.0});
// where Scale has ON_DEVICE void operator()(int i) const.
class Kernel {
 public:
  explicit Kernel(Stream& stream) : stream_(stream.get()) {}

  template <class T>
  const T* reads(const Array<T>& array) {
    return array.data();
  }
  // The kernel may write only some of it; the rest keeps its values.
  template <class T>
  T* writes(const Array<T>& array) {
    return array.data();
  }

  // Begins body(i) for 0 <= i < count, in any order.
  template <class Body>
  void run(int count, const Body& body) {
    if (count == 0) return;
    for_each<<<(count + kThreads - 1) / kThreads, kThreads, 0, stream_>>>(count, body);
    check(cudaGetLastError(), "a kernel");
  }
  // Begins the sum of body(i) for 0 <= i < count, always in the same order, into `result[0]`, by
  // way of kSumBlocks + 1 elements of `result`.
  template <class Body>
  void sum(int count, const Body& body, const Array<double>& result) {
    double* const sums = result.data() + 1;
    sum_each<<<kSumBlocks, kThreads, 0, stream_>>>(count, body, sums);
    sum_sums<<<1, kThreads, 0, stream_>>>(sums, result.data());
    check(cudaGetLastError(), "a kernel");
  }

 private:
  cudaStream_t stream_;
};

#else

constexpr int kSumBlocks = 0;

class Kernel {
 public:
  explicit Kernel(Stream&) {}
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  template <class T>
  const T* reads(const Array<T>& array) {
    if (Cpu::get().accord() == nullptr) return array.data();
    const auto copy = std::make_shared<std::vector<T>>(array.read());
    copies_.push_back(copy);
    return copy->data();
  }
  template <class T>
  T* writes(const Array<T>& array) {
    if (Cpu::get().accord() == nullptr) return array.data();
    const auto copy = std::make_shared<std::vector<T>>(array.read());
    copies_.push_back(copy);
    ends_.push_back([&array, copy] { array.write(*copy); });
    return copy->data();
  }

  template <class Body>
  void run(int count, const Body& body) {
    for (int i = 0; i < count; ++i) body(i);
    for (const auto& end : ends_) end();
  }
  template <class Body>
  void sum(int count, const Body& body, const Array<double>& result) {
    double all = 0;
    for (int i = 0; i < count; ++i) all += body(i);
    for (const auto& end : ends_) end();
    device_copy(result.data(), &all, sizeof all);
  }

 private:
  std::vector<std::shared_ptr<void>> copies_;
  std::vector<std::function<void()>> ends_;
};

#endif

}  // namespace app
