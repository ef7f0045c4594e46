// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two services of a window that talk to each other, and what carries their messages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "idle_port.h"
#include "rma/service.h"
#include "rma_world.h"

namespace accord::test {

// Messages between two ranks of this process, that come as soon as their receiver asks.
struct Post {
  struct Message {
    int from;
    int to;
    int tag;
    std::vector<std::byte> bytes;
  };
  struct Receive {
    int by;
    int from;
    int tag;
    void* bytes;
    std::size_t room_bytes;
    bool is_through = false;
  };
  std::deque<Message> messages;
  std::deque<Receive> receives;
  bool is_broken = false;
  bool keeps_sends = false;  // as under way
  std::mutex mutex;          // a progress thread may be at it, too
};

class FakeWire final : public core::Wire {
 public:
  FakeWire(Post& post, int rank) : post_(post), rank_(rank) {}
  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& request) override {
    const std::lock_guard locked(post_.mutex);
    if (post_.is_broken) return {StatusCode::network, "broken"};
    const auto* const begin = static_cast<const std::byte*>(bytes);
    post_.messages.push_back({rank_, rank, tag, {begin, begin + size_bytes}});
    request = post_.keeps_sends ? kUnderWay : kComplete;
    return {};
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& request) override {
    const std::lock_guard locked(post_.mutex);
    post_.receives.push_back({rank_, rank, tag, bytes, size_bytes});
    request = post_.receives.size();
    return {};
  }
  Status test(core::HostRequest& request, bool& done, core::Completion& completion) override {
    done = request == kComplete;
    if (done || request == kUnderWay) return {};
    const std::lock_guard locked(post_.mutex);
    Post::Receive& mine = post_.receives[request - 1];
    const auto found =
        std::find_if(post_.messages.begin(), post_.messages.end(), [&](const Post::Message& one) {
          return one.to == mine.by && one.tag == mine.tag &&
                 (mine.from == kAnyRank || mine.from == one.from);
        });
    if (found == post_.messages.end()) return {};
    EXPECT_LE(found->bytes.size(), mine.room_bytes);
    std::memcpy(mine.bytes, found->bytes.data(), found->bytes.size());
    completion.received_bytes = found->bytes.size();
    post_.messages.erase(found);
    done = true;
    return {};
  }
  void cancel(core::HostRequest&) noexcept override {}
  Status opened() override { return {}; }

 private:
  static constexpr core::HostRequest kComplete = 0;
  static constexpr core::HostRequest kUnderWay = ~core::HostRequest{0};

  Post& post_;
  int rank_;
};

// Rank 0 asks rank 1, whose memory it is about.
class Service : public ::testing::Test {
 protected:
  explicit Service(rma::Transports* origins = nullptr, rma::Transports* targets = nullptr)
      : origin_(std::make_unique<FakeWire>(post_, 0), 0, 2, nothing_, lines_, origins),
        target_(std::make_unique<FakeWire>(post_, 1), 1, 2, own_, lines_, targets) {}
  static constexpr int kCount = 1000;

  void SetUp() override {
    EXPECT_OK(origin_.open());
    EXPECT_OK(target_.open());
  }
  // Both make MPI calls.
  void go_on() {
    for (int i = 0; i < 8; ++i) {
      (void)origin_.advance(port_);
      (void)target_.advance(port_);
    }
  }
  Status ask(message::Kind kind, const Pieces& pieces, std::vector<int> data, Result result = {}) {
    rma::Service::Question question;
    question.header.kind = kind;
    question.header.update = kSum;
    question.pieces = pieces;
    question.data = std::as_bytes(std::span(data));
    return origin_.ask(1, question, std::move(result), progress_);
  }

  OnDevice memory_{counted(0, kCount)};
  Words words_;
  LifeLines lines_ = LifeLines(2);
  const Target nothing_;
  const Target own_{memory_.place(), &words_, 1, &lines_, add, nullptr, kCount * sizeof(int)};
  Post post_;
  IdlePort port_;
  rma::Service origin_;
  rma::Service target_;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
};

}  // namespace accord::test
