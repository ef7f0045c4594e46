// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Epochs: fences, post and start, locks and flushes. The host MPI has its part in them where some
// rank's memory is the host's.
#include <algorithm>

#include "device/registry.h"
#include "shim/windows.h"

namespace accord::shim {
namespace {

// Of messages without content: behind those of the wire.
constexpr int kPostTag = 2;
constexpr int kCompleteTag = 3;

struct Called {
  MPI_Win win;
  std::shared_ptr<WindowState> state;

  // What the program has put into its window by synchronous copies is seen by its peers, but where
  // the call is about operations of this rank alone.
  enum class About { window, own_operations };
  explicit Called(MPI_Win window, About about = About::window)
      : win(window), state(windows().find(window)) {
    if (is_ours() && about == About::window) device::order_behind_program();
  }
  bool is_ours() const noexcept { return state != nullptr && state->ours != nullptr; }
  rma::Window& ours() const noexcept { return *state->ours; }
  bool has_rank(int rank) const {
    int size = 0;
    return host::Comm_size(state->comm, &size) == MPI_SUCCESS && rank >= 0 && rank < size;
  }
  // The host MPI's call: of windows of its own, or with memory of its own.
  template <class Call>
  int host(Call call) const {
    if (is_ours() && !state->is_of_host) return MPI_SUCCESS;
    const Region region(engine());
    return call();
  }
  // A call of the host MPI's that completes what was begun before it, staged operations with it.
  template <class Call>
  int complete(int target, Call call) const {
    if (state == nullptr) return call();
    const StagedOperations staged = staged_for(*state, target);
    const int code = call();
    return code != MPI_SUCCESS ? code : raise_on_window(win, complete_staged(*state, staged));
  }
};

Status ranks_of(const WindowState& state, MPI_Group group, std::vector<int>& ranks) {
  int size = 0;
  ACCORD_TRY(Status::from_host(host::Group_size(group, &size)));
  MPI_Group all = MPI_GROUP_NULL;
  ACCORD_TRY(Status::from_host(host::Comm_group(state.comm, &all)));
  std::vector<int> numbers(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) numbers[static_cast<std::size_t>(i)] = i;
  ranks.assign(numbers.size(), MPI_UNDEFINED);
  const int code = host::Group_translate_ranks(group, size, numbers.data(), all, ranks.data());
  (void)host::Group_free(&all);
  ACCORD_TRY(Status::from_host(code));
  if (std::ranges::find(ranks, MPI_UNDEFINED) != ranks.end())
    return {StatusCode::invalid_argument, "a group with ranks that the window does not have"};
  return {};
}

Status tell(const WindowState& state, const std::vector<int>& ranks, int tag) {
  for (const int rank : ranks) {
    MPI_Request request = MPI_REQUEST_NULL;
    ACCORD_TRY(on_own_comm(host::Isend(nullptr, 0, MPI_BYTE, rank, tag, state.comm, &request)));
    if (request != MPI_REQUEST_NULL) ACCORD_TRY(on_own_comm(host::Request_free(&request)));
  }
  return {};
}

Status hear(const WindowState& state, const std::vector<int>& ranks, int tag,
            std::vector<MPI_Request>& requests) {
  requests.assign(ranks.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    ACCORD_TRY(
        on_own_comm(host::Irecv(nullptr, 0, MPI_BYTE, ranks[i], tag, state.comm, &requests[i])));
  return {};
}

Status test_all(std::vector<MPI_Request>& requests, bool& done) {
  int flag = 0;
  const int code =
      host::Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE);
  done = flag != 0;
  return on_own_comm(code);
}

Status wait_all(const WindowState& state, std::span<const int> ranks,
                std::vector<MPI_Request>& requests) {
  if (ranks.empty()) return {};
  return wait_for_peers(state, ranks, [&](bool& done) { return test_all(requests, done); });
}

// For a program that only tests: an error once it has done so for a while with an origin gone.
Status check_now_and_then(WindowState& state) {
  if (state.exposed_to.empty() || !state.checks.is_due()) return {};
  return state.ours->check_lives(state.exposed_to);
}

// Which tells a zero-byte message to the target's rank: the epoch of Win_wait ends with these.
Status complete_ours(WindowState& state) {
  std::vector<int> targets;
  {
    const std::lock_guard<std::mutex> locked(state.mutex);
    targets.swap(state.started);
  }
  Status first;
  for (const int target : targets) keep_first(first, state.ours->flush(target));
  keep_first(first, tell(state, targets, kCompleteTag));
  return first;
}

template <class Call>
int flush_some(const char* name, MPI_Win win, int target, Call call) {
  const Called called(win, Called::About::own_operations);
  const core::CallScope scope(name);
  const auto by_host = [&] { return called.complete(target, [&] { return called.host(call); }); };
  if (!called.is_ours()) return by_host();
  rma::Window& ours = called.ours();
  if (target == kAllTargets) {
    if (const int code = by_host()) return code;
    return raise_on_window(win, ours.flush_all());
  }
  if (!called.has_rank(target) || ours.route(target) == rma::Route::host) return by_host();
  if (ours.is_mixed())
    if (const int code = by_host()) return code;
  return raise_on_window(win, ours.flush(target));
}

}  // namespace

int Win_fence(int assert, MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_fence");
  if (called.is_ours()) {
    Status status = called.ours().flush_all();
    keep_first(status, window_barrier(*called.state));
    if (!status.ok()) return raise_on_window(win, status);
  }
  return called.complete(kAllTargets,
                         [&] { return called.host([&] { return host::Win_fence(assert, win); }); });
}

int Win_post(MPI_Group group, int assert, MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_post");
  if (const int code = called.host([&] { return host::Win_post(group, assert, win); })) return code;
  if (!called.is_ours()) return MPI_SUCCESS;
  std::vector<int> origins;
  Status status = ranks_of(*called.state, group, origins);
  if (status.ok()) {
    const std::lock_guard<std::mutex> locked(called.state->mutex);
    status = hear(*called.state, origins, kCompleteTag, called.state->exposures);
    if (status.ok()) status = tell(*called.state, origins, kPostTag);
    called.state->exposed_to = std::move(origins);
  }
  return raise_on_window(win, status);
}

int Win_start(MPI_Group group, int assert, MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_start");
  if (called.is_ours()) {
    std::vector<int> targets;
    std::vector<MPI_Request> posts;
    Status status = ranks_of(*called.state, group, targets);
    if (status.ok()) status = hear(*called.state, targets, kPostTag, posts);
    if (status.ok()) status = wait_all(*called.state, targets, posts);
    if (!status.ok()) return raise_on_window(win, status);
    const std::lock_guard<std::mutex> locked(called.state->mutex);
    called.state->started = std::move(targets);
  }
  return called.host([&] { return host::Win_start(group, assert, win); });
}

int Win_complete(MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_complete");
  const int code = called.complete(
      kAllTargets, [&] { return called.host([&] { return host::Win_complete(win); }); });
  if (!called.is_ours()) return code;
  const Status status = complete_ours(*called.state);
  return code != MPI_SUCCESS ? code : raise_on_window(win, status);
}

int Win_wait(MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_wait");
  if (called.is_ours()) {
    std::vector<MPI_Request> exposures;
    std::vector<int> origins;
    {
      const std::lock_guard<std::mutex> locked(called.state->mutex);
      exposures.swap(called.state->exposures);
      origins.swap(called.state->exposed_to);
    }
    if (const Status status = wait_all(*called.state, origins, exposures); !status.ok())
      return raise_on_window(win, status);
  }
  return called.host([&] { return host::Win_wait(win); });
}

int Win_test(MPI_Win win, int* flag) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_test");
  if (!called.is_ours()) return host::Win_test(win, flag);
  engine().progress();
  bool done = false;
  Status status;
  {
    const std::lock_guard<std::mutex> locked(called.state->mutex);
    status = test_all(called.state->exposures, done);
    if (status.ok() && !done) status = check_now_and_then(*called.state);
  }
  if (!status.ok()) return raise_on_window(win, status);
  *flag = done ? 1 : 0;
  return done ? called.host([&] { return host::Win_test(win, flag); }) : MPI_SUCCESS;
}

