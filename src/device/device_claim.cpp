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

namespace {

struct Name {
  sockaddr_un address{};
  socklen_t size_bytes = 0;

  explicit Name(const std::string& text) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, text.data(), text.size());
    size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

int make_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Whether a process of this user holds the name: the kernel says who listens there. Who has bound
// it but does not listen yet gets a moment.
bool is_held_by_this_user(const Name& name) {
  constexpr int kAttempts = 20;
  constexpr useconds_t kPauseUs = 500;
  const int descriptor = make_socket();
  if (descriptor < 0) return false;
  bool connected = false;
  for (int i = 0; i < kAttempts && !connected; ++i) {
    connected = ::connect(descriptor, name.get(), name.size_bytes) == 0;
    if (!connected && errno != ECONNREFUSED) break;
    if (!connected) ::usleep(kPauseUs);
  }
  ucred holder{};
  socklen_t size_bytes = sizeof holder;
  const bool known =
      connected && ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &holder, &size_bytes) == 0;
  ::close(descriptor);
  return known && holder.uid == ::geteuid();
}

}  // namespace

std::string claim_name(std::uint64_t device, unsigned attempt) {
  return fmt::format("accord-device-{:016x}-{}-{}", device, ::geteuid(), attempt);
}

// What keeps a name from being taken for another reason than that this user has it (a sandbox, the
// mischief of another user) keeps nobody from the device.
Status claim_device(std::uint64_t device) {
  forget_claims_in_children();
  const std::lock_guard lock(claims().mutex);
  if (claims().sockets.contains(device)) return {};
  const int descriptor = make_socket();
  if (descriptor < 0) return {};
  for (unsigned attempt = 0; attempt < kClaimNames; ++attempt) {
    const Name name(claim_name(device, attempt));
    if (::bind(descriptor, name.get(), name.size_bytes) == 0) {
      (void)::listen(descriptor, SOMAXCONN);
      claims().sockets.emplace(device, descriptor);
      return {};
    }
    if (errno != EADDRINUSE) break;
    if (!is_held_by_this_user(name)) continue;
    ::close(descriptor);
    return {StatusCode::unsupported, "another process keeps a kernel on this device"};
  }
  ::close(descriptor);
  return {};
}

}  // namespace accord::device
