// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/run/collective_operation.h"

#include <algorithm>
#include <utility>

#include "coll/library/exchange.h"
#include "coll/select/selection.h"

namespace accord::coll {
namespace {

// Chunks in flight: one copied in, two in the host MPI, one copied out.
constexpr std::size_t kSlots = 4;

// That a vote has decided for.
const Algorithm& algorithm_of(const core::VoteResult& result) {
  return result.known && result.algorithm != nullptr ? *result.algorithm : algorithms::staged;
}

}  // namespace

// A library's calls go by its name.
const char* CollectiveOperation::path_of(const Algorithm& algorithm) const {
  return algorithm.variants.empty() ? call_.args->ways.library->name() : algorithm.name;
}

CollectiveOperation::CollectiveOperation(CollectiveCall call, std::optional<core::Turn> turn,
                                         std::shared_ptr<core::CommQueue> queue, Form form,
                                         std::shared_ptr<core::CommQueue> comm)
    : call_(std::move(call)),
      turn_(std::move(turn)),
      queue_(std::move(queue)),
      comm_(comm ? std::move(comm) : queue_),
      form_(form) {
  story_ = call_.story;
}

// The vote was that of the initialisation. An address may be that of other memory by now.
void CollectiveOperation::renew() {
  stage_ = Stage::begin;
  turn_->votes = false;
  status_ = {};
  exchange_.reset();
  for (core::CallEnd* end : {&call_.args->in, &call_.args->out}) {
    if (end->on_device && end->runtime != nullptr)
      (void)end->runtime->classify(end->user, end->memory);
  }
}

core::Operation::Phase CollectiveOperation::advance(core::HostPort& port) {
  bool pending = false;
  if (stage_ == Stage::stopping) return stop(port, {});
  if (waits_for_peers() && patience_.is_over() && is_in_vain() && has_parted())
    return stop(port, {});
  if (stage_ == Stage::begin) {
    if (Status status = begin(); !status.ok()) return stop(port, std::move(status));
  }
  while (stage_ == Stage::voting || stage_ == Stage::joining || stage_ == Stage::agreeing) {
    if (Status status = agree(port, pending); !status.ok()) return stop(port, std::move(status));
    if (pending) return Phase::queued;
  }
  if (left_to_waiter() != nullptr) {
    story_.reset();  // it goes on with the waiter
    return Phase::done;
  }
  if (stage_ == Stage::decided) {
    story_.reset();
    call_.story.reset();
    return Phase::done;
  }
  if (stage_ == Stage::whole || stage_ == Stage::whole_in_host) {
    if (Status status = whole(port, pending); !status.ok()) return stop(port, std::move(status));
    if (pending) return Phase::issued;
    keep_first(status_, difference_.status);
    return Phase::done;
  }
  if (stage_ == Stage::exchange) {
    bool done = false;
    Status status = exchange_->advance(done);
    if (!status.ok() && !done) return stop(port, std::move(status));
    keep_first(status_, std::move(status));
    if (done) return finish_exchange();
    port.poke();
    return Phase::queued;
  }
  if (Status status = move_slots(port); !status.ok()) return stop(port, std::move(status));
  if (finished_ == chunks_) return status_.ok() ? finish() : stop(port, {});
  return next_issue_ == chunks_ ? Phase::issued : Phase::queued;
}

// Which way it went may have been known only on the way.
core::Operation::Phase CollectiveOperation::finish_exchange() {
  if (const char* path = exchange_->path(); path != nullptr) {
    path_ = path;
    if (story_) story_->took(path_, coll::why(call_, turn_));
  }
  return finish();
}

core::Operation::Phase CollectiveOperation::finish() {
  stages::enter(stages::Stage::finish);
  if (call_.args->out.shadowed)
    keep_first(status_, status_.ok() ? call_.recv.copy_out() : copy_out_arrived());
  return Phase::done;
}

// What lies in the shadow of a block that did not come is none of the user's.
Status CollectiveOperation::copy_out_arrived() {
  std::vector<core::Segment> arrived;
  const core::CallEnd& out = call_.args->out;
  for (std::size_t i = 0; i < out.blocks.size(); ++i) {
    if (out.blocks[i].count != 0 && exchange_->has_block_of(out.peer_of(i)))
      arrived.push_back(out.blocks[i]);
  }
  return call_.recv.copy_out_only(arrived);
}

bool CollectiveOperation::waits_for_peers() const noexcept {
  return stage_ == Stage::voting || stage_ == Stage::joining || stage_ == Stage::chunks ||
         stage_ == Stage::exchange || stage_ == Stage::whole_in_host;
}

Status CollectiveOperation::begin() {
  ACCORD_TRY(comm_->watch.refusal());
  if (turn_ && turn_->votes) {
    stages::enter(stages::Stage::vote);
    vote_ = comm_->watch.begin_vote();
    mine_ = core::Vote::cast(call_.args->key, call_.args->ballot);
    ACCORD_TRY(Status::from_host(call_.args->host.issue_vote(mine_, all_, request_)));
    stage_ = Stage::voting;
    return {};
  }
  // The deciding vote was issued and awaited by an earlier operation of this queue, hence is known
  // here.
  return start_as(turn_ ? algorithm_of(*turn_->result) : algorithms::staged);
}

Status CollectiveOperation::start_as(const Algorithm& algorithm) {
  path_ = path_of(algorithm);
  if (story_) story_->took(path_, coll::why(call_, turn_));
  if (&algorithm == &algorithms::staged) {
    stage_ = Stage::whole;
    return {};
  }
  if (&algorithm == &algorithms::chunks) {
    ACCORD_TRY(open_ends(algorithm));
    return open_slots();
  }
  stage_ = Stage::exchange;
  for (const core::NodeGroup* group : {&queue_->team.regions, &queue_->team.nodes.local})
    if (group->group) group->group->offers().tend();
  // First: it takes this call's numbers, and after an error tells the peers.
  const bool is_alone = form_ == Form::blocking && !call_.args->in_company;
  exchange_ = algorithm.make(queue_->team, *call_.args, {.is_alone = is_alone});
  return open_ends(algorithm);
}

// One step of what the ranks decide together before any data moves.
Status CollectiveOperation::agree(core::HostPort& port, bool& pending) {
  bool done = false;
  if (stage_ == Stage::agreeing) {
    port.poke();
    ACCORD_TRY(comm_->watch.is_ended(vote_, patience_.is_over(), done));
    pending = !done;
    return done ? proceed() : Status();
  }
  if (stage_ == Stage::joining) {
    ACCORD_TRY(joining_->advance(port, done));
  } else {
    ACCORD_TRY(port.test(request_, done));
  }
  pending = !done;
  if (pending) return {};
  if (stage_ == Stage::voting) return count_votes();
  if (!joining_->settled()) bootstrap_->stop_joining();
  return decide();
}

Status CollectiveOperation::count_votes() {
  const auto owner = form_ == Form::persistent ? Bootstrap::Owner::request : Bootstrap::Owner::call;
  bootstrap_.emplace(queue_->team, *call_.args, owner);
  if (!all_.agreed()) {
    queue_->watch.break_up();
    return {StatusCode::mismatch,
            "the ranks of this communicator made different collective calls (kind, operation, type "
            "or size)"};
  }
  if (bootstrap_->by_pairs()) keep_long_pairs();
  return decide();
}

// Where long pairs have come they come again, and a call of short ones takes about as long by the
// same way. Of votes that see these alone, in turn, none would ever say so.
void CollectiveOperation::keep_long_pairs() {
  core::VoteResult& result = *turn_->result;
  const bool had = turn_->before && turn_->before->known && turn_->before->had_long_pairs;
  const bool has = all_.any_device() && !bootstrap_->are_short(all_);
  result.had_long_pairs = had || has;
  if (had && all_.any_device()) all_.count_as_long();
}

// Of pairs that are short. With a root the ranks need not wait for each other but for the vote,
// which then takes as long as the call.
std::uint64_t CollectiveOperation::calls_to_next_vote() const {
  const node::Kind kind = call_.args->exchange->kind;
  const bool has_root = kind == node::Kind::gatherv || kind == node::Kind::scatterv;
  return has_root ? core::ModeTable::kShortVotePeriodMax : 5;
}

// What the call goes by, for which its ranks may have to join something first.
Status CollectiveOperation::decide() {
  const bool on_device = all_.any_device();
  if (on_device) joining_ = bootstrap_->next(all_, turn_->number);
  if (on_device && joining_ != nullptr) {
    stages::enter(stages::Stage::join);
    stage_ = Stage::joining;
    return joining_->begin();
  }
  const Algorithm& algorithm = on_device ? select(bootstrap_->situation(all_)) : algorithms::staged;
  core::VoteResult& result = *turn_->result;
  result.algorithm = &algorithm == &algorithms::staged ? nullptr : &algorithm;
  result.why = !on_device             ? bootstrap_->why_no_device()
               : call_.args->exchange ? bootstrap_->why(algorithm, all_)
                                      : call_.why_no_exchange;
  const bool may_come = on_device && result.algorithm == nullptr && bootstrap_->by_pairs();
  result.votes_again_after = may_come && bootstrap_->are_short(all_) ? calls_to_next_vote() : 0;
  result.known = true;
  if (on_device && bootstrap_->wants_library() && &algorithm != &algorithms::library)
    CclExchange::count_other_way();
  comm_->watch.end_vote(vote_);
  stage_ = Stage::agreeing;
  return {};
}

// All ranks know how.
Status CollectiveOperation::proceed() {
  const Algorithm& algorithm = algorithm_of(*turn_->result);
  if (form_ == Form::persistent && turn_->result->algorithm != nullptr) {
    path_ = path_of(algorithm);
    if (story_) story_->took(path_, coll::why(call_, turn_));
    stage_ = Stage::decided;
    comm_ = queue_;  // its rounds are no matter of the communicator's, which need not live as long
    return {};
  }
  return start_as(algorithm);
}

Status CollectiveOperation::whole(core::HostPort& port, bool& pending) {
  if (stage_ == Stage::whole) {
    stages::enter(stages::Stage::copy_in);
    ACCORD_TRY(call_.open());
    ACCORD_TRY(call_.copy_in());
    stages::enter(stages::Stage::host_mpi);
    ACCORD_TRY(Status::from_host(call_.issue(call_.send_host(), call_.recv.host(), request_)));
    stage_ = Stage::whole_in_host;
  }
  bool done = false;
  ACCORD_TRY(port.test(request_, done));
  pending = !done;
  if (pending) return {};
  return call_.complete();
}

std::size_t CollectiveOperation::chunk_first_bytes(std::size_t chunk) const {
  return chunk * call_.args->chunk_bytes;
}

std::size_t CollectiveOperation::chunk_length_bytes(std::size_t chunk) const {
  return std::min(call_.args->chunk_bytes, call_.args->size_bytes - chunk_first_bytes(chunk));
}

Status CollectiveOperation::open_ends(const Algorithm& algorithm) {
  const node::Group* const group =
      algorithm.copier != nullptr ? algorithm.copier(queue_->team, *call_.args) : nullptr;
  for (core::CallEnd* end : {&call_.args->in, &call_.args->out}) {
    // A runtime copies to and from its own memory only.
    const bool foreign =
        group != nullptr && end->runtime != nullptr && end->runtime != &group->runtime();
    if (foreign) {
      end->shadowed = true;
      end->runtime = nullptr;
    }
    if (!end->shadowed) continue;
    stages::enter(stages::Stage::copy_in);
    const bool is_send = end->of_send && !call_.sends_from_recv;
    core::StagedBuffer& buffer = is_send ? call_.send : call_.recv;
    ACCORD_TRY(buffer.open(is_send ? &call_.recv : &call_.send));
    ACCORD_TRY(buffer.copy_in());
    end->user = buffer.host();
  }
  return {};
}

Status CollectiveOperation::open_slots() {
  CollArgs& args = *call_.args;
  stage_ = Stage::chunks;
  chunks_ = (args.size_bytes + args.chunk_bytes - 1) / args.chunk_bytes;
  slots_.resize(std::min(kSlots, chunks_));
  device::DeviceRuntime* runtime = args.in.runtime ? args.in.runtime : args.out.runtime;
  if (args.in.plain() && args.out.plain()) return {};
  for (Slot& slot : slots_) {
    // No device here, but a host buffer with gaps: plain memory does.
    ACCORD_TRY(runtime != nullptr
                   ? device::staging_pool().acquire(runtime, chunk_length_bytes(0), slot.shadow)
                   : device::staging_pool().acquire_sparse(chunk_length_bytes(0), slot.shadow));
  }
  return {};
}

Status CollectiveOperation::move_slots(core::HostPort& port) {
  for (bool moved = true; moved;) {
    moved = false;
    for (Slot& slot : slots_) ACCORD_TRY(move(slot, port, moved));
  }
  if (stages::listening) stages::enter(stage_of_chunks());
  return {};
}

Status CollectiveOperation::move(Slot& slot, core::HostPort& port, bool& moved) {
  using State = Slot::State;
  const State before = slot.state;
  bool done = false;
  if (slot.state == State::empty && next_fill_ < chunks_) {
    slot.chunk = next_fill_++;
    ACCORD_TRY(fill(slot));
    slot.state = State::copying_in;
  }
  if (slot.state == State::copying_in) {
    ACCORD_TRY(call_.args->in.copied(slot.ticket, done));
    if (done) slot.state = State::ready;
  }
  if (slot.state == State::ready && slot.chunk == next_issue_) {
    ACCORD_TRY(issue(slot));
    ++next_issue_;
    slot.state = State::in_host;
  }
  if (slot.state == State::in_host) {
    done = false;
    if (Status tested = port.test(slot.request, done); !tested.ok()) {
      if (has_parted()) return tested;
      give_up(slot, std::move(tested));
    } else if (done) {
      ACCORD_TRY(drain(slot));
      slot.state = State::copying_out;
    }
  }
  if (slot.state == State::copying_out) {
    ACCORD_TRY(call_.args->out.copied(slot.ticket, done));
    if (done) {
      slot.state = State::empty;
      ++finished_;
    }
  }
  moved = moved || slot.state != before;
  return {};
}

// The host MPI has failed to move a chunk. Peers for whom it has not wait for the others.
void CollectiveOperation::give_up(Slot& slot, Status status) {
  keep_first(status_, std::move(status));
  slot.state = Slot::State::empty;
  ++finished_;
}

stages::Stage CollectiveOperation::stage_of_chunks() const {
  const auto any = [this](Slot::State state) {
    return std::ranges::any_of(slots_, [=](const Slot& slot) { return slot.state == state; });
  };
  if (any(Slot::State::in_host)) return stages::Stage::host_mpi;
  return any(Slot::State::copying_in) ? stages::Stage::copy_in : stages::Stage::copy_out;
}

Status CollectiveOperation::fill(Slot& slot) {
  stages::enter(stages::Stage::copy_in);
  const core::CallEnd& in = call_.args->in;
  if (!in.present() || in.plain()) return {};
  return in.copy(core::CallEnd::Direction::pack, chunk_first_bytes(slot.chunk),
                 chunk_length_bytes(slot.chunk), slot.shadow.data(), slot.ticket);
}

Status CollectiveOperation::issue(Slot& slot) {
  stages::enter(stages::Stage::host_mpi);
  const CollArgs& args = *call_.args;
  return Status::from_host(args.host.issue_chunk(chunk_pointer(args.in, slot),
                                                 chunk_pointer(args.out, slot),
                                                 chunk_length_bytes(slot.chunk), slot.request));
}

Status CollectiveOperation::drain(Slot& slot) {
  stages::enter(stages::Stage::copy_out);
  const core::CallEnd& out = call_.args->out;
  if (!out.present() || out.plain()) return {};
  return out.copy(core::CallEnd::Direction::unpack, chunk_first_bytes(slot.chunk),
                  chunk_length_bytes(slot.chunk), slot.shadow.data(), slot.ticket);
}

// Where the host MPI finds or leaves this chunk. Both ends of a rank share one shadow: the call
// then is in place.
void* CollectiveOperation::chunk_pointer(const core::CallEnd& end, const Slot& slot) const {
  if (!end.present()) return nullptr;
  return end.plain() ? end.address(chunk_first_bytes(slot.chunk)) : slot.shadow.data();
}

}  // namespace accord::coll
