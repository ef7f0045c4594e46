// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages within a node that go by a collective library (ACCORD_P2P_LIBRARY, or what a table, a
// setting or the info of a communicator says of "send"). They are lent to
// their receiver or wait in their sender's outbox as all do (messages.h), so that no send waits for
// its receiver. A receiver that has matched one, and keeps it where it is, asks its sender to send
// it by the library; if that answers soon, which takes a process that is in an MPI call, both start
// an alltoallv of two ranks, which is a send and a receive of the library, on a communicator for
// what goes that way from the one to the other: with a communicator of the library made by the
// first, in their turns, and another way where the library refuses, as for any collective. A sender
// that does not answer is asked no more, and the receiver copies the message itself, which it also
// does where that call fails.
#pragma once

#include <mpi.h>

#include <memory>

#include "ccl/library.h"
#include "node/group.h"
#include "node/outbox.h"

namespace accord::shim {

// Together with all ranks of the node.
void join_library_messages(MPI_Comm node, std::shared_ptr<node::Group> group);
// Messages of `comm` may go by this library from now on, the same one for all messages of a
// process. Together with all its ranks; those that are on other nodes have no part in it.
void allow_library_messages(MPI_Comm comm, ccl::Library& library);
// No more requests are answered.
void stop_library_messages();
// Once no receiver asks any more.
void leave_library_messages();

// This rank has posted a message, for which its receiver may ask.
void serve_library_messages();

// Brings a message to `to`, memory of this rank's device, and tells the path that it took. False
// where it did not come: the receiver then has to copy it. May wait for its sender.
bool bring_by_library(const node::MessageHeader& header, void* to, const char*& path);

}  // namespace accord::shim
