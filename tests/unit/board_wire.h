// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between ranks of one process, which arrive when chance has it and are read as late as
// they may.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <list>
#include <random>

#include "core/placement.h"
#include "core/wire.h"

namespace accord::test {

// What is under way between all ranks. A message is copied when both ends are there and chance has
// it; only then is either complete.
class Board {
 public:
  explicit Board(unsigned seed) : random_(seed) {}

  struct Message {
    int from;
    int to;
    int tag;
    const void* sent = nullptr;
    void* received = nullptr;
    std::size_t sent_bytes = 0;
    std::size_t size_bytes = 0;  // of the receive
    bool done = false;
  };

  Message& post(bool sends, int from, int to, int tag, const void* sent, void* received,
                std::size_t size_bytes) {
    for (Message& one : messages_) {
      const bool waits = sends ? one.sent == nullptr : one.received == nullptr;
      if (!waits || one.from != from || one.to != to || one.tag != tag) continue;
      return fill(one, sends, sent, received, size_bytes);
    }
    messages_.push_back({from, to, tag});
    return fill(messages_.back(), sends, sent, received, size_bytes);
  }
  bool poll(Message& message) {
    const bool matched = message.sent != nullptr && message.received != nullptr;
    const bool is_held = message.from == held_from_;
    if (!message.done && matched && !is_held && random_() % 4 == 0) {
      EXPECT_LE(message.sent_bytes, message.size_bytes);
      std::memcpy(message.received, message.sent, message.sent_bytes);
      message.done = true;
    }
    return message.done;
  }
  // Nothing comes from this rank until another one is named.
  void hold_from(int rank) { held_from_ = rank; }
  // What it has sent.
  std::size_t bytes_from(int rank) const {
    std::size_t bytes = 0;
    for (const Message& one : messages_) bytes += one.from == rank ? one.sent_bytes : 0;
    return bytes;
  }
  // A receive that nothing comes for.
  static void withdraw(Message& message) {
    message.from = kGone;
    message.done = true;
  }
  static Message& fill(Message& message, bool sends, const void* sent, void* received,
                       std::size_t size_bytes) {
    (sends ? message.sent_bytes : message.size_bytes) = size_bytes;
    if (sends) message.sent = sent;
    if (!sends) message.received = received;
    return message;
  }
  std::size_t posted() const { return messages_.size(); }
  // From other nodes.
  std::size_t posted_far(const core::Placement& placement) const {
    return static_cast<std::size_t>(std::ranges::count_if(messages_, [&](const Message& one) {
      return one.from != kGone && placement.node(one.from) != placement.node(one.to);
    }));
  }
  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(messages_, [](const Message& one) { return !one.done; }));
  }

 private:
  static constexpr int kGone = -1;
  int held_from_ = -2;
  std::mt19937 random_;
  std::list<Message> messages_;
};

class BoardWire final : public core::Wire {
 public:
  static constexpr long kNever = -1;
  // Cannot begin the message of this number, at its first try, or none from there on.
  BoardWire(Board& board, int rank, long fails_at, bool for_good = false)
      : board_(board), rank_(rank), left_(fails_at), for_good_(for_good) {}
  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& request) override {
    ACCORD_TRY(count());
    return post(request, board_.post(true, rank_, rank, tag, bytes, nullptr, size_bytes));
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& request) override {
    EXPECT_LE(size_bytes, std::size_t{INT_MAX});  // a host MPI counts so far
    ACCORD_TRY(count());
    return post(request, board_.post(false, rank, rank_, tag, nullptr, bytes, size_bytes));
  }
  Status test(core::HostRequest& request, bool& done, core::Completion& completion) override {
    auto& message = *reinterpret_cast<Board::Message*>(request);
    done = board_.poll(message);
    if (done && message.to == rank_) completion.received_bytes = message.sent_bytes;
    return {};
  }
  void cancel(core::HostRequest& request) noexcept override {
    Board::withdraw(*reinterpret_cast<Board::Message*>(request));
  }
  Status opened() override { return {}; }

 private:
  Status count() {
    const bool fails = left_ == 0;
    if (left_ > 0 || (fails && !for_good_)) --left_;
    return fails ? Status(StatusCode::device_error, "no such message") : Status();
  }
  static Status post(core::HostRequest& request, Board::Message& message) {
    request = reinterpret_cast<core::HostRequest>(&message);
    return {};
  }

  Board& board_;
  int rank_;
  long left_;
  bool for_good_;
};

}  // namespace accord::test
