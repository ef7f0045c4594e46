// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// File descriptors from rank to rank of a node, over Unix domain sockets (SCM_RIGHTS): they work
// where a process may not look at another, as between containers. A process has one socket for all
// its groups, under a random name in the abstract namespace, and each group a port there. Names of
// that kind do not meet where network namespaces differ: there a port has a socket of its own in a
// private directory for as long as its group is joined, and sends nothing afterwards. The kernel
// tells whose process sent a parcel; those of other users are dropped. Nothing here waits. Knows no
// MPI and no vendor. Thread-safe but for calls on one port.
//
// Nothing is shown to a peer before what it takes to open it is in that peer's socket: so nobody
// waits for a parcel, which is there or never comes. A full socket means later, not now.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "node/descriptor.h"

namespace accord::node {

// Where to send to: plain bytes, random numbers.
struct PortAddress {
  std::uint64_t process = 0;
  std::uint64_t port = 0;
};

// What a parcel is; of one sender and item the last one counts.
struct ParcelLabel {
  std::int32_t from = -1;  // rank
  std::int32_t item = 0;
  std::uint32_t generation = 0;
};

class DescriptorPort {
 public:
  static constexpr std::size_t kDescriptorsMax = 4;  // of one parcel

  DescriptorPort();
  ~DescriptorPort();
  DescriptorPort(const DescriptorPort&) = delete;
  DescriptorPort& operator=(const DescriptorPort&) = delete;

  Status open();
  const PortAddress& address() const noexcept { return address_; }

  // Which network namespace this process is in: equal in all that are in the same, 0 where the
  // kernel does not say.
  static std::uint64_t network();
  // From here on parcels go to sockets below `directory`, which all senders and receivers must be
  // given; until close_path, from which on none do.
  Status open_path(const std::string& directory);
  void close_path() noexcept;

  // The descriptors stay the caller's. `sent` says no where the receiver has no room, or no socket
  // yet: try again later.
  Status send(const PortAddress& to, const ParcelLabel& label, std::span<const int> descriptors,
              bool& sent);
  // The parcel, where it has come; what was sent before something else was learnt from its sender
  // has.
  bool take(const ParcelLabel& label, std::vector<Descriptor>& descriptors);
  // Closes what has come of this sender and item up to this generation, and nobody will take.
  void drop(const ParcelLabel& last);
  // Makes room for further parcels.
  void receive();

 private:
  enum class Path { none, open, closed };

  bool receive_some();
  void receive_all();

  PortAddress address_;
  Path path_ = Path::none;
  std::string directory_;
  Descriptor path_socket_;
};

}  // namespace accord::node
