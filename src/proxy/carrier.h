// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The active proxy's work: it reads device memory of ranks, opened here, chunk by chunk into
// page-locked memory, and puts each chunk where it is to go, in memory of a process of another
// node. The copies of one chunk and the network's work for others overlap. Polled by the server's
// thread; waits for nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "base/status.h"
#include "device/staging_pool.h"
#include "net/worker.h"
#include "proxy/packet.h"

namespace accord::proxy {

class Carrier {
 public:
  struct Bounds {
    std::size_t chunk_bytes = 0;
    std::size_t chunks_of_one = 0;  // that one message has under way
    std::size_t bytes_max = 0;      // of all chunks
  };
  struct Ended {
    std::uint64_t guest = 0;
    std::uint64_t number = 0;
    Status status;
  };

  Carrier(net::Worker& worker, const Bounds& bounds) : worker_(worker), bounds_(bounds) {}
  ~Carrier();

  // As a packet of the kind `carry` says, for the rank `guest`. After an error there is no such
  // message.
  Status begin(std::uint64_t guest, const Packet& packet);
  // Goes on with all; `ended` gets those that have.
  void advance(std::vector<Ended>& ended);
  // Whether it waits for copies, which nothing tells of.
  bool is_copying() const noexcept;
  // The rank is gone, and its memory with it.
  void forget(std::uint64_t guest) noexcept;

 private:
  struct Part {
    device::StagingBuffer chunk;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    bool is_copying = true;
    device::CopyTicket copying;
    net::Ticket putting;
  };
  struct Message {
    std::uint64_t guest = 0;
    std::uint64_t number = 0;
    device::DeviceRuntime* runtime = nullptr;
    int device = 0;
    void* opened = nullptr;
    const std::byte* from = nullptr;
    std::size_t size_bytes = 0;
    std::uint64_t to = 0;
    net::Peer* peer = nullptr;
    std::unique_ptr<net::RemoteRegion> region;
    std::size_t begun_bytes = 0;
    std::size_t put_bytes = 0;
    std::deque<Part> parts;
  };

  Status advance(Message& message);
  Status advance(Message& message, Part& part, bool& is_over);
  Status begin_copies(Message& message);
  void end(Message& message) noexcept;

  net::Worker& worker_;
  const Bounds bounds_;
  std::list<Message> messages_;
  std::size_t used_bytes_ = 0;
};

}  // namespace accord::proxy
