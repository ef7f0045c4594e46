// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/device_claim.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace accord::device {

namespace {

// By the name of a socket in the abstract namespace: nothing in any file system, and gone with the
// process however it ends.
struct Claims {
  std::mutex mutex;
  std::map<std::uint64_t, int> sockets;  // by device
};

Claims& claims() {
  static Claims& all = *new Claims;
  return all;
}

// A child that the process forks has none of its claims, or it would keep them when the process has
// ended.
void forget_claims_in_children() {
  static const int registered =
      ::pthread_atfork([] { claims().mutex.lock(); }, [] { claims().mutex.unlock(); },
                       [] {
                         for (const auto& [device, socket] : claims().sockets) ::close(socket);
                         claims().sockets.clear();
                         claims().mutex.unlock();
                       });
  static_cast<void>(registered);
}

}  // namespace

// What keeps the name from being taken for another reason than that it is (a sandbox) keeps nobody
// from the device.
Status claim_device(std::uint64_t device) {
  forget_claims_in_children();
  const std::lock_guard lock(claims().mutex);
  if (claims().sockets.contains(device)) return {};
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
      return taken
                 ? Status(StatusCode::unsupported, "another process keeps a kernel on this device")
                 : Status();
    }
    claims().sockets.emplace(device, descriptor);
  }
  return {};
}

}  // namespace accord::device
