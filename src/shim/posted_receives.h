// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Receives into device memory that the program has posted, and whose completion it has not asked
// for yet. Where their senders wait for a message that they have lent, it is brought while this
// rank waits in a call, before they have to move it out of the way
// (p2p/loan.h).
#pragma once

namespace accord::shim {

// One of them, where ranks of this node could lend what it is for; from any thread.
class PostedReceive {
 public:
  PostedReceive();
  ~PostedReceive();
  PostedReceive(const PostedReceive&) = delete;
  PostedReceive& operator=(const PostedReceive&) = delete;

 private:
  bool is_counted_;
};

// Whether there are any: then no call of messages blocks in the host MPI.
bool has_posted_receives();

// Waits for what is being brought. No more is.
void stop_posted_receives();

}  // namespace accord::shim
