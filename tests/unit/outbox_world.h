// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The processes of a node, all here, with an outbox each; and messages for them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "node_world.h"
#include "p2p/device_message.h"

namespace accord::test {

using node::MessageHeader;

constexpr std::size_t kOutboxBytes = 16384;
constexpr std::size_t kMessageBytes = 4096;

// Processes of a node, all here.
class Processes {
 public:
  explicit Processes(int size) {
    std::vector<std::shared_ptr<node::Group>> groups;
    std::vector<node::Record> records(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      groups.emplace_back(new node::Group, node::Group::retire);
      EXPECT_OK(groups.back()->prepare(rank, size, device::host_runtime(), -1,
                                       {.of_messages = true},
                                       records[static_cast<std::size_t>(rank)]));
    }
    for (const auto& group : groups) {
      bool sent = false;
      EXPECT_OK(group->accept(records));
      for (int tries = 0; tries < 100 && !sent; ++tries) EXPECT_OK(group->send(sent));
      EXPECT_TRUE(sent);
    }
    for (const auto& group : groups) {
      EXPECT_OK(group->open());
      outboxes_.push_back(std::make_unique<node::Outbox>(group, kOutboxBytes));
      groups_.push_back(group);
    }
  }
  ~Processes() {
    for (const auto& outbox : outboxes_) outbox->close();
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  node::Outbox& operator[](int rank) { return *outboxes_[static_cast<std::size_t>(rank)]; }

  // Pages of host memory that a rank's messages take.
  std::size_t spilled_pages(int rank) {
    const std::span<std::byte> spill = groups_[static_cast<std::size_t>(rank)]->spill(rank);
    const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> is_there((std::size_t{1} << 20) / page_bytes);  // of the first ones
    EXPECT_EQ(0, ::mincore(spill.data(), is_there.size() * page_bytes, is_there.data()));
    return static_cast<std::size_t>(std::ranges::count(is_there, 1));
  }
  // Rank 0 can send rank 1 headers from here on.
  void introduce(device::DeviceRuntime& receivers_runtime = device::host_runtime()) {
    MessageHeader header;
    EXPECT_TRUE((*this)[0].attach(device::host_runtime(), 0));
    EXPECT_TRUE((*this)[1].attach(receivers_runtime, 0));
    EXPECT_FALSE((*this)[1].has_news());
    for (int call = 0; call < 2; ++call) EXPECT_FALSE(can_send(header));
    EXPECT_FALSE((*this)[1].may_hear_from(0));
    EXPECT_TRUE((*this)[1].has_news());
    (*this)[1].follow();
    EXPECT_FALSE((*this)[1].has_news());
    EXPECT_FALSE((*this)[1].may_hear_from(0));  // but from its first message on
  }
  // The receiver opens `buffer`, so that messages there are lent from here on.
  void lend(const Buffer& buffer, std::size_t size_bytes = kMessageBytes) {
    for (int call = 0; call < 2; ++call) {
      MessageHeader header;
      EXPECT_FALSE((*this)[0].reserve(1, size_bytes, source(buffer, size_bytes), header).is_lent);
      (*this)[0].withdraw(header);
    }
    (*this)[1].follow();
  }
  static node::Outbox::Source source(const Buffer& buffer, std::size_t size_bytes = kMessageBytes) {
    return {.start = static_cast<std::byte*>(buffer.address()),
            .span_bytes = size_bytes,
            .runs = {},
            .memory = device::classify(buffer.address())};
  }

 private:
  bool can_send(MessageHeader& header) {
    return outboxes_[0]->reserve(1, kMessageBytes, {}, header).start != nullptr;
  }

  std::vector<std::shared_ptr<node::Group>> groups_;
  std::vector<std::unique_ptr<node::Outbox>> outboxes_;
};

inline core::Segment bytes(std::size_t count) { return {core::Typemap::contiguous(1), count, 0}; }

inline core::StagedBuffer staged(const Buffer& buffer, const core::Segment& segment) {
  auto made = core::StagedBuffer::staged(buffer.address(), device::classify(buffer.address()));
  made.writes(segment);
  EXPECT_OK(made.open());
  return made;
}

inline Bytes counted(unsigned char first, std::size_t size_bytes = kMessageBytes) {
  Bytes made(size_bytes);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<unsigned char>(first + i * 7);
  return made;
}

}  // namespace accord::test
