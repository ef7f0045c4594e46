// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What comes over the socket between a rank and its proxy, made of an input: packets that may be
// anything, and packets whose frame is right, so that what reads their contents gets any.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <filesystem>
#include <vector>

#include "device/memory_file.h"
#include "device/registry.h"
#include "fuzz.h"
#include "node/descriptor.h"
#include "proxy/packet.h"

namespace accord::fuzz {

// As src/proxy/packet.cpp frames them.
struct Frame {
  std::uint64_t magic = 0x31787864'63636102ULL;
  std::uint32_t kind = 0;
  std::uint32_t body_bytes = 0;
  std::array<std::uint64_t, proxy::Packet::kWords> words{};
};

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// Memory of a device of this machine, as another process would export it.
struct Exported {
  static constexpr std::size_t kBytes = 64 << 10;
  std::vector<std::byte> handle;
  std::string device;
  node::Descriptor descriptor;
};
inline const Exported& exported() {
  static const Exported& made = []() -> const Exported& {
    auto& fresh = *new Exported;
    device::DeviceRuntime& runtime = device::default_runtime();
    void* memory = nullptr;
    device::ExportedMemory of;
    device::DeviceDescription description;
    FUZZ_CHECK(runtime.allocate(0, device::MemoryKind::device, Exported::kBytes, memory).ok());
    FUZZ_CHECK(runtime.export_memory(memory, of).ok() && runtime.describe(0, description).ok());
    fresh.handle = of.bytes;
    fresh.device = description.uuid;
    fresh.descriptor = node::Descriptor(of.file_descriptor);
    return fresh;
  }();
  return made;
}

// Puts one packet into the socket: flags, descriptors, length, then so many bytes.
inline void send_one(int socket, Input& input) {
  enum Flag : std::uint8_t { framed = 1, with_device = 2, too_long = 4 };
  const auto flags = input.value<std::uint8_t>();
  const std::size_t descriptors = input.value<std::uint8_t>() % 4;
  const auto given = input.take(input.value<std::uint16_t>());
  std::vector<std::byte> bytes(given.begin(), given.end());
  if ((flags & framed) != 0) {
    Input contents(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    Frame frame{.kind = contents.value<std::uint32_t>()};
    for (std::uint64_t& word : frame.words) word = contents.value<std::uint32_t>();
    const auto rest = contents.rest();
    std::vector<std::byte> body;
    if ((flags & with_device) != 0) {
      const auto& memory = exported();
      const auto name = std::as_bytes(std::span(memory.device));
      body = memory.handle;
      body.insert(body.end(), name.begin(), name.end());
      proxy::ErrandWords words;
      static_assert(sizeof words <= sizeof frame.words);
      std::memcpy(static_cast<void*>(&words), frame.words.data(), sizeof words);
      words.handle_bytes = memory.handle.size();
      words.device_bytes = memory.device.size();
      std::memcpy(frame.words.data(), &words, sizeof words);
    }
    body.insert(body.end(), rest.begin(), rest.end());
    if ((flags & too_long) != 0) body.resize(body.size() + proxy::Packet::kBodyBytesMax);
    frame.body_bytes = static_cast<std::uint32_t>(body.size());
    const auto head = std::as_bytes(std::span(&frame, 1));
    bytes.assign(head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
  }
  if (bytes.empty()) return;
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const std::vector<int> numbers(descriptors, exported().descriptor.number());
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

}  // namespace accord::fuzz
