// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls that involve no other rank but touch buffers: pack and unpack, Reduce_local, the buffer of
// Bsend.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "shim/collectives.h"

namespace accord::shim {

// Opens both buffers, runs `call` on their host pointers and copies out what it wrote, at most
// `limit()` bytes.
template <class Call, class Limit>
int run_local(MPI_Comm comm, Description d, Call call, Limit limit) {
  if (!d.valid) return call(d.send.user(), d.recv.user());
  coll::set_last_path("staged");
  Status status = d.send.open();
  if (status.ok()) status = d.recv.open(&d.send);
  if (status.ok()) status = d.send.copy_in();
  if (status.ok()) status = d.recv.copy_in();
  if (!status.ok()) return raise(comm, status);
  if (const int code = call(d.send.host(), d.recv.host()); code != MPI_SUCCESS) return code;
  return raise(comm, d.recv.copy_out(limit()));
}

// MPI_Pack or MPI_Unpack with its elements on a device: between these and the packed bytes, which
// begin at `position` of `packed_size` bytes.
struct Packing {
  const void* elements;
  MPI_Count count;
  MPI_Datatype datatype;
  const void* packed;
  MPI_Count packed_size;
  MPI_Count position;
  MPI_Comm comm;
  core::LayoutCopy::Direction direction;
};

// Does it without the host MPI, whose packed form is the elements' bytes in typemap order. False
// where that cannot be, or would be an error for the host MPI to report. Else `position` is the new
// one, if all went well.
bool pack_on_device(const Packing& call, MPI_Count& position, Status& status);

// Returns whether the call is done, with `code` for the user.
template <class P>
bool packed_on_device(const Packing& call, P& position, int& code) {
  if (!device::must_stage(call.elements)) return false;
  MPI_Count after = call.position;
  Status status;
  if (!pack_on_device(call, after, status)) return false;
  code = raise(call.comm, status);
  if (status.ok()) position = static_cast<P>(after);
  return true;
}

// P is the type of sizes and positions.
template <class C, class P, class Call>
int pack(const void* inbuf, C incount, MPI_Datatype datatype, void* outbuf, P outsize, P* position,
         MPI_Comm comm, Call call) {
  if ((!needs_us(inbuf) && !needs_us(outbuf)) || position == nullptr) return call(inbuf, outbuf);
  Description d;
  d.send = Description::buffer(inbuf);
  d.recv = Description::buffer(outbuf);
  d.reads(d.send, incount, datatype);
  const P before = *position;
  if (before < 0 || outsize < before) {
    d.valid = false;
  } else {
    d.writes_bytes(d.recv, static_cast<std::size_t>(outsize - before),
                   static_cast<MPI_Aint>(before));
  }
  return run_local(comm, std::move(d), call,
                   [&] { return static_cast<std::size_t>(*position - before); });
}

template <class C, class P, class Call>
int unpack(const void* inbuf, P insize, P* position, void* outbuf, C outcount,
           MPI_Datatype datatype, MPI_Comm comm, Call call) {
  if ((!needs_us(inbuf) && !needs_us(outbuf)) || position == nullptr) return call(inbuf, outbuf);
  Description d;
  d.send = Description::buffer(inbuf);
  d.recv = Description::buffer(outbuf);
  d.writes(d.recv, outcount, datatype);
  if (*position < 0 || insize < *position) {
    d.valid = false;
  } else {
    d.reads_bytes(d.send, static_cast<std::size_t>(insize - *position),
                  static_cast<MPI_Aint>(*position));
  }
  return run_local(comm, std::move(d), call, [] { return core::StagedBuffer::kAll; });
}

template <class C>
int Pack(const void* inbuf, C incount, MPI_Datatype datatype, void* outbuf, C outsize, C* position,
         MPI_Comm comm) {
  const core::CallScope scope("MPI_Pack", {"inbuf", inbuf}, {"outbuf", outbuf});
  int code = MPI_SUCCESS;
  if (position != nullptr && packed_on_device({inbuf, incount, datatype, outbuf, outsize, *position,
                                               comm, core::LayoutCopy::Direction::pack},
                                              *position, code))
    return code;
  return pack(inbuf, incount, datatype, outbuf, outsize, position, comm,
              [&](const void* in, void* out) {
                return host::Pack(in, incount, datatype, out, outsize, position, comm);
              });
}

template <class C>
int Unpack(const void* inbuf, C insize, C* position, void* outbuf, C outcount,
           MPI_Datatype datatype, MPI_Comm comm) {
  const core::CallScope scope("MPI_Unpack", {"inbuf", inbuf}, {"outbuf", outbuf});
  int code = MPI_SUCCESS;
  if (position != nullptr && packed_on_device({outbuf, outcount, datatype, inbuf, insize, *position,
                                               comm, core::LayoutCopy::Direction::unpack},
                                              *position, code))
    return code;
  return unpack(inbuf, insize, position, outbuf, outcount, datatype, comm,
                [&](const void* in, void* out) {
                  return host::Unpack(in, insize, position, out, outcount, datatype, comm);
                });
}

template <class C, class P>
int Pack_external(const char datarep[], const void* inbuf, C incount, MPI_Datatype datatype,
                  void* outbuf, P outsize, P* position) {
  return pack(inbuf, incount, datatype, outbuf, outsize, position, MPI_COMM_SELF,
              [&](const void* in, void* out) {
                return host::Pack_external(datarep, in, incount, datatype, out, outsize, position);
              });
}

template <class C, class P>
int Unpack_external(const char datarep[], const void* inbuf, P insize, P* position, void* outbuf,
                    C outcount, MPI_Datatype datatype) {
  return unpack(inbuf, insize, position, outbuf, outcount, datatype, MPI_COMM_SELF,
                [&](const void* in, void* out) {
                  return host::Unpack_external(datarep, in, insize, position, out, outcount,
                                               datatype);
                });
}

template <class C>
int Reduce_local(const void* inbuf, void* inoutbuf, C count, MPI_Datatype datatype, MPI_Op op) {
  // One address for both is an error that the host MPI shall report.
  const bool is_aliased = inbuf == inoutbuf && inbuf != MPI_BOTTOM;
  const auto call = [&](const void* in, void* inout) {
    return host::Reduce_local(is_aliased ? inout : in, inout, count, datatype, op);
  };
  if (!needs_us(inbuf) && !needs_us(inoutbuf)) return call(inbuf, inoutbuf);
  const core::CallScope scope("MPI_Reduce_local", {"inbuf", inbuf}, {"inoutbuf", inoutbuf});
  Description d;
  if (!is_aliased) {
    d.send = Description::buffer(inbuf);
    d.reads(d.send, count, datatype);
  }
  d.recv = Description::buffer(inoutbuf);
  d.reads(d.recv, count, datatype);
  d.writes(d.recv, count, datatype);
  return run_local(MPI_COMM_SELF, std::move(d), call, [] { return core::StagedBuffer::kAll; });
}

// The buffer of Bsend holds messages that the host MPI writes: device memory is replaced by host
// memory of the same size, and given back when it is detached. Several may be attached at once
// (MPI 4.1). Thread-safe.
class BsendBuffers {
 public:
  void* replace(void* user, std::size_t size_bytes);
  void* restore(void* attached);

