// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/joining.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
#include "coll/select/reasons.h"
#include "coll/tags.h"

namespace accord::coll {
namespace {

// Once for each cause in a process.
void warn_once(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& said = *new std::set<std::string>;
  const std::lock_guard<std::mutex> locked(mutex);
  if (said.insert(text).second) log::warn("{}; its calls take another way", text);
}

}  // namespace

Status accept(std::span<const CclRecord> records) {
  std::set<std::uint64_t> devices;
  for (const CclRecord& record : records) {
    if (record.ok == 0) return {StatusCode::unsupported, reason::kPeerDeclined};
    if (record.version != records[0].version || record.found != records[0].found)
      return {StatusCode::unsupported, "the ranks have different versions of the library"};
    if (record.device != 0 && !devices.insert(record.device).second)
      return {StatusCode::unsupported, "two ranks share a device"};
  }
  return {};
}

CclJoining::CclJoining(CclGroup& group, const CollArgs& args)
    : group_(group),
      args_(args),
      mailboxes_(group.node, args, {.of_one_request = group.is_to_share()}),
      records_(static_cast<std::size_t>(args.exchange->size)) {}

// Where the job knows that there are several nodes, nobody tries to join what is for one.
Status CclJoining::begin() {
  if (args_.host.placement) group_.node.placement = args_.host.placement();
  if (group_.node.placement.nodes() <= 1 || group_.is_to_share()) return mailboxes_.begin();
  return join_across_nodes();
}

Status CclJoining::advance(core::HostPort& port, bool& done) {
  done = false;
  if (step_ == Step::turn) return wait_for_turn();
  if (step_ == Step::connecting) return look_after_connection();
  bool arrived = false;
  if (step_ == Step::mailboxes || step_ == Step::of_node) return join_mailboxes(port, done);
  if (step_ == Step::wire) {
    ACCORD_TRY(wire_meeting_->advance(port, arrived));
    if (!arrived) return {};
    done = wire_ == nullptr;
    if (done) {
      decline_for_node();
      return {};
    }
    of_node_.emplace(group_.node, args_, node::Use{}, Joining::Nodes{placement_, wire_});
    step_ = Step::of_node;
    return of_node_->begin();
  }
  if (step_ == Step::id) {
    ACCORD_TRY(advance_id(port, arrived));
    if (arrived) enter_turn();
    return {};
  }
  ACCORD_TRY(port.test(request_, arrived));
  if (!arrived) return {};
  if (step_ == Step::records) {
    done = !can_connect();
    return done ? Status() : share_id();
  }
  settle();
  done = true;
  return {};
}

// What is not received any more nobody shall write to.
CclJoining::~CclJoining() {
  if (id_request_ != 0 && wire_) wire_->cancel(id_request_);
}

Status CclJoining::share_id() {
  step_ = Step::id;
  if (!wire_) {
    ids_.resize(records_.size());
    return Status::from_host(args_.host.issue_allgather(&id_, ids_.data(), sizeof id_, request_));
  }
  if (args_.rank == 0) return send_id();
  const int parent = args_.rank & (args_.rank - 1);
  return wire_->receive(parent, kJoinTag, &id_, sizeof id_, id_request_);
}

// To the ranks whose numbers have one more of the digits below this one's lowest.
Status CclJoining::send_id() {
  const int size = args_.exchange->size;
  const int lowest = args_.rank == 0 ? size : args_.rank & -args_.rank;
  for (int digit = 1; digit < lowest && args_.rank + digit < size; digit *= 2)
    ACCORD_TRY(
        wire_->send(args_.rank + digit, kJoinTag, &id_, sizeof id_, sent_ids_.emplace_back()));
  return {};
}

Status CclJoining::advance_id(core::HostPort& port, bool& arrived) {
  if (!wire_) {
    ACCORD_TRY(port.test(request_, arrived));
    if (arrived) id_ = ids_[0];
    return {};
  }
  core::Completion completion;
  if (id_request_ != 0) {
    core::HostRequest request = id_request_;
    ACCORD_TRY(wire_->test(request, arrived, completion));
    id_request_ = arrived ? 0 : request;
    if (!arrived) return {};
    ACCORD_TRY(send_id());
  }
  for (arrived = true; !sent_ids_.empty() && arrived;) {
    ACCORD_TRY(wire_->test(sent_ids_.back(), arrived, completion));
    if (arrived) sent_ids_.pop_back();
  }
  return {};
}

void CclJoining::enter_turn() {
  group_.number = std::hash<std::string_view>{}({id_.bytes, sizeof id_}) | 1;
  turn_ = group_.make_turn(CclTurn::Company::possible);
  turn_->enter();
  step_ = Step::turn;
}

Status CclJoining::join_mailboxes(core::HostPort& port, bool& done) {
  Joining& joining = of_node_ ? *of_node_ : mailboxes_;
  bool joined = false;
  ACCORD_TRY(joining.advance(port, joined));
  if (!joined) return {};
  done = group_.is_to_share() || !group_.node.group;
  if (!done && of_node_) group_.connect_nodes(wire_, args_.rank, args_.exchange->size);
  if (!done) return tell();
  if (group_.node.group) group_.share();
  if (group_.node.declined) decline_for_node();
  return {};
}

void CclJoining::decline_for_node() {
  decline(fmt::format("{}: {}", group_.library.name(), group_.node.why_declined));
  if (args_.rank == 0) warn_once(group_.why_declined);
}

// What has been found is only where they are.
Status CclJoining::join_across_nodes() {
  const unsigned early_attempts = group_.node.early_attempts;
  placement_ = std::exchange(group_.node, {}).placement;
  group_.node.early_attempts = early_attempts;
  step_ = Step::wire;
  wire_meeting_.emplace(args_.host.issue_wire, group_.node, wire_);
  return wire_meeting_->begin();
}

Status CclJoining::tell() {
  own_ = make_record(record_);
  record_.ok = own_.ok() ? 1 : 0;
  step_ = Step::records;
  return Status::from_host(
      args_.host.issue_allgather(&record_, records_.data(), sizeof record_, request_));
}

Status CclJoining::make_record(CclRecord& record) {
  ccl::Library& library = group_.library;
  device::DeviceRuntime& runtime = group_.mailboxes().runtime();
  if (!library.takes(runtime.name()))
    return {StatusCode::unsupported, fmt::format("{}: a library for {}, not for {}", library.name(),
                                                 library.runtime(), runtime.name())};
  ACCORD_TRY(library.open());
  const accord_ccl_description& description = library.description();
  record.version = description.version;
  record.found = std::hash<std::string_view>{}(description.found);
  record.device = runtime.kernel_place(group_.mailboxes().device()).device;
  return args_.rank == 0 ? library.make_id(id_) : Status();
}

// Where it cannot, the first rank that knows why says so: all may lack the library.
bool CclJoining::can_connect() {
  const Status accepted = accept(records_);
  if (accepted.ok()) return true;
  const auto failed = std::ranges::find(records_, 0, &CclRecord::ok);
  const auto speaker = failed == records_.end() ? 0 : failed - records_.begin();
  const std::string why =
      own_.ok() ? fmt::format("{}: {}", group_.library.name(), accepted.message()) : own_.message();
  if (speaker == args_.rank) warn_once(why);
  decline(why);
  return false;
}

Status CclJoining::wait_for_turn() {
  if (turn_->all_entered() && turn_->comes()) {
    connect();
    turn_->started();
    return {};
  }
  return look_after_peers();
}

// Who sees that another one has failed votes, as that one does: it is no error of a call here. So
// that is asked last, since a peer may fail between two looks.
Status CclJoining::look_after_peers() {
  const Status peers = group_.check_peers();
  if (group_.has_failed_peer()) return vote({StatusCode::unsupported, reason::kPeerDeclined});
  return peers;
}

// Owns all that it works on, so that it can be left behind.
void CclJoining::connect() {
  connection_ = std::make_shared<Connection>();
  const auto connect = [connection = connection_, library = &group_.library, id = id_,
                        rank = args_.rank, size = args_.exchange->size,
                        runtime = &group_.mailboxes().runtime(),
                        device = group_.mailboxes().device()] {
    connection->status = runtime->make_stream(device, connection->stream);
    if (connection->status.ok())
      connection->status = runtime->run_on(
          device, [&] { return library->join(id, rank, size, connection->communicator); });
    connection->done.store(true, std::memory_order_release);
  };
  step_ = Step::connecting;
  try {
    std::thread(connect).detach();
  } catch (const std::system_error& error) {
    connection_->status = {StatusCode::no_memory, error.what()};
    connection_->done.store(true, std::memory_order_release);
  }
}

Status CclJoining::look_after_connection() {
  if (connection_->done.load(std::memory_order_acquire)) {
    if (!connection_->status.ok()) {
      warn_once(connection_->status.message());
      group_.say_failed();
    }
    return vote(connection_->status);
  }
  return look_after_peers();
}

Status CclJoining::vote(const Status& mine) {
  if (!mine.ok() && !group_.declined) decline(mine.message());
  mine_ = core::Vote::cast(args_.key, mine.ok() ? core::Ballot::neutral : core::Ballot::host);
  step_ = Step::voting;
  return Status::from_host(args_.host.issue_vote(mine_, all_, request_));
}

void CclJoining::settle() {
  turn_.reset();
  if (all_.any_host()) {
    if (connection_ && connection_->done.load(std::memory_order_acquire)) {
      group_.communicator = std::move(connection_->communicator);
      if (group_.communicator) group_.give_up();
      group_.communicator.reset();
    }
    if (!group_.declined)
      decline(fmt::format("{}: {}", group_.library.name(), reason::kPeerDeclined));
    return;
  }
  group_.communicator = std::move(connection_->communicator);
  group_.stream = std::move(connection_->stream);
  group_.allow_replays();
}

void CclJoining::decline(const std::string& why) {
  group_.declined = true;
  group_.why_declined = why;
  log::info("no communicator: {}", why);
}

}  // namespace accord::coll
