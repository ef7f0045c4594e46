// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Who runs this process's part of inbox exchanges on one device. A server may work on one exchange
// at a time, on each for a bounded time, so several of them, on whichever communicators, never wait
// for each other for good: what a rank sends it sends first, and an exchange whose data is late
// makes room. Thread-safe. Owned by the runtime, never destroyed.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "device/inbox.h"
#include "device/kernel_place.h"
#include "device/packet_reach.h"

namespace accord::device {

struct DirectWork;
struct PointerInfo;

// An exchange on its way; a plain value, owned by the caller, that stays where it is until done.
struct InboxTicket {
  enum class State { idle, waiting, running, late };
  enum class Patience { short_wait, long_wait };  // for data: microseconds, or what it takes
  InboxExchange exchange;
  const DirectWork* direct = nullptr;  // instead, where a server does that; never late
  State state = State::idle;
  Patience patience = Patience::short_wait;
  bool sent = false;
  std::uint64_t number = 0;  // the server's, as is the next
  std::size_t width = 0;
};

class InboxServer {
 public:
  virtual ~InboxServer() = default;

  // Ranks whose kernels take turns must not both have servers, since one that waits keeps the other
  // from running.
  virtual KernelPlace kernel_place() const = 0;

  // Whose inboxes it may write in packets, and may write its own.
  virtual PacketReach packet_reach() const { return {}; }

  // Whether it does work on memory alone, too (direct_work.h), by another kernel than exchanges,
  // which stays on the device for a while, so that the next work begins sooner than a copy does.
  virtual bool does_direct_work() const { return false; }

  // Whether src and dst may lie there: device memory of this runtime and the server's device.
  virtual bool reaches(const PointerInfo& memory) const = 0;

  // So many processes, this one among them, may have servers whose kernels run side by side on this
  // device: those of all shall find room there at once. The most ever said holds.
  virtual void share_with(int /*processes*/) {}

  // Starts ticket.exchange, or goes on with one that is late. To be polled until done or late, or
  // stopped.
  virtual Status begin(InboxTicket& ticket) = 0;
  // `done`: dst holds what was received, and src is no longer needed. The ticket is late where all
  // is sent but some data has not come: then the server is free for others, and begin has to be
  // called again. After an error the ticket is idle.
  virtual Status poll(InboxTicket& ticket, bool& done) = 0;
  // Gives the exchange up. To be called until `done`, when nothing touches src and dst any more.
  virtual void stop(InboxTicket& ticket, bool& done) = 0;
};

}  // namespace accord::device
