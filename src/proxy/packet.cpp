// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/packet.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace accord::proxy {
namespace {

struct Header {
  static constexpr std::uint64_t kMagic = 0x31787864'63636102ULL;
  std::uint64_t magic = kMagic;
  Kind kind{};
  std::uint32_t body_bytes = 0;
  std::array<std::uint64_t, Packet::kWords> words{};
};

Status ended(const char* how) {
  return {StatusCode::device_error, fmt::format("proxy: the connection has ended: {}", how)};
}

// The descriptor that came, of several the first; those that nobody expects are closed.
node::Descriptor descriptor_in(msghdr& message) {
  node::Descriptor first;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
      node::Descriptor one(number);
      if (!first.is_open()) first = std::move(one);
    }
  }
  return first;
}

}  // namespace

static_assert(sizeof(ErrandWords) <= sizeof Packet::words);

ErrandWords errand_words(const Packet& packet) {
  ErrandWords words;
  std::memcpy(static_cast<void*>(&words), packet.words.data(), sizeof words);
  return words;
}

void put_words(const ErrandWords& words, Packet& packet) {
  std::memcpy(packet.words.data(), &words, sizeof words);
}

Status send_packet(int socket, const Packet& packet, bool& sent) {
  sent = false;
  if (packet.body.size() > Packet::kBodyBytesMax)
    return {StatusCode::invalid_argument, "proxy: a packet too long"};
  Header header{.kind = packet.kind,
                .body_bytes = static_cast<std::uint32_t>(packet.body.size()),
                .words = packet.words};
  iovec parts[] = {{&header, sizeof header},
                   {const_cast<std::byte*>(packet.body.data()), packet.body.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (packet.descriptor.is_open()) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = packet.descriptor.number();
    std::memcpy(CMSG_DATA(rights), &number, sizeof number);
  }
  sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  if (sent || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS)
    return {};
  return ended(std::strerror(errno));
}

Status receive_packet(int socket, Packet& packet, bool& came) {
  came = false;
  Header header;
  packet.body.resize(Packet::kBodyBytesMax);
  iovec parts[] = {{&header, sizeof header}, {packet.body.data(), packet.body.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {};
  if (length < 0) return ended(std::strerror(errno));
  if (length == 0) return ended("the other process is gone");
  packet.descriptor = descriptor_in(message);
  const auto received = static_cast<std::size_t>(length);
  if (received < sizeof header || header.magic != Header::kMagic ||
      header.body_bytes != received - sizeof header ||
      (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return ended("a packet that is none of ours");
  packet.kind = header.kind;
  packet.words = header.words;
  packet.body.resize(header.body_bytes);
  came = true;
  return {};
}

bool is_of_this_user(int socket) noexcept {
  ucred other{};
  socklen_t size_bytes = sizeof other;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size_bytes) == 0 &&
         other.uid == ::getuid();
}

}  // namespace accord::proxy
