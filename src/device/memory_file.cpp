// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace accord::device {

int make_memory_file(const char* name, std::size_t size_bytes) noexcept {
  const int descriptor = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return -1;
  if (::ftruncate(descriptor, static_cast<off_t>(size_bytes)) == 0 &&
      ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return descriptor;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return -1;
}

bool is_memory_file(int descriptor) noexcept {
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace accord::device
