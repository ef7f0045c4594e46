// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Receives, of matched messages too.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>

#include "shim/point_to_point.h"

namespace accord::shim {

// Whether the receive of a matched message has taken it, as one that cuts it off does: MPICH leaves
// the handle as it is then. After a wrong argument it is still to be received.
inline bool is_received(int code, MPI_Message* message) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) (void)host::Error_class(code, &error_class);
  if (error_class == MPI_ERR_TRUNCATE) *message = MPI_MESSAGE_NULL;
  return error_class == MPI_SUCCESS || *message == MPI_MESSAGE_NULL;
}

// Before a message that may be held is taken: where there is no memory for it, it is to be received
// by another call.
inline Status open_for_held(Description& d) {
  if (!holds_messages() || !d.valid) return {};
  ACCORD_TRY(d.send.open());
  return d.recv.open();
}

// A non-blocking receive of a matched message. An error of ours is raised on `comm`.
template <class C>
int start_matched(const char* name, MPI_Comm comm, Description d, C count, MPI_Datatype datatype,
                  MPI_Message* message, MPI_Request* request) {
  const bool nothing = message != nullptr && *message == MPI_MESSAGE_NO_PROC;
  const auto substitute = d.substitute;
  const int code =
      make_request(name, comm, std::move(d), nothing ? Handle::nothing : Handle::receive, request,
                   [&](const void*, void* recv) {
                     return host::Imrecv(recv, count, datatype, message, request);
                   });
  if (substitute && !is_received(code, message)) give_out(*message, substitute);
  return code;
}

template <class C>
int Irecv(void* buf, C count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
          MPI_Request* request) {
  if (source == MPI_PROC_NULL || passes_receive(buf, count, datatype, Lasts::request))
    return host::Irecv(buf, count, datatype, source, tag, comm, request);
  Description d = description_of_recv(buf, count, datatype);
  const ReceiveOrder ordered(comm);
  if (const Status opened = open_for_held(d); !opened.ok()) return raise(comm, opened);
  if (HeldMessage held; take_held(source, tag, comm, held)) {
    d.substitute = std::move(held.substitute);
    return start_matched("MPI_Irecv", comm, std::move(d), count, datatype, &held.handle, request);
  }
  return make_request("MPI_Irecv", comm, std::move(d), Handle::receive, request,
                      [&](const void*, void* recv) {
                        return host::Irecv(recv, count, datatype, source, tag, comm, request);
                      });
}

template <class C>
int Recv_init(void* buf, C count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  // Where messages may be held when it is started, it is looked after whatever it has room for.
  if (source == MPI_PROC_NULL || (!messaging.joined && engine().idle() && !needs_us(buf)))
    return host::Recv_init(buf, count, datatype, source, tag, comm, request);
  const core::CallScope scope("MPI_Recv_init", {"buf", buf});
  const stages::Story story = begin_story("MPI_Recv_init");
  const stages::Active active(story);
  Description d = description_of_recv(buf, count, datatype);
  check::Call checked("MPI_Recv_init", comm, {}, request, check::Lifetime::persistent);
  checked.look(d);
  d.looked_after = messaging.joined;
  return issue_request(
      story, comm, std::move(d), Handle::persistent, request,
      [&](const void*, void* recv) {
        return host::Recv_init(recv, count, datatype, source, tag, comm, request);
      },
      [&](Description issued) {
        const auto type = std::make_shared<KeptType>(datatype);
        return std::make_shared<PersistentReceive>(
            comm, std::move(issued), source, tag,
            [count, type](void* recv, MPI_Message* message, MPI_Request* receiving) {
              return host::Imrecv(recv, count, type->handle(), message, receiving);
            });
      });
}

// Blocking calls that receive: stages, runs, and copies out as many bytes as the status tells.
template <class Native, class Twin>
int blocking_receive(const char* name, MPI_Comm comm, Description d, MPI_Status* status,
                     Native native, Twin twin, check::Names names = {}) {
  const core::CallScope scope(name, sent_argument(d), received_argument(d));
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  if (!d.valid) return native(d.send.user(), d.recv.user(), status);
  check::Call(name, comm, names).look(d);
  begin_message(story, d);
  Status staged = d.send.open();
  if (staged.ok()) staged = d.recv.open();
  if (staged.ok()) staged = d.send.copy_in();
  if (staged.ok()) staged = d.recv.copy_in();
  if (!staged.ok()) return raise(comm, staged);
  stages::enter(stages::Stage::host_mpi);
  MPI_Status told = status == MPI_STATUS_IGNORE ? MPI_Status() : *status;
  told.MPI_SOURCE = kUntold;
  const int code = run_blocking(
      [&] { return native(d.send.host(), d.recv.host(), &told); },
      [&](MPI_Request* request) { return twin(d.send.host(), d.recv.host(), request); }, &told);
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) (void)host::Error_class(code, &error_class);
  const bool is_cut_off =
      error_class == MPI_ERR_TRUNCATE || (code == MPI_SUCCESS && told.MPI_SOURCE == kUntold);
  if (is_cut_off) give_up_cut_off(d.landing, d.recv.host());
  if (told.MPI_SOURCE == kUntold)
    return raise_for(d.substitute, code);  // has failed, and see has_error_function
  std::optional<core::MessageInfo> facts;
  Status received;
  if (code == MPI_SUCCESS) {
    stages::enter(stages::Stage::copy_out);
    received = finish_receive(d, completion_of(told), facts, story);
  }
  if (facts) correct(told, *facts);
  if (status != MPI_STATUS_IGNORE) *status = told;
  return code != MPI_SUCCESS ? raise_for(d.substitute, code) : raise(comm, received);
}

