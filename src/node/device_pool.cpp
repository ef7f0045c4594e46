// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/device_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>

#include "base/config.h"
#include "base/rounding.h"
#include "device/own_memory.h"

namespace accord::node {
namespace {

constexpr std::size_t kMi = std::size_t{1} << 20;

// Of leases, so that what copy engines and kernels move begins with a line.
constexpr std::size_t kAlignmentBytes = 4096;
// Drivers give out memory in pieces of this size.
constexpr std::size_t kSegmentBytesMin = 2 * kMi;
// What many short leases share grows with the pool, up to this.
constexpr std::size_t kSegmentBytesMax = 8 * kMi;
// Of all processes together that may share a device, where these are more than a few: as much as so
// many take without that.
constexpr std::size_t kBytesOfDevice = 4096 * kMi;
constexpr int kFew = 8;
// What all groups of a process get before it comes to short leases alone, and to long ones: so many
// parts of ACCORD_DEVICE_BYTES (56 MiB by default), and no more than half of what there is.
constexpr std::size_t kGroupParts = 7;
constexpr std::size_t kParts = 64;
constexpr std::size_t kShortBytes = kMi;
constexpr std::size_t kLongBytes = 64 * kMi;

}  // namespace

class DevicePools {
 public:
  Status lease(device::DeviceRuntime& runtime, int device, std::size_t size_bytes, LeaseOf purpose,
               DeviceLease& lease);
  void end(DeviceLease& lease) noexcept;
  void expect(int sharers) noexcept {
    const std::lock_guard lock(mutex_);
    sharers_ = std::max(sharers_, sharers);
  }

 private:
  struct Key {
    device::DeviceRuntime* runtime;
    int device;
    int owner;
    auto operator<=>(const Key&) const = default;
  };
  struct Segment {
    std::byte* start = nullptr;
    std::size_t size_bytes = 0;
    device::PointerInfo memory;
    std::uint64_t life = 0;                     // of the context that it was made in
    std::map<std::size_t, std::size_t> leases;  // where they begin, and how long they are

    // Nothing but the end of that life takes it.
    bool lasts(std::uint64_t life_now) const noexcept {
      return life == life_now || device::exists(memory);
    }
    // The first gap that is long enough.
    bool find(std::size_t wanted_bytes, std::size_t& first_bytes) const {
      first_bytes = 0;
      for (const auto& [first, length] : leases) {
        if (first - first_bytes >= wanted_bytes) return true;
        first_bytes = first + length;
      }
      return size_bytes - first_bytes >= wanted_bytes;
    }
  };
  struct Pool {
    std::map<std::uint64_t, Segment> segments;  // by buffer id
    std::size_t allocated_bytes = 0;
    std::size_t group_bytes = 0;  // leased
  };

  std::size_t most_bytes() const;
  Status allow(const Pool& pool, std::size_t size_bytes, LeaseOf purpose) const;
  Status grow(const Key& key, Pool& pool, std::size_t size_bytes, Segment*& made);

