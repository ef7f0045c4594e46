// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The fake MPI's request handles: made, completed, freed, and given out again at once.
#include <algorithm>

#include "fake_mpi.h"
#include "fake_mpi_state.h"

namespace accord::model {

Request FakeRank::new_request(std::unique_ptr<State> state) {
  Request handle = kNoRequest;
  if (!free_handles_.empty() && mpi_.scheduler_.random(8) != 0) {
    handle = free_handles_.back();
    free_handles_.pop_back();
  } else {
    handle = (static_cast<Request>(rank_ + 1) << 32) + 16 * ++handles_made_;
  }
  state->handle = handle;
  requests_[handle] = std::move(state);
  return handle;
}

FakeRank::State& FakeRank::state_of(Request request, const char* what) {
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second->freed) {
    mpi_.scheduler_.fail(std::string(what) + " on a request that does not exist");
    throw Aborted();  // the engine's own thread, in free mode
  }
  return *found->second;
}

void FakeRank::release(Request request) {
  requests_.erase(request);
  free_handles_.push_back(request);
  mpi_.scheduler_.event();
}

bool FakeRank::is_active(Request request) {
  if (request == kNoRequest || request == kDoneRequest) return request == kDoneRequest;
  const State& state = state_of(request, "a completion call");
  return !state.persistent || state.active;
}

bool FakeRank::is_complete(Request request) {
  if (!is_active(request) || request == kDoneRequest) return true;
  return state_of(request, "a completion call").complete;
}

// What MPI_Wait does to a complete request.
void FakeRank::consume(Request& request, MessageStatus* status) {
  if (status != nullptr) *status = MessageStatus();
  if (!is_active(request)) return;
  if (request == kDoneRequest) {
    request = kNoRequest;
    return;
  }
  State& state = state_of(request, "a completion call");
  if (status != nullptr) *status = state.status;
  mpi_.scheduler_.event();
  if (state.persistent) {
    state.active = state.due = state.complete = false;
    state.status = MessageStatus();
    return;
  }
  release(request);
  request = kNoRequest;
}

bool FakeRank::test(Request& request, MessageStatus* status) {
  {
    const auto lock = enter(true);
    if (!is_complete(request)) return false;
    consume(request, status);
  }
  // The handle is free now: another thread of the rank may get it before this call returns.
  mpi_.scheduler_.yield();
  return true;
}

bool FakeRank::peek(Request request, MessageStatus* status) {
  const auto lock = enter(true);
  if (!is_complete(request)) return false;
  if (status != nullptr) {
    *status = is_active(request) && request != kDoneRequest
                  ? state_of(request, "a completion call").status
                  : MessageStatus();
  }
  return true;
}

void FakeRank::wait(Request& request, MessageStatus* status) {
  while (!test(request, status)) {
    if (background && mpi_.scheduler_.random(3) == 0) background();
  }
}

bool FakeRank::test_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) {
  const auto lock = enter(true);
  for (const Request request : requests) {
    if (!is_complete(request)) return false;
  }
  statuses.resize(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) consume(requests[i], &statuses[i]);
  return true;
}

void FakeRank::wait_all(std::vector<Request>& requests, std::vector<MessageStatus>& statuses) {
  while (!test_all(requests, statuses)) {
    if (background && mpi_.scheduler_.random(3) == 0) background();
  }
}

bool FakeRank::test_any(std::vector<Request>& requests, int& index, MessageStatus& status) {
  const auto lock = enter(true);
  std::vector<std::size_t> complete;
  bool any_active = false;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!is_active(requests[i])) continue;
    any_active = true;
    if (is_complete(requests[i])) complete.push_back(i);
  }
  index = kUndefined;
  if (!any_active) return true;
  if (complete.empty()) return false;
  const std::size_t chosen = complete[mpi_.scheduler_.random(complete.size())];
  consume(requests[chosen], &status);
  index = static_cast<int>(chosen);
  return true;
}

int FakeRank::wait_any(std::vector<Request>& requests, MessageStatus& status) {
  int index = kUndefined;
  while (!test_any(requests, index, status)) {
    if (background && mpi_.scheduler_.random(3) == 0) background();
  }
  return index;
}

std::vector<int> FakeRank::wait_some(std::vector<Request>& requests,
                                     std::vector<MessageStatus>& statuses) {
  std::vector<int> indices;
  block_until([&] {
    bool any_active = false;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!is_active(requests[i])) continue;
      any_active = true;
      if (!is_complete(requests[i])) continue;
      indices.push_back(static_cast<int>(i));
      statuses.emplace_back();
      consume(requests[i], &statuses.back());
    }
    return !any_active || !indices.empty();
  });
  return indices;
}

void FakeRank::start(Request request) {
  const auto lock = enter(false);
  State& state = state_of(request, "MPI_Start");
  if (!state.persistent || state.active)
    mpi_.scheduler_.fail("MPI_Start on an active or non-persistent request");
  state.active = true;
  if (state.kind == State::Kind::send) {
    post_send(state, state.mode);
  } else if (state.kind == State::Kind::recv) {
    post_recv(state);
  } else {
    start_round(state);
  }
}

void FakeRank::request_free(Request& request) {
  const auto lock = enter(false);
  if (request == kDoneRequest) {
    request = kNoRequest;
    return;
  }
  State& state = state_of(request, "MPI_Request_free");
  if (state.kind == State::Kind::collective && state.active) {
    mpi_.scheduler_.fail("MPI_Request_free on an active collective");
  }
  if (state.active && !state.complete) {
    state.freed = true;
  } else {
    release(request);
  }
  request = kNoRequest;
}

Request FakeRank::grequest_start() {
  const auto lock = enter(false);
  auto state = std::make_unique<State>();
  state->kind = State::Kind::generalized;
  return new_request(std::move(state));
}

void FakeRank::grequest_complete(Request request) {
  const auto lock = enter(false);
  State& state = state_of(request, "MPI_Grequest_complete");
  if (state.kind != State::Kind::generalized || state.due) {
    mpi_.scheduler_.fail(
        "MPI_Grequest_complete on a request that is complete or no generalized one");
  }
  state.due = true;
  state.due_at = pokes_ + mpi_.delay();
  mpi_.scheduler_.event();
}

void FakeRank::finalize() {
  block_until([&] {
    const bool active = std::any_of(requests_.begin(), requests_.end(),
                                    [](const auto& entry) { return entry.second->active; });
    return !active && outgoing_.empty() && collectives_.empty();
  });
  const HiddenLock lock(mpi_.mutex_, this);
  finalized_ = true;
}

bool FakeRank::waits_for_others() const {
  return !collectives_.empty() || std::ranges::any_of(requests_, [&](const auto& entry) {
    const State& state = *entry.second;
    const bool is_own = state.kind == State::Kind::generalized || state.comm == own_comm_;
    return state.active && !state.complete && !is_own;
  });
}

void FakeMpi::check_clean() {
  const HiddenLock locked(mutex_);
  for (const auto& rank : ranks_) {
    const std::string who = "rank " + std::to_string(rank->rank_) + ": ";
    if (!rank->finalized_) scheduler_.fail(who + "did not finalize");
    if (!rank->requests_.empty()) {
      scheduler_.fail(who + std::to_string(rank->requests_.size()) +
                      " request(s) of the host MPI were never freed");
    }
    if (!rank->posted_.empty() || !rank->arriving_.empty() || !rank->unexpected_.empty()) {
      scheduler_.fail(who + "messages or receives were left over");
    }
  }
}

}  // namespace accord::model
