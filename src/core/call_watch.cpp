// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/call_watch.h"

#include <fmt/format.h>

#include <cstdlib>

namespace accord::core {
namespace {

Status difference(std::size_t rank, const node::CallEntry& its, const node::CallEntry& mine) {
  const std::string what = its.size_bytes != mine.size_bytes
                               ? fmt::format("of {} bytes, and this rank one of {} bytes",
                                             its.size_bytes, mine.size_bytes)
                               : "with another operation, type or root, or another kind of call";
  return {StatusCode::mismatch,
          fmt::format("the ranks of this communicator made different collective calls: rank {} "
                      "made one {}",
                      rank, what)};
}

}  // namespace

// Tests look sooner, so that a difference which is none shows.
std::chrono::milliseconds Patience::limit() {
  static const char* const given = std::getenv("ACCORD_TEST_WATCH_MS");
  static const std::chrono::milliseconds limit{given != nullptr ? std::atoi(given) : 200};
  return limit;
}

std::atomic<bool> CallWatch::has_boards{true};

CallWatch::Difference CallWatch::look(const node::CallEntry& mine) const {
  Difference found;
  if (mine.number == 0 || !has_boards.load(std::memory_order_relaxed)) return {};
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank] == nullptr) continue;
    node::CallEntry its;
    if (!peers_[rank]->read(mine.comm, mine.number, its)) return {};
    if (found.status.ok() && !its.is_like(mine)) found.status = difference(rank, its, mine);
    found.by_host = found.by_host || (its.by_host() && !mine.by_host());
  }
  return found;
}

}  // namespace accord::core
