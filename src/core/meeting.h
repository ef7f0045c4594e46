// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Something that all ranks of a communicator do together in the midst of a call, before they know
// how it goes on: they join a group, or make a communicator of a collective library. Polled, never
// waits; every rank comes here in the same call.
#pragma once

#include "base/status.h"
#include "core/host_port.h"

namespace accord::core {

class Meeting {
 public:
  virtual ~Meeting() = default;

  virtual Status begin() = 0;
  // `done`: they are joined, or have declined, or it was too early to tell.
  virtual Status advance(HostPort& port, bool& done) = 0;
  // After that: joined or declined.
  virtual bool settled() const noexcept = 0;
};

}  // namespace accord::core
