// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Probes where a message may be a header, of which the program must not see the length. Only its
// bytes tell, so it is taken out of the host MPI's queue, with all of its sender that come before
// it, and held until the program receives it: receives and probes look among those that are held
// first. What was read stands ready again as a message of this process to itself.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "node/outbox.h"
#include "shim/messaging.h"
#include "shim/shim.h"

namespace accord::shim {

// A message to ourselves with the bytes of one that was read.
struct Substitute {
  std::array<std::byte, sizeof(node::MessageHeader)> bytes{};
  int size_bytes = 0;  // of these
  MPI_Request sending = MPI_REQUEST_NULL;
  MPI_Comm comm = MPI_COMM_NULL;  // of the one that was read
  int source = MPI_PROC_NULL;
  int tag = 0;
  std::optional<node::MessageHeader> header;  // that it was, of a rank of this node

  // The program begins to receive it: so far it was probed only, as its sender may want to know.
  void begin_receive();
  // Once it has been received.
  void conclude() { (void)host::Wait(&sending, MPI_STATUS_IGNORE); }
};

struct HeldMessage {
  MPI_Message handle = MPI_MESSAGE_NULL;
  int source = MPI_PROC_NULL;
  int tag = 0;
  MPI_Count size_bytes = 0;  // what the sender calls its length
  std::shared_ptr<Substitute> substitute;
};

inline bool holds_messages() { return messaging.held_count.load(std::memory_order_acquire) != 0; }

// Of one communicator; those of one source in the order in which they were sent.
struct HeldMessages {
  std::recursive_mutex mutex;
  // Receives that are about to lock it: a thread that probes without end lets them have it, which
  // the mutex alone would not.
  std::atomic<int> receives_waiting{0};
  std::deque<HeldMessage> messages;

  HeldMessages() = default;
  HeldMessages(const HeldMessages&) = delete;
  HeldMessages& operator=(const HeldMessages&) = delete;
  ~HeldMessages() { messaging.held_count.fetch_sub(messages.size()); }
};

std::shared_ptr<HeldMessages> make_held_messages();

// MPI_Iprobe and MPI_Improbe; the status tells the message's true size. A call that has failed, if
// only by what MPICH tells of it (has_error_function), leaves `flag` as it was.
int iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
int improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
            MPI_Status* status);

// The message that a receive with these arguments matches, if it is held: to be received by its
// handle.
bool take_held(int source, int tag, MPI_Comm comm, HeldMessage& found);
bool take_held(int source, int tag, HeldMessages& held, HeldMessage& found);

// Those of a communicator, for a receive that may be started after the program has freed that; null
// where none are ever held.
std::shared_ptr<HeldMessages> held_messages(MPI_Comm comm);

// Where several threads may receive: while one lives, no probe takes a message out of the queue
// that a receive is about to look for, first here and then there. Such receives must not block.
class ReceiveOrder {
 public:
  explicit ReceiveOrder(MPI_Comm comm);

 private:
  std::unique_lock<std::recursive_mutex> locked_;
};
// Whether a blocking receive is one that is posted and waited for, because of that.
bool must_post_receives();

// What a handle that improbe has given out stands for, which is then the caller's to receive or to
// give out again; null: a message of the host MPI.
std::shared_ptr<Substitute> claim_substitute(const MPI_Message* message);
void give_out(MPI_Message message, std::shared_ptr<Substitute> substitute);

}  // namespace accord::shim
