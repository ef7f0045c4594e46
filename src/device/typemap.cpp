// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/typemap.h"

#include <atomic>

namespace accord::device {
namespace {

std::atomic<std::uint64_t> last_id{0};

std::int64_t offset_of(const Steps& steps, std::size_t run) {
  std::int64_t offset = steps.first_offset_bytes;
  for (std::uint32_t level = 0; level < steps.level_count; ++level) {
    const Steps::Level& one = steps.levels[level];
    offset += static_cast<std::int64_t>(run % one.count) * one.step_bytes;
    run /= one.count;
  }
  return offset;
}

// Level by level: as many groups of runs as follow one another in one step make a larger group.
Steps steps_of(const std::vector<Run>& runs, std::size_t size_bytes) {
  if (runs.empty() || runs.size() * runs.front().length_bytes != size_bytes) return {};
  Steps steps;
  steps.first_offset_bytes = runs.front().offset_bytes;
  const auto offset = [&](std::size_t run) { return runs[run].offset_bytes; };
  for (std::size_t group = 1; group < runs.size();) {
    if (steps.level_count == Steps::kLevelsMax) return {};
    Steps::Level& level = steps.levels[steps.level_count++];
    level = {2, offset(group) - offset(0)};
    while (level.count * group < runs.size() &&
           offset(level.count * group) - offset((level.count - 1) * group) == level.step_bytes)
      ++level.count;
    group *= level.count;
    if (runs.size() % group != 0) return {};
  }
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (runs[run].length_bytes != runs.front().length_bytes || offset(run) != offset_of(steps, run))
      return {};
  }
  steps.run_bytes = runs.front().length_bytes;
  return steps;
}

}  // namespace

Typemap::Typemap(std::vector<Run> runs, std::ptrdiff_t extent_bytes)
    : extent_bytes_(extent_bytes), id_(++last_id) {
  for (const Run& run : runs) {
    if (run.length_bytes == 0) continue;
    if (run.offset_bytes != kPadding) {
      Run* last = runs_.empty() ? nullptr : &runs_.back();
      const bool continues =
          last != nullptr && last->packed_bytes + last->length_bytes == size_bytes_ &&
          last->offset_bytes + static_cast<std::ptrdiff_t>(last->length_bytes) == run.offset_bytes;
      if (continues) {
        last->length_bytes += run.length_bytes;
      } else {
        runs_.push_back({run.offset_bytes, run.length_bytes, size_bytes_});
      }
    }
    size_bytes_ += run.length_bytes;
  }
  if (runs_.empty()) return;
  low_bytes_ = runs_.front().offset_bytes;
  run_bits_ = size_bytes_;
  for (const Run& run : runs_) {
    low_bytes_ = std::min(low_bytes_, run.offset_bytes);
    high_bytes_ =
        std::max(high_bytes_, run.offset_bytes + static_cast<std::ptrdiff_t>(run.length_bytes));
    run_bits_ |=
        static_cast<std::uintptr_t>(run.offset_bytes) | run.length_bytes | run.packed_bytes;
  }
  dense_ = runs_.size() == 1 && runs_.front().length_bytes == size_bytes_ &&
           extent_bytes_ == static_cast<std::ptrdiff_t>(size_bytes_);
  steps_ = steps_of(runs_, size_bytes_);
}

std::shared_ptr<const Typemap> Typemap::contiguous(std::size_t size_bytes) {
  return std::make_shared<const Typemap>(std::vector<Run>{{0, size_bytes, 0}},
                                         static_cast<std::ptrdiff_t>(size_bytes));
}

std::size_t Typemap::rectangles() const noexcept {
  return steps_.level_count == 0 ? runs_.size() : runs_.size() / steps_.levels[0].count;
}

}  // namespace accord::device