// A blocking receive of a matched message.
template <class C>
int receive_matched(const char* name, MPI_Comm comm, Description d, C count, MPI_Datatype datatype,
                    MPI_Message* message, MPI_Status* status) {
  const auto substitute = d.substitute;
  const int code = blocking_receive(
      name, comm, std::move(d), status,
      [&](const void*, void* recv, MPI_Status* told) {
        return host::Mrecv(recv, count, datatype, message, told);
      },
      [&](const void*, void* recv, MPI_Request* request) {
        return host::Imrecv(recv, count, datatype, message, request);
      });
  if (substitute && is_received(code, message)) {
    substitute->conclude();
  } else if (substitute) {
    give_out(*message, substitute);
  }
  return code;
}

template <class C>
int Recv(void* buf, C count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
         MPI_Status* status) {
  if (source == MPI_PROC_NULL) return host::Recv(buf, count, datatype, source, tag, comm, status);
  if (const HostReceive receive(buf, count, datatype); receive.is_granted()) {
    const Region region(engine());
    return after_host_receive(host::Recv(buf, count, datatype, source, tag, comm, status), buf,
                              count, datatype);
  }
  if (!is_envelope(comm, source, tag, Direction::receive))
    return host::Recv(buf, count, datatype, source, tag, comm, status);
  if (must_post_receives()) {
    const core::CallScope scope("MPI_Recv", {"buf", buf});
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = Irecv(buf, count, datatype, source, tag, comm, &request);
    if (code != MPI_SUCCESS) return code;
    return after_host_receive(Wait(&request, status), buf, count, datatype);
  }
  Description d = description_of_recv(buf, count, datatype, Lasts::call);
  if (const Status opened = open_for_held(d); !opened.ok()) return raise(comm, opened);
  if (HeldMessage held; take_held(source, tag, comm, held)) {
    d.substitute = std::move(held.substitute);
    return receive_matched("MPI_Recv", comm, std::move(d), count, datatype, &held.handle, status);
  }
  return blocking_receive(
      "MPI_Recv", comm, std::move(d), status,
      [&](const void*, void* recv, MPI_Status* told) {
        return host::Recv(recv, count, datatype, source, tag, comm, told);
      },
      [&](const void*, void* recv, MPI_Request* request) {
        return host::Irecv(recv, count, datatype, source, tag, comm, request);
      });
}

// A matched message as one of ours. The handle names no communicator: errors of ours go to
// MPI_COMM_SELF's handler, where it does not stand for a message that we have read.
template <class C>
Description description_of_matched(void* buf, C count, MPI_Datatype datatype, Lasts lasts,
                                   std::shared_ptr<Substitute> substitute, MPI_Comm& comm) {
  Description d = description_of_recv(buf, count, datatype, lasts);
  d.substitute = std::move(substitute);
  comm = d.substitute ? d.substitute->comm : MPI_COMM_SELF;
  return d;
}

template <class C>
int Mrecv(void* buf, C count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
  // Whatever the buffer: the handle is another message's from here on.
  auto substitute = claim_substitute(message);
  if (!substitute) {
    if (const HostReceive receive(buf, count, datatype); receive.is_granted()) {
      const Region region(engine());
      return after_host_receive(host::Mrecv(buf, count, datatype, message, status), buf, count,
                                datatype);
    }
  }
  MPI_Comm comm = MPI_COMM_SELF;
  Description d =
      description_of_matched(buf, count, datatype, Lasts::call, std::move(substitute), comm);
  return receive_matched("MPI_Mrecv", comm, std::move(d), count, datatype, message, status);
}

template <class C>
int Imrecv(void* buf, C count, MPI_Datatype datatype, MPI_Message* message, MPI_Request* request) {
  auto substitute = claim_substitute(message);
  if (!substitute && passes_receive(buf, count, datatype, Lasts::request))
    return host::Imrecv(buf, count, datatype, message, request);
  MPI_Comm comm = MPI_COMM_SELF;
  Description d =
      description_of_matched(buf, count, datatype, Lasts::request, std::move(substitute), comm);
  return start_matched("MPI_Imrecv", comm, std::move(d), count, datatype, message, request);
}

}  // namespace accord::shim
