// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A rank's connection to the proxy of its node: the first rank that wants one starts the proxy, the
// others find it by the job's cookie. The proxy lives for as long as a
// rank has such a connection, and a rank learns by it that the proxy has died. Knows no MPI.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device_runtime.h"
#include "node/descriptor.h"
#include "node/shared_pages.h"
#include "proxy/launch.h"
#include "proxy/packet.h"

namespace accord::proxy {

// Which proxy: one a job, a node (of pretence, too), a user and a network namespace.
struct Meeting {
  std::uint64_t cookie = 0;  // random, the same on all ranks of the job
  std::uint64_t node = 0;    // node_number()
  std::string program;       // what is started where there is none
  // Settings for that program, NAME=value, besides those of this process.
  std::vector<std::string> settings;
  // Of whoever makes this: the proxy is started later, when the program may change its own.
  std::vector<std::string> environment = environment_of_proxy();
};

// This machine, and its part where it is split, for people.
std::string node_name();

// Host memory that the proxy has made, and made known to the network, for one rank: the rank's
// device copies into it, ranks of other nodes read it at the proxy.
struct Pool {
  node::SharedPages pages;
  std::uint64_t address = 0;   // in the proxy
  std::vector<std::byte> key;  // remote key of it
};

class Client {
 public:
  // Waits until the proxy is there, ten seconds at most.
  static Status connect(const Meeting& meeting, std::unique_ptr<Client>& made);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  std::int64_t process() const noexcept { return process_; }
  // How others reach its worker; nothing where it has none.
  const std::vector<std::byte>& worker() const noexcept { return worker_; }
  // That it may use, along with the ranks.
  int cores() const noexcept { return cores_; }
  // Whether it had a core when it wanted one, of late: what lacks one is asked again after a
  // moment.
  bool has_core();
  // This rank, for the proxy.
  std::uint64_t number() const noexcept { return number_; }

  // An error that names the node once the proxy is gone, and from then on. A system call.
  Status check();
  // Gives it a message of the kinds `carry` and `land`; never waits, and `sent` says no where it is
  // too busy to take it yet. To be polled until it is done.
  Status give(const Packet& packet, bool& sent);
  Status poll(std::uint64_t number, bool& done);
  // It is to end soon.
  void drop(std::uint64_t number) noexcept;
  // Readable when something has come; -1 once the proxy is gone.
  int descriptor() noexcept;
  // unsupported where its bound leaves no room.
  Status take_pool(std::size_t size_bytes, std::shared_ptr<Pool>& pool);

 private:
  explicit Client(node::Descriptor socket);
  Status greet();
  // The answer to one request; ends with the proxy's life.
  Status ask(const Packet& request, Packet& answer);
  Status gone();
  // Takes what has come unasked.
  Status attend();

  std::mutex asking_;  // one request at a time
  std::mutex mutex_;   // never held while waiting; guards what follows
  std::optional<Packet> answer_;
  std::map<std::uint64_t, Status> ended_;  // messages that nobody has asked for since
  std::vector<std::uint64_t> dropped_;     // of which the proxy is yet to be told
  node::Descriptor socket_;
  std::int64_t process_ = 0;
  std::vector<std::byte> worker_;
  int cores_ = 0;
  std::uint64_t number_ = 0;
  bool is_gone_ = false;
  std::chrono::steady_clock::time_point spared_until_;  // it lacked a core
};

}  // namespace accord::proxy
