// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A command of direct work over the fake driver, unit by unit as the kernel's threads take it
// (cuda/inbox_direct.h). With state.mutex free.
#pragma once

#include <algorithm>
#include <cstring>

#include "device/cuda/inbox_kernel.h"
#include "device/direct_work.h"
#include "device/reduce_on_host.h"
#include "fake_cuda_kernels.h"

namespace accord::device::cuda {

class FakeDirectWork {
 public:
  FakeDirectWork(const DirectCommand& command, const InboxPiece* pieces, Context context)
      : command_(command), pieces_(pieces), context_(context) {}

  // Whether all that it names lies where this kernel may reach, and what goes to the host is
  // awaited.
  bool can_address() const {
    const std::lock_guard lock(state.mutex);
    bool good = true;
    for (std::uint32_t i = 0; i < count(); ++i) {
      const InboxPiece run = piece(i);
      good = good && can_write(run.dst, run.send_bytes) && reaches(run.src, run.send_bytes);
    }
    return good && reaches(command_.compare, command_.size_bytes) &&
           can_write(command_.result, command_.size_bytes);
  }

  std::size_t units() const { return piece(count() - 1).send_end; }

  void run(std::size_t number) {
    std::uint32_t at = 0;
    while (number >= piece(at).send_end) ++at;
    const InboxPiece run = piece(at);
    const std::size_t offset = (number - (at == 0 ? 0 : piece(at - 1).send_end)) * kInboxUnitBytes;
    const auto here = [&](std::uint64_t start) {
      return start == 0 ? nullptr : reinterpret_cast<std::byte*>(start) + offset;
    };
    const std::size_t length = std::min(kInboxUnitBytes, run.send_bytes - offset);
    if (command_.kind != DirectKind::update) {
      std::memcpy(here(run.dst), here(run.src), length);
      return;
    }
    update_on_host({.target = here(run.dst),
                    .operand = here(run.src),
                    .compare = here(command_.compare),
                    .result = here(command_.result),
                    .size_bytes = length,
                    .op = static_cast<ReduceOp>(command_.op),
                    .element = static_cast<Element>(command_.element)});
  }

 private:
  std::uint32_t count() const {
    return command_.kind == DirectKind::pieces ? command_.piece_count : 1;
  }
  InboxPiece piece(std::uint32_t index) const {
    if (command_.kind == DirectKind::pieces) return pieces_[index];
    InboxPiece one{};
    one.src = command_.src;
    one.dst = command_.dst;
    one.send_bytes = command_.size_bytes;
    one.send_end =
        static_cast<std::uint32_t>((one.send_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes);
    return one;
  }
  bool reaches(std::uint64_t start, std::size_t size_bytes) const {
    return start == 0 ||
           kernel_can_address(reinterpret_cast<const void*>(start), size_bytes, context_);
  }
  bool can_write(std::uint64_t start, std::size_t size_bytes) const {
    const auto found = find(static_cast<std::uintptr_t>(start));
    const bool on_host = found != state.allocations.end() && found->second.type == MemoryType::host;
    return reaches(start, size_bytes) && (!on_host || (command_.flags & kInboxToHost) != 0);
  }

  DirectCommand command_;
  const InboxPiece* pieces_;
  Context context_;
};

}  // namespace accord::device::cuda
