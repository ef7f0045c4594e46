// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/run/collective.h"

#include <accord/accord.h>

#include <algorithm>
#include <utility>

#include "coll/library/exchange.h"
#include "coll/run/collective_operation.h"
#include "coll/tags.h"
#include "device/inbox.h"
#include "node/housekeeping.h"

namespace accord::coll {
namespace {

thread_local const char* g_last_path = "-";

// A host request whose completion leaves received bytes in the shadows of a call.
class TrackedCollective final : public core::Tracked {
 public:
  explicit TrackedCollective(CollectiveCall call) : call_(std::move(call)) {
    context = call_.context;
  }
  Status start() override { return call_.copy_in(); }
  Status finish(const core::Completion& completion) override {
    const stages::Active story(call_.story);
    return completion.failed ? Status() : call_.complete();
  }

 private:
  CollectiveCall call_;
};

// A generalized request: the operation has done everything, only its outcome is left to tell.
class TrackedOperation final : public core::Tracked {
 public:
  TrackedOperation(std::shared_ptr<core::Operation> operation, std::uint64_t context_bits)
      : operation_(std::move(operation)) {
    context = context_bits;
  }
  Status finish(const core::Completion&) override {
    operation_->tell();
    return operation_->status();
  }

 private:
  std::shared_ptr<core::Operation> operation_;
};

// A persistent request from device to device.
class TrackedRounds final : public core::Tracked {
 public:
  TrackedRounds(core::Engine& engine, std::shared_ptr<CollectiveOperation> operation,
                std::uint64_t context_bits)
      : engine_(engine), operation_(std::move(operation)) {
    context = context_bits;
    persistent = true;
    active = false;
  }
  ~TrackedRounds() override { engine_.let_go(*operation_); }
  TrackedRounds(const TrackedRounds&) = delete;
  TrackedRounds& operator=(const TrackedRounds&) = delete;

  Status start() override {
    if (active) return {StatusCode::invalid_argument, "MPI_Start of a request that is active"};
    return {};
  }
  // Not before: MPICH 4.0.2 never completes a receive from the process itself that is started when
  // its message is there already.
  void started() override {
    operation_->renew();
    engine_.submit(operation_, nullptr);
  }
  Status finish(const core::Completion&) override {
    set_last_path(operation_->path());
    return operation_->status();
  }

 private:
  core::Engine& engine_;
  std::shared_ptr<CollectiveOperation> operation_;
};

bool may_go_at_once(const Algorithm* algorithm, core::CommQueue& queue, const CollArgs& args) {
  return algorithm != nullptr && algorithm->goes_at_once != nullptr &&
         algorithm->goes_at_once(queue.team, args);
}

struct Choice {
  std::optional<core::Turn> turn;
  // Known here and now to be one host call on the whole buffers.
  bool whole() const { return !turn || (is_known() && turn->result->algorithm == nullptr); }
  // Known to be one that may be polled at once, and needs no shadows; else null.
  const Algorithm* at_once(core::CommQueue& queue, const CollectiveCall& call) const {
    if (!turn || !is_known() || call.args->in.shadowed || call.args->out.shadowed) return nullptr;
    const Algorithm* const voted = turn->result->algorithm;
    return may_go_at_once(voted, queue, *call.args) ? voted : nullptr;
  }

