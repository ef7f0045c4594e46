// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// File descriptors that ranks of a node show each other: the number travels, and the other process
// opens it by /proc.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>

namespace accord::node {

// A descriptor of another process of the same user. -1 with errno where that is not allowed.
inline int open_theirs(std::int32_t process, std::int32_t descriptor) {
  return ::open(fmt::format("/proc/{}/fd/{}", process, descriptor).c_str(), O_RDWR | O_CLOEXEC);
}

inline void close_descriptor(int& descriptor) noexcept {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

}  // namespace accord::node
