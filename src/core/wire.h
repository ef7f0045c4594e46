// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between the ranks of one communicator that nobody else's are taken for: what two-level
// collectives send from node to node, to and from host memory, and what ranks on several nodes tell
// each other for calls of a collective library. Knows no mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/host_port.h"
#include "core/meeting.h"
#include "core/team.h"

namespace accord::core {

class Wire {
 public:
  Wire() = default;
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Instead of a sender: whoever sends.
  static constexpr int kAnyRank = -1;

  // Each starts one; it is complete when test says so. Those between two ranks with one tag are
  // matched in the order in which they are started.
  virtual Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
                      HostRequest& request) = 0;
  virtual Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                         HostRequest& request) = 0;
  // `completion`: of a receive, which may be longer than what arrives.
  virtual Status test(HostRequest& request, bool& done, Completion& completion) = 0;
  // Of a receive that nothing shall come for any more: ends it, whether or not something has come.
  virtual void cancel(HostRequest& request) noexcept = 0;
  // The same where what comes late does no harm, since it bears a name.
  virtual void cancel_named(HostRequest& request) noexcept { cancel(request); }
  // Of this wire at that rank: no wire before it that had the same tags there had the same name.
  virtual std::uint32_t name_at(int rank) const noexcept {
    (void)rank;
    return 0;
  }
  // What that rank is called in the job.
  virtual std::uint32_t job_rank(int rank) const noexcept {
    return static_cast<std::uint32_t>(rank);
  }
  // What each rank tells all others so that one is made.
  static constexpr std::size_t kToldBytes = 8;
  // Once the request that made it is complete, before anything is sent. The same on all ranks:
  // where it is an error, there is no wire.
  virtual Status opened() = 0;
};

// After an error, of a message that a peer waits for.
template <class Begin>
bool begins_in_two_tries(Begin begin) {
  return begin().ok() || begin().ok();
}

// Starts to make one, together with all ranks of the communicator. What goes wrong there the
// program has not asked for: no error of the host MPI's, which it would have raised itself.
using IssueWire = std::function<Status(std::shared_ptr<Wire>& wire, HostRequest& request)>;

// All ranks of a communicator make one, in the same call, or none does.
class WireMeeting final : public Meeting {
 public:
  // All outlive it. At the end either `made` is set, or `local`, whose ranks would use it, has
  // declined.
  WireMeeting(const IssueWire& issue, NodeGroup& local, std::shared_ptr<Wire>& made)
      : issue_(issue), local_(local), made_(made) {}

  Status begin() override { return issue_(wire_, request_); }
  Status advance(HostPort& port, bool& done) override {
    ACCORD_TRY(port.test(request_, done));
    if (!done) return {};
    const Status opened = wire_->opened();
    if (opened.ok()) {
      made_ = std::move(wire_);
      return {};
    }
    local_.group.reset();
    local_.declined = true;
    local_.why_declined = opened.message();
    return {};
  }
  bool settled() const noexcept override { return true; }

 private:
  const IssueWire& issue_;
  NodeGroup& local_;
  std::shared_ptr<Wire>& made_;
  std::shared_ptr<Wire> wire_;
  HostRequest request_ = 0;
};

}  // namespace accord::core
