// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/meeting_place.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace accord::proxy {
namespace {

// Ranks that may wait there while the proxy starts; more of them try again.
constexpr int kWaitingMax = 256;

Status from_errno(const char* what) {
  return {StatusCode::unsupported, fmt::format("proxy: {}: {}", what, std::strerror(errno))};
}

struct Place {
  sockaddr_un address{};
  socklen_t size_bytes = 0;

  Place(std::uint64_t cookie, std::uint64_t node) {
    const std::string name = fmt::format("accord-proxy-{:016x}-{:016x}", cookie, node);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Status make_socket(node::Descriptor& socket) {
  socket = node::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return socket.is_open() ? Status() : from_errno("socket");
}

}  // namespace

// A place that is taken but not listened at yet, or where too many wait, is one to come back to: it
// counts as not there, and cannot be taken.
Status connect_to_place(std::uint64_t cookie, std::uint64_t node, node::Descriptor& socket,
                        bool& is_there) {
  const Place place(cookie, node);
  ACCORD_TRY(make_socket(socket));
  is_there = ::connect(socket.number(), place.get(), place.size_bytes) == 0;
  if (is_there || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return {};
  return from_errno("connect");
}

Status take_place(std::uint64_t cookie, std::uint64_t node, node::Descriptor& taken) {
  const Place place(cookie, node);
  node::Descriptor socket;
  ACCORD_TRY(make_socket(socket));
  if (::bind(socket.number(), place.get(), place.size_bytes) != 0)
    return errno == EADDRINUSE ? Status() : from_errno("bind");
  if (::listen(socket.number(), kWaitingMax) != 0) return from_errno("listen");
  taken = std::move(socket);
  return {};
}

}  // namespace accord::proxy
