// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A process's second end of the network, by the adapters that are for host memory: what messages in
// host memory are carried by where the process's own worker has the adapters for device memory.
// Opened with the first such message. Called by mail.cpp, with its worker locked; sends and hears
// whenever that one's thread is at it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "net/freight.h"

namespace accord::net {

class HostChannel {
 public:
  // `devices`: as UCX_NET_DEVICES means it; empty: there is none.
  HostChannel(std::string devices, std::string transports, const JobKey& key)
      : options_{.net_devices = std::move(devices),
                 .transports = std::move(transports),
                 .key = key,
                 .patience = std::chrono::seconds(config().peer_timeout_s)} {}
  ~HostChannel();
  HostChannel(const HostChannel&) = delete;
  HostChannel& operator=(const HostChannel&) = delete;

  // Its own, like `own`, which is that of the process's worker; or that, where it has none.
  Freight& freight(Freight& own);
  // Null until it has been opened.
  Worker* worker() const noexcept { return worker_.get(); }

 private:
  const Worker::Options options_;
  bool was_tried_ = false;
  std::unique_ptr<Worker> worker_;
  std::optional<Freight> freight_;
};

}  // namespace accord::net