 private:
  struct Replaced {
    std::unique_ptr<std::byte[]> host;
    void* user;
  };
  std::mutex mutex_;
  std::vector<Replaced> replaced_;
};
BsendBuffers& bsend_buffers();

template <class C, class Call>
int attach_buffer(void* buffer, C size, Call call) {
  if (size > 0 && device::must_stage(buffer)) {
    buffer = bsend_buffers().replace(buffer, static_cast<std::size_t>(size));
  }
  return call(buffer);
}

template <class Call>
int detach_buffer(void* buffer_address, Call call) {
  const Region region(engine());  // waits until the buffered messages have gone
  const int code = call();
  if (code == MPI_SUCCESS && buffer_address != nullptr) {
    void** address = static_cast<void**>(buffer_address);
    *address = bsend_buffers().restore(*address);
  }
  return code;
}

template <class C>
int Buffer_attach(void* buffer, C size) {
  return attach_buffer(buffer, size, [=](void* used) { return host::Buffer_attach(used, size); });
}
template <class C>
int Buffer_detach(void* buffer_address, C* size) {
  return detach_buffer(buffer_address, [=] { return host::Buffer_detach(buffer_address, size); });
}
#ifdef ACCORD_HAS_Comm_attach_buffer
template <class C>
int Comm_attach_buffer(MPI_Comm comm, void* buffer, C size) {
  return attach_buffer(buffer, size,
                       [=](void* used) { return host::Comm_attach_buffer(comm, used, size); });
}
template <class C>
int Comm_detach_buffer(MPI_Comm comm, void* buffer_address, C* size) {
  return detach_buffer(buffer_address,
                       [=] { return host::Comm_detach_buffer(comm, buffer_address, size); });
}
#endif
#ifdef ACCORD_HAS_Session_attach_buffer
template <class C>
int Session_attach_buffer(MPI_Session session, void* buffer, C size) {
  return attach_buffer(
      buffer, size, [=](void* used) { return host::Session_attach_buffer(session, used, size); });
}
template <class C>
int Session_detach_buffer(MPI_Session session, void* buffer_address, C* size) {
  return detach_buffer(buffer_address,
                       [=] { return host::Session_detach_buffer(session, buffer_address, size); });
}
#endif

}  // namespace accord::shim
