// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What ranks have given their active proxy to do: messages out of their device memory, opened here,
// to be carried elsewhere, and messages of other nodes to be landed in it. Each is a state machine
// of the net room; here is which rank wants it, and the memory that it is in. Polled by the
// server's thread, with its worker locked; waits for nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "base/status.h"
#include "net/design.h"
#include "net/freight.h"
#include "node/registration.h"
#include "proxy/packet.h"

namespace accord::proxy {

class Errands {
 public:
  struct Ended {
    std::uint64_t guest = 0;
    std::uint64_t number = 0;
    Status status;
  };

  explicit Errands(net::Freight& freight) : freight_(freight) {}

  // As a packet of the kinds `carry` and `land` says, for the rank `guest`. After an error there is
  // no such message; unsupported: the memory cannot be opened.
  Status begin(std::uint64_t guest, const Packet& packet);
  // It is to end soon, with an error.
  void drop(std::uint64_t guest, std::uint64_t number) noexcept;
  // Goes on with all; `ended` gets those that have.
  void advance(std::vector<Ended>& ended);
  // Whether something is waited for that nothing tells of.
  bool must_be_polled() const noexcept;
  // Whether nothing is under way; memory may be open still, for a while.
  bool empty() const noexcept { return errands_.empty(); }
  bool holds_memory() const noexcept { return !idle_.empty(); }
  // The rank is gone, and wants no answers.
  void forget(std::uint64_t guest) noexcept;

 private:
  struct Errand {
    std::uint64_t guest = 0;
    std::uint64_t number = 0;
    node::PeerMemory opened;
    std::unique_ptr<net::Transfer> work;
  };
  // Memory that no message is in any more.
  struct Idle {
    std::uint64_t guest = 0;
    node::PeerMemory opened;
    std::chrono::steady_clock::time_point since;
  };
  void set_aside(Errand& errand);

  net::Freight& freight_;
  std::list<Errand> errands_;
  std::deque<Idle> idle_;
};

}  // namespace accord::proxy
