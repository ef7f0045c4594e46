// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Point-to-point calls. The host MPI matches; a device buffer is staged, so a send has copied its
// data when the call returns and never waits for a peer because of us. While an operation of ours
// is active, a blocking call runs as its non-blocking twin with our progress loop.
#pragma once

#include <mpi.h>

#include <utility>

#include "shim/collectives.h"
#include "shim/completion.h"

namespace accord::shim {

// A staged receive (or send: then nothing is copied out) that the user holds as a request of the
// host MPI.
class TrackedMessage final : public core::Tracked {
 public:
  TrackedMessage(MPI_Comm comm, core::StagedBuffer send, core::StagedBuffer recv)
      : send_(std::move(send)), recv_(std::move(recv)) {
    context = to_bits(comm);
  }
  Status start() override {
    ACCORD_TRY(send_.copy_in());
    return recv_.copy_in();
  }
  Status finish(const core::Completion& completion) override {
    if (completion.failed || completion.cancelled) return {};
    return recv_.copy_out(completion.received_bytes);
  }

 private:
  core::StagedBuffer send_;
  core::StagedBuffer recv_;
};

// Runs a non-blocking host call to its end while our own operations go on.
template <class Twin>
int run_twin(Twin twin, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = twin(&request);
  if (code != MPI_SUCCESS) return code;
  int done = 0;
  engine().wait_until([&] {
    code = host::Test(&request, &done, status);
    return done != 0 || code != MPI_SUCCESS;
  });
  return code;
}

// `native` blocks, `twin` does not; either may be called, on the pointers given to it.
template <class Native, class Twin>
int run_blocking(Native native, Twin twin, MPI_Status* status) {
  if (engine().idle()) {
    const Region region(engine());
    return native();
  }
  return run_twin(twin, status);
}

template <class C, class Native, class Twin>
int blocking_send(const char* name, const void* buf, C count, MPI_Datatype datatype, MPI_Comm comm,
                  Native native, Twin twin) noexcept {
  if (engine().idle() && !needs_us(buf)) {
    const Region region(engine());
    return native(buf);
  }
  const Trace trace(name);
  Description d;
  d.send = Description::buffer(buf);
  d.reads(d.send, count, datatype);
  if (!d.valid) return native(buf);
  core::set_last_path("staged");
  Status status = d.send.open();
  if (status.ok()) status = d.send.copy_in();
  if (!status.ok()) return raise(comm, status);
  const void* host_buf = d.send.host();
  return run_blocking([&] { return native(host_buf); },
                      [&](MPI_Request* request) { return twin(host_buf, request); },
                      MPI_STATUS_IGNORE);
}

// Hands a request that stands for staged buffers to the user: finished at once if the host MPI has,
// since MPI libraries give out one shared handle for requests complete at birth.
inline int hand_over(MPI_Comm comm, MPI_Request request, core::StagedBuffer send,
                     core::StagedBuffer recv) {
  auto work = std::make_shared<TrackedMessage>(comm, std::move(send), std::move(recv));
  int done = 0;
  MPI_Status status;
  const int code = host::Request_get_status(request, &done, &status);
  if (code != MPI_SUCCESS) return code;
  if (done != 0) return raise(comm, work->finish(completion_of(status)));
  requests().track(to_bits(request), std::move(work));
  return MPI_SUCCESS;
}

inline int hand_over_persistent(MPI_Comm comm, MPI_Request request, core::StagedBuffer send,
                                core::StagedBuffer recv) {
  auto work = std::make_shared<TrackedMessage>(comm, std::move(send), std::move(recv));
  work->persistent = true;
  work->active = false;
  requests().track(to_bits(request), std::move(work));
  return MPI_SUCCESS;
}

enum class Starts { now, later };  // non-blocking, persistent

// Both directions of a non-blocking or persistent call; `make` is the host call on the pointers
// given to it.
template <class Make>
int make_request(const char* name, MPI_Comm comm, Description d, Starts starts,
                 MPI_Request* request, Make make) noexcept {
  const Trace trace(name);
  if (!d.valid || request == nullptr || (!d.send.is_staged() && !d.recv.is_staged())) {
    if (!engine().idle()) engine().progress();
    return make(d.send.user(), d.recv.user());
  }
  core::set_last_path("staged");
  Status status = d.send.open();
  if (status.ok()) status = d.recv.open();
  if (starts == Starts::now) {
    if (status.ok()) status = d.send.copy_in();
    if (status.ok()) status = d.recv.copy_in();
  }
  if (!status.ok()) return raise(comm, status);
  if (const int code = make(d.send.host(), d.recv.host()); code != MPI_SUCCESS) return code;
  return starts == Starts::now
             ? hand_over(comm, *request, std::move(d.send), std::move(d.recv))
             : hand_over_persistent(comm, *request, std::move(d.send), std::move(d.recv));
}

template <class C>
Description description_of_send(const void* buf, C count, MPI_Datatype datatype) {
  Description d;
  d.send = Description::buffer(buf);
  d.reads(d.send, count, datatype);
  return d;
}
template <class C>
Description description_of_recv(void* buf, C count, MPI_Datatype datatype) {
  Description d;
  d.recv = Description::buffer(buf);
  d.writes(d.recv, count, datatype);
  return d;
}

#define ACCORD_SEND(Name, Twin)                                                   \
  template <class C>                                                              \
  int Name(const void* buf, C count, MPI_Datatype datatype, int dest, int tag,    \
           MPI_Comm comm) noexcept {                                              \
    return blocking_send(                                                         \
        "MPI_" #Name, buf, count, datatype, comm,                                 \
        [&](const void* host_buf) {                                               \
          return host::Name(host_buf, count, datatype, dest, tag, comm);          \
        },                                                                        \
        [&](const void* host_buf, MPI_Request* request) {                         \
          return host::Twin(host_buf, count, datatype, dest, tag, comm, request); \
        });                                                                       \
  }
ACCORD_SEND(Send, Isend)
ACCORD_SEND(Ssend, Issend)
ACCORD_SEND(Rsend, Irsend)
ACCORD_SEND(Bsend, Ibsend)
#undef ACCORD_SEND

#define ACCORD_SEND_REQUEST(Name, starts)                                                      \
  template <class C>                                                                           \
  int Name(const void* buf, C count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,  \
           MPI_Request* request) noexcept {                                                    \
    if (engine().idle() && !needs_us(buf))                                                     \
      return host::Name(buf, count, datatype, dest, tag, comm, request);                       \
    return make_request("MPI_" #Name, comm, description_of_send(buf, count, datatype), starts, \
                        request, [&](const void* send, void*) {                                \
                          return host::Name(send, count, datatype, dest, tag, comm, request);  \
                        });                                                                    \
  }
ACCORD_SEND_REQUEST(Isend, Starts::now)
ACCORD_SEND_REQUEST(Issend, Starts::now)
ACCORD_SEND_REQUEST(Irsend, Starts::now)
ACCORD_SEND_REQUEST(Ibsend, Starts::now)
ACCORD_SEND_REQUEST(Send_init, Starts::later)
ACCORD_SEND_REQUEST(Ssend_init, Starts::later)
ACCORD_SEND_REQUEST(Rsend_init, Starts::later)
ACCORD_SEND_REQUEST(Bsend_init, Starts::later)
#undef ACCORD_SEND_REQUEST

#define ACCORD_RECV_REQUEST(Name, starts)                                                       \
  template <class C>                                                                            \
  int Name(void* buf, C count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,       \
           MPI_Request* request) noexcept {                                                     \
    if (engine().idle() && !needs_us(buf))                                                      \
      return host::Name(buf, count, datatype, source, tag, comm, request);                      \
    return make_request("MPI_" #Name, comm, description_of_recv(buf, count, datatype), starts,  \
                        request, [&](const void*, void* recv) {                                 \
                          return host::Name(recv, count, datatype, source, tag, comm, request); \
                        });                                                                     \
  }
ACCORD_RECV_REQUEST(Irecv, Starts::now)
ACCORD_RECV_REQUEST(Recv_init, Starts::later)
#undef ACCORD_RECV_REQUEST

// Blocking calls that receive: stages, runs, and copies out as many bytes as the status tells.
template <class Native, class Twin>
int blocking_receive(const char* name, MPI_Comm comm, Description d, MPI_Status* status,
                     Native native, Twin twin) noexcept {
  const Trace trace(name);
  if (!d.valid) return native(d.send.user(), d.recv.user(), status);
  core::set_last_path("staged");
  Status staged = d.send.open();
  if (staged.ok()) staged = d.recv.open();
  if (staged.ok()) staged = d.send.copy_in();
  if (staged.ok()) staged = d.recv.copy_in();
  if (!staged.ok()) return raise(comm, staged);
  MPI_Status own;
  MPI_Status* told = status == MPI_STATUS_IGNORE ? &own : status;
  const int code = run_blocking(
      [&] { return native(d.send.host(), d.recv.host(), told); },
      [&](MPI_Request* request) { return twin(d.send.host(), d.recv.host(), request); }, told);
  if (code != MPI_SUCCESS) return code;
  return raise(comm, d.recv.copy_out(completion_of(*told).received_bytes));
}

template <class C>
int Recv(void* buf, C count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
         MPI_Status* status) noexcept {
  if (engine().idle() && !needs_us(buf)) {
    const Region region(engine());
    return host::Recv(buf, count, datatype, source, tag, comm, status);
  }
  return blocking_receive(
      "MPI_Recv", comm, description_of_recv(buf, count, datatype), status,
      [&](const void*, void* recv, MPI_Status* told) {
        return host::Recv(recv, count, datatype, source, tag, comm, told);
      },
      [&](const void*, void* recv, MPI_Request* request) {
        return host::Irecv(recv, count, datatype, source, tag, comm, request);
      });
}

// Matched messages. The message handle names no communicator: errors of ours go to MPI_COMM_SELF's
// handler.
template <class C>
int Mrecv(void* buf, C count, MPI_Datatype datatype, MPI_Message* message,
          MPI_Status* status) noexcept {
  if (engine().idle() && !needs_us(buf)) {
    const Region region(engine());
    return host::Mrecv(buf, count, datatype, message, status);
  }
  return blocking_receive(
      "MPI_Mrecv", MPI_COMM_SELF, description_of_recv(buf, count, datatype), status,
      [&](const void*, void* recv, MPI_Status* told) {
        return host::Mrecv(recv, count, datatype, message, told);
      },
      [&](const void*, void* recv, MPI_Request* request) {
        return host::Imrecv(recv, count, datatype, message, request);
      });
}

template <class C>
int Imrecv(void* buf, C count, MPI_Datatype datatype, MPI_Message* message,
           MPI_Request* request) noexcept {
  if (engine().idle() && !needs_us(buf))
    return host::Imrecv(buf, count, datatype, message, request);
  return make_request("MPI_Imrecv", MPI_COMM_SELF, description_of_recv(buf, count, datatype),
                      Starts::now, request, [&](const void*, void* recv) {
                        return host::Imrecv(recv, count, datatype, message, request);
                      });
}

}  // namespace accord::shim
