// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/staged_buffer.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "device/direct_work.h"
#include "device/registry.h"

namespace accord::core {
namespace {

constexpr std::size_t kAlignmentBytes = 64;
// A span this much larger than its payload is mapped lazily and not page-locked.
constexpr std::size_t kSparseSlackBytes = std::size_t{1} << 20;
constexpr std::size_t kSparseFactor = 4;

// Page-locking takes 180 us a MiB, of the first windows of long messages and, where that is more
// than may be kept, of all (receives of 1 GiB, 2 x H200: 184 ms for a message of 3); mapping takes
// some 10 us.
constexpr std::size_t kBypassedBytes = std::size_t{16} << 20;
// Whether the latest such message has come by way of its shadow: the first ones of a pair do.
std::atomic<bool> bypassed_was_used{false};

// Addresses from page to page.
struct Pages {
  std::uintptr_t low;
  std::uintptr_t high;
};
constexpr std::uintptr_t kPageBytes = 1 << 16;  // the largest that there are
// Of programs on the processors that there are.
constexpr std::uintptr_t kAddressMax = (std::uintptr_t{1} << 47) - kPageBytes;

// Around all pieces; whether one needs staging.
bool pages_of(const std::vector<Segment>& segments, void* user, std::vector<Pages>& pages) {
  bool needs_staging = false;
  for (const Segment& segment : segments) {
    for_each_piece(
        segment, 0, segment.size_bytes(),
        [&](std::ptrdiff_t offset, std::size_t, std::size_t length) {
          std::byte* const piece = at(user, offset);
          needs_staging = needs_staging || device::needs_staging(device::classify(piece));
          const auto first = reinterpret_cast<std::uintptr_t>(piece);
          const std::uintptr_t low = first / kPageBytes * kPageBytes;
          const std::uintptr_t high = (first + length + kPageBytes - 1) / kPageBytes * kPageBytes;
          if (pages.empty() || low < pages.back().low || low > pages.back().high) {
            pages.push_back({low, high});
          } else {
            pages.back().high = std::max(pages.back().high, high);
          }
        });
  }
  return needs_staging;
}

std::vector<Pages> joined(std::vector<Pages> pages) {
  std::ranges::sort(pages, {}, &Pages::low);
  std::vector<Pages> islands;
  for (const Pages& one : pages) {
    if (islands.empty() || one.low > islands.back().high) {
      islands.push_back(one);
    } else {
      islands.back().high = std::max(islands.back().high, one.high);
    }
  }
  return islands;
}

// Memory for each, so far away. False where something else is there.
bool map_at(const std::vector<Pages>& islands, std::intptr_t distance_bytes,
            std::vector<device::StagingBuffer>& mapped) {
  mapped.clear();
  const auto shifted = [&](std::uintptr_t address) {
    return static_cast<std::intptr_t>(address) + distance_bytes;
  };
  if (shifted(islands.front().low) < static_cast<std::intptr_t>(kPageBytes) ||
      shifted(islands.back().high) > static_cast<std::intptr_t>(kAddressMax))
    return false;
  for (const Pages& one : islands) {
    device::StagingBuffer island;
    const Status status = device::staging_pool().acquire_sparse(
        one.high - one.low, island, reinterpret_cast<void*>(shifted(one.low)));
    if (!status.ok()) return false;
    mapped.push_back(std::move(island));
  }
  return true;
}

}  // namespace

StagedBuffer StagedBuffer::untouched(const void* user) {
  StagedBuffer buffer;
  buffer.user_ = const_cast<void*>(user);
  return buffer;
}

StagedBuffer StagedBuffer::staged(const void* user, const device::PointerInfo& where) {
  StagedBuffer buffer = untouched(user);
  buffer.staged_ = true;
  buffer.where_ = where;
  return buffer;
}

StagedBuffer StagedBuffer::absolute(const void* bottom) {
  StagedBuffer buffer = untouched(bottom);
  buffer.staged_ = true;
  buffer.absolute_ = true;
  return buffer;
}

void StagedBuffer::reads(Segment segment) {
  if (staged_ && segment.size_bytes() > 0) reads_.push_back(std::move(segment));
}

void StagedBuffer::writes(Segment segment) {
  if (staged_ && segment.size_bytes() > 0) writes_.push_back(std::move(segment));
}

void StagedBuffer::preserve() { reads_.insert(reads_.end(), writes_.begin(), writes_.end()); }

void StagedBuffer::absorb(const StagedBuffer& other) {
  const std::ptrdiff_t distance_bytes =
      static_cast<const std::byte*>(other.user_) - static_cast<const std::byte*>(user_);
  const auto take = [&](std::vector<Segment>& mine, const std::vector<Segment>& others) {
    for (Segment segment : others) {
      segment.offset_bytes += distance_bytes;
      mine.push_back(std::move(segment));
    }
  };
  take(reads_, other.reads_);
  take(writes_, other.writes_);
}

Status StagedBuffer::open(const StagedBuffer* other) {
  if (!staged_ || origin_ != nullptr) return {};
  if (absolute_) return open_absolute(other == nullptr ? nullptr : other->host());
  std::ptrdiff_t low = std::numeric_limits<std::ptrdiff_t>::max();
  std::ptrdiff_t high = std::numeric_limits<std::ptrdiff_t>::min();
  std::size_t payload_bytes = 0;
  std::ptrdiff_t gap_bytes = 0;  // of an element's extent beyond what it touches
  for (const auto* segments : {&reads_, &writes_}) {
    for (const Segment& segment : *segments) {
      low = std::min(low, segment.low_bytes());
      high = std::max(high, segment.high_bytes());
      payload_bytes += segment.size_bytes();
      const Typemap& type = *segment.type;
      gap_bytes = std::max(gap_bytes,
                           std::abs(type.extent_bytes()) - (type.high_bytes() - type.low_bytes()));
    }
  }
  // Host MPIs copy whole extents, with the gap before the first element or behind the last (Open
  // MPI 5.0 in a binomial gather): that must not be beyond the shadow.
  if (gap_bytes > 0) {
    low -= gap_bytes;
    high += gap_bytes;
  }
  if (payload_bytes == 0)
    low = high = 0;  // nothing moves, yet the host MPI may want a pointer of its own
  const auto span_bytes = static_cast<std::size_t>(high - low);
  // The shadow keeps the user's alignment: an operation may use vector instructions on what it is
  // given.
  const auto misalignment = reinterpret_cast<std::uintptr_t>(at(user_, low)) % kAlignmentBytes;
  const std::size_t wanted_bytes = std::max<std::size_t>(1, span_bytes + misalignment);
  ACCORD_TRY(
      take_shadow(wanted_bytes, span_bytes > kSparseFactor * payload_bytes + kSparseSlackBytes));
  origin_ = at(static_cast<std::byte*>(shadow_.data()) + misalignment, -low);
  return {};
}

Status StagedBuffer::take_shadow(std::size_t wanted_bytes, bool is_far_apart) {
  device::StagingPool& pool = device::staging_pool();
  const bool is_bypassed =
      is_bypassed_ && wanted_bytes >= kBypassedBytes && !bypassed_was_used.load();
  if (!is_far_apart && is_bypassed && pool.acquire_kept(where_.runtime, wanted_bytes, shadow_))
    return {};
  is_sparse_ = is_far_apart || is_bypassed;
  if (is_far_apart) return pool.acquire_sparse(wanted_bytes, shadow_);
  return is_bypassed ? pool.acquire_mapped(wanted_bytes, shadow_)
                     : pool.acquire(where_.runtime, wanted_bytes, shadow_);
}

// Where no piece is on a device the host MPI gets MPI_BOTTOM itself. Else pieces may be most of the
// address space apart, more than can be mapped: tried are distances at which what there is of them
// finds room, far ones first, since close ones hold what may grow.
Status StagedBuffer::open_absolute(const void* unlike) {
  std::vector<Pages> pages;
  const bool reads_device = pages_of(reads_, user_, pages);
  const bool writes_device = pages_of(writes_, user_, pages);
  if (!reads_device && !writes_device) return {};
  const std::vector<Pages> islands = joined(std::move(pages));
  constexpr int kLargest = 45;
  constexpr int kSmallest = 20;
  for (int power = kLargest; power >= kSmallest; --power) {
    const std::intptr_t step = std::intptr_t{1} << power;
    for (const std::intptr_t distance_bytes : {step, -step}) {
      std::byte* const origin = at(user_, distance_bytes);
      if (origin == unlike || !map_at(islands, distance_bytes, islands_)) continue;
      origin_ = origin;
      return {};
    }
  }
  return Status(StatusCode::no_memory, "no room for a shadow of absolute addresses");
}

void* StagedBuffer::host() const noexcept { return staged_ ? origin_ : user_; }

Status StagedBuffer::copy_in() {
  if (!staged_ || reads_.empty()) return {};
  return copy(reads_, Direction::pack, kAll);
}

Status StagedBuffer::copy_out(std::size_t limit_bytes) {
  if (!staged_ || writes_.empty()) return {};
  if (is_bypassed_ && shadow_.size_bytes() >= kBypassedBytes) bypassed_was_used.store(true);
  return copy(writes_, Direction::unpack, limit_bytes);
}

Status StagedBuffer::copy_out_only(const std::vector<Segment>& segments) {
  return staged_ ? copy(segments, Direction::unpack, kAll) : Status();
}

void StagedBuffer::was_bypassed() noexcept {
  if (is_bypassed_ && shadow_.size_bytes() >= kBypassedBytes) bypassed_was_used.store(false);
  shadow_.is_untouched();
}

CopyBatch StagedBuffer::outgoing(std::size_t limit_bytes) const {
  return absolute_ || is_sparse_ ? CopyBatch() : batch_of(writes_, Direction::unpack, limit_bytes);
}

CopyBatch StagedBuffer::batch_of(const std::vector<Segment>& segments, Direction direction,
                                 std::size_t limit_bytes) const {
  CopyBatch batch;
  for (const Segment& segment : segments) {
    const std::size_t length_bytes = std::min(limit_bytes, segment.size_bytes());
    limit_bytes -= limit_bytes == kAll ? 0 : length_bytes;
    batch.append({.type = segment.type,
                  .elements = at(user_, segment.offset_bytes),
                  .other = at(origin_, segment.offset_bytes),
                  .first_bytes = 0,
                  .length_bytes = length_bytes,
                  .direction = direction,
                  .form = LayoutCopy::Form::same});
  }
  return batch;
}

Status StagedBuffer::copy(const std::vector<Segment>& segments, Direction direction,
                          std::size_t limit_bytes) {
  if (absolute_) return copy_absolute(segments, direction, limit_bytes);
  if (is_sparse_) {
    for (const Segment& segment : segments) {
      const std::size_t length_bytes = std::min(limit_bytes, segment.size_bytes());
      limit_bytes -= limit_bytes == kAll ? 0 : length_bytes;
      if (length_bytes != 0) ACCORD_TRY(copy_packed(segment, direction, length_bytes));
    }
    return {};
  }
  const CopyBatch batch = batch_of(segments, direction, limit_bytes);
  if (batch.empty() || device::stage_quickly(*where_.runtime, where_.device, batch)) return {};
  return where_.runtime->copy_batch(where_.device, batch);
}

// By way of page-locked memory, which a kernel reaches: engines take a microsecond for each row of
// a shadow that is not (faces of a grid of 256^3, rows of 8 bytes, H100: 21 ms).
Status StagedBuffer::copy_packed(const Segment& segment, Direction direction,
                                 std::size_t length_bytes) {
  device::StagingBuffer packed;
  ACCORD_TRY(device::staging_pool().acquire(where_.runtime, length_bytes, packed));
  const bool packs = direction == Direction::pack;
  const auto by_device = [&] {
    return where_.runtime->copy_batch(
        where_.device, packed_copies(segment, user_, length_bytes, packed.data(), direction));
  };
  const auto by_host = [&] {
    device::copy_on_host(packed_copies(segment, origin_, length_bytes, packed.data(),
                                       packs ? Direction::unpack : Direction::pack));
  };
  if (!packs) by_host();
  ACCORD_TRY(by_device());
  if (packs) by_host();
  return {};
}

Status StagedBuffer::copy_absolute(const std::vector<Segment>& segments, Direction direction,
                                   std::size_t limit_bytes) {
  if (origin_ == nullptr) return {};  // all of it on the host
  // What lies in several allocations must not be joined.
  std::map<std::tuple<device::DeviceRuntime*, int, void*>, CopyList> lists;
  for (const Segment& segment : segments) {
    const std::size_t length_bytes = std::min(limit_bytes, segment.size_bytes());
    limit_bytes -= limit_bytes == kAll ? 0 : length_bytes;
    for_each_piece(
        segment, 0, length_bytes, [&](std::ptrdiff_t offset, std::size_t, std::size_t length) {
          void* user = at(user_, offset);
          void* shadow = at(origin_, offset);
          if (direction == Direction::unpack) std::swap(user, shadow);
          // After the swap: copy from `user` to `shadow`; the user's side decides who
          // copies.
          const auto info = device::classify(direction == Direction::pack ? user : shadow);
          if (!device::needs_staging(info)) {
            std::memcpy(shadow, user, length);
          } else {
            lists[{info.runtime, info.device, info.base}].append(shadow, user, length);
          }
        });
  }
  Status status;
  for (auto& [owner, list] : lists)
    keep_first(status, std::get<0>(owner)->copy(std::get<1>(owner), list.copies()));
  return status;
}

bool CopyOuts::add(const StagedBuffer& buffer, std::size_t limit_bytes) {
  const device::PointerInfo& where = buffer.where();
  if (!buffer.is_staged() || where.runtime == nullptr) return false;
  if (size_ != 0 && (where.runtime != where_.runtime || where.device != where_.device))
    return false;
  CopyBatch batch = buffer.outgoing(limit_bytes);
  if (limit_bytes == 0 || batch.empty()) return false;
  for (const device::Copy& copy : batch.plain.copies()) bytes_ += copy.row_bytes * copy.rows;
  for (const LayoutCopy& copy : batch.laid_out) bytes_ += copy.length_bytes;
  batch_.add(std::move(batch));
  where_ = where;
  ++size_;
  return true;
}

void CopyOuts::begin() {
  if (!device::stage_quickly(*where_.runtime, where_.device, batch_))
    status_ = where_.runtime->batch_begin(where_.device, batch_, ticket_);
}

Status CopyOuts::poll(bool& done) {
  done = !status_.ok();
  if (!done) status_ = where_.runtime->copy_done(ticket_, done);
  done = done || !status_.ok();
  return status_;
}

}  // namespace accord::core
