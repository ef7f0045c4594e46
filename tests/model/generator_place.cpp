// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When each participant starts and completes its shares, and by which calls.
#include <algorithm>

#include "generator.h"

namespace accord::model::generator {

double Generator::start_key(double low, int tick) {
  if (random_.percent(35)) return at_tick(tick);
  std::vector<double> keys;
  for (int gap = std::max(0, gap_of(low)); gap < tick; ++gap) {
    const double from = std::max(gap_start(gap), low + 0.001);
    const double to = gap_start(gap) + kGapWidth;
    if (from < to) keys.push_back(from + (to - from) * uniform() * 0.99);
  }
  if (keys.empty()) return at_tick(tick);
  return random_.percent(40) ? keys.front() : random_.pick(keys);
}

double Generator::wait_key(int tick, double high) {
  std::vector<double> keys;
  for (int gap = tick; gap < static_cast<int>(ticks_.size()); ++gap) {
    if (gap_start(gap) + kGapWidth > high) continue;
    keys.push_back(gap_start(gap) + kGapWidth * uniform() * 0.9);
  }
  if (keys.empty() || random_.percent(20)) return at_tick(tick) + 0.5;
  return random_.percent(25) ? keys.back()
                             : keys[random_.below(std::min<std::size_t>(keys.size(), 5))];
}

int Generator::next_tick(const Ref& ref, int tick) const {
  for (std::size_t later = static_cast<std::size_t>(tick) + 1; later < ticks_.size(); ++later) {
    if (ticks_[later].event == ref.event) return static_cast<int>(later);
  }
  return static_cast<int>(ticks_.size());
}

// One share: started at a key above `low` and by `tick`, completed after `tick_end`.
void Generator::place_share(int tick, const Ref& ref, double low, bool may_block, int tick_end) {
  const Part& part = part_of(ref);
  const std::size_t thread = thread_of(part);
  const bool persistent = part.persistent || event_of(ref).persistent;
  if (may_block && !persistent && random_.percent(35)) {
    add(thread, at_tick(tick), Verb::block, {ref});
    last(ref) = at_tick(tick);
    return;
  }
  const double started = start_key(low, tick);
  add(thread, started, Verb::start, {ref});
  Pending pending{ref, thread, tick_end, started, 0, true, false, false};
  const bool last_round = ref.round + 1 == event_of(ref).rounds;
  const bool message = event_of(ref).kind != Event::Kind::collective;
  if (message && event_of(ref).kind == Event::Kind::message && random_.percent(7) &&
      (!persistent || last_round)) {
    pending.waited = false;
    pending.ended = wait_key(tick, std::numeric_limits<double>::max());
    add(thread, pending.ended, Verb::release, {ref});
  } else {
    if (!persistent && program_.threads > 1 && random_.percent(20)) {
      pending.thread = static_cast<std::size_t>(part.rank * program_.threads) +
                       random_.below(static_cast<std::uint64_t>(program_.threads));
    }
    const double high =
        persistent ? at_tick(next_tick(ref, tick)) : std::numeric_limits<double>::max();
    pending.ended = wait_key(tick_end, high);
  }
  last(ref) = persistent ? pending.ended : started;
  pending_.push_back(pending);
}

void Generator::place_init(int tick, const Tick& what) {
  const Event& event = program_.events[static_cast<std::size_t>(what.event)];
  CommState& comm = comms_[static_cast<std::size_t>(event.comm)];
  for (int index = 0; index < static_cast<int>(event.parts.size()); ++index) {
    const Ref ref{what.event, 0, index};
    add(thread_of(part_of(ref)), at_tick(tick), Verb::init, {ref});
    last(ref) = at_tick(tick) + 0.6;
    comm.last_start[static_cast<std::size_t>(part_of(ref).rank)] = at_tick(tick);
  }
}

void Generator::place_collective(int tick, const Tick& what) {
  const Event& event = program_.events[static_cast<std::size_t>(what.event)];
  CommState& comm = comms_[static_cast<std::size_t>(event.comm)];
  const bool only_blocks =
      event.collective == Collective::split || event.collective == Collective::free ||
      (event.collective == Collective::dup && !options_.nonblocking_dup) || tick <= setup_ticks_;
  const bool blocks = !event.persistent && (only_blocks || random_.percent(40));
  for (int index = 0; index < static_cast<int>(event.parts.size()); ++index) {
    const Ref ref{what.event, what.round, index};
    const auto rank = static_cast<std::size_t>(part_of(ref).rank);
    const std::size_t thread = thread_of(part_of(ref));
    double available = at_tick(tick) + 0.6;
    if (blocks) {
      add(thread, at_tick(tick), Verb::block, {ref});
      comm.last_start[rank] = at_tick(tick);
    } else if (event.persistent) {
      place_share(tick, ref, last(ref), false, tick);
    } else if (event.collective == Collective::dup) {
      const double started = start_key(std::max(comm.last_start[rank], comm.available[rank]), tick);
      add(thread, started, Verb::start, {ref});
      comm.last_start[rank] = started;
      available = gap_start(tick) + 0.3 * uniform();
      add(thread, available, Verb::wait, {ref});
    } else {
      place_share(tick, ref, std::max(comm.last_start[rank], comm.available[rank]), false, tick);
      comm.last_start[rank] = last(ref);
    }
    for (std::size_t child = 0; child < event.children.size(); ++child) {
      comms_[static_cast<std::size_t>(event.children[child])].available[rank] = available;
    }
  }
}

void Generator::place_cancelled(int tick, const Tick& what) {
  const Ref ref{what.event, what.round, 0};
  const std::size_t thread = thread_of(part_of(ref));
  const Event& event = event_of(ref);
  const double low = comms_[static_cast<std::size_t>(event.comm)]
                         .available[static_cast<std::size_t>(part_of(ref).rank)];
  add(thread, start_key(low, tick), Verb::start, {ref});
  add(thread, at_tick(tick) + 0.1, Verb::cancel, {ref});
  add(thread, wait_key(tick, std::numeric_limits<double>::max()), Verb::wait, {ref});
}

void Generator::place_message(int tick, const Tick& what) {
  const Event& event = program_.events[static_cast<std::size_t>(what.event)];
  const CommState& comm = comms_[static_cast<std::size_t>(event.comm)];
  // A blocking send to oneself waits for a receive that the same thread has yet to post.
  bool may_block = true;
  for (std::size_t part = event.senders(); part < event.parts.size(); ++part) {
    for (std::size_t sender = 0; sender < event.senders(); ++sender) {
      may_block = may_block && thread_of(event.parts[part]) != thread_of(event.parts[sender]);
    }
  }
  const bool probed = what.kind == Tick::Kind::probed;
  for (int index = 0; index < static_cast<int>(event.parts.size()); ++index) {
    const Ref ref{what.event, what.round, index};
    const std::size_t thread = thread_of(part_of(ref));
    double low = std::max(last(ref), comm.available[static_cast<std::size_t>(part_of(ref).rank)]);
    if (part_of(ref).persistent && what.round == 0) {
      low = std::max(low, start_key(low, tick));
      add(thread, low, Verb::init, {ref});
    }
    if (probed && event.receives(static_cast<std::size_t>(index))) {
      const double key =
          random_.percent(50) ? gap_start(tick) + 0.5 * uniform() : at_tick(tick) + 0.4;
      add(thread, key, random_.percent(50) ? Verb::probe : Verb::iprobe, {ref});
      place_share(tick + 1, ref, key, true, tick + 1);
    } else {
      place_share(tick, ref, low, may_block && !probed, probed ? tick + 1 : tick);
    }
  }
}

void Generator::finish_persistent() {
  for (int number = 0; number < static_cast<int>(program_.events.size()); ++number) {
    const Event& event = program_.events[static_cast<std::size_t>(number)];
    for (int index = 0; index < static_cast<int>(event.parts.size()); ++index) {
      const Ref ref{number, event.rounds - 1, index};
      if (!event.persistent && !part_of(ref).persistent) continue;
      const bool released = std::any_of(
          pending_.begin(), pending_.end(),
          [&](const Pending& pending) { return pending.ref == ref && !pending.waited; });
      if (!released)
        add(thread_of(part_of(ref)), at_tick(static_cast<int>(ticks_.size()) + 1), Verb::release,
            {ref});
    }
  }
}

void Generator::place() {
  const auto threads = static_cast<std::size_t>(program_.ranks * program_.threads);
  drafts_.resize(threads);
  if (program_.threads > 1) {
    for (std::size_t thread = 0; thread < threads; ++thread) {
      const bool first = thread % static_cast<std::size_t>(program_.threads) == 0;
      add(thread, first ? at_tick(setup_ticks_) + 0.9 : -1, first ? Verb::open : Verb::await, {});
    }
  }
  for (int tick = 1; tick < static_cast<int>(ticks_.size()); ++tick) {
    const Tick& what = ticks_[static_cast<std::size_t>(tick)];
    if (what.event < 0) continue;
    const Event& event = program_.events[static_cast<std::size_t>(what.event)];
    if (what.kind == Tick::Kind::init) {
      place_init(tick, what);
    } else if (event.kind == Event::Kind::collective) {
      place_collective(tick, what);
    } else if (event.kind == Event::Kind::cancelled) {
      place_cancelled(tick, what);
    } else {
      place_message(tick, what);
    }
  }
  finish_persistent();
}

}  // namespace accord::model::generator
