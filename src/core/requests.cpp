// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/requests.h"

#include <utility>

namespace accord::core {

void Requests::track(HostRequest request, std::shared_ptr<Tracked> work) {
  const std::lock_guard<std::mutex> locked(mutex_);
  table_[request] = std::move(work);
  count_.store(table_.size(), std::memory_order_release);
}

std::shared_ptr<Tracked> Requests::find(HostRequest request) {
  if (empty()) return nullptr;
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto found = table_.find(request);
  return found == table_.end() ? nullptr : found->second;
}

Status Requests::start(HostRequest request) {
  const auto work = find(request);
  if (!work) return {};
  ACCORD_TRY(work->start());
  work->active = true;
  return {};
}

Status Requests::finish(HostRequest request, const std::shared_ptr<Tracked>& work,
                        const Completion& completion) {
  if (!work->active) return {};
  work->active = false;
  if (!work->persistent) {
    // The host MPI may have given the handle to a new request of another thread meanwhile.
    const std::lock_guard<std::mutex> locked(mutex_);
    if (const auto found = table_.find(request); found != table_.end() && found->second == work) {
      table_.erase(found);
      count_.store(table_.size(), std::memory_order_release);
    }
  }
  return work->finish(completion);
}

void Requests::forget(HostRequest request) {
  const std::lock_guard<std::mutex> locked(mutex_);
  table_.erase(request);
  count_.store(table_.size(), std::memory_order_release);
}

Operation::Phase OrphanOperation::advance(HostPort& port) {
  bool done = false;
  HostRequest request = request_;
  status_ = port.test(request, done);
  if (status_.ok() && !done) return Phase::issued;
  Completion completion;
  completion.failed = !status_.ok();
  keep_first(status_, work_->finish(completion));
  if (work_->persistent) release_(request_);
  work_.reset();
  return Phase::done;
}

}  // namespace accord::core