  std::mutex mutex_;
  std::map<Key, Pool> pools_;
  int sharers_ = 1;
};

namespace {

// Never destroyed: groups may outlive static objects.
DevicePools& pools() {
  static DevicePools& instance = *new DevicePools;
  return instance;
}

Status no_room(std::size_t size_bytes) {
  return {StatusCode::unsupported,
          fmt::format("node: no room for {} bytes in ACCORD_DEVICE_BYTES", size_bytes)};
}

}  // namespace

std::size_t DevicePools::most_bytes() const {
  const std::size_t of_setting = config().device_bytes;
  if (sharers_ <= kFew) return of_setting;
  return std::min(of_setting, kBytesOfDevice / static_cast<std::size_t>(sharers_));
}

Status DevicePools::allow(const Pool& pool, std::size_t size_bytes, LeaseOf purpose) const {
  if (purpose != LeaseOf::group || size_bytes <= kShortBytes || size_bytes > kLongBytes) return {};
  const std::size_t group_bytes =
      std::min(config().device_bytes / kParts * kGroupParts, most_bytes() / 2);
  return pool.group_bytes + size_bytes <= group_bytes ? Status() : no_room(size_bytes);
}

Status DevicePools::grow(const Key& key, Pool& pool, std::size_t size_bytes, Segment*& made) {
  const std::size_t most = most_bytes();
  const std::size_t needed_bytes = round_up(size_bytes, kSegmentBytesMin);
  if (pool.allocated_bytes + size_bytes > most) return no_room(size_bytes);
  const std::size_t wanted_bytes =
      std::clamp(round_up(pool.allocated_bytes / 8, kSegmentBytesMin), needed_bytes,
                 std::max(needed_bytes, kSegmentBytesMax));
  const std::size_t fresh_bytes =
      std::max(size_bytes, std::min(wanted_bytes, most - pool.allocated_bytes));
  void* memory = nullptr;
  ACCORD_TRY(key.runtime->allocate(key.device, device::MemoryKind::device, fresh_bytes, memory));
  Segment segment;
  segment.start = static_cast<std::byte*>(memory);
  segment.size_bytes = fresh_bytes;
  segment.life = key.runtime->context_life(key.device);
  if (!key.runtime->classify(memory, segment.memory) || segment.memory.buffer_id == 0) {
    (void)key.runtime->free(memory);
    return {StatusCode::device_error, "node: the device's memory is not known to its runtime"};
  }
  pool.allocated_bytes += fresh_bytes;
  device::own_memory.add(fresh_bytes);
  made = &pool.segments.emplace(segment.memory.buffer_id, std::move(segment)).first->second;
  return {};
}

Status DevicePools::lease(device::DeviceRuntime& runtime, int device, std::size_t size_bytes,
                          LeaseOf purpose, DeviceLease& lease) {
  lease.reset();
  size_bytes = round_up(std::max<std::size_t>(size_bytes, 1), kAlignmentBytes);
  const std::lock_guard lock(mutex_);
  const Key key{&runtime, device, device_pool_owner};
  Pool& pool = pools_[key];
  ACCORD_TRY(allow(pool, size_bytes, purpose));
  Segment* segment = nullptr;
  std::size_t first_bytes = 0;
  for (auto& [id, candidate] : pool.segments) {
    if (!candidate.find(size_bytes, first_bytes) || !candidate.lasts(runtime.context_life(device)))
      continue;
    segment = &candidate;
    break;
  }
  if (segment == nullptr) {
    ACCORD_TRY(grow(key, pool, size_bytes, segment));
    first_bytes = 0;
  }
  segment->leases[first_bytes] = size_bytes;
  lease.is_of_group_ = purpose == LeaseOf::group;
  if (lease.is_of_group_) pool.group_bytes += size_bytes;
  lease.runtime_ = &runtime;
  lease.device_ = device;
  lease.owner_ = key.owner;
  lease.segment_ = segment->memory;
  lease.data_ = segment->start + first_bytes;
  lease.size_bytes_ = size_bytes;
  return {};
}

void DevicePools::end(DeviceLease& lease) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find({lease.runtime_, lease.device_, lease.owner_});
  Pool& pool = found->second;
  const auto found_segment = pool.segments.find(lease.segment_.buffer_id);
  Segment& segment = found_segment->second;
  segment.leases.erase(static_cast<std::size_t>(lease.data_ - segment.start));
  if (lease.is_of_group_) pool.group_bytes -= lease.size_bytes_;
  if (!segment.leases.empty()) return;
  pool.allocated_bytes -= segment.size_bytes;
  device::own_memory.remove(segment.size_bytes);
  if (segment.lasts(lease.runtime_->context_life(lease.device_)))
    (void)lease.runtime_->free(segment.start);
  pool.segments.erase(found_segment);
  if (pool.segments.empty()) pools_.erase(found);
}

void DeviceLease::reset() noexcept {
  if (data_ != nullptr) pools().end(*this);
  data_ = nullptr;
  size_bytes_ = 0;
}

void DeviceLease::swap(DeviceLease& other) noexcept {
  std::swap(runtime_, other.runtime_);
  std::swap(device_, other.device_);
  std::swap(owner_, other.owner_);
  std::swap(segment_, other.segment_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(is_of_group_, other.is_of_group_);
}

Status lease_device_memory(device::DeviceRuntime& runtime, int device, std::size_t size_bytes,
                           LeaseOf purpose, DeviceLease& lease) {
  return pools().lease(runtime, device, size_bytes, purpose, lease);
}

void expect_device_pools(int processes, int devices) noexcept {
  pools().expect((processes - 1) / std::max(1, devices) + 1);
}

}  // namespace accord::node
