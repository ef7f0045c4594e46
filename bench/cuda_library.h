// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The few CUDA functions that the hand-written peers need, found at run time: the driver always,
// the CUDA runtime's cudaMemcpy where libcudart can be loaded, since that is what people call. The
// process's device is the one Accord's memory is on, through the driver's primary context.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace accord::bench {

class CudaLibrary {
 public:
  using Stream = struct CUstream_st*;
  using Uuid = std::array<unsigned char, 16>;

  // Makes `device` current for this thread. Null with the reason in `why_not` without driver or
  // device.
  static std::unique_ptr<CudaLibrary> open(int device, std::string& why_not);

  // Blocking copies, as a user's code would make them. Throw std::runtime_error.
  void copy_to_host(void* dst, const void* src, std::size_t size_bytes);
  void copy_to_device(void* dst, const void* src, std::size_t size_bytes);

  Stream make_stream();
  void synchronize(Stream stream);

  Uuid uuid();
  std::string device_name();
  // "cudaMemcpy" or "cuMemcpy".
  const char* copy_name() const { return cudart_memcpy_ != nullptr ? "cudaMemcpy" : "cuMemcpy"; }

 private:
  CudaLibrary() = default;
  bool load(int device, std::string& why_not);
  void copy(void* dst, const void* src, std::size_t size_bytes, int cudart_kind);

  int device_ = 0;
  int (*cudart_memcpy_)(void*, const void*, std::size_t, int) = nullptr;
  int (*memcpy_)(std::size_t, std::size_t, std::size_t) = nullptr;
  int (*stream_create_)(Stream*, unsigned) = nullptr;
  int (*stream_synchronize_)(Stream) = nullptr;
  int (*device_uuid_)(Uuid*, int) = nullptr;
  int (*device_name_)(char*, int, int) = nullptr;
};

}  // namespace accord::bench
