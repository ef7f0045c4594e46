// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/engine.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "core/blocking_calls.h"
#include "device/own_memory.h"
#include "node/group.h"
#include "node/housekeeping.h"

namespace accord::core {
namespace {

// Holds the engine's lock, taken through the port. While it waits, others make no new pass: a
// thread that polls releases the lock for moments only and would take it again before any waiter
// wakes.
class Locked {
 public:
  Locked(HostPort& port, std::recursive_mutex& mutex, std::atomic<int>& waiting) : mutex_(mutex) {
    waiting.fetch_add(1);
    port.lock(mutex_);
    waiting.fetch_sub(1);
  }
  ~Locked() { mutex_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  std::recursive_mutex& mutex_;
};

thread_local bool in_step = false;

// How often the progress thread looks after what stands while the program is in no MPI call.
constexpr std::chrono::seconds kStandingLook{1};

// The host MPI calls progress_in_blocking_call, from as many blocking calls of this thread.
std::atomic<bool> host_calls{false};
thread_local int blocking_calls = 0;

}  // namespace

void expect_calls_of_host() noexcept { host_calls.store(true, std::memory_order_relaxed); }

// What it calls of the host MPI meanwhile are no blocking calls.
void progress_in_blocking_call(Engine& engine) noexcept {
  if (blocking_calls == 0 || engine.idle()) return;
  const int outer = std::exchange(blocking_calls, 0);
  engine.progress();
  blocking_calls = outer;
}

bool Engine::is_in_step() noexcept { return in_step; }

Engine::~Engine() { stop_thread(); }

void Engine::enter(std::shared_ptr<Operation> operation, std::shared_ptr<CommQueue> queue) {
  Locked locked(port_, mutex_, waiting_);
  operation->phase_.store(Operation::Phase::queued, std::memory_order_release);
  operation->queue_ = std::move(queue);
  if (operation->queue_) operation->queue_->waiting.push_back(operation.get());
  if (operation->queue_ && !std::exchange(operation->queue_->is_known, true)) {
    queues_.push_back(operation->queue_);
    has_queues_.store(true, std::memory_order_relaxed);
  }
  active_.push_back(operation);
  // Counted before blocked_ is read, as enter_blocking counts itself before it reads this: one of
  // the two sees the other.
  (operation->is_awaited_ ? active_count_ : unawaited_count_).fetch_add(1);
  if (operation->is_standing_) standing_count_.fetch_add(1);
}

void Engine::submit(std::shared_ptr<Operation> operation, std::shared_ptr<CommQueue> queue) {
  enter(std::move(operation), std::move(queue));
  progress();
  if (threads_allowed_ && (blocked_.load() > 0 || standing_count_.load() > 0)) wake_thread();
}

void Engine::add(std::shared_ptr<Operation> operation) {
  enter(std::move(operation), nullptr);
  if (threads_allowed_ && blocked_.load() > 0) wake_thread();
}

void Engine::submit_unawaited(std::shared_ptr<Operation> operation) {
  operation->is_awaited_ = false;
  enter(std::move(operation), nullptr);
}

Status Engine::promise(Operation& operation, HostRequest& request) {
  ACCORD_TRY(port_.grequest_start(operation.request_));
  operation.has_request_ = true;
  request = operation.request_;
  return {};
}

Status Engine::submit(std::shared_ptr<Operation> operation, std::shared_ptr<CommQueue> queue,
                      HostRequest& request) {
  ACCORD_TRY(promise(*operation, request));
  submit(std::move(operation), std::move(queue));
  return {};
}

Operation::Phase Engine::step(Operation& operation) try {
  return operation.advance(port_);
} catch (...) {
  if (!thrown_) thrown_ = std::current_exception();
  operation.abandon();
  operation.status_ = Status(StatusCode::invalid_argument,
                             "a call of the host MPI has failed, and the program's error handler "
                             "has thrown an exception");
  return Operation::Phase::done;
}

void Engine::advance(Operation& operation) {
  CommQueue* queue = operation.queue_.get();
  Operation::Phase phase = operation.phase();
  if (phase == Operation::Phase::queued && queue != nullptr && queue->waiting.front() != &operation)
    return;
  const Operation::Phase before = phase;
  const int placeholder = operation.placeholder_;  // once it is done, its owner may call hold
  const stages::Active active(operation.story_);
  phase = step(operation);
  if (phase == Operation::Phase::done && operation.story_) operation.story_->stop();
  if (before == Operation::Phase::queued && phase != Operation::Phase::queued && queue != nullptr) {
    queue->waiting.pop_front();
  }
  operation.phase_.store(phase, std::memory_order_release);
  if (phase == Operation::Phase::done && operation.has_request_) {
    port_.grequest_complete(operation.request_);
  }
  if (phase == Operation::Phase::done && placeholder != Operation::kNoPlaceholder) {
    port_.placeholder_complete(placeholder);
  }
}

void Engine::progress() {
  if (idle() && unawaited_count_.load() == 0) {
    node::keep_house();
    return;
  }
  if (waiting_.load() > 0) return;
  if (!mutex_.try_lock()) return;  // whoever holds it does what we would do
  const std::unique_lock<std::recursive_mutex> locked(mutex_, std::adopt_lock);
  if (in_progress_) return;
  in_progress_ = true;
  in_step = true;
  for (std::size_t i = 0; i < active_.size(); ++i) {  // by index: a callback may append
    const std::shared_ptr<Operation> operation = active_[i];
    advance(*operation);
  }
  const auto is_done = [](const auto& operation) {
    return operation->phase() == Operation::Phase::done;
  };
  const auto awaited =
      static_cast<std::size_t>(std::ranges::count_if(active_, [&](const auto& operation) {
        return is_done(operation) && operation->is_awaited_;
      }));
  const auto standing =
      static_cast<std::size_t>(std::ranges::count_if(active_, [&](const auto& operation) {
        return is_done(operation) && operation->is_standing_;
      }));
  const std::size_t unawaited = std::erase_if(active_, is_done) - awaited;
  in_progress_ = false;
  in_step = false;
  if (standing > 0) standing_count_.fetch_sub(standing);
  if (awaited > 0) active_count_.fetch_sub(awaited);
  if (unawaited > 0) unawaited_count_.fetch_sub(unawaited);
  if (standing_count_.load() != 0 && has_nothing_under_way()) node::keep_house();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Engine::Waiting::progress() noexcept try { engine_.progress(); } catch (...) {
  if (!thrown_) thrown_ = std::current_exception();
}

void Engine::Waiting::end() const {
  if (thrown_) std::rethrow_exception(thrown_);
}

bool Engine::busy(const CommQueue& queue) {
  if (idle()) return false;
  Locked locked(port_, mutex_, waiting_);
  return !queue.waiting.empty();
}

namespace {

// Of the groups that have memory, one that all ranks of the communicator have.
node::Group* group_of(const CommQueue& queue) {
  const auto& group =
      queue.team.regions.group ? queue.team.regions.group : queue.team.inboxes.group;
  return group.get();
}

// All ranks do so between the same two calls, and join again when calls ask for it.
void forget_groups(CommQueue& queue) {
  for (NodeGroup* group : {&queue.team.regions, &queue.team.inboxes}) {
    group->group.reset();
    group->asked_bytes = 0;
  }
  queue.modes.clear();
  queue.modes.rest(false);
}

void wake(CommQueue& queue) {
  if (!queue.modes.rests()) return;
  queue.modes.rest(false);
  node::Group* const group = group_of(queue);
  if (group != nullptr && !group->wake(queue.modes.calls())) forget_groups(queue);
}

}  // namespace

// A rank that has made no call for a while says so, and takes it back when it makes one; once all
// have said so after as many calls their memory goes.
void Engine::rest(CommQueue& queue, std::chrono::steady_clock::time_point now) {
  node::Group* const group = group_of(queue);
  if (group == nullptr || queue.team.regions.placement.nodes() > 1) return;
  const std::uint64_t calls = queue.modes.calls();
  if (queue.calls_seen != calls || queue.seen_at == decltype(queue.seen_at){}) {
    queue.calls_seen = calls;
    queue.seen_at = now;
  }
  if (now - queue.seen_at < node::idle_time()) return;
  const bool wants =
      device::own_memory.bytes.load() > node::idle_device_bytes() || group->someone_rests(calls);
  if (!queue.modes.rests() && wants) queue.modes.rest(group->rest(calls));
  if (queue.modes.rests() && group->all_rest(calls)) forget_groups(queue);
}

void Engine::rest() {
  constexpr unsigned kCallsPerTime = 8;  // the clock takes longer than the rest
  static thread_local unsigned calls = 0;
  if (!rest_allowed_ || ++calls % kCallsPerTime != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_rest_ || !mutex_.try_lock()) return;
  const std::unique_lock<std::recursive_mutex> locked(mutex_, std::adopt_lock);
  if (in_progress_ || !idle()) return;
  next_rest_ = now + node::idle_time() / 8;
  std::erase_if(queues_, [](const auto& queue) { return queue.expired(); });
  for (const auto& known : queues_)
    if (const auto queue = known.lock()) rest(*queue, now);
}

// Where nothing of ours is under way: to free memory may wait for kernels that wait for this rank.
void Engine::look_around() {
  if (!has_nothing_under_way()) return;
  node::keep_house();
  if (has_queues_.load(std::memory_order_relaxed)) rest();
}

Turn Engine::next_turn(CommQueue& queue, const Key& key, ModeTable::Before before) {
  Locked locked(port_, mutex_, waiting_);
  wake(queue);
  return queue.modes.next(key, before);
}

void Engine::enter_blocking() {
  look_around();
  if (!threads_allowed_) {
    if (host_calls.load(std::memory_order_relaxed)) ++blocking_calls;
    return;
  }
  blocked_.fetch_add(1);
  if (!idle()) wake_thread();
}

void Engine::leave_blocking() noexcept {
  if (threads_allowed_) blocked_.fetch_sub(1);
  if (host_calls.load(std::memory_order_relaxed) && blocking_calls > 0) --blocking_calls;
  look_around();
}

void Engine::wake_thread() {
  if (port_.progress_elsewhere()) return;
  const std::lock_guard<std::mutex> locked(thread_mutex_);
  if (!thread_.joinable() && !thread_stop_) {
    const Status started = start_thread(thread_, [this] { run_thread(); });
    static bool is_told = false;
    if (!started.ok() && !std::exchange(is_told, true))
      log::warn("nothing makes progress while calls block: {}", started.message());
  }
  thread_wake_.notify_one();
}

void Engine::run_thread() {
  std::unique_lock<std::mutex> locked(thread_mutex_);
  while (!thread_stop_) {
    if (idle() || (blocked_.load() == 0 && standing_count_.load() == 0)) {
      thread_wake_.wait(locked);
      continue;
    }
    // What stands serves peers, who ask now and then whether this process lives.
    if (blocked_.load() == 0 &&
        thread_wake_.wait_for(locked, kStandingLook) == std::cv_status::no_timeout)
      continue;
    locked.unlock();
    try {
      progress();
    } catch (...) {  // nobody is above this thread; the operation's own call tells
    }
    port_.pause();
    locked.lock();
  }
}

void Engine::stop_thread() {
  {
    const std::lock_guard<std::mutex> locked(thread_mutex_);
    thread_stop_ = true;
    thread_wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace accord::core
