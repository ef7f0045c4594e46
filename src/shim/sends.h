// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a send gives to the host MPI.
#pragma once

#include <mpi.h>

#include "shim/messages.h"
#include "shim/synchronous.h"

namespace accord::shim {

// Its own arguments on another pointer, or a header.
template <class C>
struct Sent {
  const void* buf;
  C count;
  MPI_Datatype datatype;
};

template <class C>
Sent<C> sent_header(const node::MessageHeader& header) {
  return {&header, static_cast<C>(header.sent_bytes()), MPI_BYTE};
}

// Whether a send may go by a header (not one that the host MPI buffers), and when it is complete.
enum class Mode { direct, synchronous, buffered };

inline Synchronous is_synchronous(Mode mode) {
  return mode == Mode::synchronous ? Synchronous::yes : Synchronous::no;
}

// Readies what a send gives to the host MPI, if it is not the buffer: a header, where `posted` says
// so. `plain` is to be kept until the message is received.
template <class C>
Status post_send(core::StagedBuffer& buffer, const Sent<C>& call, int dest, MPI_Comm comm,
                 Mode mode, node::MessageHeader& header, bool& posted, PlainMessage& plain) {
  posted = false;
  if (mode == Mode::buffered) return {};
  ACCORD_TRY(post_message(buffer, call.count, call.datatype, dest, comm, header, posted,
                          is_synchronous(mode)));
  const int reader =
      posted || mode != Mode::synchronous ? -1 : prober(call.count, call.datatype, dest, comm);
  return reader < 0 ? Status()
                    : post_or_mark(buffer, segment_of(call.count, call.datatype), reader, header,
                                   posted, plain);
}

}  // namespace accord::shim
