// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory on a device with given contents, for MPI programs; without it they cannot go on.
#pragma once

#include <accord/accord.h>
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

namespace accord::test {

class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<std::byte>& contents) : size_bytes_(contents.size()) {
    if (accord_malloc(&pointer_, size_bytes_, ACCORD_MEMORY_DEVICE) != ACCORD_OK ||
        accord_memcpy(pointer_, contents.data(), size_bytes_) != ACCORD_OK) {
      std::fprintf(stderr, "no device memory: %s\n", accord_last_error());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { (void)accord_free(pointer_); }

  void* pointer() const { return pointer_; }
  std::vector<std::byte> contents() const {
    std::vector<std::byte> bytes(size_bytes_);
    if (accord_memcpy(bytes.data(), pointer_, size_bytes_) != ACCORD_OK) bytes.clear();
    return bytes;
  }

 private:
  void* pointer_ = nullptr;
  std::size_t size_bytes_;
};

template <class Number>
DeviceBuffer on_device(const std::vector<Number>& numbers) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  return DeviceBuffer({bytes, bytes + numbers.size() * sizeof(Number)});
}
template <class Number = int>
std::vector<Number> contents(const DeviceBuffer& buffer) {
  const std::vector<std::byte> bytes = buffer.contents();
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace accord::test
