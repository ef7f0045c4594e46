// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI face of Accord, compiled once per MPI ABI: the only room that includes mpi.h. It
// describes a call to the core and hands it host pointers; the host MPI itself is called through
// accord::host (generated), never by an MPI_ or PMPI_ name, since those are ours.
#pragma once

#include <mpi.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "coll/run/collective.h"
#include "coll/select/names.h"
#include "core/engine.h"
#include "core/requests.h"
#include "device/registry.h"
#include "host_mpi.h"
#include "shim/errors.h"
#include "shim/repeated_calls.h"

namespace accord::shim {

using Region = core::Engine::BlockingRegion;

core::Engine& engine();
core::Requests& requests();

// No operation of ours is active and no request is tracked: the host MPI may take the call as it
// is.
inline bool quiet() { return engine().idle() && requests().empty(); }

// Any handle of this ABI as bits, and back.
template <class Handle>
std::uint64_t to_bits(Handle handle) {
  std::uint64_t bits = 0;
  static_assert(sizeof handle <= sizeof bits);
  std::memcpy(&bits, &handle, sizeof handle);
  return bits;
}
template <class Handle>
Handle from_bits(std::uint64_t bits) {
  Handle handle;
  std::memcpy(&handle, &bits, sizeof handle);
  return handle;
}

// Where has_error_function, a failed call is told by what it sets: no rank, none of the constants
// that stand for one, no flag.
inline constexpr int kUntold = -0x5ca1ab1e;

// What was found out about the last collective on host buffers that might have gone another way: as
// a rule the next one is the same. Handles of what is not predefined never lead to such a way, so
// it does no harm that they are reused.
struct LastCollective {
  const void* function = nullptr;
  std::size_t size_bytes = 0;
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  int root = 0;
  std::uint64_t blocks = 0;  // as core::Key means it
  bool has_ways = false;
  core::Key key;
  core::CallMark mark;

  bool is_same(const LastCollective& other) const noexcept {
    return function == other.function && size_bytes == other.size_bytes && op == other.op &&
           datatype == other.datatype && root == other.root && blocks == other.blocks;
  }
};

struct HeldMessages;  // held_messages.h

// What Accord keeps for a communicator: an attribute, freed with it.
struct CommState {
  std::shared_ptr<core::CommQueue> queue = std::make_shared<core::CommQueue>();
  int rank = 0;
  int size = 0;
  int remote_size = 0;  // of an intercommunicator's other group, else size
  bool inter = false;
  // Some rank is of another MPI_COMM_WORLD (spawned, connected), with which nothing has been
  // agreed.
  bool mixed_worlds = false;
  // As its info asks for them, or null; see comm_info.h.
  std::shared_ptr<const coll::AlgorithmChoice> algorithms;
  LastCollective last;
  RepeatedCalls repeated;
  std::once_flag node_ranks_known;
  std::vector<int> node_ranks;  // by rank: its number among those that send it messages, or -1
  std::once_flag net_ranks_known;
  std::vector<int> net_ranks;  // by rank: its rank in MPI_COMM_WORLD where on another node, or -1
  std::shared_ptr<HeldMessages> held;
};

// Null for an invalid communicator: the host MPI will say so; or once Accord has ended.
CommState* comm_state(MPI_Comm comm);

// Waits until every earlier collective of `comm` has issued all it has to, so that a call which the
// core does not queue keeps its place.
void drain(MPI_Comm comm);

// The same, before a collective of the host MPI's. An error code, which has been raised, where it
// would match the call with another one: this rank lags behind in its calls (core::CallWatch).
int wait_for_turn(MPI_Comm comm);
inline bool refuses_calls(MPI_Comm comm) {
  if (!core::CallWatch::anyone_refuses()) return false;
  const CommState* const state = comm_state(comm);
  return state != nullptr && state->queue->watch.refuses();
}

// What all ranks have found out together at initialisation: start_runtime sets it.
struct Job {
  // Collectives of at least this size vote on the way they go (0: none), and where some rank has a
  // device that may be from device to device.
  std::size_t votes_from_bytes = 0;
  bool has_devices = false;
  // On some rank the program may call MPI from several threads at once.
  bool has_threads = false;
  // Reductions give the same bits whatever way they go.
  bool wants_rank_order = false;
};
inline Job job;

// What all ranks of the job have agreed on at initialisation.
struct JobFacts {
  bool enabled = true;           // no rank has switched Accord off
  bool threads = false;          // every rank may be called from a progress thread
  bool devices = false;          // some rank has an accelerator
  bool program_threads = false;  // some rank's program may call from several threads
  bool same_tables = false;      // all ranks have read the same table
  bool same_settings = false;    // where they must be equal
  bool same_warnings = false;    // of settings: one rank tells them for all
  bool partitioned = false;      // Accord carries partitioned requests
};

// Called by the environment functions (MPI_Init and friends). The host MPI's MPI_Finalize stops the
// runtime, but where it has been stopped in preparation.
void start_runtime(const JobFacts& facts);
void prepare_to_stop();
void stop_runtime();
#ifdef ACCORD_HAS_Session_init
void start_session_runtime();
void stop_session_runtime();
#endif

// A communicator of this process alone whose errors return: for questions that must not disturb the
// user's error handlers.
MPI_Comm private_comm();
// The tag of messages on it that stand for others (held_messages.h); those above stand for
// operations.
inline constexpr int kSubstituteTag = 1;

}  // namespace accord::shim
