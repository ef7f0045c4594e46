// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/partitioned_prequest.h"

#include <cstring>
#include <vector>

namespace accord::core {

accord_prequest* DevicePrequest::for_kernels() const noexcept {
  return static_cast<accord_prequest*>(runtime_.address_for_library(memory_.data()));
}

Status DevicePrequest::create(accord_prequest shown, std::size_t transfers) {
  const std::size_t counters = (shown.sides & ACCORD_PARTITION_SENDS) != 0
                                   ? static_cast<std::size_t>(shown.partitions) + transfers
                                   : 0;
  const std::size_t used_bytes = sizeof shown + counters * sizeof(std::uint64_t);
  ACCORD_TRY(memory_.take(runtime_, device_, used_bytes));
  auto* const first = reinterpret_cast<std::uint64_t*>(for_kernels() + 1);
  shown.partition_marks = first;
  shown.transfer_marks = first + shown.partitions;
  std::vector<std::byte> bytes(used_bytes);
  std::memcpy(bytes.data(), &shown, sizeof shown);
  return write(0, bytes.data(), bytes.size());
}

// The words that kernels look at come last.
Status DevicePrequest::connect(const accord_prequest& shown) {
  constexpr std::size_t kFirst = offsetof(accord_prequest, link);
  constexpr std::size_t kLast = offsetof(accord_prequest, node.ranks);
  ACCORD_TRY(write(kFirst, &shown.link, kLast - kFirst));
  return write(kLast, &shown.node.ranks,
               offsetof(accord_prequest, connected) + sizeof shown.connected - kLast);
}

Status DevicePrequest::write(std::size_t offset_bytes, const void* bytes, std::size_t size_bytes) {
  const device::Copy copy{
      .dst = memory_.data() + offset_bytes, .src = bytes, .row_bytes = size_bytes};
  return runtime_.copy(device_, {&copy, 1});
}

}  // namespace accord::core
