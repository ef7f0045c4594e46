// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Persistent sends. The host MPI's request for one sends the same memory each time, so a start that
// goes by a header (messages.h) has a request of its own, and the user's one stays inactive for the
// host MPI: it is `early` (core::Tracked). A start that does not stages the message for the user's.
#pragma once

#include <mpi.h>

#include <memory>

#include "p2p/loan.h"
#include "shim/sends.h"

namespace accord::shim {

class PersistentSend final : public core::Tracked {
 public:
  struct Envelope {
    int dest;
    int tag;
    MPI_Comm comm;
  };
  // `buffer`: what the host MPI's request sends, once it is staged.
  PersistentSend(core::StagedBuffer buffer, MPI_Count count, MPI_Datatype datatype,
                 const Envelope& to, Mode mode);

  Status start() override;
  void wanted() override;
  bool early_is_through() override;
  bool may_stay(bool may) override;
  bool cancel() override;
  Status finish(const core::Completion& completion) override;

 private:
  int send_header(MPI_Request& request) const;
  Status begin_header(const node::MessageHeader& header, const Status& packed);

  core::StagedBuffer buffer_;
  const MPI_Count count_;
  const KeptType type_;
  const Envelope to_;
  const Mode mode_;
  PlainMessage plain_;
  std::shared_ptr<p2p::LoanOperation> operation_;  // of the latest start that went by a header
  bool is_wanted_ = false;
};

}  // namespace accord::shim
