// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the ranks of a communicator join a node::Group: they tell each other what they have made,
// send what it takes to open it, open it, and vote after each step, so that all join or none does.
// Where they are on several nodes, those of each join a group of theirs: each tells only its own
// node what it has made, and a vote tells all what became of that.
// Where none does, a rank's memory goes only when all have said that they closed it. Ranks that
// have a group join another one for more memory, and keep the old one where they get no more.
// Polled, never waits; every rank comes here in the same call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coll/coll_args.h"
#include "core/engine.h"
#include "core/meeting.h"
#include "core/wire.h"
#include "node/group.h"

namespace accord::coll {

class Joining final : public core::Meeting {
 public:
  // On which node who is, and by what those of a node tell each other.
  struct Nodes {
    core::Placement& placement;  // learns whether ranks share devices
    std::shared_ptr<core::Wire> wire;
  };
  // All outlive it. With nodes the ranks of each join a group of theirs, on all nodes or on none.
  Joining(core::NodeGroup& group, const CollArgs& args, node::Use use,
          std::optional<Nodes> nodes = {});
  ~Joining() override;
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

  Status begin() override;
  // Where some rank uses no device yet, a later call may try again, but not again and again: those
  // that do use one make their memory each time.
  static constexpr unsigned kEarlyAttemptsMax = 8;

  Status advance(core::HostPort& port, bool& done) override;
  bool settled() const noexcept override { return joined_.group || joined_.declined; }

 private:
  // What is under way. All but sending are calls or messages of the host MPI.
  enum class Step { records, of_node, accepted, sending, sent, opened, closed };
  // What the ranks of a node can do, worst first.
  enum class Outcome : std::int64_t { refused, too_early, accepted };
  // One of the two messages that go between this rank and another of its node.
  struct Letter {
    core::HostRequest request = 0;
    node::Record* received = nullptr;  // null: one that is sent
  };

  Status exchange_with_node();
  Status poll_letters(bool& done);
  Status tell_outcome();
  Outcome outcome_of_all();
  Status step(bool& done);
  Status step_on(Outcome outcome, const std::string& why, bool& done);
  void end(bool& done);
  Status accept();
  Status send();
  Status vote(const Status& mine, Step step);
  void decline(const std::string& why);
  bool grows() const noexcept { return joined_.group != nullptr; }

  core::NodeGroup& joined_;
  const CollArgs& args_;
  node::Use use_;
  std::optional<Nodes> nodes_;
  std::shared_ptr<node::Group> group_;
  node::Record record_;
  std::vector<node::Record> records_;  // by rank; with nodes, of this one's ranks
  std::vector<Letter> letters_;
  Status accepted_;
  Step step_ = Step::records;
  core::Vote mine_;
  core::Vote all_;
  core::HostRequest request_ = 0;
};

}  // namespace accord::coll
