// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/device_claim.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace accord::device {

// By the name of a socket in the abstract namespace: nothing in any file system, and gone with the
// process however it ends. What keeps the name from being taken for another reason (a sandbox)
// keeps nobody from the device.
Status claim_device(std::uint64_t device) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::uint64_t>& claimed = *new std::set<std::uint64_t>;
  const std::lock_guard lock(mutex);
  if (claimed.contains(device)) return {};
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0) {
    const std::string name = fmt::format("accord-device-{:016x}", device);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size_bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size_bytes) != 0) {
      const bool taken = errno == EADDRINUSE;
      ::close(descriptor);
      if (taken) return {StatusCode::unsupported, "another process keeps a kernel on this device"};
    }
  }
  claimed.insert(device);
  return {};
}

}  // namespace accord::device
