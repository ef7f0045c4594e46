// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/words.h"

#include <fmt/format.h>
#include <sched.h>

namespace accord::rma {
namespace {

constexpr std::uint64_t kHolderMask = 0xffffffffu;
constexpr std::uint64_t kOneSharer = std::uint64_t{1} << 32;

bool has_ended(const LifeLines& lines, int rank) {
  const auto& line = lines[static_cast<std::size_t>(rank)];
  return line != nullptr && line->is_cut();
}

}  // namespace

Status check_peer(const LifeLines& lines, int rank) {
  if (!has_ended(lines, rank)) return {};
  return {StatusCode::device_error, fmt::format("the process of rank {} is gone", rank)};
}

Status check_life(const LifeLines& lines, int rank) {
  if (!has_ended(lines, rank)) return {};
  return {StatusCode::device_error,
          fmt::format("the process of rank {}, which holds a lock of the window, has ended", rank)};
}

Status UpdateTurn::take(Words& words, int own_rank, const LifeLines& lines) {
  constexpr unsigned kTriesPerLook = 1024;
  for (unsigned tries = 1;; ++tries) {
    std::uint32_t holder = 0;
    if (words.update_holder.compare_exchange_strong(
            holder, static_cast<std::uint32_t>(own_rank) + 1, std::memory_order_acq_rel)) {
      words_ = &words;
      return {};
    }
    ::sched_yield();
    if (tries % kTriesPerLook == 0) ACCORD_TRY(check_life(lines, static_cast<int>(holder) - 1));
  }
}

bool DeviceRanges::add(const void* base, std::uint64_t size_bytes) noexcept {
  for (Range& range : ranges_) {
    if (range.size_bytes.load(std::memory_order_relaxed) != 0) continue;
    version_.fetch_add(1, std::memory_order_acq_rel);
    range.base.store(reinterpret_cast<std::uint64_t>(base), std::memory_order_relaxed);
    range.size_bytes.store(size_bytes, std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_release);
    count_.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

bool DeviceRanges::remove(const void* base) noexcept {
  for (Range& range : ranges_) {
    if (range.size_bytes.load(std::memory_order_relaxed) == 0 ||
        range.base.load(std::memory_order_relaxed) != reinterpret_cast<std::uint64_t>(base))
      continue;
    count_.fetch_sub(1, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_acq_rel);
    range.size_bytes.store(0, std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

// What a peer may ask for has been there before it asks; others come and go meanwhile.
bool DeviceRanges::touch(std::span<const Piece> pieces) const noexcept {
  if (empty()) return false;
  for (;; ::sched_yield()) {
    const std::uint64_t before = version_.load(std::memory_order_acquire);
    const bool found = touch_now(pieces);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return found;
  }
}

bool DeviceRanges::touch_now(std::span<const Piece> pieces) const noexcept {
  for (const Range& range : ranges_) {
    const std::uint64_t base = range.base.load(std::memory_order_relaxed);
    const std::uint64_t size_bytes = range.size_bytes.load(std::memory_order_relaxed);
    for (const Piece& piece : pieces) {
      const auto first = static_cast<std::uint64_t>(piece.offset_bytes);
      if (first < base + size_bytes && first + piece.length_bytes > base) return true;
    }
  }
  return false;
}

bool try_lock(Words& words, LockKind kind, int own_rank) noexcept {
  std::uint64_t now = words.window_lock.load(std::memory_order_relaxed);
  if (kind == LockKind::exclusive) {
    now = 0;
    return words.window_lock.compare_exchange_strong(now, static_cast<std::uint64_t>(own_rank) + 1,
                                                     std::memory_order_acq_rel);
  }
  while ((now & kHolderMask) == 0) {
    if (words.window_lock.compare_exchange_weak(now, now + kOneSharer, std::memory_order_acq_rel))
      return true;
  }
  return false;
}

void unlock(Words& words, LockKind kind) noexcept {
  if (kind == LockKind::exclusive)
    words.window_lock.store(0, std::memory_order_release);
  else
    words.window_lock.fetch_sub(kOneSharer, std::memory_order_acq_rel);
}

int holder_of(const Words& words) noexcept {
  const std::uint64_t now = words.window_lock.load(std::memory_order_relaxed);
  return static_cast<int>(now & kHolderMask) - 1;
}

Status check_lock(const Words& words, const LifeLines& lines) {
  const std::uint64_t now = words.window_lock.load(std::memory_order_relaxed);
  if ((now & kHolderMask) != 0) return check_life(lines, static_cast<int>(now & kHolderMask) - 1);
  if (now == 0) return {};
  for (std::size_t rank = 0; rank < lines.size(); ++rank)  // any of them may share it
    ACCORD_TRY(check_life(lines, static_cast<int>(rank)));
  return {};
}

}  // namespace accord::rma
