// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "knobs.h"

#include <atomic>
#include <cerrno>

#include "node/trial.h"
#include "reach.h"
#include "scheduler.h"

namespace accord::model {

Knobs knobs;

namespace {

std::atomic<Scheduler*> source_of_chance{nullptr};

}  // namespace

void set_knobs(const Knobs& wanted, Scheduler* scheduler) {
  static const auto patience = node::Trial::patience;
  knobs = wanted;
  node::Trial::patience = wanted.late_trials ? std::chrono::milliseconds(0) : patience;
  source_of_chance.store(scheduler);
}

void take_turns() {
  if (Scheduler* const scheduler = source_of_chance.load()) scheduler->yield();
}

bool has_room() {
  Scheduler* const scheduler = source_of_chance.load();
  if (scheduler == nullptr || scheduler->random(100) >= knobs.full_percent) return true;
  reached(Reach::full_socket);
  errno = EAGAIN;
  return false;
}

}  // namespace accord::model
