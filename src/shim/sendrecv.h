// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls that send and receive at once, and probes.
#pragma once

#include <mpi.h>

#include <limits>
#include <optional>
#include <vector>

#include "shim/held_exchange.h"
#include "shim/receives.h"

namespace accord::shim {

// Of a message to or from MPI_PROC_NULL, as at the edge of a grid, nothing is read or written.
template <class C>
Description description_from(int source, void* buf, C count, MPI_Datatype datatype, Lasts lasts) {
  if (source != MPI_PROC_NULL) return description_of_recv(buf, count, datatype, lasts);
  Description d;
  d.recv = core::StagedBuffer::untouched(buf);
  return d;
}
template <class C>
void describe_send_to(int dest, Description& d, const void* buf, C count, MPI_Datatype datatype) {
  d.send = dest == MPI_PROC_NULL ? core::StagedBuffer::untouched(buf) : Description::buffer(buf);
  if (dest != MPI_PROC_NULL) d.reads(d.send, count, datatype);
}

template <class C>
int send_and_receive(const char* name, check::Names names, const void* sendbuf, C sendcount,
                     MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf, C recvcount,
                     MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                     MPI_Status* status) {
  if (!needs_us(sendbuf)) {
    if (const HostReceive receive(recvbuf, recvcount, recvtype); receive.is_granted()) {
      const Region region(engine());
      return host::Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                            recvtype, source, recvtag, comm, status);
    }
  }
  if (!is_envelope(comm, dest, sendtag, Direction::send) ||
      !is_envelope(comm, source, recvtag, Direction::receive))
    return host::Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                          source, recvtag, comm, status);
  const core::CallScope scope("MPI_Sendrecv", {"sendbuf", sendbuf}, {"recvbuf", recvbuf});
  Description d = description_from(source, recvbuf, recvcount, recvtype, Lasts::call);
  describe_send_to(dest, d, sendbuf, sendcount, sendtype);
  if (d.valid) check::Call(name, comm, names).look(d);
  // The send's shadow is kept here until the send is complete too, or its header.
  core::StagedBuffer kept = std::move(d.send);
  Sent<C> sent{sendbuf, sendcount, sendtype};
  node::MessageHeader header;
  bool posted = false;
  Status staged;
  if (d.valid && dest != MPI_PROC_NULL)
    staged = post_message(kept, sendcount, sendtype, dest, comm, header, posted);
  if (posted) {
    // What comes in its place must not overtake what goes out.
    node::Lender& lender = lender_of(header);
    if (staged.ok() && sendbuf == recvbuf) staged = lender.move(header);
    if (staged.ok() && sendbuf == recvbuf && lender.is_lent(header)) {  // there is no room
      lender.withdraw(header);
      posted = false;
    }
  }
  if (posted) {
    sent = sent_header<C>(header);
  } else if (d.valid && staged.ok()) {
    staged = kept.open();
    if (staged.ok()) staged = kept.copy_in();
    sent.buf = kept.host();
  }
  if (!posted && !staged.ok()) return raise(comm, staged);
  std::optional<Unsent> unsent;
  if (posted) unsent.emplace(header);
  d.send = core::StagedBuffer::untouched(sent.buf);
  if (const Status opened = open_for_held(d); !opened.ok()) return raise(comm, opened);
  HeldMessage held;
  std::optional<ReceiveOrder> ordered(std::in_place, comm);  // until the receive is posted
  const bool is_held = take_held(source, recvtag, comm, held);
  d.substitute = std::move(held.substitute);
  MPI_Request send_request = MPI_REQUEST_NULL;
  const auto twin = [&](const void*, void* recv, MPI_Request* request) {
    const int failed = is_held
                           ? host::Imrecv(recv, recvcount, recvtype, &held.handle, request)
                           : host::Irecv(recv, recvcount, recvtype, source, recvtag, comm, request);
    ordered.reset();
    if (failed != MPI_SUCCESS) return failed;
    Unmatched receive(*request);
    const int sending =
        host::Isend(sent.buf, sent.count, sent.datatype, dest, sendtag, comm, &send_request);
    if (sending == MPI_SUCCESS) receive.keep();
    return sending;
  };
  const auto end_send = [&]() -> int {
    if (send_request == MPI_REQUEST_NULL) return MPI_SUCCESS;
    const int sending = run_twin(
        [&](MPI_Request* request) {
          *request = send_request;
          return MPI_SUCCESS;
        },
        MPI_STATUS_IGNORE);
    if (posted) unsent->is_sent();
    if (posted) staged = end_message(header, staged);
    return sending;
  };
  const bool by_requests = is_held || posted || must_post_receives();
  int code = MPI_SUCCESS;
  try {
    code = blocking_receive(
        name, comm, std::move(d), status,
        [&](const void* from, void* recv, MPI_Status* told) {
          if (by_requests)
            return run_twin([&](MPI_Request* request) { return twin(from, recv, request); }, told);
          return host::Sendrecv(sent.buf, sent.count, sent.datatype, dest, sendtag, recv, recvcount,
                                recvtype, source, recvtag, comm, told);
        },
        twin, names);
  } catch (...) {  // the send ends all the same: its buffer is the program's again
    (void)end_send();
    throw;
  }
  const int sending = end_send();
  if (code != MPI_SUCCESS || sending != MPI_SUCCESS) return code != MPI_SUCCESS ? code : sending;
  return raise(comm, staged);
}

