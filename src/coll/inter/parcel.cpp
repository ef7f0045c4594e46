// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/inter/parcel.h"

#include <algorithm>
#include <utility>

namespace accord::coll {

namespace {

// As many as a call has under way.
constexpr std::size_t kSpareMax = 4;

Status lease(const node::Group& group, std::size_t size_bytes, Parcel::Leases& spare,
             node::DeviceLease& lease) {
  const auto found = std::ranges::find_if(spare, [=](const node::DeviceLease& one) {
    return one.size_bytes() >= size_bytes && device::exists(one.segment());
  });
  if (found == spare.end())
    return node::lease_device_memory(group.runtime(), group.device(), size_bytes,
                                     node::LeaseOf::messages, lease);
  lease = std::move(*found);
  spare.erase(found);
  return {};
}

}  // namespace

// Where the pool has no room, or UCX does not reach it, the host's does.
Status Parcel::take(const node::Group& group, std::size_t size_bytes, const Transport* transport,
                    Leases& spare) {
  if (transport != nullptr && size_bytes != 0 && lease(group, size_bytes, spare, lease_).ok()) {
    if (transport->takes(lease_.segment())) return {};
    lease_.reset();
  }
  return device::staging_pool().acquire(&group.runtime(), size_bytes, host_);
}

bool Parcel::take_sparse(std::size_t size_bytes) {
  lease_.reset();
  return device::staging_pool().acquire_sparse(size_bytes, host_).ok();
}

void Parcel::give_back(Leases& spare) {
  if (on_device()) {
    if (spare.size() == kSpareMax) spare.erase(spare.begin());
    spare.push_back(std::move(lease_));
  }
  lease_.reset();
  host_.reset();
}

std::byte* Parcel::data() const noexcept {
  return on_device() ? lease_.data() : static_cast<std::byte*>(host_.data());
}

net::Memory Parcel::memory(std::size_t first_bytes, std::size_t length_bytes) const {
  return {.start = data() + first_bytes,
          .size_bytes = length_bytes,
          .where = on_device() ? lease_.segment() : device::PointerInfo()};
}

core::CallEnd Parcel::end(std::size_t size_bytes) const {
  core::CallEnd made;
  made.user = data();
  made.segment = {core::Typemap::contiguous(1), size_bytes, 0};
  if (!on_device()) return made;
  made.memory = lease_.segment();
  made.runtime = made.memory.runtime;
  made.device = made.memory.device;
  made.on_device = true;
  return made;
}

}  // namespace accord::coll
