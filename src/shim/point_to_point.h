// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Point-to-point calls (receives: receives.h). The host MPI matches. A device buffer is staged, or
// waits in device memory for a receiver of the same node (messages.h): in either case a send has
// copied its data when the call returns and waits for no peer because of us (for room, no longer
// than staging takes). While an operation of ours is active, a blocking call runs as its
// non-blocking twin with our progress loop.
#pragma once

#include <mpi.h>

#include <optional>
#include <utility>

#include "shim/collectives.h"
#include "shim/completion.h"
#include "shim/hand_over.h"
#include "shim/host_receive.h"
#include "shim/persistent_send.h"
#include "shim/request_calls.h"
#include "shim/sends.h"
#include "shim/tracked_message.h"
#include "shim/twins.h"

namespace accord::shim {

// A message is staged, or there is nothing to stage; its shadows are filled next.
inline void begin_message(const stages::Story& story, const Description& d) {
  const bool staged = d.send.is_staged() || d.recv.is_staged();
  if (staged) coll::set_last_path("staged");
  if (!story) return;
  tell(story, d);
  story->took(staged ? "staged" : "host",
              staged ? coll::reason::kPointToPoint : coll::reason::kNothingStaged);
  stages::enter(stages::Stage::copy_in);
}

// A message waits in device memory; its header is sent next.
inline void begin_header(const stages::Story& story, const Description& d,
                         const node::MessageHeader& header) {
  coll::set_last_path(path_of(header));
  if (!story) return;
  tell(story, d);
  story->took(path_of(header), coll::reason::kByHeader);
  stages::enter(stages::Stage::host_mpi);
}

// The host MPI may take a send as it is: also one to nobody, of which it reads nothing.
template <class C>
bool passes_send(const Sent<C>& call, int dest, MPI_Comm comm, Mode mode) {
  if (dest == MPI_PROC_NULL) return true;
  return engine().idle() && !has_posted_receives() && !needs_us(call.buf) &&
         (mode != Mode::synchronous || prober(call.count, call.datatype, dest, comm) < 0);
}

template <class C, class Native, class Twin>
int blocking_send(const char* name, const Sent<C>& call, int dest, int tag, MPI_Comm comm,
                  Mode mode, Native native, Twin twin) {
  if (passes_send(call, dest, comm, mode)) {
    const Region region(engine());
    return native(call);
  }
  const core::CallScope scope(name, {"buf", call.buf});
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  Description d;
  d.send = Description::buffer(call.buf);
  d.reads(d.send, call.count, call.datatype);
  if (!d.valid || !is_envelope(comm, dest, tag, Direction::send)) return native(call);
  check::Call(name, comm, {}).look(d);
  node::MessageHeader header;
  bool posted = false;
  PlainMessage plain;
  stages::enter(stages::Stage::move);
  Status status = post_send(d.send, call, dest, comm, mode, header, posted, plain);
  Sent<C> sent = posted ? sent_header<C>(header) : call;
  if (posted) {
    begin_header(story, d, header);
  } else {
    begin_message(story, d);
    if (status.ok()) status = d.send.open();
    if (status.ok()) status = d.send.copy_in();
    sent.buf = d.send.host();
  }
  if (!posted && !status.ok()) return raise(comm, status);
  stages::enter(stages::Stage::host_mpi);
  std::optional<Unsent> unsent;
  if (posted) unsent.emplace(header);
  const int code =
      run_blocking([&] { return native(sent); },
                   [&](MPI_Request* request) { return twin(sent, request); }, MPI_STATUS_IGNORE);
  if (!posted || code != MPI_SUCCESS) return code;
  unsent->is_sent();
  return raise(comm, end_message(header, status, is_synchronous(mode)));
}

// Both directions of a non-blocking or persistent call; `make` is the host call on the pointers
// given to it, `track` what remembers the description.
template <class Make, class Track>
int issue_request(const stages::Story& story, MPI_Comm comm, Description d, Handle handle,
                  MPI_Request* request, Make make, Track track) {
  const bool looked_after = d.looked_after || d.landing.is_present() || d.substitute;
  if (!d.valid || request == nullptr ||
      (!looked_after && !d.send.is_staged() && !d.recv.is_staged())) {
    tell(story, d);
    hand_to_host(story, coll::reason::kNothingStaged);
    if (!engine().idle()) engine().progress();
    return make(d.send.user(), d.recv.user());
  }
  begin_message(story, d);
  if (story && d.recv.is_staged() && d.landing.is_present())
    story->took("posted", coll::reason::kSenderDecides);
  if (story && d.send.is_staged() && handle == Handle::persistent && messaging.joined)
    story->took("posted", coll::reason::kStartDecides);
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
  return hand_over(handle, *request, track(std::move(d)));
}

template <class Make>
int make_request(const char* name, MPI_Comm comm, Description d, Handle handle,
                 MPI_Request* request, Make make, Amount amount = Amount::by_status) {
  const core::CallScope scope(name, sent_argument(d), received_argument(d));
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  const bool is_both = d.send.user() != nullptr && d.recv.user() != nullptr;
  check::Call checked(name, comm, is_both ? check::kBoth : check::Names(), request,
                      lifetime_of(handle));
  checked.look(d);
  return issue_request(story, comm, std::move(d), handle, request, make, [&](Description issued) {
    return std::make_shared<TrackedMessage>(comm, std::move(issued), amount);
  });
}

template <class C>
Description description_of_send(const void* buf, C count, MPI_Datatype datatype) {
  Description d;
  d.send = Description::buffer(buf);
  d.reads(d.send, count, datatype);
  return d;
}
template <class C>
Description description_of_recv(void* buf, C count, MPI_Datatype datatype,
                                Lasts lasts = Lasts::request) {
  Description d;
  d.recv = Description::buffer(buf);
  d.writes(d.recv, count, datatype);
  d.landing = landing_of(d.recv, count, datatype, lasts);
  if (d.landing.is_present() && listens()) d.recv.is_bypassed();
  return d;
}

// Gives the user a request for a message that is lent to its receiver, or whose receive is waited
// for. `make` sends the header.
template <class C, class Make>
int start_loan(MPI_Comm comm, const node::MessageHeader& header, MPI_Request* request, Mode mode,
               Make make) {
  using Until = p2p::LoanOperation::Until;
  const auto operation = std::make_shared<p2p::LoanOperation>(
      lender_of(header), header, mode == Mode::synchronous ? Until::received : Until::returned);
  Unsent unsent(header);
  const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
  const int code = make(sent_header<C>(operation->header()));
  core::HostRequest bits = 0;
  if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
    *request = before;
    return code;
  }
  unsent.is_sent();
  operation->is_sent_by(to_bits(*request));
  if (const Status promised = engine().promise(*operation, bits); !promised.ok()) {
    engine().submit(operation, nullptr);  // the header is on its way
    engine().wait(*operation);
    *request = before;
    return raise(comm, promised);
  }
  requests().track(bits, std::make_shared<p2p::TrackedLoan>(to_bits(comm), engine(), operation));
  *request = from_bits<MPI_Request>(bits);
  return MPI_SUCCESS;
}

