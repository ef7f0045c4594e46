// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the ranks of a communicator come to one of a collective library: they join a group of
// mailboxes (those of each node one, where they are on several, and make a wire between these),
// tell each other which library and device they have, take the first rank's name for it, and vote
// once each has it or has failed. The library waits for peers while it makes one, so that is done
// by a thread, and in its turn as a call is (turn.h), since some make one at a time. Whoever fails
// says so in its mailbox, and the others then leave their threads to themselves. Those of a
// persistent request only need mailboxes: the library's communicator they share.
#pragma once

#include <accord/ccl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coll/intra/joining.h"
#include "coll/library/group.h"
#include "core/meeting.h"
#include "core/placement.h"
#include "core/wire.h"

namespace accord::coll {

// What a rank tells the others: plain bytes.
struct CclRecord {
  std::int32_t ok = 0;       // this rank can take part
  std::int32_t version = 0;  // of its library,
  std::uint64_t found = 0;   // and which functions that has
  std::uint64_t device = 0;  // 0: it may be shared
};

// Whether these ranks can have a communicator; the answer is the same on all of them.
Status accept(std::span<const CclRecord> records);

class CclJoining final : public core::Meeting {
 public:
  // Both outlive it.
  CclJoining(CclGroup& group, const CollArgs& args);
  ~CclJoining() override;
  CclJoining(const CclJoining&) = delete;
  CclJoining& operator=(const CclJoining&) = delete;

  Status begin() override;
  Status advance(core::HostPort& port, bool& done) override;
  bool settled() const noexcept override { return group_.joined() || group_.declined; }

 private:
  enum class Step { mailboxes, wire, of_node, records, id, turn, connecting, voting };

  // What the thread leaves behind; it may outlive this object.
  struct Connection {
    std::atomic<bool> done{false};
    Status status;
    std::unique_ptr<ccl::Communicator> communicator;
    std::unique_ptr<device::LibraryStream> stream;
  };

  Status join_mailboxes(core::HostPort& port, bool& done);
  Status join_across_nodes();
  Status tell();
  Status make_record(CclRecord& record);
  bool can_connect();
  // The id is rank 0's, and too long to be gathered: it goes from rank to rank along a tree.
  Status share_id();
  Status send_id();
  Status advance_id(core::HostPort& port, bool& arrived);
  void enter_turn();
  Status wait_for_turn();
  Status look_after_peers();
  void connect();
  Status look_after_connection();
  Status vote(const Status& mine);
  void settle();
  void decline_for_node();
  void decline(const std::string& why);

  CclGroup& group_;
  const CollArgs& args_;
  Joining mailboxes_;
  std::optional<Joining> of_node_;
  core::Placement placement_;
  std::shared_ptr<core::Wire> wire_;
  std::optional<core::WireMeeting> wire_meeting_;
  Step step_ = Step::mailboxes;
  Status own_;  // whether this rank can take part
  CclRecord record_;
  std::vector<CclRecord> records_;
  ccl::Id id_{};
  std::vector<ccl::Id> ids_;                 // of the ranks of a node
  core::HostRequest id_request_ = 0;         // by the wire; 0: there is none
  std::vector<core::HostRequest> sent_ids_;  // the same
  std::unique_ptr<CclTurn> turn_;
  std::shared_ptr<Connection> connection_;
  core::Vote mine_;
  core::Vote all_;
  core::HostRequest request_ = 0;
};

}  // namespace accord::coll
