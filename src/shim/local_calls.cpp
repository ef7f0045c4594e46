// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/local_calls.h"

#include <algorithm>
#include <cstring>

namespace accord::shim {

bool pack_on_device(const Packing& call, MPI_Count& position, Status& status) {
  const MPI_Count room = call.packed_size - call.position;
  if (call.count <= 0 || call.position < 0 || room < 0 || comm_state(call.comm) == nullptr)
    return false;
  const device::PointerInfo where = device::classify_argument(call.elements);
  const device::PointerInfo there = device::classify_argument(call.packed);
  const auto type = typemap(call.datatype);
  MPI_Count size = 0;
  if (!type || !device::needs_staging(where) || call.packed == nullptr ||
      __builtin_mul_overflow(static_cast<MPI_Count>(type->size_bytes()), call.count, &size) ||
      size > room)
    return false;
  const bool bounces = there.kind == device::MemoryKind::host;
  const bool reaches = there.runtime == where.runtime &&
                       (there.kind == device::MemoryKind::pinned ||
                        (there.kind == device::MemoryKind::device && there.device == where.device));
  if (!bounces && !reaches) return false;
  const bool packs = call.direction == core::LayoutCopy::Direction::pack;
  const auto size_bytes = static_cast<std::size_t>(size);
  std::byte* const packed = static_cast<std::byte*>(const_cast<void*>(call.packed)) + call.position;
  device::StagingBuffer bounce;
  if (bounces) status = device::staging_pool().acquire(where.runtime, size_bytes, bounce);
  if (!status.ok()) return true;
  if (bounces && !packs && size > 0) std::memcpy(bounce.data(), packed, size_bytes);
  core::CopyBatch batch;
  batch.append(core::packed_copy({type, static_cast<std::size_t>(call.count), 0},
                                 const_cast<void*>(call.elements), 0, size_bytes,
                                 bounces ? bounce.data() : packed, call.direction));
  coll::set_last_path(bounces ? "staged" : "device");
  if (!batch.empty()) status = where.runtime->copy_batch(where.device, batch);
  if (bounces && packs && status.ok() && size > 0) std::memcpy(packed, bounce.data(), size_bytes);
  position = call.position + size;
  return true;
}

void* BsendBuffers::replace(void* user, std::size_t size_bytes) {
  const std::lock_guard<std::mutex> locked(mutex_);
  replaced_.push_back({std::make_unique<std::byte[]>(size_bytes), user});
  return replaced_.back().host.get();
}

void* BsendBuffers::restore(void* attached) {
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto found = std::find_if(replaced_.begin(), replaced_.end(),
                                  [&](const Replaced& one) { return one.host.get() == attached; });
  if (found == replaced_.end()) return attached;
  void* user = found->user;
  replaced_.erase(found);
  return user;
}

BsendBuffers& bsend_buffers() {
  static BsendBuffers& instance = *new BsendBuffers;
  return instance;
}

}  // namespace accord::shim
