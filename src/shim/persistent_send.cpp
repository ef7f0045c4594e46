// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/persistent_send.h"

#include <utility>

namespace accord::shim {

PersistentSend::PersistentSend(core::StagedBuffer buffer, MPI_Count count, MPI_Datatype datatype,
                               const Envelope& to, Mode mode)
    : buffer_(std::move(buffer)), count_(count), type_(datatype), to_(to), mode_(mode) {
  context = to_bits(to.comm);
}

Status PersistentSend::start() {
  early = false;
  node::MessageHeader header;
  bool posted = false;
  Status status;
  // Once the program has freed its communicator, another one may have that handle.
  if (context == to_bits(to_.comm))
    status = post_send(buffer_, Sent<MPI_Count>{buffer_.user(), count_, type_.handle()}, to_.dest,
                       to_.comm, mode_, header, posted, plain_);
  if (posted) return begin_header(header, status);
  ACCORD_TRY(status);
  if (buffer_.is_staged()) coll::set_last_path("staged");
  return buffer_.copy_in();
}

int PersistentSend::send_header(MPI_Request& request) const {
  const auto sent = sent_header<int>(operation_->header());
  return mode_ == Mode::synchronous ? host::Issend(sent.buf, sent.count, sent.datatype, to_.dest,
                                                   to_.tag, to_.comm, &request)
                                    : host::Isend(sent.buf, sent.count, sent.datatype, to_.dest,
                                                  to_.tag, to_.comm, &request);
}

// After an error its receiver is brought that, and nobody waits for it.
Status PersistentSend::begin_header(const node::MessageHeader& header, const Status& packed) {
  using Until = p2p::LoanOperation::Until;
  operation_ = std::make_shared<p2p::LoanOperation>(
      lender_of(header), header, mode_ == Mode::synchronous ? Until::received : Until::returned);
  Unsent unsent(header);
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = send_header(request);
  if (code != MPI_SUCCESS || request == MPI_REQUEST_NULL)  // see has_error_function
    return Status::from_host(code != MPI_SUCCESS ? code : MPI_ERR_OTHER);
  unsent.is_sent();
  operation_->is_sent_by(to_bits(request));
  coll::set_last_path(path_of(header));
  early = packed.ok();
  is_wanted_ = false;
  if (!early) engine().submit_unawaited(operation_);
  return packed;
}

void PersistentSend::wanted() {
  if (early && !std::exchange(is_wanted_, true)) engine().add(operation_);
}

bool PersistentSend::early_is_through() {
  return operation_->phase() == core::Operation::Phase::done;
}

bool PersistentSend::may_stay(bool may) {
  if (early) operation_->may_stay(may);
  return early;
}

bool PersistentSend::cancel() {
  if (early) operation_->cancel();
  return early;
}

Status PersistentSend::finish(const core::Completion& /*completion*/) {
  plain_.reset();
  if (!early) return {};
  facts = core::MessageInfo{.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
  facts->is_cancelled = operation_->is_cancelled();
  return operation_->status();
}

}  // namespace accord::shim
