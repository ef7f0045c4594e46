// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the CUDA runtime costs on this machine: pointer queries, copies in each CopyMode beside the
// driver's own calls on memory of the driver, lists of copies within the device, staging memory.
// Prints medians in microseconds; no test. Usage: cuda_copy_measure [size_bytes_max]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cuda_program.h"
#include "device/cuda/copy.h"
#include "device/cuda/copy_list.h"
#include "device/device_runtime.h"
#include "device/registry.h"
#include "device/staging_pool.h"

namespace accord::device {

DeviceRuntime& cuda_runtime();

namespace {

using cuda::CopyMode;
using cuda::DevicePointer;
using cuda::Result;

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::nanoseconds(now).count()) / 1000.0;
}

// Median over rounds of the mean time of `repeats` calls.
template <class Body>
double median_us(int rounds, int repeats, Body body) {
  std::vector<double> times;
  for (int i = 0; i < rounds / 10 + 1; ++i) body();  // warm-up
  for (int round = 0; round < rounds; ++round) {
    const double start = now_us();
    for (int i = 0; i < repeats; ++i) body();
    times.push_back((now_us() - start) / repeats);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds) / 2];
}

void require(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "cuda_copy_measure: %s failed\n", what);
  std::exit(1);
}

void require(const Status& status, const char* what) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  require(status.ok(), what);
}

void measure_queries(void* device_memory) {
  const auto mapped = std::make_unique_for_overwrite<char[]>(std::size_t{64} << 20);
  void* pinned = nullptr;
  require(cuda_runtime().allocate(0, MemoryKind::pinned, 4096, pinned), "pinned memory");
  int local = 0;
  const struct {
    const char* name;
    const void* pointer;
  } rows[] = {{"device", device_memory},
              {"malloc, mapped", mapped.get()},
              {"pinned", pinned},
              {"stack", &local}};
  std::printf("%-16s %12s %12s\n", "pointer", "must_stage", "classify");
  for (const auto& row : rows) {
    volatile bool sink = false;
    const double quick = median_us(100, 1000, [&] { sink = must_stage(row.pointer); });
    const double whole =
        median_us(100, 1000, [&] { sink = classify(row.pointer).runtime != nullptr; });
    std::printf("%-16s %12.4f %12.4f\n", row.name, quick, whole);
  }
  require(cuda_runtime().free(pinned), "free");
}

// One way of copying `size_bytes` from `src` to `dst`.
template <class Call>
void cell(std::size_t size_bytes, Call call) {
  const int rounds = size_bytes > (std::size_t{4} << 20) ? 20 : 300;
  std::printf(" %10.2f", median_us(rounds, 1, call));
}

void measure_copies(std::size_t size_bytes_max, void* device_memory) {
  const cuda::Driver& driver = *cuda::driver();
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto to_host = reinterpret_cast<Result (*)(void*, DevicePointer, std::size_t)>(
      dlsym(library, "cuMemcpyDtoH_v2"));
  const auto to_device = reinterpret_cast<Result (*)(DevicePointer, const void*, std::size_t)>(
      dlsym(library, "cuMemcpyHtoD_v2"));
  void* of_driver = nullptr;
  require(driver.host_memory_allocate(&of_driver, size_bytes_max, cuda::kHostAllocatePortable) ==
              Result::success,
          "cuMemHostAlloc");
  const auto pageable = std::make_unique<char[]>(size_bytes_max);
  StagingBuffer staging;
  require(staging_pool().acquire(&cuda_runtime(), size_bytes_max, staging), "staging memory");
  for (const bool in : {false, true}) {
    std::printf("\n%s, us\n%12s %10s %10s %10s %10s %10s %10s\n",
                in ? "host to device" : "device to host", "bytes", "own+sync", "own+poll", "legacy",
                "own,driver", "raw,driver", "raw,page");
    for (std::size_t size = 8; size <= size_bytes_max; size *= size < 65536 ? 8 : 4) {
      const auto ours = [&](void* host) {
        const Copy copy{in ? device_memory : host, in ? host : device_memory, size};
        require(cuda_runtime().copy(0, {&copy, 1}), "copy");
      };
      const auto raw = [&](void* host) {
        const Result result = to_host == nullptr || to_device == nullptr ? Result::invalid_value
                              : in ? to_device(cuda::address_of(device_memory), host, size)
                                   : to_host(host, cuda::address_of(device_memory), size);
        require(result == Result::success, "cuMemcpy");
      };
      std::printf("%12zu", size);
      for (CopyMode mode :
           {CopyMode::stream_synchronize, CopyMode::stream_poll, CopyMode::legacy_stream}) {
        cuda::copy_mode = mode;
        cell(size, [&] { ours(staging.data()); });
      }
      cuda::copy_mode = CopyMode::stream_synchronize;
      cell(size, [&] { ours(of_driver); });
      if (to_host != nullptr && to_device != nullptr) {
        cell(size, [&] { raw(of_driver); });
        cell(size, [&] { raw(pageable.get()); });
      }
      std::printf("\n");
    }
  }
  driver.host_memory_free(of_driver);
}

