// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where a chunk of a two-level collective lies between going up and coming down: page-locked host
// memory, or memory of the node's device where a transport takes that.
#pragma once

#include <vector>

#include "coll/transport.h"
#include "core/call_end.h"
#include "device/staging_pool.h"
#include "node/device_pool.h"
#include "node/group.h"

namespace accord::coll {

class Parcel {
 public:
  using Leases = std::vector<node::DeviceLease>;
  // `transport`: that it is for; null: none. `spare`: what earlier ones have left, where that of
  // this one goes, too.
  Status take(const node::Group& group, std::size_t size_bytes, const Transport* transport,
              Leases& spare);
  // Host memory that need be no device's.
  bool take_sparse(std::size_t size_bytes);
  // Nobody needs it any more.
  void give_back(Leases& spare);

  std::byte* data() const noexcept;
  bool on_device() const noexcept { return lease_.size_bytes() != 0; }
  // A part of it.
  net::Memory memory(std::size_t first_bytes, std::size_t length_bytes) const;
  // All of it, as an end of what goes on within the node.
  core::CallEnd end(std::size_t size_bytes) const;

 private:
  device::StagingBuffer host_;
  node::DeviceLease lease_;
};

}  // namespace accord::coll
