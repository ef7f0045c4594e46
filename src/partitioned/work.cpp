// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/work.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace accord::partitioned {

core::CallEnd PartitionArea::at(const Place& place, std::int32_t partition,
                                std::int32_t count) const {
  const core::Segment& block = blocks[static_cast<std::size_t>(place.block)];
  core::CallEnd part = end;
  part.segment = block;
  if (!part.present()) return part;
  const auto elements = static_cast<std::ptrdiff_t>(block.count) * partition +
                        static_cast<std::ptrdiff_t>(place.first);
  part.segment.count =
      std::min(place.count, block.count - place.first) * static_cast<std::size_t>(count);
  part.segment.offset_bytes += elements * block.type->extent_bytes();
  return part;
}

bool PartitionWork::fits(const PartitionArea& result, Where where) const {
  if (!reduction_.in_result || !reduction_.type->dense() || result.end.user == nullptr)
    return false;
  device::DeviceRuntime* const runtime = result.end.runtime;
  return runtime == nullptr || (where == Where::device && result.end.on_device &&
                                reduction_.element != device::Element::none &&
                                runtime->can_reduce(reduction_.op, reduction_.element));
}

Status PartitionWork::open(PartitionReduction reduction, std::int32_t partitions,
                           const PartitionArea& result, Where where,
                           device::DeviceRuntime& staging_runtime) {
  reduction_ = std::move(reduction);
  if (fits(result, where)) {
    area_ = result;
    return {};
  }
  const core::Segment piece{reduction_.type, reduction_.count, 0};
  area_.blocks = {piece};
  core::Segment all = piece;
  all.count *= static_cast<std::size_t>(partitions);
  std::byte* origin = nullptr;
  ACCORD_TRY(reserve(staging_runtime, all, memory_, origin));
  area_.end.user = origin;
  if (piece.type->dense()) return {};
  ACCORD_TRY(reserve(staging_runtime, piece, spread_memory_, origin));
  spread_.user = origin;
  spread_.segment = piece;
  return {};
}

// Elements are aligned as any type may want it, and a predefined one may be written with the gap at
// its end.
Status PartitionWork::reserve(device::DeviceRuntime& runtime, const core::Segment& segment,
                              device::StagingBuffer& buffer, std::byte*& origin) const {
  constexpr std::ptrdiff_t kAlignment = alignof(std::max_align_t);
  if (segment.size_bytes() == 0) return {};
  const std::ptrdiff_t low = std::min<std::ptrdiff_t>(segment.low_bytes(), 0);
  const std::ptrdiff_t high =
      std::max(segment.high_bytes(),
               static_cast<std::ptrdiff_t>(segment.count) * segment.type->extent_bytes());
  const std::ptrdiff_t before = (-low + kAlignment - 1) / kAlignment * kAlignment;
  ACCORD_TRY(
      device::staging_pool().acquire(&runtime, static_cast<std::size_t>(before + high), buffer));
  origin = static_cast<std::byte*>(buffer.data()) + before;
  return {};
}

Status PartitionWork::lift(std::span<const Came> came, core::DeviceScrap& scrap,
                           device::CopyTicket& ticket) const {
  device::DeviceRuntime& runtime = *area_.end.runtime;
  std::size_t total_bytes = 0;
  for (const Came& piece : came) total_bytes += piece.size();
  ACCORD_TRY(scrap.take(runtime, area_.end.device, total_bytes));
  std::vector<device::Copy> copies;
  std::byte* to = scrap.data();
  for (const Came& piece : came) {
    copies.push_back({.dst = to, .src = piece.data(), .row_bytes = piece.size()});
    to += piece.size();
  }
  return runtime.copy_begin_beside_kernels(area_.end.device, copies, ticket);
}

Status PartitionWork::combine_lifted(Combine combine, const core::CallEnd& there,
                                     std::size_t first_bytes, const core::DeviceScrap& scrap,
                                     std::size_t length_bytes, device::CopyTicket& ticket) const {
  void* const target = there.address(first_bytes);
  const void* const lower = combine == Combine::before ? scrap.data() : target;
  const void* const higher = combine == Combine::before ? target : scrap.data();
  const void* const sources[] = {lower, higher};
  return there.runtime->reduce_begin(
      there.device,
      {.dst = target,
       .sources = sources,
       .count = length_bytes / device::element_bytes(reduction_.element),
       .op = reduction_.op,
       .element = reduction_.element},
      ticket);
}

// The later operand is the one that is overwritten.
Status PartitionWork::combine(Combine combine, const core::CallEnd& there, std::size_t first_bytes,
                              std::byte* came, std::size_t length_bytes) {
  using Direction = core::CallEnd::Direction;
  const std::size_t count = length_bytes / element_bytes();
  const bool dense = there.segment.type->dense();
  const std::size_t first = first_bytes / element_bytes();
  std::byte* const target =
      core::at(there.user, there.segment.offset_bytes + static_cast<std::ptrdiff_t>(first) *
                                                            there.segment.type->extent_bytes());
  std::byte* const source =
      dense ? came - there.segment.type->low_bytes() : static_cast<std::byte*>(spread_.user);
  device::CopyTicket none;
  if (!dense) ACCORD_TRY(spread_.copy(Direction::unpack, 0, length_bytes, came, none));
  if (combine == Combine::before || reduction_.commutative)
    return reduction_.reduce(source, target, count);
  ACCORD_TRY(reduction_.reduce(target, source, count));
  if (!dense) ACCORD_TRY(spread_.copy(Direction::pack, 0, length_bytes, came, none));
  return there.copy(Direction::unpack, first_bytes, length_bytes, came, none);
}

}  // namespace accord::partitioned