template <class C>
int Sendrecv(const void* sendbuf, C sendcount, MPI_Datatype sendtype, int dest, int sendtag,
             void* recvbuf, C recvcount, MPI_Datatype recvtype, int source, int recvtag,
             MPI_Comm comm, MPI_Status* status) {
  return send_and_receive("MPI_Sendrecv", check::kBoth, sendbuf, sendcount, sendtype, dest, sendtag,
                          recvbuf, recvcount, recvtype, source, recvtag, comm, status);
}

// What a buffer of host memory holds, to be sent as MPI_PACKED: that matches any type. An error
// where that has more bytes than a count of this call tells.
template <class C>
int pack(const void* buf, C count, MPI_Datatype datatype, MPI_Comm comm,
         std::vector<std::byte>& packed, C& size) {
  C room{};
  if (const int code = host::Pack_size(count, datatype, comm, &room)) return code;
  if (room < 0 || segment_of(count, datatype).size_bytes() > std::numeric_limits<C>::max())
    return raise(comm, {StatusCode::unsupported,
                        "what goes out has too many bytes to be packed: MPI_Sendrecv_replace_c"});
  packed.resize(static_cast<std::size_t>(room) + 1);
  size = 0;
  return host::Pack(buf, count, datatype, packed.data(), room, &size, comm);
}

template <class C>
int Sendrecv_replace(void* buf, C count, MPI_Datatype datatype, int dest, int sendtag, int source,
                     int recvtag, MPI_Comm comm, MPI_Status* status) {
  if (const HostReceive receive(buf, count, datatype); receive.is_granted()) {
    const Region region(engine());
    return host::Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm,
                                  status);
  }
  if (!job.has_threads && engine().idle() && !may_listen() && !has_posted_receives()) {
    Description d = description_of_recv(buf, count, datatype, Lasts::call);
    d.reads(d.recv, count, datatype);
    return blocking_receive(
        "MPI_Sendrecv_replace", comm, std::move(d), status,
        [&](const void*, void* recv, MPI_Status* told) {
          return host::Sendrecv_replace(recv, count, datatype, dest, sendtag, source, recvtag, comm,
                                        told);
        },
        [](const void*, void*, MPI_Request*) { return MPI_ERR_INTERN; });
  }
  if (!is_envelope(comm, dest, sendtag, Direction::send) ||
      !is_envelope(comm, source, recvtag, Direction::receive))
    return host::Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm,
                                  status);
  const core::CallScope scope("MPI_Sendrecv_replace", {"buf", buf});
  if (needs_us(buf)) {  // the two directions get shadows of their own
    return send_and_receive("MPI_Sendrecv_replace", {}, buf, count, datatype, dest, sendtag, buf,
                            count, datatype, source, recvtag, comm, status);
  }
  // Host memory with no non-blocking twin at hand: what goes out is packed first.
  std::vector<std::byte> packed;
  C size{};
  if (const int code = pack(buf, count, datatype, comm, packed, size)) return code;
  return send_and_receive("MPI_Sendrecv_replace", {}, packed.data(), size, MPI_PACKED, dest,
                          sendtag, buf, count, datatype, source, recvtag, comm, status);
}

