// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How far this rank has come with headers, which go in the stead of messages from device to device
// (messages.h). One for the process; looked at in most calls, hence no functions.
#pragma once

#include <atomic>
#include <cstddef>

namespace accord::shim {

struct Messaging {
  // The ranks of this node can send each other headers; those of different nodes; either.
  bool node_joined = false;
  bool net_joined = false;
  bool joined = false;
  // This machine has more cores than ranks.
  bool has_idle_core = false;
  // A receive from before the first use of a device may be under way for good, in which nobody
  // would look for a header: then this rank gets none.
  std::atomic<bool> has_blind_requests{false};
  // Such blocking calls, where several threads may receive: this rank opens nothing meanwhile.
  std::atomic<int> blind_calls{0};
  // This rank has opened what a peer lends.
  std::atomic<bool> hears_headers{false};
  // How many sessions the program has. A message on a communicator of one may be received after
  // MPI_Finalize, when nobody knows headers any more, and none can be told from those of the world:
  // so nothing is sent by a header meanwhile.
  std::atomic<int> open_sessions{0};
  // Messages that probes have read, of all communicators (held_messages.h).
  std::atomic<std::size_t> held_count{0};
};
inline Messaging messaging;

}  // namespace accord::shim
