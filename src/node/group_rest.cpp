// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the ranks of a group find out that none of them needs it for now, without a call.
#include "node/group.h"

namespace accord::node {
namespace {

constexpr unsigned kCountBits = 16;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

}  // namespace

bool Group::rest(std::uint64_t calls) noexcept {
  std::atomic<std::uint64_t>& word = mailbox(0).resting;
  std::uint64_t before = word.load(std::memory_order_acquire);
  std::uint64_t now = 0;
  do {
    if (before >> kCountBits > calls) return false;
    // What was said after fewer calls is void: who said so will make those calls, too.
    now = before >> kCountBits == calls ? before + 1 : (calls << kCountBits | 1);
  } while (!word.compare_exchange_weak(before, now, std::memory_order_acq_rel));
  if (!all_rest(calls)) return true;
  for (const auto& bell : bells_)
    if (bell != nullptr) bell->ring();
  return true;
}

bool Group::someone_rests(std::uint64_t calls) const noexcept {
  const std::uint64_t word = mailbox(0).resting.load(std::memory_order_acquire);
  return word >> kCountBits == calls && (word & kCountMask) != 0;
}

bool Group::all_rest(std::uint64_t calls) const noexcept {
  return mailbox(0).resting.load(std::memory_order_acquire) ==
         (calls << kCountBits | static_cast<std::uint64_t>(size_));
}

bool Group::wake(std::uint64_t calls) noexcept {
  std::atomic<std::uint64_t>& word = mailbox(0).resting;
  std::uint64_t before = word.load(std::memory_order_acquire);
  do {
    if (before >> kCountBits != calls) return true;
    if ((before & kCountMask) == static_cast<std::uint64_t>(size_)) return false;
  } while (!word.compare_exchange_weak(before, before - 1, std::memory_order_acq_rel));
  return true;
}

}  // namespace accord::node