#ifdef ACCORD_HAS_Isendrecv
// MPICH 5.0.2 leaves the status of these requests unset, so what arrived cannot be known: the
// shadow holds the receive buffer's old content first, and all of it is copied out.
inline Handle handle_of_both(int dest, int source) {
  if (source != MPI_PROC_NULL) return Handle::receive;
  return dest == MPI_PROC_NULL ? Handle::nothing : Handle::send;
}

inline Status open_both(Description& d) {
  ACCORD_TRY(d.send.open());
  ACCORD_TRY(d.recv.open());
  ACCORD_TRY(d.send.copy_in());
  return d.recv.copy_in();
}

template <class C>
int Isendrecv(const void* sendbuf, C sendcount, MPI_Datatype sendtype, int dest, int sendtag,
              void* recvbuf, C recvcount, MPI_Datatype recvtype, int source, int recvtag,
              MPI_Comm comm, MPI_Request* request) {
  Description d = description_from(source, recvbuf, recvcount, recvtype, Lasts::request);
  if (source != MPI_PROC_NULL) d.reads(d.recv, recvcount, recvtype);
  describe_send_to(dest, d, sendbuf, sendcount, sendtype);
  const ReceiveOrder ordered(comm);
  if (const Status opened = open_for_held(d); !opened.ok()) return raise(comm, opened);
  if (HeldMessage held; d.valid && request != nullptr && take_held(source, recvtag, comm, held)) {
    if (const Status opened = open_both(d); !opened.ok()) return raise(comm, opened);
    return exchange_held(
        comm, std::move(d), held, {}, request,
        [&](void* recv, MPI_Message* message, MPI_Request* made) {
          return host::Imrecv(recv, recvcount, recvtype, message, made);
        },
        [&](const void* send, MPI_Request* made) {
          return host::Isend(send, sendcount, sendtype, dest, sendtag, comm, made);
        });
  }
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
                      int recvtag, MPI_Comm comm, MPI_Request* request) {
  Description d = description_of_recv(buf, count, datatype);
  d.reads(d.recv, count, datatype);
  const ReceiveOrder ordered(comm);
  if (const Status opened = open_for_held(d); !opened.ok()) return raise(comm, opened);
  if (HeldMessage held; d.valid && request != nullptr && take_held(source, recvtag, comm, held)) {
    if (const Status opened = open_both(d); !opened.ok()) return raise(comm, opened);
    std::vector<std::byte> packed;
    C size{};
    if (const int code = pack(d.recv.host(), count, datatype, comm, packed, size)) return code;
    return exchange_held(
        comm, std::move(d), held, std::move(packed), request,
        [&](void* recv, MPI_Message* message, MPI_Request* made) {
          return host::Imrecv(recv, count, datatype, message, made);
        },
        [&](const void* send, MPI_Request* made) {
          return host::Isend(send, size, MPI_PACKED, dest, sendtag, comm, made);
        });
  }
  return make_request(
      "MPI_Isendrecv_replace", comm, std::move(d), handle_of_both(dest, source), request,
      [&](const void*, void* recv) {
        return host::Isendrecv_replace(recv, count, datatype, dest, sendtag, source, recvtag, comm,
                                       request);
      },
      Amount::whole);
}
#endif

inline int Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  if (host::completions == 0) engine().progress();
  return iprobe(source, tag, comm, flag, status);
}

inline int Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                   MPI_Status* status) {
  if (host::completions == 0) engine().progress();
  return improbe(source, tag, comm, flag, message, status);
}

inline int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if ((engine().idle() && !may_listen()) || !is_envelope(comm, source, tag, Direction::receive)) {
    const Region region(engine());
    return host::Probe(source, tag, comm, status);
  }
  int code = MPI_SUCCESS;
  engine().wait_until([&] {
    int flag = kUntold;
    code = iprobe(source, tag, comm, &flag, status);
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

inline int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  if ((engine().idle() && !may_listen()) || !is_envelope(comm, source, tag, Direction::receive)) {
    const Region region(engine());
    return host::Mprobe(source, tag, comm, message, status);
  }
  int code = MPI_SUCCESS;
  engine().wait_until([&] {
    int flag = kUntold;
    code = improbe(source, tag, comm, &flag, message, status);
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

}  // namespace accord::shim
