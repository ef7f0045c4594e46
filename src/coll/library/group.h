// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a communicator, or a persistent request, has of one collective library: the library's own
// communicator, mailboxes by which its ranks see each other, those of a node, and messages for the
// rest, where they are on several, and room for what the library cannot take as it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ccl/library.h"
#include "coll/library/replays.h"
#include "coll/library/roll_call.h"
#include "coll/library/turn.h"
#include "core/engine.h"
#include "node/group.h"

namespace accord::coll {

// Joined and declined are equal on all ranks.
class CclGroup {
 public:
  // Of a persistent request: it shares the library's communicator of `lender`, that of its MPI
  // communicator, which has to live until it does.
  explicit CclGroup(ccl::Library& of, CclGroup* lender = nullptr) : library(of), lender_(lender) {}
  ~CclGroup();
  CclGroup(const CclGroup&) = delete;
  CclGroup& operator=(const CclGroup&) = delete;

  bool joined() const noexcept { return communicator != nullptr; }
  // Whose ranks have to meet next, before calls can go by this one: of the lender, or its own;
  // null: none any more.
  CclGroup* to_join();
  bool is_to_share() const noexcept { return lender_ != nullptr; }
  // Takes the lender's communicator, once it has mailboxes of its own.
  void share();
  // Of this rank's node. They are those of all ranks, unless these are on several.
  node::Group& mailboxes() const noexcept { return *node.group; }
  // Once it has mailboxes: its ranks are on several nodes, and have this for messages.
  void connect_nodes(std::shared_ptr<core::Wire> wire, int rank, int size);
  bool is_across_nodes() const noexcept { return roll_call_ != nullptr; }

  int rank() const noexcept { return roll_call_ ? roll_call_->rank() : mailboxes().rank(); }
  int size() const noexcept { return roll_call_ ? roll_call_->size() : mailboxes().size(); }
  // Of one call at a time.
  std::unique_ptr<CclTurn> make_turn(CclTurn::Company company,
                                     CclTurn::Process process = CclTurn::Process::busy);
  // Before this rank enters a call, where it has something to say to each of them: to one peer;
  // and what one has said, once all have entered.
  void tell(int peer, const CclWords& words);
  CclWords told_by(int peer) const;
  // An error once a rank has given up or, on this node, is gone.
  Status check_peers();
  // Whether a rank has said so.
  bool has_failed_peer();
  // No peer shall wait for this rank in the library any more.
  void say_failed() noexcept;

  // What so many bytes take there, so that others may follow.
  static constexpr std::size_t whole_lines(std::size_t size_bytes) noexcept {
    constexpr std::size_t kLineBytes = 256;
    return (size_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  // Device memory for one call at a time. Kept, and made anew where it is too small.
  Status scratch(std::size_t size_bytes, std::byte*& memory);
  // Once it has a communicator.
  void allow_replays();
  // After an error: no rank waits for this one in the library any more, and none goes on.
  void give_up() noexcept;

  ccl::Library& library;
  core::NodeGroup node;  // of mailboxes only
  std::shared_ptr<ccl::Communicator> communicator;
  std::shared_ptr<device::LibraryStream> stream;  // where there is a communicator: its own
  // Differs from that of any other group, equal on its ranks.
  std::uint64_t number = 0;
  // Where calls of the library can be recorded, and shall be.
  std::unique_ptr<CclReplays> replays;
  bool declined = false;
  std::string why_declined;  // as far as this rank knows, for people

 private:
  CclGroup* lender_;  // null: none, or it has lent
  // Where the ranks are on several nodes.
  std::shared_ptr<core::Wire> wire_;
  std::shared_ptr<CclAlarm> alarm_;
  std::unique_ptr<CclRollCall> roll_call_;
  std::uint64_t borrowers_ = 0;
  std::byte* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
};

// That of a communicator; made where there is none yet.
CclGroup& ccl_group_of(core::Team& team, ccl::Library& library);

}  // namespace accord::coll
