// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/words.h"

#include <fmt/format.h>
#include <sched.h>

namespace accord::rma {
namespace {

constexpr std::uint64_t kHolderMask = 0xffffffffu;
constexpr std::uint64_t kOneSharer = std::uint64_t{1} << 32;

}  // namespace

Status check_life(const LifeLines& lines, int rank) {
  const auto& line = lines[static_cast<std::size_t>(rank)];
  if (line == nullptr || !line->is_cut()) return {};
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

Status check_lock(const Words& words, const LifeLines& lines) {
  const std::uint64_t now = words.window_lock.load(std::memory_order_relaxed);
  if ((now & kHolderMask) != 0) return check_life(lines, static_cast<int>(now & kHolderMask) - 1);
  if (now == 0) return {};
  for (std::size_t rank = 0; rank < lines.size(); ++rank)  // any of them may share it
    ACCORD_TRY(check_life(lines, static_cast<int>(rank)));
  return {};
}

}  // namespace accord::rma
