// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/partition_board.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace accord::node {
namespace {

constexpr std::size_t kPageBytes = 4096;

Status from_errno(StatusCode code, const char* what) {
  return {code, fmt::format("partitioned: {}: {}", what, std::strerror(errno))};
}

}  // namespace

PartitionBoard::~PartitionBoard() {
  if (pinned_by_ != nullptr) pinned_by_->host_unpin(head_);
  if (head_ != nullptr) ::munmap(head_, size_bytes_);
}

Status PartitionBoard::make(std::int32_t transfers) {
  descriptor_ = Descriptor(::memfd_create("accord-partitions", MFD_CLOEXEC));
  if (!descriptor_.is_open()) return from_errno(StatusCode::no_memory, "memfd_create");
  const std::size_t wanted_bytes =
      sizeof(Head) + static_cast<std::size_t>(transfers) * sizeof words_[0];
  size_bytes_ = (wanted_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (::ftruncate(descriptor_.number(), static_cast<off_t>(size_bytes_)) != 0)
    return from_errno(StatusCode::no_memory, "ftruncate");
  // Fresh pages are zero, which is what both parts start with.
  return map_pages(descriptor_.number(), transfers);
}

Status PartitionBoard::map(const Descriptor& descriptor, std::int32_t transfers) {
  struct stat of {};
  if (::fstat(descriptor.number(), &of) != 0) return from_errno(StatusCode::unsupported, "fstat");
  size_bytes_ = static_cast<std::size_t>(of.st_size);
  return map_pages(descriptor.number(), transfers);
}

Status PartitionBoard::map_pages(int descriptor, std::int32_t transfers) {
  if (size_bytes_ < sizeof(Head) + static_cast<std::size_t>(transfers) * sizeof words_[0])
    return {StatusCode::unsupported, "partitioned: the receiver's pages are too few"};
  void* pages = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (pages == MAP_FAILED) return from_errno(StatusCode::no_memory, "mmap");
  head_ = std::launder(static_cast<Head*>(pages));
  words_ =
      reinterpret_cast<std::atomic<std::uint32_t>*>(static_cast<std::byte*>(pages) + sizeof(Head));
  return {};
}

Status PartitionBoard::pin(device::DeviceRuntime& runtime) {
  if (pinned_by_ != nullptr) return {};
  ACCORD_TRY(runtime.host_pin(head_, size_bytes_));
  pinned_by_ = &runtime;
  return {};
}

}  // namespace accord::node
