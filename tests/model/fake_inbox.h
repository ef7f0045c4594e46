// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A pretend kernel that serves inboxes, one exchange at a time: those of several communicators, and
// perhaps of several ranks, compete for it and take turns. It sends block by block and puts what
// has come into its place early, as real ones do, in any order; it ends late, and sometimes says
// that data is missing before it could have come. Complains about tickets that are not used as
// inbox_server.h says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "device/inbox_server.h"
#include "sight.h"

namespace accord::model {

class FakeDevice;

class FakeInboxServer final : public device::InboxServer {
 public:
  explicit FakeInboxServer(FakeDevice& device) : device_(device) {}

  // Forgets whatever a failed run has left.
  void reset();
  bool idle() const;

  device::KernelPlace kernel_place() const override;
  device::PacketReach packet_reach() const override;
  bool reaches(const device::PointerInfo&) const override { return true; }
  Status begin(device::InboxTicket& ticket) override;
  Status poll(device::InboxTicket& ticket, bool& done) override;
  void stop(device::InboxTicket& ticket, bool& done) override;

 private:
  using Inboxes = std::array<std::byte*, device::kInboxRanksMax>;

  void yield();
  void event();
  void post(device::InboxTicket& ticket);
  void work(device::InboxTicket& ticket, bool& done);
  void send_some(const device::InboxExchange& exchange, const Inboxes& inboxes);
  void send_part(device::InboxExchange some, const Inboxes& inboxes);
  void receive_some(const device::InboxExchange& exchange);
  device::InboxExchange reachable(const device::InboxExchange& exchange, Inboxes& inboxes);
  std::size_t part_of(std::size_t size_bytes);

  FakeDevice& device_;
  mutable HiddenMutex mutex_;  // guards what follows
  device::InboxTicket* current_ = nullptr;
  std::deque<const device::InboxTicket*> waiting_;  // the first one is next
  std::uint64_t unsent_ = 0;              // receivers that have yet to get the current one's block
  std::uint64_t looks_left_ = 0;          // for data that is missing
  std::vector<device::InboxPart> parts_;  // of the current one, where the CPU reaches them
};

}  // namespace accord::model
