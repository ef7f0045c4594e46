// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/host_channel.h"

#include <utility>

#include "base/log.h"

namespace accord::net {

HostChannel::~HostChannel() {
  freight_.reset();
  if (worker_) worker_->close();
}

Freight& HostChannel::freight(Freight& own) {
  if (!options_.net_devices.empty() && !std::exchange(was_tried_, true)) {
    const Status opened = Worker::open(options_, worker_);
    if (opened.ok())
      freight_.emplace(*worker_, own.bounds(), own.name());
    else
      log::info("net: messages in host memory leave by the adapters for device memory: {}",
                opened.message());
  }
  return freight_ ? *freight_ : own;
}

}  // namespace accord::net
