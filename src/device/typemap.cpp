// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/typemap.h"

#include <atomic>
#include <utility>

namespace accord::device {
namespace {

std::atomic<std::uint64_t> last_id{0};

Block block_of(const std::vector<Run>& runs) {
  BlockRow row;
  for (const Run& run : runs) {
    if (run.offset_bytes == kPadding) {
      row.append_padding(run.length_bytes);
    } else {
      row.append(Block::run(run.length_bytes).moved(run.offset_bytes));
    }
  }
  return std::move(row).finish();
}

Steps steps_of(const Block& block) {
  const auto& levels = block.levels();
  if (!block.is_of_runs() || levels.size() > Steps::kLevelsMax) return {};
  Steps steps;
  steps.run_bytes = block.copy_bytes();
  steps.first_offset_bytes = block.offset_bytes();
  steps.level_count = static_cast<std::uint32_t>(levels.size());
  std::copy(levels.begin(), levels.end(), steps.levels);
  return steps;
}

}  // namespace

Typemap::Typemap(Block block, std::ptrdiff_t extent_bytes)
    : block_(std::move(block)),
      extent_bytes_(extent_bytes),
      run_count_(block_.run_count()),
      id_(++last_id) {
  if (run_count_ == 0) return;
  low_bytes_ = block_.low_bytes();
  high_bytes_ = block_.high_bytes();
  dense_ = block_.is_run() && extent_bytes_ == static_cast<std::ptrdiff_t>(size_bytes());
  steps_ = steps_of(block_);
  if (!regular() && !block_.levels().empty()) {
    repeated_ = std::make_shared<const Typemap>(
        block_.first_copy(), static_cast<std::ptrdiff_t>(block_.levels().back().step_bytes));
  }
}

Typemap::Typemap(const std::vector<Run>& runs, std::ptrdiff_t extent_bytes)
    : Typemap(block_of(runs), extent_bytes) {}

std::shared_ptr<const Typemap> Typemap::contiguous(std::size_t size_bytes) {
  return std::make_shared<const Typemap>(Block::run(size_bytes),
                                         static_cast<std::ptrdiff_t>(size_bytes));
}

const std::vector<Run>& Typemap::runs() const {
  std::call_once(runs_made_, [this] {
    runs_.reserve(run_count_);
    block_.visit(0, 0, 0, size_bytes(),
                 [this](std::ptrdiff_t offset, std::size_t packed, std::size_t length) {
                   runs_.push_back({offset, length, packed});
                 });
  });
  return runs_;
}

std::size_t Typemap::rectangles() const noexcept {
  return steps_.level_count == 0 ? run_count_ : run_count_ / steps_.levels[0].count;
}

}  // namespace accord::device
