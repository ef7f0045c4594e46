// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The layout of a datatype as it was made: blocks in nested equal steps, and lists of these. A
// column of a large array is one block, whatever its number of rows. In typemap order throughout.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/runs.h"

namespace accord::device {

struct BlockList;

// Copies of one run, or of a list, in nested equal steps. A value; lists are shared.
class Block {
 public:
  Block() = default;  // no bytes
  static Block run(std::size_t length_bytes);
  static Block of(BlockList list);

  Block moved(std::ptrdiff_t offset_bytes) const;
  Block repeated(std::size_t count, std::ptrdiff_t step_bytes) const;
  // The first of the copies that the outermost step makes; there is one.
  Block first_copy() const;

  std::size_t size_bytes() const noexcept { return size_bytes_; }  // packed
  std::ptrdiff_t offset_bytes() const noexcept { return offset_bytes_; }
  std::size_t copy_bytes() const noexcept { return copy_bytes_; }  // packed, without the steps
  // Nested steps, the fastest first.
  const std::vector<Steps::Level>& levels() const noexcept { return levels_; }
  bool is_of_runs() const noexcept { return !list_; }  // of one run, and copies of it
  bool is_run() const noexcept { return levels_.empty() && !list_; }
  bool has_form_of(const Block& other) const noexcept;

  std::size_t run_count() const noexcept;
  std::ptrdiff_t low_bytes() const noexcept;   // first byte touched
  std::ptrdiff_t high_bytes() const noexcept;  // one past the last
  // Bits that are set in any offset, step, length or packed offset: what all are multiples of.
  std::uintptr_t bits() const noexcept;

  // Calls visit(offset, packed_offset, length) for each run of the packed bytes [first, end), cut
  // to these, in order. The block's first packed byte counts as number `packed`.
  template <class Visit>
  void visit(std::ptrdiff_t origin, std::size_t packed, std::size_t first, std::size_t end,
             Visit&& visit) const {
    if (size_bytes_ != 0)
      visit_level(levels_.size(), size_bytes_, origin + offset_bytes_, packed, first, end, visit);
  }

 private:
  template <class Visit>
  void visit_level(std::size_t level, std::size_t level_bytes, std::ptrdiff_t origin,
                   std::size_t packed, std::size_t first, std::size_t end, Visit& visit) const;

  std::ptrdiff_t offset_bytes_ = 0;
  std::size_t copy_bytes_ = 0;
  std::size_t size_bytes_ = 0;
  std::vector<Steps::Level> levels_;  // the first counts fastest
  std::shared_ptr<const BlockList> list_;
};

// Either runs alone or blocks, one behind the other in the packed form; padding is in neither.
struct BlockList {
  struct Part {
    Block block;
    std::size_t packed_bytes;
  };
  std::vector<Run> runs;
  std::vector<Part> parts;
  std::size_t size_bytes = 0;
  // Of all of them, as Block has them.
  std::size_t run_count = 0;
  std::ptrdiff_t low_bytes = 0;
  std::ptrdiff_t high_bytes = 0;
  std::uintptr_t bits = 0;
};

// Puts blocks one behind the other.
class BlockRow {
 public:
  void append(const Block& block);
  // Packed bytes that stand for no memory.
  void append_padding(std::size_t length_bytes) { list_.size_bytes += length_bytes; }
  // One block in nested steps where all are alike and lie so.
  Block finish() &&;

 private:
  BlockList list_;
  std::size_t appended_bytes_ = 0;  // without padding
};

template <class Visit>
void Block::visit_level(std::size_t level, std::size_t level_bytes, std::ptrdiff_t origin,
                        std::size_t packed, std::size_t first, std::size_t end,
                        Visit& visit) const {
  if (level > 0) {
    const Steps::Level& steps = levels_[level - 1];
    const std::size_t each = level_bytes / steps.count;
    std::size_t copy = first > packed ? (first - packed) / each : 0;
    for (std::size_t at = packed + copy * each; copy < steps.count && at < end; ++copy, at += each)
      visit_level(level - 1, each, origin + static_cast<std::ptrdiff_t>(copy) * steps.step_bytes,
                  at, first, end, visit);
    return;
  }
  const auto cut = [&](std::ptrdiff_t offset, std::size_t at, std::size_t length) {
    const std::size_t low = std::max(first, at);
    const std::size_t high = std::min(end, at + length);
    if (low < high) visit(offset + static_cast<std::ptrdiff_t>(low - at), low, high - low);
  };
  if (!list_) return cut(origin, packed, copy_bytes_);
  const auto from = [&](const auto& items) {
    // The last that starts no later than the first byte wanted.
    const auto later = [&](std::size_t wanted, const auto& item) {
      return wanted < packed + item.packed_bytes;
    };
    auto item = std::upper_bound(items.begin(), items.end(), first, later);
    return item == items.begin() ? item : item - 1;
  };
  for (auto run = from(list_->runs); run != list_->runs.end(); ++run) {
    if (packed + run->packed_bytes >= end) return;
    cut(origin + run->offset_bytes, packed + run->packed_bytes, run->length_bytes);
  }
  for (auto part = from(list_->parts); part != list_->parts.end(); ++part) {
    if (packed + part->packed_bytes >= end) return;
    part->block.visit(origin, packed + part->packed_bytes, first, end, visit);
  }
}

}  // namespace accord::device
