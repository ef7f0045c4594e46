// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the ranks of a communicator join a node::Group: they tell each other what they have made,
// send what it takes to open it, open it, and vote after each step, so that all join or none does.
// Where none does, a rank's memory goes only when all have said that they closed it. Ranks that
// have a group join another one for more memory, and keep the old one where they get no more.
// Polled, never waits; every rank comes here in the same call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coll/coll_args.h"
#include "core/engine.h"
#include "core/meeting.h"
#include "node/group.h"

namespace accord::coll {

class Joining final : public core::Meeting {
 public:
  // All outlive it. With a placement the ranks of each node join a group of theirs, on all nodes
  // or on none.
  Joining(core::NodeGroup& group, const CollArgs& args, node::Use use,
          const core::Placement* placement = nullptr);

  Status begin() override;
  // Where some rank uses no device yet, a later call may try again, but not again and again: those
  // that do use one make their memory each time.
  static constexpr unsigned kEarlyAttemptsMax = 8;

  Status advance(core::HostPort& port, bool& done) override;
  bool settled() const noexcept override { return joined_.group || joined_.declined; }

 private:
  // What is under way. All but sending are calls of the host MPI.
  enum class Step { records, sending, sent, opened, closed };

  Status step(bool& done);
  Status accept();
  Status send();
  Status vote(const Status& mine, Step step);
  void decline(const std::string& why);
  bool grows() const noexcept { return joined_.group != nullptr; }

  core::NodeGroup& joined_;
  const CollArgs& args_;
  node::Use use_;
  const core::Placement* placement_;
  std::shared_ptr<node::Group> group_;
  node::Record record_;
  std::vector<node::Record> records_;
  Step step_ = Step::records;
  core::Vote mine_;
  core::Vote all_;
  core::HostRequest request_ = 0;
};

}  // namespace accord::coll
