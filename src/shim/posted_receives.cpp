// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/posted_receives.h"

#include <atomic>
#include <list>
#include <memory>
#include <utility>

#include "shim/completion.h"
#include "shim/messages.h"

namespace accord::shim {
namespace {

std::atomic<std::uint32_t> posted{0};

// Looks at the receives while senders wait, here or elsewhere, and brings what it has found:
// unawaited, since nobody waits for that here.
class Looking final : public core::Operation {
 public:
  // Whether it is to be entered anew.
  bool begin() { return !is_active_.load() && !is_stopped_.load() && !is_active_.exchange(true); }
  void stop() { is_stopped_.store(true); }
  bool is_active() const { return is_active_.load(); }

  Phase advance(core::HostPort&) override {
    const bool is_stopped = is_stopped_.load();
    // In passing, as between the sends of a window, a rank does not look: who waits for it wants
    // what it is about to send, too, and each look lasts as long as what it fetches (windows both
    // ways of 1 MiB and more, 2 x H200: one after the other).
    if (!is_stopped && messaging.node_joined && engine().is_waited_for() && is_wanted()) look();
    if (has_posted_receives() && !is_stopped) return Phase::issued;
    // Who posts one counts it before it asks: one of the two sees the other.
    is_active_.store(false);
    return !is_stopped && posted.load() != 0 && begin() ? Phase::issued : Phase::done;
  }
  void abandon() noexcept override { is_active_.store(false); }

 private:
  // Who waits for receivers has nothing better to do, and the links towards it are idle: of a
  // window both ways one rank may wait for its sends first, the other one for its receives
  // (osu_bibw).
  static bool is_wanted() { return outbox().is_awaited() || outbox().waits(); }

  // To the end of what it brings: the program may not come back here for long, and the senders want
  // their memory. What comes meanwhile is brought beside it, so that the links are never without
  // one.
  void look() {
    std::list<std::shared_ptr<p2p::SharedBatch>> under_way;
    const auto fresh = [] { return std::make_shared<p2p::SharedBatch>(outbox()); };
    auto batch = fresh();
    do {
      const std::size_t seen = batch->fetches.size();
      requests().look_at_each([&](core::HostRequest request, core::Tracked& work) {
        work.fetch_early(request, batch);
      });
      const bool waits = has_posted_receives() && batch->fetches.may_grow(seen);
      if (batch->fetches.size() != 0 && !waits) {
        batch->begin();
        under_way.push_back(std::exchange(batch, fresh()));
      }
      engine().port().pause();
      std::erase_if(under_way, [](const auto& one) { return one->poll(); });
    } while (!under_way.empty() || batch->fetches.size() != 0);
    outbox().own_board().looks.fetch_add(1, std::memory_order_release);
  }

  std::atomic<bool> is_active_{false};
  std::atomic<bool> is_stopped_{false};
};

std::shared_ptr<Looking>& looking() {
  static auto& instance = *new std::shared_ptr<Looking>(std::make_shared<Looking>());
  return instance;
}

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
