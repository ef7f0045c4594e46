// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace accord::bench {

void Buffer::reserve(std::size_t size_bytes) {
  constexpr std::size_t kPageBytes = 4096;
  // Small sizes share one allocation, as in a program; every larger one is exactly what is asked
  // for.
  constexpr std::size_t kLeastBytes = std::size_t{1} << 20;
  const std::size_t wanted = std::max(size_bytes, kLeastBytes);
  if (data_ != nullptr && size_bytes_ >= wanted) return;
  release();
  if (memory_ == Memory::host) {
    if (posix_memalign(&data_, kPageBytes, wanted) != 0) {
      data_ = nullptr;
      throw std::runtime_error(fmt::format("no memory for {} bytes", wanted));
    }
  } else {
    data_ = accord_->allocate(wanted, memory_);
  }
  size_bytes_ = wanted;
}

void Buffer::release() noexcept {
  if (data_ == nullptr) return;
  if (memory_ == Memory::host) {
    std::free(data_);
  } else {
    try {
      accord_->free(data_);
    } catch (const std::exception&) {
      // Nothing can be done about memory that cannot be freed; the next allocation reports a lost
      // device.
    }
  }
  data_ = nullptr;
  size_bytes_ = 0;
}

void write_bytes(const Session& session, Memory memory, void* dst, const void* src,
                 std::size_t size_bytes) {
  if (cpu_may_touch(memory)) {
    std::memcpy(dst, src, size_bytes);
  } else if (session.cuda != nullptr) {
    session.cuda->copy_to_device(dst, src, size_bytes);  // as a program does, and waits no longer
  } else {
    session.accord->copy(dst, src, size_bytes);
  }
}

void read_bytes(const Session& session, Memory memory, void* dst, const void* src,
                std::size_t size_bytes) {
  if (cpu_may_touch(memory)) {
    std::memcpy(dst, src, size_bytes);
  } else if (session.cuda != nullptr) {
    session.cuda->copy_to_host(dst, src, size_bytes);
  } else {
    session.accord->copy(dst, src, size_bytes);
  }
}

}  // namespace accord::bench
