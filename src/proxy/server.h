// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A thread of the proxy's, and the ranks that it serves: it sleeps until one of them wants
// something or its worker needs it, and shares nothing with other threads. What a rank was given
// ends with its connection. The door (door.h) brings ranks.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/freight.h"
#include "net/worker.h"
#include "node/descriptor.h"
#include "node/shared_pages.h"
#include "proxy/core_watch.h"
#include "proxy/errands.h"
#include "proxy/packet.h"

namespace accord::proxy {

class Server {
 public:
  struct Bounds {
    std::size_t pool_bytes_max = 0;  // of all its ranks together
    net::Freight::Bounds freight;
  };

  // `worker` may be null: `why_not` then tells every rank why it gets nothing. `node`: the name of
  // this one.
  Server(std::unique_ptr<net::Worker> worker, Status why_not, const Bounds& bounds,
         const std::string& node);

  // Serves its ranks until stop. `rest` is called whenever it has none any more, and nothing to do.
  void run(const std::function<void()>& rest);

  // By any thread.

  // A rank, with its number in this process.
  void take(node::Descriptor socket, std::uint64_t number);
  std::size_t guests();
  bool is_idle();
  void stop() noexcept;

 private:
  // Memory that a rank writes to and others read: the region goes before the pages.
  struct Grant {
    node::SharedPages pages;
    std::unique_ptr<net::Region> region;
  };
  // Of a rank that is gone, which has told others to read there.
  struct Retired {
    std::unique_ptr<Grant> grant;
    std::chrono::steady_clock::time_point since;
  };
  struct Guest {
    std::uint64_t number = 0;
    node::Descriptor socket;
    bool is_greeted = false;
    std::vector<std::unique_ptr<Grant>> grants;
    std::deque<Packet> untold;  // what its socket had no room for yet, in order
  };

  // Says no once it is to end.
  bool let_in();
  void go_on();
  bool has_ended();
  // Whether it has just become idle.
  bool note_load();
  void sleep();
  // Says no once it is to be forgotten.
  bool serve(Guest& guest);
  Status answer(Guest& guest, const Packet& request, Packet& reply);
  Status begin(const Guest& guest, const Packet& packet);
  // Never waits. These say no where the rank is gone.
  static bool tell(Guest& guest, Packet packet);
  static bool tell_rest(Guest& guest);
  void tell_of(const Errands::Ended& ended);
  Status make_grant(std::size_t size_bytes, std::unique_ptr<Grant>& grant);
  Status give_pool(Guest& guest, std::size_t size_bytes, Packet& reply);
  void forget(Guest& guest) noexcept;

  std::unique_ptr<net::Worker> worker_;
  const Status why_not_;
  const Bounds bounds_;
  node::Descriptor bell_;  // readable when another thread wants something
  std::optional<net::Freight> freight_;
  std::optional<Errands> errands_;
  std::vector<Guest> guests_;
  CoreWatch core_;  // of the thread that serves
  std::vector<Retired> retired_;
  std::size_t given_bytes_ = 0;
  std::chrono::steady_clock::time_point moved_at_;                 // something in the network
  std::optional<std::chrono::steady_clock::time_point> leave_by_;  // with no ranks any more

  std::mutex mutex_;  // guards what follows
  std::vector<Guest> newcomers_;
  std::size_t guest_count_ = 0;  // newcomers included
  bool is_idle_ = true;
  bool is_stopping_ = false;
};

}  // namespace accord::proxy
