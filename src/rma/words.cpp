// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/words.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <iterator>

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
  LifeChecks checks;
  for (;;) {
    std::uint32_t holder = 0;
    if (words.update_holder.compare_exchange_strong(
            holder, static_cast<std::uint32_t>(own_rank) + 1, std::memory_order_acq_rel)) {
      words_ = &words;
      return {};
    }
    ::sched_yield();
    if (checks.is_due()) ACCORD_TRY(check_life(lines, static_cast<int>(holder) - 1));
  }
}

DeviceRanges::Entry DeviceRanges::entry_at(std::size_t slot) const noexcept {
  const Slot& from = slots_[slot];
  Entry entry;
  entry.slot = slot;
  entry.generation = from.generation.load(std::memory_order_relaxed);
  entry.base = from.base.load(std::memory_order_relaxed);
  entry.size_bytes = from.size_bytes.load(std::memory_order_relaxed);
  std::uint64_t words[std::size(Slot().memory)];
  for (std::size_t i = 0; i < std::size(words); ++i)
    words[i] = from.memory[i].load(std::memory_order_relaxed);
  std::memcpy(&entry.memory, words, sizeof entry.memory);
  return entry;
}

bool DeviceRanges::next(Entry& free) const noexcept {
  for (std::size_t slot = 0; slot < kMax; ++slot) {
    if (slots_[slot].size_bytes.load(std::memory_order_relaxed) != 0) continue;
    free.slot = slot;
    free.generation = slots_[slot].generation.load(std::memory_order_relaxed) + 1;
    return true;
  }
  return false;
}

void DeviceRanges::add(const Entry& entry) noexcept {
  Slot& slot = slots_[entry.slot];
  std::uint64_t words[std::size(Slot().memory)];
  std::memcpy(words, &entry.memory, sizeof entry.memory);
  version_.fetch_add(1, std::memory_order_acq_rel);
  slot.generation.store(entry.generation, std::memory_order_relaxed);
  slot.base.store(entry.base, std::memory_order_relaxed);
  slot.size_bytes.store(entry.size_bytes, std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::size(words); ++i)
    slot.memory[i].store(words[i], std::memory_order_relaxed);
  if (used_.load(std::memory_order_relaxed) <= entry.slot)
    used_.store(entry.slot + 1, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_release);
}

bool DeviceRanges::remove(const void* base) noexcept {
  for (Slot& slot : slots_) {
    if (slot.size_bytes.load(std::memory_order_relaxed) == 0 ||
        slot.base.load(std::memory_order_relaxed) != reinterpret_cast<std::uint64_t>(base))
      continue;
    count_.fetch_sub(1, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_acq_rel);
    slot.size_bytes.store(0, std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

// Until nothing has changed meanwhile: look(slot) says whether it is the one.
template <class Look>
bool DeviceRanges::look(Look look) const noexcept {
  if (empty()) return false;
  for (;; ::sched_yield()) {
    const std::uint64_t before = version_.load(std::memory_order_acquire);
    const std::uint64_t used = used_.load(std::memory_order_relaxed);
    bool found = false;
    for (std::size_t slot = 0; !found && slot < used; ++slot) found = look(slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return found;
  }
}

bool DeviceRanges::touch(std::span<const Piece> pieces) const noexcept {
  return look([&](std::size_t slot) {
    const std::uint64_t base = slots_[slot].base.load(std::memory_order_relaxed);
    const std::uint64_t end = base + slots_[slot].size_bytes.load(std::memory_order_relaxed);
    return std::ranges::any_of(pieces, [&](const Piece& piece) {
      const auto first = static_cast<std::uint64_t>(piece.offset_bytes);
      return first < end && first + piece.length_bytes > base;
    });
  });
}

bool DeviceRanges::find(std::span<const Piece> pieces, Entry& entry) const noexcept {
  return look([&](std::size_t slot) {
    const std::uint64_t base = slots_[slot].base.load(std::memory_order_relaxed);
    const std::uint64_t end = base + slots_[slot].size_bytes.load(std::memory_order_relaxed);
    const bool holds = std::ranges::all_of(pieces, [&](const Piece& piece) {
      const auto first = static_cast<std::uint64_t>(piece.offset_bytes);
      return first >= base && first + piece.length_bytes <= end;
    });
    if (holds) entry = entry_at(slot);
    return holds;
  });
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
