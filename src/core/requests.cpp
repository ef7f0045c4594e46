// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/requests.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace accord::core {

void Requests::track(HostRequest request, std::shared_ptr<Tracked> work) {
  if (call_site.function != nullptr) work->site = call_site;
  const std::lock_guard<std::mutex> locked(mutex_);
  table_[request] = std::move(work);
  count_.store(table_.size(), std::memory_order_release);
}

std::shared_ptr<Tracked> Requests::unclaimed(HostRequest request,
                                             std::unique_lock<std::mutex>& locked) {
  for (;;) {
    const auto found = table_.find(request);
    if (found == table_.end() || found->second->claimed) return nullptr;
    if (!found->second->is_looked_at) return found->second;
    locked.unlock();
    std::this_thread::yield();
    locked.lock();
  }
}

std::shared_ptr<Tracked> Requests::find(HostRequest request) {
  if (empty()) return nullptr;
  std::unique_lock<std::mutex> locked(mutex_);
  return unclaimed(request, locked);
}

std::shared_ptr<Tracked> Requests::claim(HostRequest request) {
  if (empty()) return nullptr;
  std::unique_lock<std::mutex> locked(mutex_);
  auto work = unclaimed(request, locked);
  if (work) work->claimed = true;
  return work;
}

Requests::Looks::Looks(Requests& its) : requests(its) {
  const std::lock_guard<std::mutex> locked(requests.mutex_);
  for (const auto& [request, work] : requests.table_) {
    if (work->claimed || work->is_looked_at || !work->active || work->finished ||
        work->is_waited_for.load() || !work->may_fetch_early())
      continue;
    work->is_looked_at = true;
    all.emplace_back(request, work);
  }
}

Requests::Looks::~Looks() {
  const std::lock_guard<std::mutex> locked(requests.mutex_);
  for (const auto& [request, work] : all) work->is_looked_at = false;
}

std::shared_ptr<Tracked> Requests::look(HostRequest request) {
  if (empty()) return nullptr;
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto found = table_.find(request);
  return found == table_.end() ? nullptr : found->second;
}

void Requests::unclaim(const std::shared_ptr<Tracked>& work) {
  const std::lock_guard<std::mutex> locked(mutex_);
  work->claimed = false;
}

Status Requests::start(HostRequest request) {
  const auto work = find(request);
  if (!work) return {};
  work->facts.reset();
  work->early = false;
  ACCORD_TRY(work->start());
  work->active = true;
  work->is_told = false;
  return {};
}

void Requests::started(HostRequest request) {
  if (const auto work = find(request)) work->started();
}

Status Requests::finish(HostRequest request, const std::shared_ptr<Tracked>& work,
                        const Completion& completion, Ended ended) {
  bool was_finished = false;
  {
    const std::lock_guard<std::mutex> locked(mutex_);
    work->claimed = false;
    if (!work->active) return {};
    was_finished = std::exchange(work->finished, ended == Ended::kept);
    work->active = ended == Ended::kept;
    const auto found = table_.find(request);
    // Not the entry of a newer request with the same handle.
    if (!work->active && !work->persistent && found != table_.end() && found->second == work) {
      table_.erase(found);
      count_.store(table_.size(), std::memory_order_release);
    }
  }
  return was_finished ? Status() : work->finish(completion);
}

bool Requests::any_in(std::uint64_t context) {
  const std::lock_guard<std::mutex> locked(mutex_);
  return std::ranges::any_of(table_,
                             [&](const auto& entry) { return entry.second->context == context; });
}

void Requests::change_context(std::uint64_t from, std::uint64_t to) {
  const std::lock_guard<std::mutex> locked(mutex_);
  for (auto& [request, work] : table_)
    if (work->context == from) work->context = to;
}

void Requests::forget(HostRequest request) {
  const std::lock_guard<std::mutex> locked(mutex_);
  table_.erase(request);
  count_.store(table_.size(), std::memory_order_release);
}

Operation::Phase OrphanOperation::advance(HostPort& port) {
  bool done = false;
  HostRequest request = request_;
  Completion completion;
  status_ = port.test_message(request, done, completion);
  if (status_.ok() && !done) return Phase::issued;
  completion.failed = !status_.ok();
  keep_first(status_, work_->finish(completion));
  if (work_->persistent) release_(request_);
  work_.reset();
  return Phase::done;
}

}  // namespace accord::core
