// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/posted_receives.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "shim/completion.h"
#include "shim/messages.h"

namespace accord::shim {
namespace {

// Looks at the receives while senders wait, and brings what it has found: unawaited, since nobody
// waits for that here.
class Looking final : public core::Operation {
 public:
  // Whether it is to be entered anew.
  bool begin() {
    const std::lock_guard locked(mutex_);
    return !is_stopped_.load() && !std::exchange(is_active_, true);
  }
  void stop() { is_stopped_.store(true); }
  bool is_active() {
    const std::lock_guard locked(mutex_);
    return is_active_;
  }

  Phase advance(core::HostPort&) override {
    const bool is_stopped = is_stopped_.load();
    if (!is_stopped && messaging.node_joined && is_wanted() && is_time()) look();
    const std::lock_guard locked(mutex_);
    is_active_ = has_posted_receives() && !is_stopped;
    return is_active_ ? Phase::issued : Phase::done;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // In passing, as between the sends of a window, only for those who wait for nothing else: the
  // others want what this rank is about to send as much as their own messages away, and these are
  // fetched meanwhile (windows both ways of 256 MiB, 2 x H200: one after the other).
  static bool is_wanted() {
    return engine().is_waited_for() ? outbox().is_awaited() : outbox().is_awaited_alone();
  }

  // A look costs a copy's latency, whatever it finds. Where the program waits that is nobody's
  // time; else, as between the sends of a window, it is no more than half of it.
  bool is_time() const {
    return engine().is_waited_for() || Clock::now() >= looked_at_ + look_took_;
  }

  void look() {
    const Clock::time_point begun = Clock::now();
    const auto batch = std::make_shared<p2p::SharedBatch>(outbox());
    requests().look_at_each([&](core::HostRequest bits, core::Tracked& work) {
      MPI_Status status;
      int flag = 0;
      const int code = host::Request_get_status(from_bits<MPI_Request>(bits), &flag, &status);
      if (code == MPI_SUCCESS && flag != 0) work.fetch_early(completion_of(status), batch);
    });
    if (batch->fetches.size() != 0) {
      // To its end: the program may not come back here for long, and the sender wants its memory.
      batch->begin();
      while (!batch->poll()) engine().port().pause();
    }
    outbox().own_board().looks.fetch_add(1, std::memory_order_release);
    looked_at_ = Clock::now();
    look_took_ = looked_at_ - begun;
  }

  Clock::time_point looked_at_;  // by the engine's thread alone, as advance is
  Clock::duration look_took_{};
  std::mutex mutex_;
  bool is_active_ = false;
  std::atomic<bool> is_stopped_{false};
};

std::shared_ptr<Looking>& looking() {
  static auto& instance = *new std::shared_ptr<Looking>(std::make_shared<Looking>());
  return instance;
}

std::atomic<std::uint32_t> posted{0};

}  // namespace

PostedReceive::PostedReceive() : is_counted_(messaging.node_joined) {
  if (!is_counted_) return;
  posted.fetch_add(1);
  outbox().own_board().posted.fetch_add(1, std::memory_order_relaxed);
  if (looking()->begin()) engine().submit_unawaited(looking());
}

PostedReceive::~PostedReceive() {
  if (!is_counted_) return;
  posted.fetch_sub(1);
  if (messaging.node_joined) outbox().own_board().posted.fetch_sub(1, std::memory_order_relaxed);
}

bool has_posted_receives() { return posted.load(std::memory_order_relaxed) != 0; }

void stop_posted_receives() {
  looking()->stop();
  engine().wait_until([] { return !looking()->is_active(); });
}

}  // namespace accord::shim
