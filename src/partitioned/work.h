// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The memory of a partitioned collective as its schedule sees it: blocks of the user's buffers, of
// which each partition has a piece, and the memory in which a reduction is made, with what makes
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/call_end.h"
#include "core/device_scrap.h"
#include "device/staging_pool.h"
#include "partitioned/schedule.h"

namespace accord::partitioned {

// The piece of partition 0 of each block; those of the others follow it.
struct PartitionArea {
  core::CallEnd end;  // whose memory it is; its own segment says nothing
  std::vector<core::Segment> blocks;

  // Of `count` partitions from that one on; of several only a whole place.
  core::CallEnd at(const Place& place, std::int32_t partition, std::int32_t count = 1) const;
};

struct PartitionReduction {
  std::shared_ptr<const core::Typemap> type;  // null: the collective reduces nothing
  std::size_t count = 0;                      // of elements of a partition
  bool commutative = true;                    // to the last bit
  // inout = in op inout, for elements of the type as they lie in memory.
  std::function<Status(const void* in, void* inout, std::size_t count)> reduce;
  // The same on a device; none where kernels do not do it.
  device::ReduceOp op = device::ReduceOp::none;
  device::Element element = device::Element::none;
  // The schedule lets the result's memory be that of the work, too.
  bool in_result = false;
};

// In the result's memory where that can be, on a device where this can reduce, else, or where that
// is asked for, in host memory.
class PartitionWork {
 public:
  enum class Where { device, host };
  Status open(PartitionReduction reduction, std::int32_t partitions, const PartitionArea& result,
              Where where, device::DeviceRuntime& staging_runtime);

  const PartitionArea& area() const noexcept { return area_; }
  bool on_device() const noexcept { return area_.end.runtime != nullptr; }
  // Elements that are combined as they come are whole.
  std::size_t element_bytes() const noexcept { return reduction_.type->size_bytes(); }
  // On a device: brings what has come there, one after the other, and combines it with what is at
  // `there`.
  using Came = std::span<const std::byte>;
  Status lift(std::span<const Came> came, core::DeviceScrap& scrap,
              device::CopyTicket& ticket) const;
  Status combine_lifted(Combine combine, const core::CallEnd& there, std::size_t first_bytes,
                        const core::DeviceScrap& scrap, std::size_t length_bytes,
                        device::CopyTicket& ticket) const;
  // On the host: what has come (packed, and to be overwritten) with what is at `there` from
  // `first_bytes` on.
  Status combine(Combine combine, const core::CallEnd& there, std::size_t first_bytes,
                 std::byte* came, std::size_t length_bytes);

 private:
  bool fits(const PartitionArea& result, Where where) const;
  Status reserve(device::DeviceRuntime& runtime, const core::Segment& segment,
                 device::StagingBuffer& buffer, std::byte*& origin) const;

  PartitionReduction reduction_;
  PartitionArea area_;
  device::StagingBuffer memory_;
  // What has come, laid out as the type has it; where it has gaps.
  device::StagingBuffer spread_memory_;
  core::CallEnd spread_;
};

}  // namespace accord::partitioned
