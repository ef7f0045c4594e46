// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The story of one collective call on buffers that may need staging: decide the mode together, copy
// in, let the host MPI do it (whole, or in chunks so that copies and messages overlap), copy out.
// The shim describes the call; the model test describes the same calls over a fake MPI. Knows no
// mpi.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "coll/coll_args.h"
#include "coll/select/reasons.h"
#include "core/engine.h"
#include "core/requests.h"
#include "core/staged_buffer.h"

namespace accord::coll {

struct CollectiveCall {
  core::StagedBuffer send;
  core::StagedBuffer recv;
  // The send buffer is the receive buffer or a part of it: the host MPI gets it so too, and may
  // object.
  bool sends_from_recv = false;
  std::uint64_t context = 0;  // handed on to Tracked::context
  // The host MPI's non-blocking (or persistent *_init) form on the given pointers.
  std::function<int(const void* send, void* recv, core::HostRequest& request)> issue;
  // Its blocking form; only for run_collective.
  std::function<int(const void* send, void* recv)> block;
  // What is left to do on this rank when the host MPI is through; may be empty. Gets recv.host().
  std::function<int(void* recv)> conclude;
  std::optional<CollArgs> args;
  std::optional<core::CallMark> mark;  // of a call that all ranks count
  node::CallEntry entry;               // of it on the board, once it has begun
  stages::Story story;
  const char* why_no_exchange = "";  // one of coll/select/reasons.h; filled where there is a story

  const void* send_host() const noexcept;
  Status open();
  Status copy_in();
  // After the host MPI's part.
  Status complete();
};

// Blocking: returns when the call is complete on this rank. `repeatable`: it went through inboxes
// or by a collective library in one step, and its args, which is still there, describes the
// next call like it as well; not pair by pair, where the program may write other counts into the
// same arrays.
Status run_collective(core::Engine& engine, const std::shared_ptr<core::CommQueue>& queue,
                      CollectiveCall& call, bool& repeatable);

// Blocking: a call like an earlier one that was repeatable. Nothing where it does not go that way
// this time: then it has not begun.
std::optional<Status> run_again(core::Engine& engine, core::CommQueue& queue, const CollArgs& args);

// Non-blocking: never waits for a peer. `request` is a real request of the host MPI, tracked if
// need be.
Status start_collective(core::Engine& engine, core::Requests& requests,
                        const std::shared_ptr<core::CommQueue>& queue, CollectiveCall call,
                        core::HostRequest& request);

// Persistent: Starts of different requests may come in different orders on the ranks. So one that
// goes from device to device has groups of its own, joined here; any other is the host MPI's own
// persistent request on the shadows, which is not tracked where there are none.
Status init_collective(core::Engine& engine, core::Requests& requests,
                       const std::shared_ptr<core::CommQueue>& queue, CollectiveCall call,
                       core::HostRequest& request);

// For the peers of a rank that is about to give up.
void explain(core::CommQueue& queue, const Status& status) noexcept;

// Why `call` goes the way that `turn` decides, in words for people.
std::string why(const CollectiveCall& call, const std::optional<core::Turn>& turn);

// The way the calling thread's last call took that was not the host MPI's alone, for people: one
// of docs/tracing.md, "queued" where that is not known yet, "-" before the first.
const char* last_path() noexcept;
void set_last_path(const char* path) noexcept;

}  // namespace accord::coll
