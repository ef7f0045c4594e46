// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of the virtual memory API for the CUDA tests: physical memory, mapped piece by piece into
// addresses that were reserved before.
#pragma once

#include "cuda_fixture.h"
#include "cuda_test.h"

namespace accord::test {

enum class Export { never, by_descriptor };

inline unsigned handle_types(Export how) {
  return how == Export::by_descriptor
             ? static_cast<unsigned>(device::cuda::HandleType::posix_file_descriptor)
             : 0;
}

inline std::size_t granule() {
  const PhysicalProperties properties;
  std::size_t size_bytes = 0;
  EXPECT_CUDA(program().memory_granularity(&size_bytes, &properties, 0));
  return size_bytes;
}

// Physical memory of device 0, one granule of it.
class Physical {
 public:
  explicit Physical(Export how) {
    PhysicalProperties properties;
    properties.handle_types = handle_types(how);
    EXPECT_CUDA(program().memory_create(&handle_, granule(), &properties, 0));
  }
  ~Physical() { EXPECT_CUDA(driver().memory_release(handle_)); }
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  MemoryHandle handle() const { return handle_; }

 private:
  MemoryHandle handle_ = 0;
};

// Reserved addresses of some granules.
class Reserved {
 public:
  explicit Reserved(std::size_t granules) : size_bytes_(granules * granule()) {
    EXPECT_CUDA(driver().address_reserve(&start_, size_bytes_, 0, 0, 0));
  }
  ~Reserved() { EXPECT_CUDA(driver().address_free(start_, size_bytes_)); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  std::byte* map(std::size_t number, const Physical& physical) {
    std::byte* const memory = map_without_access(number, physical);
    const device::cuda::AccessDescription access{{device::cuda::kLocationDevice, 0},
                                                 device::cuda::kAccessReadWrite};
    EXPECT_CUDA(
        driver().memory_set_access(device::cuda::address_of(memory), granule(), &access, 1));
    return memory;
  }
  std::byte* map_without_access(std::size_t number, const Physical& physical) {
    const DevicePointer address = start_ + number * granule();
    EXPECT_CUDA(driver().memory_map(address, granule(), 0, physical.handle(), 0));
    return static_cast<std::byte*>(pointer_to(address));
  }
  void unmap(std::size_t number) {
    EXPECT_CUDA(driver().memory_unmap(start_ + number * granule(), granule()));
  }

 private:
  std::size_t size_bytes_;
  DevicePointer start_ = 0;
};

}  // namespace accord::test
