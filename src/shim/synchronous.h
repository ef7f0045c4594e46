// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Synchronous sends, which are complete once they are received. A probe that reads a message since
// it may be a header (held_messages.h) is no receive, but the host MPI knows no better. So messages
// as long as a header, or its ticket, go by one themselves, whose receiver tells when it is
// received (node::Outbox), or as they are where nobody takes them for headers. What the host MPI is
// given for a persistent one is written anew for each start.
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

// A persistent one that may be a header: each start sends what it comes to by a request of its own,
// while the user's one stays inactive for the host MPI.
class PersistentProbedSend final : public core::Tracked {
 public:
  PersistentProbedSend(MPI_Comm comm, core::StagedBuffer buffer, core::Segment segment,
                       int receiver);
  ~PersistentProbedSend() override;
  PersistentProbedSend(const PersistentProbedSend&) = delete;
  PersistentProbedSend& operator=(const PersistentProbedSend&) = delete;

  // Makes both requests.
  int init(int dest, int tag, MPI_Comm comm, MPI_Request* request);

  Status start() override;
  bool early_is_through() override;
  bool cancel() override;
  Status finish(const core::Completion&) override;

 private:
  core::StagedBuffer buffer_;
  const core::Segment segment_;
  const int receiver_;
  std::array<std::byte, sizeof(node::MessageHeader)> sent_{};
  MPI_Request sending_ = MPI_REQUEST_NULL;
  node::MessageHeader header_;
  bool is_posted_ = false;
  PlainMessage plain_;
  bool is_sent_ = false;
  bool is_through_ = true;
  bool is_cancelled_ = false;
  Status status_;
};

template <class C>
int init_probed_send(const void* buf, C count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request) {
  auto buffer = Description::buffer(buf);
  const core::Segment segment = segment_of(count, datatype);
  buffer.reads(segment);
  if (const Status opened = buffer.open(); !opened.ok()) return raise(comm, opened);
  auto work = std::make_shared<PersistentProbedSend>(comm, std::move(buffer), segment,
                                                     prober(count, datatype, dest, comm));
  if (const int code = work->init(dest, tag, comm, request)) return code;
  work->persistent = true;
  work->active = false;
  requests().track(to_bits(*request), std::move(work));
  return MPI_SUCCESS;
}

}  // namespace accord::shim
