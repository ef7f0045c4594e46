// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/cuda_library.h"

#include <fmt/format.h>

#include <stdexcept>

#include "bench/shared_object.h"

namespace accord::bench {
namespace {

constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;
constexpr unsigned kStreamNonBlocking = 1;

void check(int code, const char* what) {
  if (code != 0) throw std::runtime_error(fmt::format("{}: CUDA error {}", what, code));
}

}  // namespace

std::unique_ptr<CudaLibrary> CudaLibrary::open(int device, std::string& why_not) {
  std::unique_ptr<CudaLibrary> library(new CudaLibrary);
  if (!library->load(device, why_not)) return nullptr;
  return library;
}

bool CudaLibrary::load(int device, std::string& why_not) {
  device_ = device;
  void* driver = open_first({"libcuda.so.1"}, why_not);
  if (driver == nullptr) return false;
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  const bool complete = find_function(driver, "cuInit", init) &&
                        find_function(driver, "cuDevicePrimaryCtxRetain", retain) &&
                        find_function(driver, "cuCtxSetCurrent", set_current) &&
                        find_function(driver, "cuMemcpy", memcpy_) &&
                        find_function(driver, "cuStreamCreate", stream_create_) &&
                        find_function(driver, "cuStreamSynchronize", stream_synchronize_) &&
                        find_function(driver, "cuDeviceGetUuid", device_uuid_) &&
                        find_function(driver, "cuDeviceGetName", device_name_);
  if (!complete) {
    why_not = fmt::format("libcuda.so.1: {}", dlerror());
    return false;
  }
  void* context = nullptr;
  // A device number is its ordinal: cuDeviceGet is the identity.
  if (init(0) != 0 || retain(&context, device) != 0 || set_current(context) != 0) {
    why_not = fmt::format("the CUDA driver gives no context on device {}", device);
    return false;
  }
  std::string unused;
  if (void* cudart = open_first({"libcudart.so.13", "libcudart.so.12", "libcudart.so"}, unused)) {
    int (*set_device)(int) = nullptr;
    if (find_function(cudart, "cudaSetDevice", set_device) && set_device(device) == 0) {
      find_function(cudart, "cudaMemcpy", cudart_memcpy_);
    }
  }
  return true;
}

void CudaLibrary::copy(void* dst, const void* src, std::size_t size_bytes, int cudart_kind) {
  if (cudart_memcpy_ != nullptr) {
    check(cudart_memcpy_(dst, src, size_bytes, cudart_kind), "cudaMemcpy");
  } else {
    check(
        memcpy_(reinterpret_cast<std::size_t>(dst), reinterpret_cast<std::size_t>(src), size_bytes),
        "cuMemcpy");
  }
}

void CudaLibrary::copy_to_host(void* dst, const void* src, std::size_t size_bytes) {
  copy(dst, src, size_bytes, kDeviceToHost);
}

void CudaLibrary::copy_to_device(void* dst, const void* src, std::size_t size_bytes) {
  copy(dst, src, size_bytes, kHostToDevice);
}

CudaLibrary::Stream CudaLibrary::make_stream() {
  Stream stream = nullptr;
  check(stream_create_(&stream, kStreamNonBlocking), "cuStreamCreate");
  return stream;
}

void CudaLibrary::synchronize(Stream stream) {
  check(stream_synchronize_(stream), "cuStreamSynchronize");
}

CudaLibrary::Uuid CudaLibrary::uuid() {
  Uuid uuid{};
  check(device_uuid_(&uuid, device_), "cuDeviceGetUuid");
  return uuid;
}

std::string CudaLibrary::device_name() {
  std::string name(256, '\0');
  check(device_name_(name.data(), static_cast<int>(name.size()), device_), "cuDeviceGetName");
  name.resize(name.find('\0'));
  return name;
}

}  // namespace accord::bench
