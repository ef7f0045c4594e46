// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether another process still lives, told by a descriptor that it has made for its peers: no
// number, which another PID namespace does not know and a later process may get. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "node/descriptor.h"

namespace accord::node {

// The descriptor to send to peers; kept for the life of this process.
Status own_life_line(int& descriptor);

class LifeLine {
 public:
  explicit LifeLine(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  // Of a process of another node, which somebody here cuts once it gives no sign of life.
  LifeLine() = default;
  void cut() noexcept { was_cut_.store(true, std::memory_order_release); }
  // A system call.
  bool is_cut() const noexcept;

 private:
  Descriptor descriptor_;
  std::atomic<bool> was_cut_{false};
};

// That of the process with this number (PortAddress::process): the one that is known already, so
// that communicators share it, or the one given.
std::shared_ptr<const LifeLine> life_line_of(std::uint64_t process, Descriptor descriptor);

}  // namespace accord::node
