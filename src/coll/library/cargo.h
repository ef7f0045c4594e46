// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank gives a collective library and gets from it in one call. Ends that the library cannot
// take (host memory, derived types, memory of another device, addresses that are no multiple of the
// element) pass through device memory of our own, which is a matter of this rank alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coll/coll_args.h"
#include "coll/library/group.h"
#include "coll/library/plan.h"

namespace accord::coll {

class CclCargo {
 public:
  // The library's function, or a group of its messages, where all ranks know all sizes; else pair
  // by pair. Both outlive it.
  static std::unique_ptr<CclCargo> of(CclGroup& group, const CollArgs& args);
  virtual ~CclCargo() = default;

  // Brings what is read to where the library can read it, and finds room for what it writes.
  virtual Status pack(device::CopyTicket& ticket) = 0;
  // Before this rank enters the call, if there is anything to tell, and once all have.
  virtual bool has_to_tell() const { return false; }
  virtual void tell_peers() {}
  virtual void look_at_peers() {}
  virtual std::vector<ccl::Work> works() const = 0;
  // Tells the memory of these works from any other that may have its addresses at another time; 0:
  // such works do not come again, or only by chance.
  virtual std::uint64_t memory_mark() const { return 0; }
  // Brings what was written to where the user wants it.
  virtual Status unpack(device::CopyTicket& ticket) = 0;
  // A mistake of the program, told once all else is done; and what has come in spite of it.
  virtual Status mistake() const { return {}; }
  virtual bool has_block_of(int /*peer*/) const { return true; }

 protected:
  explicit CclCargo(CclGroup& group) : group_(group) {}

  device::DeviceRuntime& runtime() const noexcept { return group_.mailboxes().runtime(); }
  int device() const noexcept { return group_.mailboxes().device(); }
  // Whether the library can take bytes of the end from `first_bytes` on as they lie.
  bool is_direct(const core::CallEnd& end, std::size_t first_bytes,
                 std::size_t alignment_bytes) const;
  Status begin(const core::CopyBatch& batch, device::CopyTicket& ticket) const;
  std::byte* for_library(std::byte* pointer) const;

  CclGroup& group_;
};

}  // namespace accord::coll
