// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the workloads of partitioned communication share: kernels that are written once. Compiled by
// nvcc they run on a GPU. Compiled by a C++ compiler they are for the embedded host runtime
// (ACCORD_RUNTIME=host), where a block has one thread, of the CPU, and cannot touch device memory
// but through a View. A program that is for GPUs only has no need of this file.
#pragma once

#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/accord_memory.h"

#if ACCORD_PARTITIONED_GPU
#define ON_DEVICE __device__
#define ON_BOTH __host__ __device__
#else
#define ON_DEVICE
#define ON_BOTH
#endif

// Gives up, as an example may.
inline void require(bool holds, const char* what, const char* why = "needed") {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
inline void check(int result, const char* call) {
  require(result == ACCORD_OK, call, accord_last_error());
}

// Which block of a kernel runs, and which of its threads.
struct Block {
  int number;
  int thread;
  int threads;
};

#if ACCORD_PARTITIONED_GPU

constexpr int kThreads = 256;

// Not check, which would be ambiguous beside that of common/device.h.
inline void check_cuda(cudaError_t result, const char* call) {
  require(result == cudaSuccess, call, cudaGetErrorString(result));
}

// Apart from the default stream, which waits for others.
inline cudaStream_t stream() {
  static const cudaStream_t made = [] {
    cudaStream_t one = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return one;
  }();
  return made;
}

template <class Body>
__global__ void run(Body body) {
  body(Block{static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x),
             static_cast<int>(blockDim.x)});
}

// Has `blocks` blocks run body(block), each thread of a block by itself, and does not wait for it.
template <class Body>
void launch(int blocks, const Body& body) {
  run<<<blocks, kThreads, 0, stream()>>>(body);
  check_cuda(cudaGetLastError(), "a kernel");
}

// Returns once all that has been launched is done.
inline void synchronise() { check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize"); }

// Some elements of device memory: here the memory itself.
template <class T>
class View {
 public:
  __device__ View(T* first, int) : first_(first) {}
  __device__ T& operator[](int i) const { return first_[i]; }

 private:
  T* first_;
};

#else

// Programs that are not linked with Accord use this file, too: without Accord there is no other
// memory than the CPU's.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  static const AccordMemory accord;
  if (AccordMemory::is_there())
    accord.check(accord.copy(to, from, bytes), "accord_memcpy");
  else
    std::memcpy(to, from, bytes);
}

// A few threads take the blocks in turns.
template <class Body>
void launch(int blocks, const Body& body) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int first = 0; first < std::min(blocks, kThreads); ++first) {
    threads.emplace_back([=] {
      for (int block = first; block < blocks; block += kThreads) body(Block{block, 0, 1});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void synchronise() {}

// A copy in memory of the CPU, which goes back with the end of the View if T is not const.
template <class T>
class View {
 public:
  View(T* first, int count) : first_(first), copy_(static_cast<std::size_t>(count)) {
    copy_bytes(copy_.data(), first_, bytes());
  }
  ~View() {
    if constexpr (!std::is_const_v<T>) copy_bytes(first_, copy_.data(), bytes());
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  T& operator[](int i) { return copy_[static_cast<std::size_t>(i)]; }

 private:
  std::size_t bytes() const { return copy_.size() * sizeof(T); }

  T* first_;
  std::vector<std::remove_const_t<T>> copy_;
};

#endif

// Ranks take the devices in turns.
inline void use_device_of(int rank) {
  require(accord_device_count() > 0, "a device");
  const int device = rank % accord_device_count();
  check(accord_set_device(device), "accord_set_device");
#if ACCORD_PARTITIONED_GPU
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
#endif
}

// Device memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    void* made = nullptr;
    check(accord_malloc(&made, bytes(), ACCORD_MEMORY_DEVICE), "accord_malloc");
    data_ = static_cast<T*>(made);
  }
  explicit DeviceArray(const std::vector<T>& from) : DeviceArray(from.size()) { write(from); }
  DeviceArray(DeviceArray&& from) noexcept
      : data_(std::exchange(from.data_, nullptr)), count_(from.count_) {}
  ~DeviceArray() { accord_free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  void write(const std::vector<T>& from) {
    check(accord_memcpy(data_, from.data(), bytes()), "accord_memcpy");
  }
  std::vector<T> read() const {
    std::vector<T> to(count_);
    check(accord_memcpy(to.data(), data_, bytes()), "accord_memcpy");
    return to;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }

  T* data_ = nullptr;
  std::size_t count_;
};

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The largest value that any rank has.
template <class T>
T largest(T mine) {
  double value = static_cast<double>(mine);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return static_cast<T>(value);
}
