// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/blocks.h"

#include <utility>

namespace accord::device {
namespace {

using Levels = std::vector<Steps::Level>;

// Level by level: as many groups as follow one another in one step make a larger group. Empty where
// the offsets are not all of that kind.
template <class Offset>
Levels nested_steps(std::size_t count, Offset offset) {
  Levels levels;
  for (std::size_t group = 1; group < count;) {
    Steps::Level level{2, offset(group) - offset(0)};
    while (level.count * group < count &&
           offset(level.count * group) - offset((level.count - 1) * group) == level.step_bytes)
      ++level.count;
    group *= level.count;
    if (count % group != 0) return {};
    levels.push_back(level);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t expected = offset(0);
    std::size_t rest = i;
    for (const Steps::Level& level : levels) {
      expected += static_cast<std::int64_t>(rest % level.count) * level.step_bytes;
      rest /= level.count;
    }
    if (offset(i) != expected) return {};
  }
  return levels;
}

Block repeated(Block block, const Levels& levels) {
  for (const Steps::Level& level : levels) block = block.repeated(level.count, level.step_bytes);
  return block;
}

Block block_of(const Run& run) { return Block::run(run.length_bytes).moved(run.offset_bytes); }

// One block where there is only one, or where all are alike and in nested steps; else none.
Block regular_block(const BlockList& list) {
  const std::size_t count = list.runs.size() + list.parts.size();
  const auto offset = [&](std::size_t i) {
    return list.parts.empty() ? list.runs[i].offset_bytes : list.parts[i].block.offset_bytes();
  };
  const auto is_like_first = [&](std::size_t i) {
    return list.parts.empty() ? list.runs[i].length_bytes == list.runs[0].length_bytes
                              : list.parts[i].block.has_form_of(list.parts[0].block);
  };
  for (std::size_t i = 1; i < count; ++i)
    if (!is_like_first(i)) return {};
  const Block first = list.parts.empty() ? block_of(list.runs[0]) : list.parts[0].block;
  const Levels levels = nested_steps(count, offset);
  return count > 1 && levels.empty() ? Block() : repeated(first, levels);
}

void summarise(BlockList& list) {
  const auto add = [&](std::size_t runs, std::ptrdiff_t low, std::ptrdiff_t high,
                       std::uintptr_t bits) {
    if (runs == 0) return;
    list.low_bytes = list.run_count == 0 ? low : std::min(list.low_bytes, low);
    list.high_bytes = list.run_count == 0 ? high : std::max(list.high_bytes, high);
    list.run_count += runs;
    list.bits |= bits;
  };
  for (const Run& run : list.runs)
    add(1, run.offset_bytes, run.offset_bytes + static_cast<std::ptrdiff_t>(run.length_bytes),
        static_cast<std::uintptr_t>(run.offset_bytes) | run.length_bytes | run.packed_bytes);
  for (const auto& [block, packed_bytes] : list.parts)
    add(block.run_count(), block.low_bytes(), block.high_bytes(), block.bits() | packed_bytes);
}

}  // namespace

Block Block::run(std::size_t length_bytes) {
  Block block;
  block.copy_bytes_ = block.size_bytes_ = length_bytes;
  return block;
}

Block Block::of(BlockList list) {
  summarise(list);
  Block block = run(list.size_bytes);
  block.list_ = std::make_shared<const BlockList>(std::move(list));
  return block;
}

Block Block::moved(std::ptrdiff_t offset_bytes) const {
  Block block = *this;
  block.offset_bytes_ += offset_bytes;
  return block;
}

Block Block::repeated(std::size_t count, std::ptrdiff_t step_bytes) const {
  if (count == 0 || size_bytes_ == 0) return {};
  Block block = *this;
  if (count == 1) return block;
  block.size_bytes_ *= count;
  if (is_run() && step_bytes == static_cast<std::ptrdiff_t>(copy_bytes_)) {
    block.copy_bytes_ *= count;
  } else if (!levels_.empty() && step_bytes == static_cast<std::ptrdiff_t>(levels_.back().count) *
                                                   levels_.back().step_bytes) {
    block.levels_.back().count *= count;
  } else {
    block.levels_.push_back({count, step_bytes});
  }
  return block;
}

Block Block::first_copy() const {
  Block block = *this;
  block.size_bytes_ /= levels_.back().count;
  block.levels_.pop_back();
  return block;
}

bool Block::has_form_of(const Block& other) const noexcept {
  const auto same = [](const Steps::Level& one, const Steps::Level& two) {
    return one.count == two.count && one.step_bytes == two.step_bytes;
  };
  return copy_bytes_ == other.copy_bytes_ && list_ == other.list_ &&
         std::equal(levels_.begin(), levels_.end(), other.levels_.begin(), other.levels_.end(),
                    same);
}

std::size_t Block::run_count() const noexcept {
  std::size_t count = list_ ? list_->run_count : size_bytes_ == 0 ? 0 : 1;
  for (const Steps::Level& level : levels_) count *= level.count;
  return count;
}

std::ptrdiff_t Block::low_bytes() const noexcept {
  std::ptrdiff_t low = offset_bytes_ + (list_ ? list_->low_bytes : 0);
  for (const auto& [count, step] : levels_)
    low += std::min<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(count - 1) * step);
  return low;
}

std::ptrdiff_t Block::high_bytes() const noexcept {
  std::ptrdiff_t high =
      offset_bytes_ + (list_ ? list_->high_bytes : static_cast<std::ptrdiff_t>(copy_bytes_));
  for (const auto& [count, step] : levels_)
    high += std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(count - 1) * step);
  return high;
}

std::uintptr_t Block::bits() const noexcept {
  std::uintptr_t bits =
      static_cast<std::uintptr_t>(offset_bytes_) | copy_bytes_ | (list_ ? list_->bits : 0);
  for (const Steps::Level& level : levels_) bits |= static_cast<std::uintptr_t>(level.step_bytes);
  return bits;
}

// Runs that continue the one before become one.
void BlockRow::append(const Block& block) {
  if (block.size_bytes() == 0) return;
  const std::size_t at = list_.size_bytes;
  list_.size_bytes += block.size_bytes();
  appended_bytes_ += block.size_bytes();
  if (list_.parts.empty() && block.is_run()) {
    Run* last = list_.runs.empty() ? nullptr : &list_.runs.back();
    if (last != nullptr && last->packed_bytes + last->length_bytes == at &&
        last->offset_bytes + static_cast<std::ptrdiff_t>(last->length_bytes) ==
            block.offset_bytes()) {
      last->length_bytes += block.size_bytes();
    } else {
      list_.runs.push_back({block.offset_bytes(), block.size_bytes(), at});
    }
    return;
  }
  for (const Run& run : list_.runs) list_.parts.push_back({block_of(run), run.packed_bytes});
  list_.runs.clear();
  list_.parts.push_back({block, at});
}

Block BlockRow::finish() && {
  const bool has_padding = appended_bytes_ != list_.size_bytes;
  if (!has_padding && appended_bytes_ == 0) return {};
  if (Block regular = has_padding ? Block() : regular_block(list_); regular.size_bytes() != 0)
    return regular;
  return Block::of(std::move(list_));
}

}  // namespace accord::device
