// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/reduction.h"

#include <fmt/format.h>

#include "base/status.h"
#include "device/device_runtime.h"
#include "device/partition_reducer.h"

namespace accord::device {

Status check_reduction(const Reduction& reduction) {
  if (!is_defined(reduction.op, reduction.element)) {
    return Status(
        StatusCode::unsupported,
        fmt::format("reduce: operation {} is not defined for element {}",
                    static_cast<unsigned>(reduction.op), static_cast<unsigned>(reduction.element)));
  }
  if (reduction.sources.empty()) {
    return Status(StatusCode::invalid_argument, "reduce: no source");
  }
  if (reduction.count > PTRDIFF_MAX / element_bytes(reduction.element)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("reduce: {} elements are too many", reduction.count));
  }
  return Status();
}

Status DeviceRuntime::make_partition_reducer(int /*device*/,
                                             const PartitionReduction& /*reduction*/,
                                             std::uint32_t* /*arrived*/,
                                             std::unique_ptr<PartitionReducer>& /*reducer*/) {
  return Status(StatusCode::unsupported, "reductions of partitions: not on this runtime");
}

}  // namespace accord::device
