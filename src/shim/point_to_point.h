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

// How much of a receive buffer is copied out: what the status tells, or all of it (with its old
// content before).
enum class Amount { by_status, whole };

// A staged receive (or send: then nothing is copied out) that the user holds as a request of the
// host MPI.
class TrackedMessage final : public core::Tracked {
 public:
  TrackedMessage(MPI_Comm comm, core::StagedBuffer send, core::StagedBuffer recv, Amount amount)
      : send_(std::move(send)), recv_(std::move(recv)), amount_(amount) {
    context = to_bits(comm);
  }
  Status start() override {
    ACCORD_TRY(send_.copy_in());
    return recv_.copy_in();
  }
  Status finish(const core::Completion& completion) override {
    if (completion.failed || completion.cancelled) return {};
    return recv_.copy_out(amount_ == Amount::whole ? core::StagedBuffer::kAll
                                                   : completion.received_bytes);
  }

 private:
  core::StagedBuffer send_;
  core::StagedBuffer recv_;
  Amount amount_;
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

// A message is staged; its shadows are filled next.
inline void begin_message(const stages::Story& story, const Description& d) {
  core::set_last_path("staged");
  if (!story) return;
  tell(story, d);
  story->took("staged", core::reason::kPointToPoint);
  stages::enter(stages::Stage::copy_in);
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
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  Description d;
  d.send = Description::buffer(buf);
  d.reads(d.send, count, datatype);
  if (!d.valid) return native(buf);
  begin_message(story, d);
  Status status = d.send.open();
  if (status.ok()) status = d.send.copy_in();
  if (!status.ok()) return raise(comm, status);
  stages::enter(stages::Stage::host_mpi);
  const void* host_buf = d.send.host();
  return run_blocking([&] { return native(host_buf); },
                      [&](MPI_Request* request) { return twin(host_buf, request); },
                      MPI_STATUS_IGNORE);
}

// What the handle of a non-blocking or persistent call is.
enum class Handle {
  send,     // may be one handle that the MPI gives out for every request complete at birth (MPICH
            // does)
  receive,  // its own
  nothing,  // of a message to or from MPI_PROC_NULL: shared too, and there is nothing to finish
  persistent,
};

// Hands a request that stands for staged buffers to the user. Only a send is asked whether it is
// complete: asking a receive could raise its error before the user waits for it.
inline int hand_over(Handle handle, MPI_Request request, std::shared_ptr<core::Tracked> work) {
  if (handle == Handle::nothing) return MPI_SUCCESS;
  if (handle == Handle::send) {
    int done = 0;
    const int code = host::Request_get_status(request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || done != 0) return code;
  }
  if (handle == Handle::persistent) {
    work->persistent = true;
    work->active = false;
  }
  requests().track(to_bits(request), std::move(work));
  return MPI_SUCCESS;
}

// Both directions of a non-blocking or persistent call; `make` is the host call on the pointers
// given to it.
template <class Make>
int make_request(const char* name, MPI_Comm comm, Description d, Handle handle,
                 MPI_Request* request, Make make, Amount amount = Amount::by_status) noexcept {
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  if (!d.valid || request == nullptr || (!d.send.is_staged() && !d.recv.is_staged())) {
    tell(story, d);
    hand_to_host(story, core::reason::kNothingStaged);
    if (!engine().idle()) engine().progress();
    return make(d.send.user(), d.recv.user());
  }
  begin_message(story, d);
  Status status = d.send.open();
  if (status.ok()) status = d.recv.open();
  if (handle != Handle::persistent) {
    if (status.ok()) status = d.send.copy_in();
    if (status.ok()) status = d.recv.copy_in();
  }
  if (!status.ok()) return raise(comm, status);
  stages::enter(stages::Stage::host_mpi);
  const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
  const int code = make(d.send.host(), d.recv.host());
  if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
    *request = before;  // no request: the call has failed, and see has_error_function
    return code;
  }
  return hand_over(
      handle, *request,
      std::make_shared<TrackedMessage>(comm, std::move(d.send), std::move(d.recv), amount));
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

#define ACCORD_SEND_REQUEST(Name, handle)                                                      \
  template <class C>                                                                           \
  int Name(const void* buf, C count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,  \
           MPI_Request* request) noexcept {                                                    \
    if (engine().idle() && !needs_us(buf))                                                     \
      return host::Name(buf, count, datatype, dest, tag, comm, request);                       \
    return make_request("MPI_" #Name, comm, description_of_send(buf, count, datatype), handle, \
                        request, [&](const void* send, void*) {                                \
                          return host::Name(send, count, datatype, dest, tag, comm, request);  \
                        });                                                                    \
  }
ACCORD_SEND_REQUEST(Isend, Handle::send)
ACCORD_SEND_REQUEST(Issend, Handle::send)
ACCORD_SEND_REQUEST(Irsend, Handle::send)
ACCORD_SEND_REQUEST(Ibsend, Handle::send)
ACCORD_SEND_REQUEST(Send_init, Handle::persistent)
ACCORD_SEND_REQUEST(Ssend_init, Handle::persistent)
ACCORD_SEND_REQUEST(Rsend_init, Handle::persistent)
ACCORD_SEND_REQUEST(Bsend_init, Handle::persistent)
#undef ACCORD_SEND_REQUEST

#define ACCORD_RECV_REQUEST(Name, handle)                                                       \
  template <class C>                                                                            \
  int Name(void* buf, C count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,       \
           MPI_Request* request) noexcept {                                                     \
    if (engine().idle() && !needs_us(buf))                                                      \
      return host::Name(buf, count, datatype, source, tag, comm, request);                      \
    return make_request("MPI_" #Name, comm, description_of_recv(buf, count, datatype), handle,  \
                        request, [&](const void*, void* recv) {                                 \
                          return host::Name(recv, count, datatype, source, tag, comm, request); \
                        });                                                                     \
  }
ACCORD_RECV_REQUEST(Irecv, source == MPI_PROC_NULL ? Handle::nothing : Handle::receive)
ACCORD_RECV_REQUEST(Recv_init, Handle::persistent)
#undef ACCORD_RECV_REQUEST

// No rank, and none of the constants that stand for one: the source of a status nobody has set.
constexpr int kUntold = -0x5ca1ab1e;

// Blocking calls that receive: stages, runs, and copies out as many bytes as the status tells.
template <class Native, class Twin>
int blocking_receive(const char* name, MPI_Comm comm, Description d, MPI_Status* status,
                     Native native, Twin twin) noexcept {
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  if (!d.valid) return native(d.send.user(), d.recv.user(), status);
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
  if (told.MPI_SOURCE == kUntold) return code;  // has failed, and see has_error_function
  if (status != MPI_STATUS_IGNORE) *status = told;
  if (code != MPI_SUCCESS) return code;
  stages::enter(stages::Stage::copy_out);
  return raise(comm, d.recv.copy_out(completion_of(told).received_bytes));
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
  const bool nothing = message != nullptr && *message == MPI_MESSAGE_NO_PROC;
  return make_request("MPI_Imrecv", MPI_COMM_SELF, description_of_recv(buf, count, datatype),
                      nothing ? Handle::nothing : Handle::receive, request,
                      [&](const void*, void* recv) {
                        return host::Imrecv(recv, count, datatype, message, request);
                      });
}

}  // namespace accord::shim
