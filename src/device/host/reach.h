// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Work of the embedded host runtime, turned into addresses that the CPU can touch: device memory is
// reached through its alias, and kept from being unmapped until the work is done. Called by
// host/runtime.cpp only.
#pragma once

#include <span>
#include <vector>

#include "device/host/arena.h"
#include "device/host/cost_model.h"
#include "device/layout_copy.h"

namespace accord::device {

// One side of a copy, or a buffer of a reduction: rows of row_bytes that start at `user`,
// pitch_bytes apart.
struct Side {
  std::byte* user;
  std::size_t row_bytes;
  std::size_t rows;
  std::size_t pitch_bytes;
};

// Turns a side into what the CPU can reach. Host memory stays as it is and has no owner.
Status reach(const HostArena& arena, const Side& side, std::byte*& reachable,
             HostAllocationRef& owner);

// A Copy with both sides reachable by the CPU; the references keep them so.
struct ReachableCopy {
  Copy copy{};
  HostAllocationRef dst_owner;
  HostAllocationRef src_owner;

  void run() const;
};

Status reach(const HostArena& arena, const Copy& copy, ReachableCopy& reachable);

// Copies that follow a layout go by the arithmetic of the kernels where a kernel would do them.
class HostWork {
 public:
  Status add(const HostArena& arena, std::span<const Copy> copies);
  Status add(const HostArena& arena, const CopyBatch& batch);
  Status add(const HostArena& arena, const Reduction& reduction);
  void run();
  // What its copies move; reductions are kernels.
  Traffic traffic() const;

 private:
  struct ReachableLayout {
    LayoutCopy copy;
    HostAllocationRef elements;
    HostAllocationRef other;
  };
  Status add(const HostArena& arena, const LayoutCopy& copy);

  std::vector<ReachableCopy> copies_;
  std::vector<ReachableLayout> laid_out_;
  Reduction reduction_{};  // its sources and copies are those below; without sources it is none
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  std::vector<HostAllocationRef> owners_;
};

}  // namespace accord::device
