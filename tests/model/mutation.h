// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Deliberate mistakes in the model's shim, to show that the model test would find them.
#pragma once

#include <atomic>

namespace accord::model {

enum class Mutation {
  none,
  block_without_progress,  // native blocking calls while operations are active and nobody
                           // progresses them
  skip_queue,          // a later collective does not wait for the earlier ones of its communicator
  latest_mode,         // a call uses the last mode this rank has heard of, not that of its own vote
  no_finish,           // a completed request's bytes are not brought to the user
  local_form,          // blocking or non-blocking form of a collective by whether this rank is idle
  no_progress_thread,  // nobody progresses operations while a collective blocks in the host MPI
  no_poke,             // the host MPI stands still while a rank waits for its peers' mailboxes
};

// The one of the running job.
extern std::atomic<Mutation> active_mutation;
inline bool active(Mutation mutation) noexcept { return active_mutation.load() == mutation; }

}  // namespace accord::model