// Within the device: together, and each by itself.
void measure_lists(std::byte* memory, std::size_t memory_bytes) {
  std::printf("\ncopies within the device, us\n%12s %6s %12s %12s\n", "bytes", "copies", "together",
              "each");
  for (std::size_t size = 1024; size <= std::size_t{4} << 20; size *= 32) {
    for (const std::size_t count : {2, 4, 16, 64}) {
      if (2 * count * size > memory_bytes) continue;
      std::vector<Copy> copies;
      for (std::size_t i = 0; i < count; ++i)
        copies.push_back({memory + (count + i) * size, memory + i * size, size});
      const auto by = [&](auto begin) {
        return median_us(200, 1, [&] {
          CopyTicket ticket;
          require(begin(*cuda::driver(), 0, copies, ticket), "copies");
          for (bool done = false; !done;) require(cuda_runtime().copy_done(ticket, done), "copies");
        });
      };
      std::printf("%12zu %6zu %12.2f %12.2f\n", size, count, by(cuda::copy_list_begin),
                  by(cuda::copy_begin));
    }
  }
}

void measure_host_memory(std::size_t size_bytes_max) {
  const cuda::Driver& driver = *cuda::driver();
  std::printf("\nhost memory, allocate and free, us\n%12s %12s %12s\n", "bytes", "ours",
              "cuMemHostAlloc");
  for (std::size_t size = 4096; size <= size_bytes_max; size *= 16) {
    void* pointer = nullptr;
    const double ours = median_us(10, 1, [&] {
      require(cuda_runtime().host_allocate(size, pointer), "host_allocate");
      cuda_runtime().host_free(pointer, size);
    });
    const double theirs = median_us(10, 1, [&] {
      require(driver.host_memory_allocate(&pointer, size, cuda::kHostAllocatePortable) ==
                  Result::success,
              "cuMemHostAlloc");
      driver.host_memory_free(pointer);
    });
    std::printf("%12zu %12.1f %12.1f\n", size, ours, theirs);
  }
}

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  using namespace accord::device;
  accord::test::load_fake_driver();
  const std::size_t size_bytes_max =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{64} << 20;
  if (cuda::driver() == nullptr || cuda_runtime().device_count() == 0) {
    std::printf("no CUDA device\n");
    return 77;
  }
  cuda::Context context = nullptr;
  require(cuda::driver()->primary_context_retain(&context, 0) == Result::success, "context");
  require(cuda::driver()->context_push(context) == Result::success, "context");
  void* device_memory = nullptr;
  require(cuda_runtime().allocate(0, MemoryKind::device, size_bytes_max, device_memory), "memory");
  measure_queries(device_memory);
  measure_copies(size_bytes_max, device_memory);
  measure_lists(static_cast<std::byte*>(device_memory), size_bytes_max);
  measure_host_memory(size_bytes_max);
  return 0;
}
