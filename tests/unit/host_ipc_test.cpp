// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of the host runtime in two processes: exported by one, its descriptor sent over a socket,
// opened by the other. The other is forked before anything exists, so it can have inherited
// nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "device/device_runtime.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

using test::pattern;

constexpr std::size_t kBytes = 100000;
constexpr std::size_t kOffset = 12345;

// What travels: the handle bytes and offset as data, the descriptor as a control message.
struct Parcel {
  std::size_t offset_bytes = 0;
  std::size_t handle_bytes = 0;
  std::byte handle[256]{};
};

bool send_exported(int socket, const ExportedMemory& exported) {
  Parcel parcel;
  parcel.offset_bytes = exported.offset_bytes;
  parcel.handle_bytes = exported.bytes.size();
  std::memcpy(parcel.handle, exported.bytes.data(), exported.bytes.size());
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{&parcel, sizeof parcel};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &exported.file_descriptor, sizeof(int));
  return sendmsg(socket, &message, 0) == static_cast<ssize_t>(sizeof parcel);
}

bool receive_exported(int socket, ExportedMemory& exported) {
  Parcel parcel;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{&parcel, sizeof parcel};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_WAITALL) != static_cast<ssize_t>(sizeof parcel)) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  std::memcpy(&exported.file_descriptor, CMSG_DATA(header), sizeof(int));
  exported.offset_bytes = parcel.offset_bytes;
  exported.bytes.assign(parcel.handle, parcel.handle + parcel.handle_bytes);
  return true;
}

bool signal_peer(int socket) { return write(socket, "x", 1) == 1; }
bool await_peer(int socket) {
  char byte = 0;
  return read(socket, &byte, 1) == 1;
}

Status copy(void* dst, const void* src, std::size_t size_bytes) {
  const Copy one{dst, src, size_bytes};
  return host_runtime().copy(0, {&one, 1});
}

// The importing process. Its exit status names the check that failed.
int importer(int socket) {
  DeviceRuntime& runtime = host_runtime();
  ExportedMemory exported;
  if (!receive_exported(socket, exported)) return 10;
  void* opened = nullptr;
  if (!runtime.open_memory(0, exported, opened).ok()) return 11;
  close(exported.file_descriptor);  // the mapping must not need it
  auto* memory = static_cast<std::byte*>(opened);
  PointerInfo info;
  if (!runtime.classify(memory + kBytes - 1, info) || info.kind != MemoryKind::device) return 12;
  if (info.base != opened || info.size_bytes != kBytes) return 13;
  if (!test::faults(memory + exported.offset_bytes, test::Touch::read)) return 14;
  std::vector<unsigned char> seen(kBytes);
  if (!copy(seen.data(), memory, kBytes).ok() || seen != pattern(kBytes, 1)) return 15;
  const auto answer = pattern(100, 2);
  if (!copy(memory + exported.offset_bytes, answer.data(), 100).ok()) return 16;
  ExportedMemory again;
  if (runtime.export_memory(memory, again).code() != StatusCode::unsupported) return 17;
  if (runtime.free(opened).ok()) return 18;
  if (!signal_peer(socket) || !await_peer(socket)) return 19;
  // The exporter has freed it: what is mapped here stays what it was.
  if (!copy(seen.data(), memory + kOffset, 100).ok()) return 20;
  if (std::memcmp(seen.data(), answer.data(), 100) != 0) return 21;
  if (!runtime.close_memory(opened).ok() || runtime.close_memory(opened).ok()) return 22;
  if (runtime.classify(opened, info)) return 23;
  return 0;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(host_ipc, two_processes_share_an_allocation) {
  int sockets[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
  const pid_t child = fork();
  if (child == 0) {
    close(sockets[0]);
    _exit(importer(sockets[1]));
  }
  close(sockets[1]);
  const std::size_t descriptors = open_descriptors();
  DeviceRuntime& runtime = host_runtime();
  void* pointer = nullptr;
  ASSERT_OK(runtime.allocate(0, MemoryKind::device, kBytes, pointer));
  auto* memory = static_cast<std::byte*>(pointer);
  const auto data = pattern(kBytes, 1);
  ASSERT_OK(copy(memory, data.data(), kBytes));
  ExportedMemory exported;
  ASSERT_OK(runtime.export_memory(memory + kOffset, exported));
  EXPECT_EQ(kOffset, exported.offset_bytes);
  ASSERT_GE(exported.file_descriptor, 0);
  EXPECT_NE(0, fcntl(exported.file_descriptor, F_GETFD) & FD_CLOEXEC);
  ASSERT_TRUE(send_exported(sockets[0], exported));
  close(exported.file_descriptor);
  EXPECT_TRUE(await_peer(sockets[0]));
  std::vector<unsigned char> seen(100);
  EXPECT_OK(copy(seen.data(), memory + kOffset, 100));
  EXPECT_EQ(pattern(100, 2), seen);
  EXPECT_OK(runtime.free(pointer));
  EXPECT_EQ(descriptors, open_descriptors()) << "leaked";
  EXPECT_TRUE(signal_peer(sockets[0]));
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status)) << "the importer's failed check";
  close(sockets[0]);
}

