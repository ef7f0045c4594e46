// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What algorithms get to know of a collective call: what the program said (CollArgs), and what the
// host MPI can do for them (HostOps). The shim fills both in from the arguments of the call, the
// model test from those of a fake MPI. Knows no mpi.h.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "coll/algorithm.h"
#include "coll/transport.h"
#include "core/agreement.h"
#include "core/call_end.h"
#include "core/host_port.h"
#include "core/wire.h"
#include "node/call.h"

namespace accord::coll {

// On the communicator and with the datatypes of the call. Each starts something and returns the
// host MPI's error code; what they are given lives until `request` is complete. Thread-safe as the
// host MPI is.
struct HostOps {
  // An element-wise minimum of the four words.
  std::function<int(const core::Vote& mine, core::Vote& all, core::HostRequest& request)>
      issue_vote;
  // An exchange of `size_bytes` bytes of each rank, in the order of the ranks.
  std::function<int(const void* mine, void* all, std::size_t size_bytes,
                    core::HostRequest& request)>
      issue_allgather;
  // Empty where the ranks have no wires.
  core::IssueWire issue_wire;
  // By a design of net/designs.def, with names that go over that wire. Empty where some rank of the
  // job cannot.
  std::function<std::unique_ptr<Transport>(unsigned design, core::Wire& wire)> make_transport;
  // Whether the proxy of this node has a core that nobody misses; empty: nobody knows, so it has.
  std::function<bool()> has_idle_core;
  // Which ranks share a node, where the job knows: wherever they have wires. Tells nobody anything.
  std::function<core::Placement()> placement;
  // Empty where chunks of the host MPI's call are no use. Starts it on `length_bytes` bytes; `in`
  // or `out` is null where this rank has no such end, and in == out means in place.
  std::function<int(const void* in, void* out, std::size_t length_bytes,
                    core::HostRequest& request)>
      issue_chunk;
  // Of reductions: inout = in op inout, of elements in host memory; done when it returns. Empty
  // where no host may reduce.
  std::function<int(const void* in, void* inout, std::size_t length_bytes)> reduce_local;
};

// Everything but the ballot, the ends, rank and in_place is equal on all ranks.
struct CollArgs {
  node::Kind kind = node::Kind::bcast;
  core::Key key;
  core::Ballot ballot = core::Ballot::neutral;
  // Who wants it to go a certain way, one of coll/select/reasons.h; "": nobody.
  const char* asked_by = "";
  DeviceWays ways;  // what it may try
  // The call as one from device to device, if it can be one.
  std::optional<node::Call> exchange;
  std::size_t size_bytes = 0;    // packed
  std::size_t chunk_bytes = 0;   // of all chunks but the last; a whole number of elements
  std::size_t parcel_bytes = 0;  // what goes from node to node at a time, see Placement
  // This rank's exchange region: its size, and whose memory it is where neither end says it (null:
  // the default runtime's).
  std::size_t region_bytes = 0;
  device::DeviceRuntime* region_runtime = nullptr;
  // The program may have several collectives of one process under way, also where this one blocks.
  bool in_company = false;
  int rank = 0;
  bool in_place = false;  // as node::Geometry means it; pair by pair: both ends are one
  core::CallEnd in;       // what this rank puts in; no elements: nothing
  core::CallEnd out;      // what it gets out
  HostOps host;
};

}  // namespace accord::coll
