// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "communicator.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace accord::fake {
namespace {

std::mutex error_mutex;
char error_text[256];

long setting(const char* prefix, const char* name, long otherwise) {
  const char* text = std::getenv((std::string(prefix) + "_" + name).c_str());
  return text == nullptr || *text == '\0' ? otherwise : std::strtol(text, nullptr, 10);
}

}  // namespace

Outcome fail(Outcome outcome, const std::string& why) {
  const std::lock_guard lock(error_mutex);
  std::snprintf(error_text, sizeof error_text, "%s", why.c_str());
  return outcome;
}

const char* last_error() {
  thread_local char copy[sizeof error_text];
  const std::lock_guard lock(error_mutex);
  std::snprintf(copy, sizeof copy, "%s", error_text);
  return copy;
}

Faults::Faults(const char* prefix)
    : init_rank(static_cast<int>(setting(prefix, "FAIL_INIT", -1))),
      call(setting(prefix, "FAIL_CALL", 0)),
      message(setting(prefix, "FAIL_MESSAGE", 0)),
      launch(setting(prefix, "FAIL_LAUNCH", 0)),
      call_rank(static_cast<int>(setting(prefix, "FAIL_RANK", -1))),
      late(setting(prefix, "FAIL_LATE", 0) != 0),
      device(setting(prefix, "ONE_DEVICE", 0) != 0 ? 0 : -1),
      patience(setting(prefix, "PATIENCE_MS", 30'000)) {}

bool Patience::wait() {
  if (++waits_ < 100) {
    std::this_thread::yield();
  } else {
    usleep(100);
  }
  return std::chrono::steady_clock::now() - begin_ < limit_;
}

void Patience::renew() {
  waits_ = 0;
  begin_ = std::chrono::steady_clock::now();
}

Outcome Communicator::trouble() const {
  if (aborted) return fail(Outcome::internal_error, "the communicator was aborted");
  if (segment->shared().broken != 0) return fail(Outcome::remote_error, "another rank has failed");
  return Outcome::success;
}

void Communicator::break_off(Outcome outcome) {
  if (segment) segment->shared().broken = 1;
  state = outcome;
}

Outcome Communicator::join(std::span<const char> id) {
  segment = Segment::open(id);
  if (!segment) return fail(Outcome::system_error, "nobody holds this unique id");
  const Outcome outcome = meet(segment->shared());
  if (outcome == Outcome::success) segment->complete();
  return outcome;
}

Outcome Communicator::meet(Shared& shared) {
  if (faults.init_rank == rank) return fail(Outcome::system_error, "told to fail in init");
  int agreed = 0;
  if (!shared.rank_count.compare_exchange_strong(agreed, rank_count) && agreed != rank_count) {
    return fail(Outcome::invalid_usage, "ranks disagree on how many they are");
  }
  if (shared.taken[rank].exchange(1) != 0) {
    return fail(Outcome::invalid_usage, "a rank has come twice");
  }
  shared.device[rank] = device();
  ++shared.arrived;
  for (Patience patience(*this); shared.arrived < rank_count;) {
    if (const Outcome seen = trouble(); seen != Outcome::success) return seen;
    if (!patience.wait()) return fail(Outcome::system_error, "not all ranks have come");
  }
  for (int peer = 0; peer < rank_count; ++peer) {
    if (peer != rank && shared.device[peer] == device()) {
      return fail(Outcome::invalid_usage, "two ranks use one device");
    }
  }
  return Outcome::success;
}

}  // namespace accord::fake
