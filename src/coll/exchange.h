// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective that goes from device to device, as its operation sees it: a state machine that is
// polled and never waits. To be made in the order of the communicator's calls.
//
// All of them reduce in rank order, the same on all ranks, but for those of a collective library;
// in two levels it is the order of the ranks of each node, then that of the nodes, and one rank
// reduces each element. So all ranks get the same bits.
#pragma once

#include "base/status.h"

namespace accord::coll {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Goes on as far as possible; `done` when this rank's buffers are complete and may be reused.
  // With an error beside it they are as complete as can be.
  virtual Status advance(bool& done) = 0;

  // Whether the block of a peer, if it has one for this rank, is there after such an error.
  virtual bool has_block_of(int /*peer*/) const { return true; }

  // After another error: tells the peers, and `done` once nothing works on the user's buffers any
  // more.
  virtual void stop(bool& done) = 0;

  // The way it went, for people, where that was not known before; else null.
  virtual const char* path() const noexcept { return nullptr; }
};

}  // namespace accord::coll
