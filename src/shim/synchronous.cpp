// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/synchronous.h"

#include <cstring>

namespace accord::shim {
namespace {

using Bytes = std::array<std::byte, sizeof(node::MessageHeader)>;

// The message, at the beginning of these.
std::span<const std::byte> pack(const core::StagedBuffer& buffer, const core::Segment& segment,
                                Bytes& bytes) {
  const std::size_t size_bytes = segment.size_bytes();
  device::copy_on_host(core::packed_copies(segment, buffer.host(), size_bytes, bytes.data(),
                                           core::LayoutCopy::Direction::pack));
  return {bytes.data(), size_bytes};
}

}  // namespace

Status post_or_mark(core::StagedBuffer& buffer, const core::Segment& segment, int receiver,
                    node::MessageHeader& header, bool& posted, PlainMessage& plain) {
  if (segment.type == nullptr) return {};
  if (outbox().begin_plain(receiver)) {
    plain = std::make_shared<MarkedMessage>(receiver);
    return {};
  }
  ACCORD_TRY(buffer.open());
  ACCORD_TRY(buffer.copy_in());
  Bytes bytes;
  posted = outbox().keep(receiver, pack(buffer, segment, bytes), header);
  return {};
}

PersistentProbedSend::PersistentProbedSend(MPI_Comm comm, core::StagedBuffer buffer,
                                           core::Segment segment, int receiver)
    : buffer_(std::move(buffer)), segment_(std::move(segment)), receiver_(receiver) {
  context = to_bits(comm);
}

PersistentProbedSend::~PersistentProbedSend() {
  if (sending_ != MPI_REQUEST_NULL) (void)host::Request_free(&sending_);
}

int PersistentProbedSend::init(int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  const int size = static_cast<int>(segment_.size_bytes());
  if (const int code = host::Ssend_init(sent_.data(), size, MPI_BYTE, dest, tag, comm, &sending_))
    return code;
  return host::Ssend_init(sent_.data(), size, MPI_BYTE, dest, tag, comm, request);
}

Status PersistentProbedSend::start() {
  early = true;
  is_sent_ = is_through_ = is_cancelled_ = false;
  status_ = {};
  ACCORD_TRY(post_or_mark(buffer_, segment_, receiver_, header_, is_posted_, plain_));
  if (is_posted_) {
    std::memcpy(sent_.data(), &header_, header_.sent_bytes());
  } else {
    ACCORD_TRY(buffer_.copy_in());
    (void)pack(buffer_, segment_, sent_);
  }
  return Status::from_host(host::Start(&sending_));
}

bool PersistentProbedSend::early_is_through() {
  if (is_through_) return true;
  if (!is_sent_) {
    int flag = kUntold;  // stays where the call has failed, and see has_error_function
    MPI_Status told{};
    status_ = Status::from_host(host::Test(&sending_, &flag, &told));
    is_sent_ = flag != 0 || !status_.ok();
    is_cancelled_ = flag == 1 && completion_of(told).cancelled;
  }
  is_through_ = is_sent_;
  if (!is_sent_ || !is_posted_ || !status_.ok() || is_cancelled_ || !messaging.node_joined)
    return is_through_;
  status_ = outbox().look_for_receive(header_, is_through_);
  is_through_ = is_through_ || !status_.ok() || outbox().is_leaving();
  return is_through_;
}

bool PersistentProbedSend::cancel() {
  (void)host::Cancel(&sending_);
  return true;
}

Status PersistentProbedSend::finish(const core::Completion&) {
  if (is_posted_ && messaging.node_joined && (is_cancelled_ || !status_.ok()))
    outbox().withdraw(header_);
  facts = core::MessageInfo{.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
  facts->is_cancelled = is_cancelled_;
  plain_.reset();
  is_posted_ = false;
  return status_;
}

}  // namespace accord::shim
