// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Turns the buffer arguments of one call into StagedBuffers: which bytes the host MPI will read and
// write on this rank, in the user's own datatypes. Used by the shapes of the collectives, by
// point-to-point and pack.
#pragma once

#include <mpi.h>

#include "base/stages.h"
#include "core/call_site.h"
#include "core/staged_buffer.h"
#include "shim/landing.h"
#include "shim/shim.h"
#include "shim/typemap.h"

namespace accord::shim {

// What a call moves on this rank, for people; filled while somebody listens.
struct Told {
  std::size_t read_bytes = 0;
  std::size_t written_bytes = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  bool several_types = false;
  const char* send_memory = nullptr;  // null: nothing there is read or written
  const char* recv_memory = nullptr;
};

struct Substitute;

class Description {
 public:
  core::StagedBuffer send;
  core::StagedBuffer recv;
  Landing landing;                         // where a receive may get a header
  std::shared_ptr<Substitute> substitute;  // of a matched message (held_messages.h), or null
  bool looked_after = false;               // whatever it comes to, its request is ours to finish
  // False when an argument is wrong: the call goes to the host MPI as it is, which reports it.
  bool valid = true;
  Told told;

  // Declares a buffer; what it reads and writes follows.
  static core::StagedBuffer buffer(const void* user) {
    if (user == MPI_IN_PLACE) return core::StagedBuffer::untouched(user);
    const device::PointerInfo where = device::classify_argument(user);
    return device::needs_staging(where) ? core::StagedBuffer::staged(user, where)
                                        : core::StagedBuffer::untouched(user);
  }

  template <class C>
  void reads(core::StagedBuffer& buffer, C count, MPI_Datatype datatype,
             MPI_Aint offset_bytes = 0) {
    if (auto segment = part(buffer, count, datatype, offset_bytes); segment.count != 0)
      buffer.reads(std::move(segment));
    if (stages::listening) told.read_bytes += tell(buffer, count, datatype);
  }
  template <class C>
  void writes(core::StagedBuffer& buffer, C count, MPI_Datatype datatype,
              MPI_Aint offset_bytes = 0) {
    if (auto segment = part(buffer, count, datatype, offset_bytes); segment.count != 0)
      buffer.writes(std::move(segment));
    if (stages::listening) told.written_bytes += tell(buffer, count, datatype);
  }

  // Raw bytes, as of a packed buffer.
  void reads_bytes(core::StagedBuffer& buffer, std::size_t size_bytes, MPI_Aint offset_bytes = 0) {
    buffer.reads({core::Typemap::contiguous(1), size_bytes, offset_bytes});
  }
  void writes_bytes(core::StagedBuffer& buffer, std::size_t size_bytes, MPI_Aint offset_bytes = 0) {
    buffer.writes({core::Typemap::contiguous(1), size_bytes, offset_bytes});
  }

 private:
  // Notes the buffer and the type, and returns the size of what is read or written.
  template <class C>
  std::size_t tell(const core::StagedBuffer& buffer, C count, MPI_Datatype datatype) {
    if (count <= 0 || datatype == MPI_DATATYPE_NULL) return 0;
    const auto type = typemap(datatype);
    if (!type) return 0;
    (&buffer == &send ? told.send_memory : told.recv_memory) = memory_of(buffer);
    told.several_types =
        told.several_types || (told.datatype != MPI_DATATYPE_NULL && told.datatype != datatype);
    told.datatype = datatype;
    return static_cast<std::size_t>(count) * type->size_bytes();
  }

  static const char* memory_of(const core::StagedBuffer& buffer) {
    if (!buffer.is_staged()) return "host";
    if (buffer.where().runtime == nullptr) return "absolute addresses";
    return buffer.where().kind == device::MemoryKind::managed ? "managed" : "device";
  }

  template <class C>
  core::Segment part(core::StagedBuffer& buffer, C count, MPI_Datatype datatype,
                     MPI_Aint offset_bytes) {
    if (count <= 0) {
      valid = valid && count == 0;
      return {};
    }
    // Absolute addresses, in the type or as a displacement: each may be on a device. A null pointer
    // with a predefined type and no displacement is the user's mistake.
    if (buffer.user() == MPI_BOTTOM && !buffer.is_staged() && datatype != MPI_DATATYPE_NULL &&
        (offset_bytes != 0 || !is_named(datatype))) {
      device::order_behind_program();
      buffer = core::StagedBuffer::absolute(buffer.user());
    }
    if (!buffer.is_staged()) return {};
    auto type = typemap(datatype);
    if (!type) {
      valid = false;
      return {};
    }
    return {std::move(type), static_cast<std::size_t>(count), offset_bytes};
  }
};

// Its buffers, for errors.
inline core::CallSite::Argument sent_argument(const Description& d) {
  if (d.send.user() == nullptr) return {};
  return {d.recv.user() == nullptr ? "buf" : "sendbuf", d.send.user()};
}
inline core::CallSite::Argument received_argument(const Description& d) {
  if (d.recv.user() == nullptr) return {};
  return {d.send.user() == nullptr ? "buf" : "recvbuf", d.recv.user()};
}

// Extent of a datatype, 0 when it is not valid.
inline MPI_Aint extent_of(MPI_Datatype datatype) {
  MPI_Count lower_bound = 0;
  MPI_Count extent = 0;
  if (datatype == MPI_DATATYPE_NULL) return 0;
  return host::Type_get_extent_x(datatype, &lower_bound, &extent) == MPI_SUCCESS
             ? static_cast<MPI_Aint>(extent)
             : 0;
}

}  // namespace accord::shim
