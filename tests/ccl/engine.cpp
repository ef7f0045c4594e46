// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "engine.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "stream.h"

namespace accord::fake {
namespace {

// The communicators of this process. A job is what one that does not block is doing; all those of a
// group share it.
struct Registry {
  std::mutex mutex;
  std::map<Communicator*, std::shared_ptr<Communicator>> communicators;
  std::map<Communicator*, std::shared_ptr<std::jthread>> jobs;

  // A process that ends does not wait for its peers.
  ~Registry() {
    for (const auto& [handle, communicator] : communicators) communicator->aborted = true;
  }
};
Registry registry;

struct Group {
  int depth = 0;
  Outcome outcome = Outcome::success;
  std::vector<Posted> calls;
};
thread_local Group group;

void settle(Communicator& communicator, Outcome outcome) {
  if (outcome == Outcome::success) {
    communicator.state = outcome;
  } else {
    communicator.break_off(outcome);
  }
}

template <class Body>
Outcome in_background(const std::vector<Communicator*>& busy, Body body) {
  for (Communicator* communicator : busy) communicator->state = Outcome::in_progress;
  const std::lock_guard lock(registry.mutex);
  const auto job = std::make_shared<std::jthread>(std::move(body));
  for (Communicator* communicator : busy) registry.jobs[communicator] = job;
  return Outcome::in_progress;
}

Outcome run(const std::vector<Posted>& calls) {
  const Outcome outcome = exchange(calls);
  for (const Posted& posted : calls) settle(*posted.communicator, outcome);
  return outcome;
}

std::atomic<long> launches_begun = 0;

bool is_to_fail(const Communicator& first) {
  return ++launches_begun == first.faults.launch &&
         (first.faults.call_rank < 0 || first.faults.call_rank == first.rank);
}

// On the stream of the first; what becomes of it the communicators tell.
Outcome run_on_stream(std::vector<Posted> calls) {
  void* const stream = calls.front().call.stream;
  if (const auto& first = calls.front().communicator; is_to_fail(*first)) {
    enqueue(stream, [first] {
      while (!first->aborted) usleep(100);
    });
    return fail(Outcome::internal_error, "told to fail as it goes to the stream");
  }
  for (Posted& posted : calls) {
    posted.call.send = bytes_of(posted.call.send);
    posted.call.receive = bytes_of(posted.call.receive);
  }
  if (enqueue(stream, [calls = std::move(calls)] { (void)run(calls); })) return Outcome::success;
  return fail(Outcome::invalid_argument, "no stream of this device");
}

Outcome run_group(std::vector<Posted> calls) {
  if (calls.empty()) return Outcome::success;
  if (calls.front().call.stream != nullptr) return run_on_stream(std::move(calls));
  const Communicator& first = *calls.front().communicator;
  std::vector<Communicator*> busy;
  for (const Posted& posted : calls) {
    busy.push_back(posted.communicator.get());
    if (posted.communicator->mode != first.mode) {
      return fail(Outcome::invalid_argument, "a group of some that block and some that do not");
    }
  }
  if (first.mode == Mode::nonblocking) {
    return in_background(busy, [calls = std::move(calls)] { run(calls); });
  }
  const Outcome outcome = run(calls);
  return first.faults.late ? Outcome::success : outcome;
}

// The first error of a group is what its end answers.
Outcome remember(Outcome outcome) {
  if (group.outcome == Outcome::success) group.outcome = outcome;
  return outcome;
}

Outcome post(Communicator* handle, const Call& call) {
  std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return fail(Outcome::invalid_argument, "no such communicator");
  const Outcome state = communicator->state;
  if (state == Outcome::in_progress) {
    return fail(Outcome::invalid_argument, "the communicator is still busy");
  }
  if (state != Outcome::success) return state;
  const Outcome outcome = check(*communicator, call);
  if (outcome == Outcome::success) group.calls.push_back({std::move(communicator), call});
  return outcome;
}

}  // namespace

Outcome create_id(std::span<char> id) {
  if (Segment::create(id)) return Outcome::success;
  return fail(Outcome::system_error, "no shared memory");
}

Outcome create(Communicator*& made, const Member& member, std::span<const char> id,
               const char* name) {
  made = nullptr;
  if (member.rank_count < 1 || member.rank_count > kRanksMax || member.rank < 0 ||
      member.rank >= member.rank_count) {
    return fail(Outcome::invalid_argument, "no such rank");
  }
  if (group.depth != 0) return fail(Outcome::invalid_usage, "no init within a group");
  const auto communicator = std::make_shared<Communicator>(member, name);
  Outcome outcome = Outcome::in_progress;
  if (member.mode == Mode::nonblocking) {
    outcome = in_background({communicator.get()},
                            [communicator, own = std::vector(id.begin(), id.end())] {
                              settle(*communicator, communicator->join(own));
                            });
  } else {
    outcome = communicator->join(id);
    settle(*communicator, outcome);
    if (outcome != Outcome::success) return outcome;
  }
  const std::lock_guard lock(registry.mutex);
  made = communicator.get();
  registry.communicators.emplace(made, communicator);
  return outcome;
}

std::shared_ptr<Communicator> find(Communicator* handle) {
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.communicators.find(handle);
  return found == registry.communicators.end() ? nullptr : found->second;
}

Outcome destroy(Communicator* handle) {
  const std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return fail(Outcome::invalid_argument, "no such communicator");
  std::shared_ptr<std::jthread> job;  // ends before the communicator does
  {
    const std::lock_guard lock(registry.mutex);
    registry.communicators.erase(handle);
    if (const auto found = registry.jobs.extract(handle)) job = found.mapped();
  }
  job.reset();
  // Streams and what was captured have the others.
  while (communicator.use_count() > 1) usleep(100);
  return Outcome::success;
}

Outcome abort(Communicator* handle) {
  if (const auto communicator = find(handle)) communicator->aborted = true;
  return destroy(handle);
}

Outcome submit(Communicator* handle, const Call& call) {
  const Outcome outcome = post(handle, call);
  if (group.depth != 0) return remember(outcome);
  std::vector<Posted> calls = std::exchange(group.calls, {});
  return outcome == Outcome::success ? run_group(std::move(calls)) : outcome;
}

Outcome refuse(const char* why) {
  fail(Outcome::invalid_argument, why);
  return group.depth == 0 ? Outcome::invalid_argument : remember(Outcome::invalid_argument);
}

Outcome group_start() {
  ++group.depth;
  return Outcome::success;
}

Outcome group_end() {
  if (group.depth == 0) return fail(Outcome::invalid_usage, "no group has begun");
  if (--group.depth != 0) return Outcome::success;
  const Group ended = std::exchange(group, {});
  return ended.outcome == Outcome::success ? run_group(ended.calls) : ended.outcome;
}

}  // namespace accord::fake
