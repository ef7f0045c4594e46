// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace accord::fake {
namespace {

// The segments that this process has made and that some rank has yet to open.
std::mutex mutex;
std::map<std::uint64_t, int> descriptors;

std::uint64_t inode_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::size_t Lane::put(std::span<const std::byte> from) {
  const std::uint64_t begin = written.load(std::memory_order_relaxed);
  const std::size_t room = kLaneBytes - (begin - read.load(std::memory_order_acquire));
  const std::size_t count = std::min(room, from.size());
  const std::size_t first = std::min(count, kLaneBytes - begin % kLaneBytes);
  if (count == 0) return 0;
  std::memcpy(bytes + begin % kLaneBytes, from.data(), first);
  std::memcpy(bytes, from.data() + first, count - first);
  written.store(begin + count, std::memory_order_release);
  return count;
}

std::size_t Lane::take(std::span<std::byte> to) {
  const std::uint64_t begin = read.load(std::memory_order_relaxed);
  const std::size_t there = written.load(std::memory_order_acquire) - begin;
  const std::size_t count = std::min(there, to.size());
  const std::size_t first = std::min(count, kLaneBytes - begin % kLaneBytes);
  if (count == 0) return 0;
  std::memcpy(to.data(), bytes + begin % kLaneBytes, first);
  std::memcpy(to.data() + first, bytes, count - first);
  read.store(begin + count, std::memory_order_release);
  return count;
}

bool Segment::create(std::span<char> id) {
  const int descriptor = memfd_create("accord-fake-ccl", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(Shared)) != 0) return false;
  const std::uint64_t inode = inode_of(descriptor);
  std::snprintf(id.data(), id.size(), "%d %d %" PRIu64, getpid(), descriptor, inode);
  const std::lock_guard lock(mutex);
  descriptors[inode] = descriptor;
  return true;
}

std::unique_ptr<Segment> Segment::open(std::span<const char> id) {
  const std::string text(id.data(), strnlen(id.data(), id.size()));
  int process = 0;
  int number = 0;
  std::uint64_t inode = 0;
  if (std::sscanf(text.c_str(), "%d %d %" SCNu64, &process, &number, &inode) != 3) return nullptr;
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(number);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (inode_of(descriptor) == inode) {
    memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  close(descriptor);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<Segment>(new Segment(static_cast<Shared*>(memory), inode));
}

Segment::~Segment() { munmap(shared_, sizeof(Shared)); }

void Segment::complete() {
  const std::lock_guard lock(mutex);
  const auto own = descriptors.find(inode_);
  if (own == descriptors.end()) return;
  close(own->second);
  descriptors.erase(own);
}

}  // namespace accord::fake
