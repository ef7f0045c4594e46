// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/trial.h"

#include <atomic>

#include "base/log.h"

namespace accord::node {

Status Trial::run(device::DeviceRuntime& runtime, int device, const device::Reduction& reduction,
                  bool& done) {
  static std::atomic<bool> warned{false};
  runtime_ = &runtime;
  const auto give_up = std::chrono::steady_clock::now() + patience;
  outcome_ = runtime.reduce_begin(device, reduction, ticket_);
  ACCORD_TRY(outcome_);
  do {
    ACCORD_TRY(poll(done));
  } while (!done && std::chrono::steady_clock::now() < give_up);
  if (!done && !warned.exchange(true))
    log::warn(
        "device {} has run no kernel of this library for {} ms: a kernel of the program fills "
        "it; calls that need one go another way meanwhile",
        device, patience.count());
  return {};
}

bool Trial::ended() noexcept {
  bool done = false;
  return !poll(done).ok() || done;
}

Status Trial::poll(bool& done) {
  done = ticket_.handle == nullptr;
  if (done) return {};
  outcome_ = runtime_->copy_done(ticket_, done);
  if (done || !outcome_.ok()) ticket_ = {};
  return outcome_;
}

}  // namespace accord::node