TEST(host_ipc, refuses_what_is_no_handle) {
  DeviceRuntime& runtime = host_runtime();
  void* pointer = nullptr;
  ASSERT_OK(runtime.allocate(0, MemoryKind::device, kBytes, pointer));
  ExportedMemory exported;
  ASSERT_OK(runtime.export_memory(pointer, exported));
  void* opened = nullptr;

  ExportedMemory truncated = exported;
  truncated.bytes.pop_back();
  EXPECT_CODE(invalid_argument, runtime.open_memory(0, truncated, opened));
  ExportedMemory scrambled = exported;
  scrambled.bytes[0] ^= std::byte{1};
  EXPECT_CODE(invalid_argument, runtime.open_memory(0, scrambled, opened));
  ExportedMemory no_descriptor = exported;
  no_descriptor.file_descriptor = -1;
  EXPECT_CODE(invalid_argument, runtime.open_memory(0, no_descriptor, opened));
  // A file that is smaller than the handle says would fault on use.
  ExportedMemory small = exported;
  small.file_descriptor = memfd_create("small", MFD_CLOEXEC);
  ASSERT_EQ(0, ftruncate(small.file_descriptor, 10));
  EXPECT_CODE(invalid_argument, runtime.open_memory(0, small, opened));
  close(small.file_descriptor);
  EXPECT_CODE(invalid_argument, runtime.open_memory(9, exported, opened));
  EXPECT_EQ(nullptr, opened);

  close(exported.file_descriptor);
  EXPECT_OK(runtime.free(pointer));
}

TEST(host_ipc, nobody_can_shrink_the_memory) {
  DeviceRuntime& runtime = host_runtime();
  void* pointer = nullptr;
  ASSERT_OK(runtime.allocate(0, MemoryKind::device, kBytes, pointer));
  ExportedMemory exported;
  ASSERT_OK(runtime.export_memory(pointer, exported));
  EXPECT_NE(0, ftruncate(exported.file_descriptor, 0));
  close(exported.file_descriptor);
  EXPECT_OK(runtime.free(pointer));
}

TEST(host_ipc, only_device_memory_is_exported) {
  DeviceRuntime& runtime = host_runtime();
  for (MemoryKind kind : {MemoryKind::managed, MemoryKind::pinned}) {
    void* pointer = nullptr;
    ASSERT_OK(runtime.allocate(0, kind, 100, pointer));
    ExportedMemory exported;
    EXPECT_CODE(unsupported, runtime.export_memory(pointer, exported));
    EXPECT_OK(runtime.free(pointer));
  }
  int local = 0;
  ExportedMemory exported;
  EXPECT_CODE(invalid_argument, runtime.export_memory(&local, exported));
}

}  // namespace
}  // namespace accord::device