// The same of one that waits in the outbox, or, after an error, of what brings the receiver that.
template <class C, class Make>
int start_header(MPI_Comm comm, const node::MessageHeader& header, const Status& packed,
                 MPI_Request* request, Make make) {
  auto work = std::make_shared<TrackedHeader>(comm, header);
  Unsent unsent(header);
  const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
  const int code = make(sent_header<C>(work->header));
  if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
    *request = before;
    return code;
  }
  unsent.is_sent();
  if (packed.ok()) return hand_over(Handle::send, *request, std::move(work));
  engine().submit_unawaited(
      std::make_shared<core::OrphanOperation>(to_bits(*request), std::move(work), nullptr));
  *request = before;
  return raise(comm, packed);
}

// A non-blocking send, by a header where it can.
template <class C, class Make>
int start_send(const char* name, const Sent<C>& call, int dest, MPI_Comm comm, Mode mode,
               MPI_Request* request, Make make) {
  const core::CallScope scope(name, {"buf", call.buf});
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  Description d = description_of_send(call.buf, call.count, call.datatype);
  check::Call checked(name, comm, {}, request);
  checked.look(d);
  node::MessageHeader header;
  bool posted = false;
  PlainMessage plain;
  if (d.valid && request != nullptr) {
    stages::enter(stages::Stage::move);
    const Status status = post_send(d.send, call, dest, comm, mode, header, posted, plain);
    d.looked_after = plain != nullptr;
    if (posted) begin_header(story, d, header);
    if (posted && status.ok() && (mode == Mode::synchronous || lender_of(header).is_lent(header)))
      return start_loan<C>(comm, header, request, mode, make);
    if (posted) return start_header<C>(comm, header, status, request, make);
    if (!status.ok()) return raise(comm, status);
  }
  return issue_request(
      story, comm, std::move(d), Handle::send, request,
      [&](const void* send, void*) {
        return make(Sent<C>{send, call.count, call.datatype});
      },
      [&](Description issued) {
        return std::make_shared<TrackedSend>(comm, std::move(issued), std::move(plain));
      });
}

