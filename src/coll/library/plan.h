// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective as calls of a collective library: which it has, which are composed of messages
// between two ranks, and which bytes of a rank's buffers take part. Pure arithmetic.
#pragma once

#include <cstddef>
#include <vector>

#include "ccl/library.h"
#include "node/call.h"

namespace accord::coll {

// What a rank does for one call. Equal on all ranks: which calls of the library these are.
class CclPlan {
 public:
  // Whether the library can do it; equal on all ranks.
  static bool exists(const ccl::Library& library, const node::Call& call);

  // Where that is so. In place as node::Geometry means it.
  CclPlan(const ccl::Library& library, const node::Call& call, int rank, bool in_place);

  // Bytes of the packed forms of this rank's ends.
  using Range = node::Range;
  Range in() const noexcept { return in_; }
  Range out() const noexcept { return out_; }
  // Part of out() that stays as it is.
  Range kept() const noexcept { return kept_; }
  // The library must not be given both in one memory.
  bool needs_apart() const noexcept { return needs_apart_; }
  // What addresses have to be a multiple of.
  std::size_t alignment_bytes() const noexcept { return alignment_bytes_; }

  // `in` is where in() begins, `out` where out() does; null where that is nothing.
  std::vector<ccl::Work> works(const std::byte* in, std::byte* out) const;

 private:
  void find_ranges(bool in_place);
  void find_type();
  bool is_composed() const;
  ccl::Work work(accord_ccl_call call, const std::byte* send, std::byte* recv,
                 std::size_t length_bytes, int peer = 0) const;
  std::vector<ccl::Work> messages(const std::byte* in, std::byte* out) const;
  std::vector<ccl::Work> block_reductions(const std::byte* in, std::byte* out) const;

  const ccl::Library& library_;
  const node::Call& call_;
  node::Geometry geometry_;
  int rank_;
  Range in_;
  Range out_;
  Range kept_;
  bool keeps_own_ = false;  // its own block stays where it is
  bool needs_apart_ = false;
  std::size_t alignment_bytes_ = 1;
  accord_ccl_type type_ = ACCORD_CCL_UINT8;
  accord_ccl_op op_ = ACCORD_CCL_NONE;
  std::size_t type_bytes_ = 1;
};

}  // namespace accord::coll
