// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/reach.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "device/host/pack.h"
#include "device/reduce_on_host.h"

namespace accord::device {

// Pitches may be negative (as two's complement), so the first and the last row bound the span in
// either order.
Status reach(const HostArena& arena, const Side& side, std::byte*& reachable,
             HostAllocationRef& owner) {
  reachable = side.user;
  owner = arena.find(side.user);
  if (owner == nullptr) {
    if (!arena.may_own(side.user)) return Status();
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} is in no live allocation of the host runtime",
                              static_cast<void*>(side.user)));
  }
  const std::ptrdiff_t first = side.user - owner->user;
  std::ptrdiff_t last = 0;
  const auto pitch = static_cast<std::ptrdiff_t>(side.pitch_bytes);
  const bool overflow =
      __builtin_mul_overflow(static_cast<std::ptrdiff_t>(side.rows - 1), pitch, &last) ||
      __builtin_add_overflow(last, first, &last);
  const auto inside = [&](std::ptrdiff_t offset) {
    return offset >= 0 && side.row_bytes <= owner->size_bytes &&
           static_cast<std::size_t>(offset) <= owner->size_bytes - side.row_bytes;
  };
  if (overflow || !inside(first) || !inside(last)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} rows of {} bytes at offset {} leave an allocation of {} bytes",
                              side.rows, side.row_bytes, first, owner->size_bytes));
  }
  reachable = owner->alias + first;
  return Status();
}

Status reach(const HostArena& arena, const Copy& copy, ReachableCopy& reachable) {
  Copy& result = reachable.copy;
  result = copy;
  if (copy.rows == 1) result.dst_pitch_bytes = result.src_pitch_bytes = 0;
  auto* const user_dst = static_cast<std::byte*>(copy.dst);
  auto* const user_src = static_cast<std::byte*>(const_cast<void*>(copy.src));
  std::byte* dst = nullptr;
  std::byte* src = nullptr;
  ACCORD_TRY(reach(arena, {user_dst, copy.row_bytes, copy.rows, result.dst_pitch_bytes}, dst,
                   reachable.dst_owner));
  ACCORD_TRY(reach(arena, {user_src, copy.row_bytes, copy.rows, result.src_pitch_bytes}, src,
                   reachable.src_owner));
  result.dst = dst;
  result.src = src;
  return Status();
}

void ReachableCopy::run() const {
  auto* dst = static_cast<std::byte*>(copy.dst);
  const auto* src = static_cast<const std::byte*>(copy.src);
  for (std::size_t row = 0; row < copy.rows; ++row) {
    std::memcpy(dst + row * copy.dst_pitch_bytes, src + row * copy.src_pitch_bytes, copy.row_bytes);
  }
}

Status HostWork::add(const HostArena& arena, std::span<const Copy> copies) {
  copies_.reserve(copies_.size() + copies.size());
  for (const Copy& copy : copies) {
    if (copy.row_bytes == 0 || copy.rows == 0) continue;
    ACCORD_TRY(reach(arena, copy, copies_.emplace_back()));
  }
  return Status();
}

Status HostWork::add(const HostArena& arena, const CopyBatch& batch) {
  ACCORD_TRY(add(arena, batch.plain.copies()));
  for (const LayoutCopy& copy : batch.laid_out) {
    if (kernel_pays(copy)) {
      ACCORD_TRY(add(arena, copy));
    } else {
      CopyList rows;
      rows.append_rows(copy);
      ACCORD_TRY(add(arena, rows.copies()));
    }
  }
  return Status();
}

Status HostWork::add(const HostArena& arena, const LayoutCopy& copy) {
  std::ptrdiff_t low = std::numeric_limits<std::ptrdiff_t>::max();
  std::ptrdiff_t high = std::numeric_limits<std::ptrdiff_t>::min();
  for_each_piece(*copy.type, copy.first_bytes, copy.length_bytes,
                 [&](std::ptrdiff_t offset, std::size_t, std::size_t length) {
                   low = std::min(low, offset);
                   high = std::max(high, offset + static_cast<std::ptrdiff_t>(length));
                 });
  if (high <= low) return Status();  // nothing but padding
  const auto reach_elements = [&](std::byte*& address, HostAllocationRef& owner) {
    std::byte* reachable = nullptr;
    ACCORD_TRY(reach(arena, {address + low, static_cast<std::size_t>(high - low), 1, 0}, reachable,
                     owner));
    address = reachable - low;
    return Status();
  };
  ReachableLayout reachable{.copy = copy, .elements = nullptr, .other = nullptr};
  ACCORD_TRY(reach_elements(reachable.copy.elements, reachable.elements));
  if (copy.form == LayoutCopy::Form::same) {
    ACCORD_TRY(reach_elements(reachable.copy.other, reachable.other));
  } else {
    const auto [other_low, other_high] = copy.other_bounds();
    std::byte* other = nullptr;
    ACCORD_TRY(reach(
        arena, {copy.other + other_low, static_cast<std::size_t>(other_high - other_low), 1, 0},
        other, reachable.other));
    reachable.copy.other = other - other_low;
  }
  laid_out_.push_back(std::move(reachable));
  return Status();
}

// Plain host memory is refused, as a device would refuse it.
Status HostWork::add(const HostArena& arena, const Reduction& reduction) {
  const std::size_t size_bytes = reduction.count * element_bytes(reduction.element);
  const auto reach_buffer = [&](const void* pointer, std::byte*& buffer) {
    auto* const user = static_cast<std::byte*>(const_cast<void*>(pointer));
    HostAllocationRef& owner = owners_.emplace_back();
    ACCORD_TRY(reach(arena, {user, size_bytes, 1, 0}, buffer, owner));
    if (owner != nullptr) return Status();
    return Status(StatusCode::invalid_argument,
                  fmt::format("reduce: {} is no memory of the host runtime", pointer));
  };
  reduction_ = reduction;
  std::byte* buffer = nullptr;
  ACCORD_TRY(reach_buffer(reduction.dst, buffer));
  reduction_.dst = buffer;
  for (const void* source : reduction.sources) {
    ACCORD_TRY(reach_buffer(source, buffer));
    sources_.push_back(buffer);
  }
  for (void* copy : reduction.copies) {
    ACCORD_TRY(reach_buffer(copy, buffer));
    targets_.push_back(buffer);
  }
  return Status();
}

Traffic HostWork::traffic() const {
  const auto home = [](const HostAllocationRef& owner) {
    const bool is_device =
        owner != nullptr && owner->kind != MemoryKind::host && owner->kind != MemoryKind::pinned;
    return is_device ? owner->home : Traffic::kHost;
  };
  Traffic traffic;
  for (const ReachableCopy& next : copies_)
    traffic.add(home(next.dst_owner), home(next.src_owner), next.copy.row_bytes * next.copy.rows);
  for (const ReachableLayout& next : laid_out_) {
    const bool packs = next.copy.direction == LayoutCopy::Direction::pack;
    traffic.add(home(packs ? next.other : next.elements), home(packs ? next.elements : next.other),
                next.copy.length_bytes);
  }
  return traffic;
}

void HostWork::run() {
  for (const ReachableCopy& next : copies_) next.run();
  for (const ReachableLayout& next : laid_out_) {
    const PackArguments arguments = pack_arguments(next.copy);
    pack_on_host(arguments, pack_word_bytes(next.copy, arguments), pack_is_narrow(arguments));
  }
  if (sources_.empty()) return;
  reduction_.sources = sources_;
  reduction_.copies = targets_;
  reduce_on_host(reduction_);
}

}  // namespace accord::device
