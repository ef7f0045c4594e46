// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The engine of the stand-ins for collective libraries: communicators of processes of one machine,
// over memory that the CPU may touch, without streams, or on those of stream.h. A call has done its
// work when it returns; calls between group_start() and group_end() do theirs in group_end(), all
// at once. A communicator that does not block does its work in a thread of its own, and answers
// in_progress meanwhile. Ranks that make different calls get an error, as does everybody once one
// rank has failed.
#pragma once

#include <memory>
#include <span>

#include "communicator.h"
#include "exchange.h"

namespace accord::fake {

Outcome create_id(std::span<char> id);

// The new communicator is there when the outcome is success or in_progress. `name` is the prefix of
// its settings in the environment.
Outcome create(Communicator*& made, const Member& member, std::span<const char> id,
               const char* name);
// Null where there is no such communicator, or no longer.
std::shared_ptr<Communicator> find(Communicator* handle);
// Waits for what it is doing, and until what was captured with it is gone; abort ends the former
// with an error.
Outcome destroy(Communicator* handle);
Outcome abort(Communicator* handle);

Outcome submit(Communicator* handle, const Call& call);
// A call that the library does not take. The group that it is in fails, too.
Outcome refuse(const char* why);
Outcome group_start();
Outcome group_end();

}  // namespace accord::fake
