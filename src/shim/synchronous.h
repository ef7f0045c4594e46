// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Synchronous sends, which are complete once they are received. A probe that reads a message since
// it may be a header (held_messages.h) is no receive, but the host MPI knows no better. So messages
// as long as a header, or its ticket, go by one themselves, whose receiver tells when it is
// received (node::Outbox), or as they are where nobody takes them for headers.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <utility>

#include "shim/messages.h"
#include "shim/tracked_message.h"

namespace accord::shim {

// The rank of this node whose probes may take a message for a header, or -1.
template <class C>
int prober(C count, MPI_Datatype datatype, int dest, MPI_Comm comm) {
  MPI_Count size = 0;
  if (!messaging.node_joined || count <= 0 || datatype == MPI_DATATYPE_NULL ||
      host::Type_size_x(datatype, &size) != MPI_SUCCESS ||
      !node::MessageHeader::may_be(static_cast<std::size_t>(size * static_cast<MPI_Count>(count))))
    return -1;
  return moves_whole(datatype) ? node_rank(comm, dest) : -1;
}

// While one lives that has been marked, no headers are sent to its receiver.
struct MarkedMessage {
  explicit MarkedMessage(int to) : receiver(to) {}
  ~MarkedMessage() {
    if (messaging.node_joined) outbox().end_plain(receiver);
  }
  MarkedMessage(const MarkedMessage&) = delete;
  MarkedMessage& operator=(const MarkedMessage&) = delete;

  int receiver;
};
using PlainMessage = std::shared_ptr<MarkedMessage>;

// Keeps a message that may be a header for its receiver, or marks that it goes as it is: that it
// does also where there is no room, with hundreds of messages that wait to be received, and a probe
// may complete it.
Status post_or_mark(core::StagedBuffer& buffer, const core::Segment& segment, int receiver,
                    node::MessageHeader& header, bool& posted, PlainMessage& plain);

// A send that the user holds as a request of the host MPI.
class TrackedSend final : public TrackedMessage {
 public:
  TrackedSend(MPI_Comm comm, Description d, PlainMessage plain)
      : TrackedMessage(comm, std::move(d), Amount::by_status), plain_(std::move(plain)) {}
  Status finish(const core::Completion&) override {
    plain_.reset();
    return {};
  }

 private:
  PlainMessage plain_;
};

}  // namespace accord::shim
