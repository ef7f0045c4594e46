// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The device memory of a group: how much of it there should be, its lease, and what peers need to
// open it.
#include <algorithm>
#include <iterator>
#include <vector>

#include "node/group.h"

namespace accord::node {

// In steps, since ranks join anew for more.
std::size_t Group::region_bytes_for(const Call& call) noexcept {
  constexpr std::size_t kMostOfLongest = std::size_t{64} << 20;
  const std::size_t longest = std::size(kRegionSizes) - 1;
  if (goes_by_pairs(call.kind)) return kRegionSizes[longest];
  const std::size_t used_bytes = Plan::slot_bytes_max(call) * kSlots;
  if (used_bytes > kMostOfLongest) return SIZE_MAX;
  const auto fitting = std::ranges::find_if(
      kRegionSizes, [=](std::size_t size_bytes) { return used_bytes <= size_bytes; });
  return fitting != std::end(kRegionSizes) ? *fitting : kRegionSizes[longest];
}

// As much as there is room for.
Status Group::lease_region() {
  std::vector<std::size_t> sizes;
  for (const std::size_t size_bytes : kRegionSizes)
    if (size_bytes < use_.region_bytes) sizes.push_back(size_bytes);
  sizes.push_back(use_.region_bytes);
  Status leased;
  for (; !sizes.empty(); sizes.pop_back()) {
    use_.region_bytes = sizes.back();
    leased = lease_device_memory(*runtime_, device_, use_.region_bytes + Offers::kScratchBytes,
                                 LeaseOf::group, memory_);
    if (leased.ok()) break;
  }
  return leased;
}

Status Group::lease_inbox() {
  const auto lease = [this] {
    return lease_device_memory(*runtime_, device_, device::inbox_bytes(size_, use_.lane_bytes),
                               LeaseOf::group, memory_);
  };
  const Status leased = lease();
  const std::size_t short_bytes = short_lane_bytes(use_.lane_bytes);
  if (leased.ok() || short_bytes == 0) return leased;
  use_.lane_bytes = short_bytes;
  return lease();
}

// Tells the peers where the own memory is.
Status Group::share_memory(Record& mine) {
  const device::PointerInfo& segment = memory_.segment();
  ACCORD_TRY(registration_.make(*runtime_, segment, mine.port.process));
  mine.memory = registration_.handle();
  mine.offset_bytes =
      static_cast<std::uint64_t>(memory_.data() - static_cast<std::byte*>(segment.base));
  mine.granted_bytes = use_.region_bytes != 0 ? use_.region_bytes : use_.lane_bytes;
  return {};
}

}  // namespace accord::node
