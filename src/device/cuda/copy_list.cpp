// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/copy_list.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/config.h"
#include "device/cuda/modules.h"
#include "device/cuda/pack.h"
#include "device/cuda/pack_kernels.h"

namespace accord::device::cuda {
namespace {

// Two for each multiprocessor of the largest devices of today, and what is worth one.
constexpr std::uint64_t kBlocksMax = 264;
constexpr std::uint64_t kBlockBytes = std::uint64_t{16} << 10;

std::atomic<std::uint64_t> launches{0};

bool may_be_listed(const Driver& driver, std::span<const Copy> copies) {
  return copies.size() > 1 && driver.images.packing != nullptr &&
         std::ranges::all_of(
             copies, [](const Copy& copy) { return copy.rows == 1 && copy.row_bytes != 0; });
}

// An engine between devices takes 2 to 3 us for each copy, the kernel 8 for all that are short (2 x
// H200: 64 puts of 256 KiB 154 GB/s instead of 118, windows of messages, in lists of few, no more).
Reach reach_of(std::span<const Copy> copies) {
  constexpr std::size_t kCopiesMin = 4;
  constexpr std::size_t kShortBytes = std::size_t{256} << 10;
  const std::size_t most_bytes = std::min<std::size_t>(config().copy_kernel_bytes, kShortBytes);
  const bool are_short =
      std::ranges::all_of(copies, [&](const Copy& copy) { return copy.row_bytes <= most_bytes; });
  return copies.size() >= kCopiesMin && are_short ? Reach::devices : Reach::device;
}

std::vector<ByteRange> ranges_of(std::span<const Copy> copies) {
  std::vector<ByteRange> ranges;
  ranges.reserve(2 * copies.size());
  for (const Copy& copy : copies) {
    const auto* const dst = static_cast<const std::byte*>(copy.dst);
    const auto* const src = static_cast<const std::byte*>(copy.src);
    ranges.push_back({dst, dst + copy.row_bytes - 1});
    ranges.push_back({src, src + copy.row_bytes - 1});
  }
  return ranges;
}

Status launch(const Driver& driver, Function function, std::span<const Copy> copies,
              Stream stream) {
  ListedCopies list{};
  std::uint64_t most_bytes = 0;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Copy& copy = copies[i];
    list.copies[i] = {static_cast<std::byte*>(copy.dst), static_cast<const std::byte*>(copy.src),
                      copy.row_bytes};
    most_bytes = std::max<std::uint64_t>(most_bytes, copy.row_bytes);
  }
  const std::uint64_t blocks_max = std::max<std::uint64_t>(1, kBlocksMax / copies.size());
  list.blocks_each = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(most_bytes / kBlockBytes, 1, blocks_max));
  void* parameters[] = {&list};
  launches.fetch_add(1, std::memory_order_relaxed);
  return status_of(
      driver,
      driver.launch_kernel(function, list.blocks_each * static_cast<unsigned>(copies.size()), 1, 1,
                           kPackThreads, 1, 1, 0, stream, parameters, nullptr),
      symbol::launch_kernel);
}

Status enqueue(const Driver& driver, Function function, std::span<const Copy> copies,
               Stream stream) {
  while (!copies.empty()) {
    const auto part = copies.first(std::min<std::size_t>(copies.size(), kListedCopiesMax));
    ACCORD_TRY(launch(driver, function, part, stream));
    copies = copies.subspan(part.size());
  }
  return Status();
}

}  // namespace

std::uint64_t copy_list_launches() noexcept { return launches.load(std::memory_order_relaxed); }

Status copy_list_begin(const Driver& driver, Device device, std::span<const Copy> copies,
                       CopyTicket& ticket) {
  ticket.handle = nullptr;
  if (may_be_listed(driver, copies)) {
    ContextScope scope(driver);
    Function function = nullptr;
    Status status =
        enter_for_kernel(driver, device, ranges_of(copies), "copies", scope, reach_of(copies));
    if (status.ok())
      status = pack_kernels().find(driver, scope.context(), "accord_copy_list", function);
    if (status.ok()) {
      return begin_work(
          driver, scope, [&](Stream stream) { return enqueue(driver, function, copies, stream); },
          ticket);
    }
    // Memory elsewhere, or none that a kernel may touch.
    const StatusCode code = status.code();
    const bool goes_by_copies = code == StatusCode::unsupported ||
                                code == StatusCode::invalid_argument ||
                                code == StatusCode::no_memory;
    if (!goes_by_copies) return status;
  }
  return copy_begin(driver, device, copies, ticket);
}

Status copy_list(const Driver& driver, Device device, std::span<const Copy> copies) {
  if (!may_be_listed(driver, copies)) return copy(driver, device, copies);
  CopyTicket ticket;
  ACCORD_TRY(copy_list_begin(driver, device, copies, ticket));
  for (bool done = false; !done;) ACCORD_TRY(copy_done(driver, ticket, done));
  return Status();
}

}  // namespace accord::device::cuda