 private:
  bool is_known() const { return !turn->votes && turn->result->known; }
};

Choice choose(core::Engine& engine, core::CommQueue& queue, CollectiveCall& call,
              core::ModeTable::Before before) {
  using By = core::CallWatch::By;
  Choice choice;
  if (call.args && !queue.watch.is_broken())
    choice.turn = engine.next_turn(queue, call.args->key, before);
  if (call.mark) call.entry = queue.watch.begin(*call.mark, choice.whole() ? By::host : By::us);
  return choice;
}

// Where a library was asked for.
void count_other_way(const Choice& choice, const CollectiveCall& call) {
  if (!choice.turn || call.args->ways.library == nullptr) return;
  const core::VoteResult& voted = *choice.turn->result;
  if (voted.known && voted.algorithm != &algorithms::library &&
      call.args->ballot >= core::Ballot::device_near)
    CclExchange::count_other_way();
}

std::unique_ptr<Exchange> make_at_once(core::Engine& engine, core::CommQueue& queue,
                                       const Algorithm& algorithm, const CollArgs& args) {
  // Before an exchange reaches into the users' buffers.
  const auto& regions = queue.team.regions.group;
  if (regions && node::goes_by_pairs(args.exchange->kind)) regions->offers().tend();
  return algorithm.make(queue.team, args, {.is_alone = true, .is_idle = engine.idle()});
}

// What calls of several steps do each time costs too much of a short one.
void tend_now_and_then(core::CommQueue& queue) {
  constexpr unsigned kCallsPerTend = 64;
  if (queue.team.regions.group && ++queue.short_calls % kCallsPerTend == 0)
    queue.team.regions.group->offers().tend();
}

// A blocking call of few microseconds is not worth an operation. Nothing else is under way on its
// communicator, and no other thread may start anything there. Where the ranks turn out to make
// different calls, `found` says so.
Status run_exchange(core::Engine& engine, core::CommQueue& queue, Exchange& exchange,
                    const node::CallEntry& entry, core::CallWatch::Difference& found) {
  // As long as such a call usually takes, the host MPI can wait.
  constexpr unsigned kPollsAlone = 256;
  tend_now_and_then(queue);
  node::keep_house();
  Status status;
  core::Patience patience;
  unsigned polls = 0;
  const auto poll = [&](auto step) {
    engine.wait_until([&] {
      bool done = false;
      keep_first(status, step(done));
      if (!done && ++polls > kPollsAlone) engine.port().poke();
      return done;
    });
  };
  poll([&](bool& done) {
    const Status step = exchange.advance(done);
    if (!done && patience.is_over()) found = queue.watch.look(entry);
    done = done || !step.ok() || found.any();
    return step;
  });
  if (status.ok() && !found.any()) return {};
  explain(queue, found.status.ok() ? status : found.status);
  poll([&](bool& done) {
    exchange.stop(done);
    return Status();
  });
  if (!found.any()) found = queue.watch.look(entry);
  if (!found.any()) return status;
  if (found.has_left)
    queue.watch.leave(entry);
  else
    queue.watch.break_up();
  return found.status.ok() ? status : found.status;
}

}  // namespace

// A runtime copies to and from its own memory only.
bool copies_ends_of(const node::Group* group, const CollArgs& call) {
  const auto copies = [group](const core::CallEnd& end) {
    return group == nullptr || end.runtime == nullptr || end.runtime == &group->runtime();
  };
  return copies(call.in) && copies(call.out);
}

std::string why(const CollectiveCall& call, const std::optional<core::Turn>& turn) {
  if (!turn) return call.why_no_exchange;
  if (!turn->result->known) return reason::kVoteFailed;
  std::string words = turn->votes ? reason::kVotes : reason::kVoted;
  if (*call.args->asked_by != '\0') words += std::string(", ") + call.args->asked_by;
  if (!turn->result->why.empty()) words += ": " + turn->result->why;
  return words;
}

const char* last_path() noexcept { return g_last_path; }
void set_last_path(const char* path) noexcept { g_last_path = path; }

void explain(core::CommQueue& queue, const Status& status) noexcept {
  for (const core::NodeGroup* group :
       {&queue.team.regions, &queue.team.inboxes, &queue.team.nodes.local})
    if (group->group) group->group->explain(status);
  for (const auto& ccl : queue.team.libraries)
    if (ccl->node.group) ccl->mailboxes().explain(status);
}

const void* CollectiveCall::send_host() const noexcept {
  if (!sends_from_recv) return send.host();
  return core::at(recv.host(), static_cast<const std::byte*>(send.user()) -
                                   static_cast<const std::byte*>(recv.user()));
}

Status CollectiveCall::open() {
  ACCORD_TRY(recv.open());
  return sends_from_recv ? Status() : send.open(&recv);
}

Status CollectiveCall::copy_in() {
  if (!sends_from_recv) ACCORD_TRY(send.copy_in());
  return recv.copy_in();
}

Status CollectiveCall::complete() {
  if (conclude) {
    stages::enter(stages::Stage::reduce);
    ACCORD_TRY(Status::from_host(conclude(recv.host())));
  }
  stages::enter(stages::Stage::copy_out);
  return recv.copy_out();
}

namespace {

// Before one call of the host MPI on all ranks.
Status ready_for_host(core::CommQueue& queue, CollectiveCall& call) {
  stages::enter(stages::Stage::copy_in);
  Status ready = call.open();
  if (ready.ok()) ready = call.copy_in();
  if (!ready.ok()) queue.owed = call.mark;
  stages::enter(stages::Stage::host_mpi);
  return ready;
}

// Whether it is the one that this rank owes: then it is counted already.
bool is_owed(core::CommQueue& queue, const CollectiveCall& call) {
  const auto owed = std::exchange(queue.owed, std::nullopt);
  return owed.has_value() && owed == call.mark;
}

// One call of the host MPI, of the blocking form.
Status call_host(core::Engine& engine, core::CommQueue& queue, CollectiveCall& call) {
  ACCORD_TRY(ready_for_host(queue, call));
  {
    const core::Engine::BlockingRegion region(engine);
    ACCORD_TRY(Status::from_host(call.block(call.send_host(), call.recv.host())));
  }
  return call.complete();
}

// A call of several steps needs somebody who takes them while this rank blocks in the host MPI.
void make_one_step_without_progress(const core::Engine& engine, CollectiveCall& call) {
  if (engine.threads_allowed() || !call.args) return;
  call.args.reset();
  call.why_no_exchange = reason::kNoProgress;
}

// As much device memory as one call can use; equal on all ranks, as what it follows from.
void fit_memory_to_call(CollArgs& args) {
  constexpr std::size_t kRegionBytesMax = std::size_t{32} << 20;
  const node::Call& call = *args.exchange;
  const std::size_t used_bytes = node::goes_by_pairs(call.kind)
                                     ? kRegionBytesMax
                                     : node::Plan::slot_bytes_max(call) * node::Group::kSlots;
  args.region_bytes = std::min({args.region_bytes, kRegionBytesMax, used_bytes});
  // Whose rounds are short goes by the host MPI.
  if (node::goes_by_pairs(call.kind)) args.ways.lane_bytes = 0;
  const std::size_t units =
      (call.block_bytes + device::kInboxUnitBytes - 1) / device::kInboxUnitBytes;
  args.ways.lane_bytes = std::min(args.ways.lane_bytes, units * device::kInboxUnitBytes);
}

// The ranks decide which way all rounds of a persistent call go, and join the groups for it. A
// group serves calls in the order of their numbers, which starts of different requests do not have.
std::shared_ptr<CollectiveOperation> decide_on_rounds(core::Engine& engine,
                                                      const std::shared_ptr<core::CommQueue>& queue,
                                                      CollectiveCall call) {
  fit_memory_to_call(*call.args);
  call.args->ways.inbox_calls = 1;        // it is made to be repeated
  call.args->host.issue_chunk = nullptr;  // chunks would be matched in the order of the starts
  // What the ranks cannot do together they cannot do for one request.
  const auto own = std::make_shared<core::CommQueue>();
  for (auto group : {&core::Team::regions, &core::Team::inboxes}) {
    core::NodeGroup& copy = own->team.*group = queue->team.*group;
    copy.group.reset();
  }
  // But for the wire, of which each has a lane.
  own->team.nodes = {.local = queue->team.nodes.local, .wire = queue->team.nodes.wire};
  own->team.nodes.local.group.reset();
  own->team.nodes.lane = next_lane(queue->team.nodes);
  if (own->team.nodes.lane == 0) call.args->ways.leaders_max = 0;
  if (ccl::Library* const library = call.args->ways.library)
    own->team.libraries.push_back(
        std::make_shared<CclGroup>(*library, &ccl_group_of(queue->team, *library)));
  const core::Turn turn{.number = 1,
                        .votes = true,
                        .result = std::make_shared<core::VoteResult>(),
                        .before = nullptr};
  auto operation = std::make_shared<CollectiveOperation>(
      std::move(call), turn, own, CollectiveOperation::Form::persistent, queue);
  engine.submit(operation, queue);
  engine.wait(*operation);
  queue->team.nodes.wire = own->team.nodes.wire;
  if (queue->team.regions.placement.ranks() == 0)
    queue->team.regions.placement = own->team.regions.placement;
  return operation;
}

}  // namespace

std::optional<Status> run_again(core::Engine& engine, core::CommQueue& queue,
                                const CollArgs& args) {
  if (!engine.idle() || queue.watch.is_broken() || queue.owed) return std::nullopt;
  const auto voted = queue.modes.next_if(
      args.key, [&](const Algorithm* algorithm) { return may_go_at_once(algorithm, queue, args); });
  if (!voted) return std::nullopt;
  const auto entry = queue.watch.begin(core::CallMark::of(args.key), core::CallWatch::By::us);
  const auto exchange = make_at_once(engine, queue, **voted, args);
  set_last_path(exchange->path());
  core::CallWatch::Difference found;
  Status status = run_exchange(engine, queue, *exchange, entry, found);
  if (!found.by_host) return status;
  queue.watch.take_back();
  queue.difference = std::move(status);
  return std::nullopt;
}

Status run_collective(core::Engine& engine, const std::shared_ptr<core::CommQueue>& queue,
                      CollectiveCall& call, bool& repeatable) {
  // The blocking form of a collective does not match the non-blocking one, so which is issued must
  // not depend on anything that only this rank knows: neither on what else is active here, nor on
  // whether a vote has arrived yet. Once all earlier calls are issued, all their votes are known.
  const stages::Active active(call.story);
  stages::enter(stages::Stage::queue);
  engine.wait_until([&] { return !engine.busy(*queue); });
  ACCORD_TRY(queue->watch.refusal());
  if (is_owed(*queue, call)) return call_host(engine, *queue, call);
  const Choice choice = choose(engine, *queue, call, core::ModeTable::Before::known);
  count_other_way(choice, call);
  if (choice.whole()) {
    set_last_path("staged");
    if (call.story) call.story->took("staged", why(call, choice.turn));
    ACCORD_TRY(call_host(engine, *queue, call));
    return std::exchange(queue->difference, Status());
  }
  if (const Algorithm* const algorithm = choice.at_once(*queue, call)) {
    const auto exchange = make_at_once(engine, *queue, *algorithm, *call.args);
    const char* const path = exchange->path();
    set_last_path(path);
    if (call.story) call.story->took(path, why(call, choice.turn));
    repeatable = !node::goes_by_pairs(call.args->exchange->kind);
    core::CallWatch::Difference found;
    Status status = run_exchange(engine, *queue, *exchange, call.entry, found);
    if (!found.by_host) return status;
    ACCORD_TRY(call_host(engine, *queue, call));
    return status;
  }
  auto operation = std::make_shared<CollectiveOperation>(std::move(call), choice.turn, queue,
                                                         CollectiveOperation::Form::blocking);
  engine.submit(operation, queue);
  engine.wait(*operation);
  set_last_path(operation->path());
  ACCORD_TRY(operation->status());
  // Known to all ranks alike, by their votes.
  CollectiveCall* const left = operation->left_to_waiter();
  if (left == nullptr) return {};
  ACCORD_TRY(call_host(engine, *queue, *left));
  return operation->difference();
}

Status start_collective(core::Engine& engine, core::Requests& requests,
                        const std::shared_ptr<core::CommQueue>& queue, CollectiveCall call,
                        core::HostRequest& request) {
  make_one_step_without_progress(engine, call);
  const stages::Active active(call.story);
  ACCORD_TRY(queue->watch.refusal());
  const Choice choice = is_owed(*queue, call)
                            ? Choice()
                            : choose(engine, *queue, call, core::ModeTable::Before::under_way);
  // In this order: once the queue is not busy, nobody writes the votes any more.
  const bool busy = engine.busy(*queue);
  if (!busy) count_other_way(choice, call);
  if (busy || !choice.whole()) {
    const std::uint64_t context = call.context;
    auto operation = std::make_shared<CollectiveOperation>(std::move(call), choice.turn, queue,
                                                           CollectiveOperation::Form::nonblocking);
    set_last_path("queued");
    stages::enter(stages::Stage::queue);
    ACCORD_TRY(engine.submit(operation, queue, request));
    requests.track(request, std::make_shared<TrackedOperation>(std::move(operation), context));
    return {};
  }
  set_last_path("staged");
  if (call.story) call.story->took("staged", why(call, choice.turn));
  ACCORD_TRY(ready_for_host(*queue, call));
  ACCORD_TRY(Status::from_host(call.issue(call.send_host(), call.recv.host(), request)));
  // A request complete at once may be one handle that the host MPI gives out many times (MPICH
  // does): such a one is finished here and never enters the table.
  bool done = false;
  ACCORD_TRY(engine.port().peek(request, done));
  if (done) return call.complete();
  requests.track(request, std::make_shared<TrackedCollective>(std::move(call)));
  return {};
}

Status init_collective(core::Engine& engine, core::Requests& requests,
                       const std::shared_ptr<core::CommQueue>& queue, CollectiveCall call,
                       core::HostRequest& request) {
  // An initialisation is a collective call of its own, matched in order, and may wait for peers.
  // Its story ends with it.
  const stages::Story story = call.story;
  const stages::Active active(story);
  stages::enter(stages::Stage::queue);
  engine.wait_until([&] { return !engine.busy(*queue); });
  ACCORD_TRY(queue->watch.refusal());
  make_one_step_without_progress(engine, call);
  if (queue->watch.is_broken()) call.args.reset();
  if (call.args && call.args->exchange) {
    const std::uint64_t context = call.context;
    const auto operation = decide_on_rounds(engine, queue, std::move(call));
    set_last_path(operation->path());
    ACCORD_TRY(operation->status());
    CollectiveCall* const left = operation->left_to_waiter();
    if (left == nullptr) {
      ACCORD_TRY(engine.hold(*operation, request));
      requests.track(request, std::make_shared<TrackedRounds>(engine, operation, context));
      return {};
    }
    call = std::move(*left);
  } else {
    set_last_path("staged");
    if (story) story->took("staged", call.why_no_exchange);
  }
  call.story.reset();
  stages::enter(stages::Stage::host_mpi);
  ACCORD_TRY(call.open());
  {
    const core::Engine::BlockingRegion region(engine);
    ACCORD_TRY(Status::from_host(call.issue(call.send_host(), call.recv.host(), request)));
  }
  if (!call.send.is_staged() && !call.recv.is_staged() && !call.conclude) return {};
  auto work = std::make_shared<TrackedCollective>(std::move(call));
  work->persistent = true;
  work->active = false;
  requests.track(request, std::move(work));
  return {};
}

}  // namespace accord::coll

extern "C" const char* accord_last_path(void) { return accord::coll::last_path(); }
