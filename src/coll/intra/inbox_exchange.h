// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A small collective in one step: every rank writes what it has for the others into their inboxes
// (device/inbox.h). The mailboxes of the group say who is in which call: a rank sends only to those
// that are done with all calls before the last one, so that its lanes for this one are free again.
// Its device waits for data for some microseconds at once, which is what peers that are on their
// way take, and then only when the mailboxes show them all in this very call. Ends that a kernel
// cannot use (host memory, derived types, memory of another device) pass through memory that it
// can.
#pragma once

#include <cstdint>
#include <memory>

#include "coll/coll_args.h"
#include "coll/exchange.h"
#include "node/group.h"

namespace accord::coll {

class InboxExchange : public Exchange {
 public:
  // The ends outlive the exchange.
  InboxExchange(std::shared_ptr<node::Group> group, const CollArgs& args);

  Status advance(bool& done) override;
  void stop(bool& done) override;
  const char* path() const noexcept override { return "inbox"; }

  // Says how many went this way, for whoever wants to know.
  static void report();

 protected:
  // Of a call that is yet to be described: who sends what to whom.
  struct Undescribed {};
  InboxExchange(std::shared_ptr<node::Group> group, const CollArgs& args, Undescribed);

  // These differ where lengths do by pair (coll/pairs/inbox_pairs.h).
  // Finds out what kernels can use as it is, and packs the rest.
  virtual Status begin();
  // Tells the peers that this rank is in the call. False: not yet.
  virtual bool announce();
  // Once all peers are in it.
  virtual void look_at_peers() {}
  virtual Status unpack();
  // Memory for the packed forms of ends that kernels cannot use as they are.
  Status take_bounce(bool in_direct, bool out_direct, std::size_t size_bytes);

  // Whether these peers have taken what this rank sent them through the same lanes before.
  bool lanes_are_free(std::uint64_t peers) const;

  std::shared_ptr<node::Group> group_;
  const CollArgs& args_;
  std::byte* bounce_ = nullptr;
  device::InboxTicket ticket_;
  device::CopyTicket copy_in_;
  device::CopyTicket copy_out_;

 private:
  enum class State { begin, packing, arriving, running, unpacking, done };

  void describe();
  bool keeps_own_block() const;
  bool moves_nothing_more() const;
  void note_begun();
  bool all_are_here() const;
  std::uint64_t everyone() const;

  State state_ = State::begin;
  std::uint64_t number_;            // of the call in the group's life
  std::size_t first_in_bytes_ = 0;  // of the packed bytes of the end that this rank sends
  std::size_t in_bytes_ = 0;
  std::size_t out_bytes_ = 0;
  bool in_direct_ = true;
  bool out_direct_ = true;
  device::CopyTicket second_copy_out_;  // of what lies behind a block that is kept
  unsigned checks_ = 0;
};

}  // namespace accord::coll
