// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges over the CUDA runtime, for tests. Who opens a rank claims its device for the
// process; programs that test children which do so must not.
#pragma once

#include <cstring>

#include "cuda_test.h"
#include "inbox_rank.h"

namespace accord::test {

// One that sends to itself: rank 0 of two on device 0, of which the other never sends.
class Rig : public InboxRank {
 public:
  Status open() {
    ACCORD_TRY(InboxRank::open(cuda_runtime(), 0, 0, 2));
    return connect({static_cast<InboxRank*>(this), 1});
  }
  InboxTicket ticket(std::size_t size_bytes) {
    InboxTicket made = InboxRank::ticket(size_bytes);
    made.exchange.send_to = made.exchange.receive_from = device::inbox_bit(0);
    return made;
  }
  using InboxRank::run;
  Status run(std::size_t size_bytes) {
    InboxTicket made = ticket(size_bytes);
    return run(made);
  }
};

}  // namespace accord::test
