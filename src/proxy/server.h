// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The proxy's side: one thread that sleeps until a rank wants something or the network needs it.
// What a rank was given ends with its connection, and the proxy with the last of these. Called by
// main.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "net/worker.h"
#include "node/descriptor.h"
#include "node/shared_pages.h"
#include "proxy/carrier.h"
#include "proxy/packet.h"

namespace accord::proxy {

class Server {
 public:
  struct Bounds {
    std::size_t pool_bytes_max = 0;  // of all ranks together
    Carrier::Bounds carrier;
  };

  // `worker` may be null: `why_not` then tells every rank why it gets nothing.
  Server(node::Descriptor listener, std::unique_ptr<net::Worker> worker, Status why_not,
         Bounds bounds)
      : listener_(std::move(listener)),
        worker_(std::move(worker)),
        why_not_(std::move(why_not)),
        bounds_(bounds) {
    if (worker_) carrier_.emplace(*worker_, bounds_.carrier);
  }

  // Returns once all ranks are gone, or none has ever come.
  void run();

 private:
  // Memory that a rank writes to and others read: the region goes before the pages.
  struct Grant {
    node::SharedPages pages;
    std::unique_ptr<net::Region> region;
  };
  struct Guest {
    std::uint64_t number = 0;
    node::Descriptor socket;
    bool is_greeted = false;
    std::vector<std::unique_ptr<Grant>> grants;
  };

  void sleep();
  void let_in();
  // Says no once it is to be forgotten.
  bool serve(Guest& guest);
  Status answer(Guest& guest, const Packet& request, Packet& reply);
  Status carry(const Guest& guest, const Packet& packet);
  // Says no where the rank does not take its answers.
  static bool tell(const Guest& guest, const Packet& packet);
  void tell_of(const Carrier::Ended& ended);
  Status give_pool(Guest& guest, std::size_t size_bytes, Packet& reply);
  void forget(Guest& guest) noexcept;

  node::Descriptor listener_;
  std::unique_ptr<net::Worker> worker_;
  Status why_not_;
  Bounds bounds_;
  std::optional<Carrier> carrier_;
  std::vector<Guest> guests_;
  std::vector<std::unique_ptr<Grant>> retired_;  // of ranks that are gone
  std::uint64_t last_guest_ = 0;
  std::size_t given_bytes_ = 0;
  bool had_guests_ = false;
};

}  // namespace accord::proxy
