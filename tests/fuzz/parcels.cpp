// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What comes to the socket of a process's descriptor ports: a length, descriptors and bytes, again
// and again. The port's number, which is random, takes the place of the bytes where it belongs.
#include <sys/un.h>

#include "node/descriptor_port.h"
#include "packets.h"

namespace {

using namespace accord;

// As src/node/descriptor_port.cpp sends them.
struct Parcel {
  std::uint64_t magic = 0x31647063'64726361ULL;
  std::uint64_t port = 0;
  node::ParcelLabel label;
};

void send_bytes(int socket, const node::PortAddress& to, std::span<const std::byte> bytes,
                std::size_t descriptors) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  char text[32];
  const int length = std::snprintf(text, sizeof text, "accord-%016llx",
                                   static_cast<unsigned long long>(to.process));
  std::memcpy(name.sun_path + 1, text, static_cast<std::size_t>(length));
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr message{};
  message.msg_name = &name;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                               static_cast<std::size_t>(length));
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const std::vector<int> numbers(descriptors, fuzz::exported().descriptor.number());
  if (!numbers.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(numbers.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(numbers.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), numbers.data(), numbers.size() * sizeof(int));
  }
  (void)::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  static node::DescriptorPort& first = *new node::DescriptorPort;  // keeps the socket open
  static const bool opened = first.open().ok();
  FUZZ_CHECK(opened);
  static const node::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  (void)fuzz::exported();
  const std::size_t before = fuzz::open_descriptors();
  {
    node::DescriptorPort port;
    FUZZ_CHECK(port.open().ok());
    fuzz::Input input(data, size_bytes);
    while (!input.empty()) {
      const auto how = input.value<std::uint8_t>();
      Parcel parcel{.port = port.address().port, .label = {}};
      const auto label = input.take(sizeof parcel.label);
      if (!label.empty()) std::memcpy(&parcel.label, label.data(), label.size());
      std::vector<std::byte> bytes(sizeof parcel);
      std::memcpy(bytes.data(), &parcel, sizeof parcel);
      if ((how & 8) != 0) {
        const auto other = input.take(input.value<std::uint8_t>());
        bytes.assign(other.begin(), other.end());
      }
      if ((how & 16) != 0) bytes.resize(bytes.size() + 1);
      send_bytes(socket.number(), port.address(), bytes, how & 7);
      std::vector<node::Descriptor> taken;
      if ((how & 32) != 0 && port.take(parcel.label, taken))
        FUZZ_CHECK(taken.size() <= node::DescriptorPort::kDescriptorsMax);
      if ((how & 64) != 0) port.drop(parcel.label);
    }
    port.receive();
  }
  FUZZ_CHECK(fuzz::open_descriptors() == before);
  return 0;
}
