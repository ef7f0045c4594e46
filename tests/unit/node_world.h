// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The ranks of a node, all in this process and polled by one thread, over the embedded host
// runtime: groups joined, buffers of "device" memory, and collectives whose ranks move on in a
// random order. As soon as a rank's call is complete its send buffer is overwritten, so that a peer
// that still reads it gets wrong data.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "coll/intra/node_exchange.h"
#include "coll/pairs/pairwise_exchange.h"
#include "device/registry.h"
#include "support.h"

namespace accord::device {
DeviceRuntime& host_runtime();
}

namespace accord::test {

using Bytes = std::vector<unsigned char>;

// Device memory, or host memory that the CPU may touch.
class Buffer {
 public:
  explicit Buffer(std::size_t size_bytes, device::MemoryKind kind = device::MemoryKind::device)
      : size_bytes_(size_bytes) {
    EXPECT_OK(device::host_runtime().allocate(0, kind, size_bytes, address_));
  }
  ~Buffer() { free(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void free() {
    if (address_ != nullptr) EXPECT_OK(device::host_runtime().free(address_));
    address_ = nullptr;
  }
  void* address() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }

  void write(const Bytes& bytes) {
    const device::Copy one{address_, bytes.data(), bytes.size()};
    EXPECT_OK(device::host_runtime().copy(0, {&one, 1}));
  }
  Bytes read(std::size_t size_bytes) const {
    Bytes bytes(size_bytes);
    const device::Copy one{bytes.data(), address_, bytes.size()};
    EXPECT_OK(device::host_runtime().copy(0, {&one, 1}));
    return bytes;
  }

  // The first bytes of it as an end of a call.
  core::CallEnd end(std::size_t bytes) const {
    core::CallEnd made;
    EXPECT_TRUE(device::host_runtime().classify(address_, made.memory));
    made.user = address_;
    made.runtime = made.memory.runtime;
    made.device = made.memory.device;
    made.on_device = made.memory.kind == device::MemoryKind::device;
    made.segment = {core::Typemap::contiguous(1), bytes, 0};
    return made;
  }

 private:
  std::size_t size_bytes_;
  void* address_ = nullptr;
};

inline std::unique_ptr<coll::Exchange> make_exchange(std::shared_ptr<node::Group> group,
                                                     const coll::CollArgs& view) {
  if (node::goes_by_pairs(view.exchange->kind))
    return std::make_unique<coll::PairwiseExchange>(std::move(group), view);
  return std::make_unique<coll::NodeExchange>(std::move(group), view);
}

// While it lives, a kernel that does not run is soon given up on.
class ShortPatience {
 public:
  ShortPatience() { node::Trial::patience = std::chrono::milliseconds(300); }
  ~ShortPatience() { node::Trial::patience = usual_; }
  ShortPatience(const ShortPatience&) = delete;
  ShortPatience& operator=(const ShortPatience&) = delete;

 private:
  std::chrono::milliseconds usual_ = node::Trial::patience;
};

// A communicator of `size` ranks.
class NodeWorld {
 public:
  NodeWorld(int size, std::size_t region_bytes, unsigned seed,
            device::DeviceRuntime& runtime = device::host_runtime())
      : random_(seed) {
    std::vector<node::Record> records(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      groups_.emplace_back(new node::Group, node::Group::retire);
      EXPECT_OK(groups_.back()->prepare(rank, size, runtime, 0, {.region_bytes = region_bytes},
                                        records[static_cast<std::size_t>(rank)]));
    }
    for (const auto& group : groups_) {
      bool sent = false;
      EXPECT_OK(group->accept(records));
      for (int tries = 0; tries < 100 && !sent; ++tries) EXPECT_OK(group->send(sent));
      EXPECT_TRUE(sent);
    }
    for (const auto& group : groups_) EXPECT_OK(group->open());
  }

  node::Group& group(int rank) { return *shared_group(rank); }
  std::shared_ptr<node::Group> shared_group(int rank) {
    return groups_[static_cast<std::size_t>(rank)];
  }

  // One call on all ranks, given by each rank's view of it. `ended` is called for each rank when
  // its call is. The way it went, or "?" where the ranks do not agree.
  template <class Ended>
  std::string run(const std::vector<coll::CollArgs>& views, Ended&& ended) {
    std::vector<std::string> ways(views.size());
    for (const Status& status : outcomes(views, ended, ways)) {
      if (status.ok()) continue;
      ADD_FAILURE() << status.message();
      return "?";
    }
    return std::equal(ways.begin() + 1, ways.end(), ways.begin()) ? ways[0] : "?";
  }

  // What the call comes to on each rank; all after the one that fails for good fail too.
  template <class Ended>
  std::vector<Status> outcomes(const std::vector<coll::CollArgs>& views, Ended&& ended,
                               std::vector<std::string>& ways) {
    std::vector<std::unique_ptr<coll::Exchange>> calls(views.size());
    std::vector<Status> statuses(views.size());
    std::size_t left = views.size();
    for (std::size_t polls = 0; left > 0; ++polls) {
      if (polls > 1000000) {
        ADD_FAILURE() << "the call does not end";
        return statuses;
      }
      const std::size_t rank = random_() % views.size();
      if (!ways[rank].empty()) continue;
      if (!calls[rank]) {
        groups_[rank]->offers().tend();
        calls[rank] = make_exchange(groups_[rank], views[rank]);
      }
      bool done = false;
      statuses[rank] = calls[rank]->advance(done);
      if (!statuses[rank].ok()) {
        for (done = false; !done;) calls[rank]->stop(done);
      }
      if (!done) continue;
      ways[rank] = calls[rank]->path();
      ended(static_cast<int>(rank));
      --left;
    }
    return statuses;
  }

 private:
  std::vector<std::shared_ptr<node::Group>> groups_;
  std::mt19937 random_;
};

}  // namespace accord::test