#define ACCORD_SEND(Name, Twin, mode)                                                           \
  template <class C>                                                                            \
  int Name(const void* buf, C count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) { \
    return blocking_send(                                                                       \
        "MPI_" #Name, Sent<C>{buf, count, datatype}, dest, tag, comm, mode,                     \
        [&](const Sent<C>& sent) {                                                              \
          return host::Name(sent.buf, sent.count, sent.datatype, dest, tag, comm);              \
        },                                                                                      \
        [&](const Sent<C>& sent, MPI_Request* request) {                                        \
          return host::Twin(sent.buf, sent.count, sent.datatype, dest, tag, comm, request);     \
        });                                                                                     \
  }                                                                                             \
  template <class C>                                                                            \
  int Twin(const void* buf, C count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,   \
           MPI_Request* request) {                                                              \
    if (passes_send(Sent<C>{buf, count, datatype}, dest, comm, mode))                           \
      return host::Twin(buf, count, datatype, dest, tag, comm, request);                        \
    return start_send("MPI_" #Twin, Sent<C>{buf, count, datatype}, dest, comm, mode, request,   \
                      [&](const Sent<C>& sent) {                                                \
                        return host::Twin(sent.buf, sent.count, sent.datatype, dest, tag, comm, \
                                          request);                                             \
                      });                                                                       \
  }
ACCORD_SEND(Send, Isend, Mode::direct)
ACCORD_SEND(Ssend, Issend, Mode::synchronous)
ACCORD_SEND(Rsend, Irsend, Mode::direct)
ACCORD_SEND(Bsend, Ibsend, Mode::buffered)
#undef ACCORD_SEND

// A persistent send, whose starts go by headers where they can.
template <class C, class Make>
int init_send(const char* name, const Sent<C>& call, const PersistentSend::Envelope& to, Mode mode,
              MPI_Request* request, Make make) {
  const core::CallScope scope(name, {"buf", call.buf});
  const stages::Story story = begin_story(name);
  const stages::Active active(story);
  Description d = description_of_send(call.buf, call.count, call.datatype);
  check::Call checked(name, to.comm, {}, request, check::Lifetime::persistent);
  checked.look(d);
  d.looked_after =
      mode == Mode::synchronous && prober(call.count, call.datatype, to.dest, to.comm) >= 0;
  return issue_request(
      story, to.comm, std::move(d), Handle::persistent, request,
      [&](const void* send, void*) {
        return make(Sent<C>{send, call.count, call.datatype});
      },
      [&](Description issued) {
        return std::make_shared<PersistentSend>(std::move(issued.send), call.count, call.datatype,
                                                to, mode);
      });
}

#define ACCORD_SEND_INIT(Name, mode)                                                          \
  template <class C>                                                                          \
  int Name(const void* buf, C count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, \
           MPI_Request* request) {                                                            \
    const Sent<C> call{buf, count, datatype};                                                 \
    if (passes_send(call, dest, comm, mode))                                                  \
      return host::Name(buf, count, datatype, dest, tag, comm, request);                      \
    return init_send(                                                                         \
        "MPI_" #Name, call, {dest, tag, comm}, mode, request, [&](const Sent<C>& sent) {      \
          return host::Name(sent.buf, sent.count, sent.datatype, dest, tag, comm, request);   \
        });                                                                                   \
  }
ACCORD_SEND_INIT(Send_init, Mode::direct)
ACCORD_SEND_INIT(Ssend_init, Mode::synchronous)
ACCORD_SEND_INIT(Rsend_init, Mode::direct)
ACCORD_SEND_INIT(Bsend_init, Mode::buffered)
#undef ACCORD_SEND_INIT

}  // namespace accord::shim