int Win_lock(int lock_type, int rank, int assert, MPI_Win win) {
  const Called called(win);
  const auto call = [&] { return host::Win_lock(lock_type, rank, assert, win); };
  const bool is_kind = lock_type == MPI_LOCK_EXCLUSIVE || lock_type == MPI_LOCK_SHARED;
  if (!called.is_ours() || !is_kind || !called.has_rank(rank) ||
      called.ours().route(rank) == rma::Route::host) {
    const Region region(engine());
    return call();
  }
  const core::CallScope scope("MPI_Win_lock");
  const auto kind =
      lock_type == MPI_LOCK_EXCLUSIVE ? rma::LockKind::exclusive : rma::LockKind::shared;
  const Status locked = called.ours().lock(rank, kind, (assert& MPI_MODE_NOCHECK) == 0);
  if (!locked.ok() || !called.ours().is_mixed()) return raise_on_window(win, locked);
  return called.host(call);
}

int Win_unlock(int rank, MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_unlock");
  if (!called.is_ours() || !called.has_rank(rank) ||
      called.ours().route(rank) == rma::Route::host) {
    return called.complete(rank, [&] {
      const Region region(engine());
      return host::Win_unlock(rank, win);
    });
  }
  if (called.ours().is_mixed()) {
    const int code = called.complete(
        rank, [&] { return called.host([&] { return host::Win_unlock(rank, win); }); });
    if (code != MPI_SUCCESS) return code;
  }
  return raise_on_window(win, called.ours().unlock(rank));
}

int Win_lock_all(int assert, MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_lock_all");
  // Ours first, as by MPI_Win_lock.
  if (called.is_ours()) {
    const Status locked = called.ours().lock_all((assert& MPI_MODE_NOCHECK) == 0);
    if (!locked.ok()) return raise_on_window(win, locked);
  }
  return called.host([&] { return host::Win_lock_all(assert, win); });
}

int Win_unlock_all(MPI_Win win) {
  const Called called(win);
  const core::CallScope scope("MPI_Win_unlock_all");
  const int code = called.complete(
      kAllTargets, [&] { return called.host([&] { return host::Win_unlock_all(win); }); });
  if (!called.is_ours()) return code;
  const Status status = called.ours().unlock_all();
  return code != MPI_SUCCESS ? code : raise_on_window(win, status);
}

int Win_flush(int rank, MPI_Win win) {
  return flush_some("MPI_Win_flush", win, rank, [&] { return host::Win_flush(rank, win); });
}
int Win_flush_all(MPI_Win win) {
  return flush_some("MPI_Win_flush_all", win, kAllTargets,
                    [&] { return host::Win_flush_all(win); });
}
int Win_flush_local(int rank, MPI_Win win) {
  return flush_some("MPI_Win_flush_local", win, rank,
                    [&] { return host::Win_flush_local(rank, win); });
}
int Win_flush_local_all(MPI_Win win) {
  return flush_some("MPI_Win_flush_local_all", win, kAllTargets,
                    [&] { return host::Win_flush_local_all(win); });
}

int Win_sync(MPI_Win win) {
  const Called called(win);
  if (called.is_ours() && !engine().idle()) engine().progress();
  return called.host([&] { return host::Win_sync(win); });
}

}  // namespace accord::shim
