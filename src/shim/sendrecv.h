// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls that send and receive at once, and probes.
#pragma once

#include <mpi.h>

#include <vector>

#include "shim/point_to_point.h"

namespace accord::shim {

template <class C>
int Sendrecv(const void* sendbuf, C sendcount, MPI_Datatype sendtype, int dest, int sendtag,
             void* recvbuf, C recvcount, MPI_Datatype recvtype, int source, int recvtag,
             MPI_Comm comm, MPI_Status* status) noexcept {
  const auto native = [&](const void* send, void* recv, MPI_Status* told) {
    return host::Sendrecv(send, sendcount, sendtype, dest, sendtag, recv, recvcount, recvtype,
                          source, recvtag, comm, told);
  };
  if (engine().idle() && !needs_us(sendbuf) && !needs_us(recvbuf)) {
    const Region region(engine());
    return native(sendbuf, recvbuf, status);
  }
  Description d = description_of_recv(recvbuf, recvcount, recvtype);
  d.send = Description::buffer(sendbuf);
  d.reads(d.send, sendcount, sendtype);
  core::StagedBuffer& send = d.send;
  MPI_Request send_request = MPI_REQUEST_NULL;
  // The send's shadow is kept here until the send is complete too.
  Status staged = d.valid ? send.open() : Status();
  if (staged.ok() && d.valid) staged = send.copy_in();
  if (!staged.ok()) return raise(comm, staged);
  const void* send_host = d.valid ? send.host() : sendbuf;
  core::StagedBuffer kept = std::move(send);
  d.send = core::StagedBuffer::untouched(send_host);
  const int code = blocking_receive(
      "MPI_Sendrecv", comm, std::move(d), status, native,
      [&](const void* from, void* recv, MPI_Request* request) {
        if (const int failed =
                host::Irecv(recv, recvcount, recvtype, source, recvtag, comm, request))
          return failed;
        return host::Isend(from, sendcount, sendtype, dest, sendtag, comm, &send_request);
      });
  if (send_request == MPI_REQUEST_NULL) return code;
  const int sent = run_twin(
      [&](MPI_Request* request) {
        *request = send_request;
        return MPI_SUCCESS;
      },
      MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS ? code : sent;
}

template <class C>
int Sendrecv_replace(void* buf, C count, MPI_Datatype datatype, int dest, int sendtag, int source,
                     int recvtag, MPI_Comm comm, MPI_Status* status) noexcept {
  if (engine().idle() && !needs_us(buf)) {
    const Region region(engine());
    return host::Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm,
                                  status);
  }
  if (engine().idle()) {
    Description d = description_of_recv(buf, count, datatype);
    d.reads(d.recv, count, datatype);
    return blocking_receive(
        "MPI_Sendrecv_replace", comm, std::move(d), status,
        [&](const void*, void* recv, MPI_Status* told) {
          return host::Sendrecv_replace(recv, count, datatype, dest, sendtag, source, recvtag, comm,
                                        told);
        },
        [](const void*, void*, MPI_Request*) { return MPI_ERR_INTERN; });
  }
  if (needs_us(buf)) {  // the two directions get shadows of their own
    return Sendrecv(buf, count, datatype, dest, sendtag, buf, count, datatype, source, recvtag,
                    comm, status);
  }
  // Host memory with no non-blocking twin at hand: what goes out is packed first. MPI_PACKED
  // matches any type.
  C size{};
  if (const int code = host::Pack_size(count, datatype, comm, &size)) return code;
  std::vector<std::byte> packed(static_cast<std::size_t>(size) + 1);
  C position{};
  if (const int code = host::Pack(buf, count, datatype, packed.data(), size, &position, comm))
    return code;
  return Sendrecv(packed.data(), position, MPI_PACKED, dest, sendtag, buf, count, datatype, source,
                  recvtag, comm, status);
}

#ifdef ACCORD_HAS_Isendrecv
// MPICH 5.0.2 leaves the status of these requests unset, so what arrived cannot be known: the
// shadow holds the receive buffer's old content first, and all of it is copied out.
inline Handle handle_of_both(int dest, int source) {
  if (source != MPI_PROC_NULL) return Handle::receive;
  return dest == MPI_PROC_NULL ? Handle::nothing : Handle::send;
}

template <class C>
int Isendrecv(const void* sendbuf, C sendcount, MPI_Datatype sendtype, int dest, int sendtag,
              void* recvbuf, C recvcount, MPI_Datatype recvtype, int source, int recvtag,
              MPI_Comm comm, MPI_Request* request) noexcept {
  Description d = description_of_recv(recvbuf, recvcount, recvtype);
  d.reads(d.recv, recvcount, recvtype);
  d.send = Description::buffer(sendbuf);
  d.reads(d.send, sendcount, sendtype);
  return make_request(
      "MPI_Isendrecv", comm, std::move(d), handle_of_both(dest, source), request,
      [&](const void* send, void* recv) {
        return host::Isendrecv(send, sendcount, sendtype, dest, sendtag, recv, recvcount, recvtype,
                               source, recvtag, comm, request);
      },
      Amount::whole);
}

template <class C>
int Isendrecv_replace(void* buf, C count, MPI_Datatype datatype, int dest, int sendtag, int source,
                      int recvtag, MPI_Comm comm, MPI_Request* request) noexcept {
  Description d = description_of_recv(buf, count, datatype);
  d.reads(d.recv, count, datatype);
  return make_request(
      "MPI_Isendrecv_replace", comm, std::move(d), handle_of_both(dest, source), request,
      [&](const void*, void* recv) {
        return host::Isendrecv_replace(recv, count, datatype, dest, sendtag, source, recvtag, comm,
                                       request);
      },
      Amount::whole);
}
#endif

inline int Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) noexcept {
  engine().progress();
  return host::Iprobe(source, tag, comm, flag, status);
}

inline int Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                   MPI_Status* status) noexcept {
  engine().progress();
  return host::Improbe(source, tag, comm, flag, message, status);
}

inline int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) noexcept {
  if (engine().idle()) {
    const Region region(engine());
    return host::Probe(source, tag, comm, status);
  }
  int code = MPI_SUCCESS;
  int flag = 0;
  engine().wait_until([&] {
    code = host::Iprobe(source, tag, comm, &flag, status);
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

inline int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message,
                  MPI_Status* status) noexcept {
  if (engine().idle()) {
    const Region region(engine());
    return host::Mprobe(source, tag, comm, message, status);
  }
  int code = MPI_SUCCESS;
  int flag = 0;
  engine().wait_until([&] {
    code = host::Improbe(source, tag, comm, &flag, message, status);
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

}  // namespace accord::shim
