// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A transport between ranks of one process: what is offered is copied once it is fetched, when
// chance has it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "coll/transport.h"

namespace accord::test {

// What is on offer between all ranks.
class OfferBoard {
 public:
  explicit OfferBoard(unsigned seed) : random_(seed) {}

  struct Offer {
    int from;
    int to;
    coll::Transport::Name name;
    net::Memory memory;
    net::Memory place{};
    bool is_fetched = false;  // somebody has asked for it
    bool is_over = false;     // its memory is its sender's again
    bool has_come = false;
  };

  std::shared_ptr<Offer> post(int from, int to, const net::Memory& memory) {
    offers_.push_back(std::make_shared<Offer>(Offer{from, to, offers_.size() + 1, memory}));
    return offers_.back();
  }
  std::shared_ptr<Offer> find(int from, int to, coll::Transport::Name name) const {
    EXPECT_TRUE(name >= 1 && name <= offers_.size()) << "nobody has offered " << name;
    const auto& found = offers_[name - 1];
    EXPECT_EQ(found->from, from);
    EXPECT_EQ(found->to, to);
    return found;
  }
  void go_on(Offer& offer) {
    if (!offer.is_fetched || offer.is_over || is_held_ || random_() % 4 != 0) return;
    EXPECT_EQ(offer.memory.size_bytes, offer.place.size_bytes);
    copy(offer.place, offer.memory);
    offer.is_over = true;
    offer.has_come = true;
  }
  // Nothing goes on meanwhile.
  void hold(bool is_held) { is_held_ = is_held; }
  bool is_fetched(coll::Transport::Name name) const { return offers_[name - 1]->is_fetched; }
  // Some do not reach each other yet.
  void reach_now_and_then() { reaches_always_ = false; }
  bool reaches() { return reaches_always_ || random_() % 2 == 0; }
  std::size_t posted() const { return offers_.size(); }
  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(offers_, [](const auto& one) { return !one->is_over; }));
  }
  std::size_t posted_on_devices() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        offers_, [](const auto& one) { return one->memory.where.runtime != nullptr; }));
  }

 private:
  static void copy(const net::Memory& to, const net::Memory& from) {
    device::DeviceRuntime* const runtime =
        to.where.runtime != nullptr ? to.where.runtime : from.where.runtime;
    const device::Copy one{.dst = to.start, .src = from.start, .row_bytes = from.size_bytes};
    if (runtime != nullptr) {
      EXPECT_TRUE(runtime->copy(0, {&one, 1}).ok());
    } else {
      std::memcpy(to.start, from.start, from.size_bytes);
    }
  }

  std::mt19937 random_;
  bool reaches_always_ = true;
  bool is_held_ = false;
  std::vector<std::shared_ptr<Offer>> offers_;
};

class BoardTransport final : public coll::Transport {
 public:
  BoardTransport(OfferBoard& board, int rank) : board_(board), rank_(rank) {}

  bool reaches(int /*rank*/) override { return board_.reaches(); }

  bool takes(const device::PointerInfo&) const override { return true; }
  std::unique_ptr<End> offer(int rank, const net::Memory& from, Name& name) override {
    auto posted = board_.post(rank_, rank, from);
    name = posted->name;
    return std::make_unique<Sent>(board_, std::move(posted));
  }
  std::unique_ptr<End> fetch(int rank, Name name, const net::Memory& to) override {
    auto found = board_.find(rank, rank_, name);
    EXPECT_FALSE(found->is_fetched);
    if (!found->is_over) {
      found->is_fetched = true;
      found->place = to;
    }
    return std::make_unique<Received>(board_, std::move(found));
  }
  void dismiss(int rank, Name name) noexcept override {
    const auto found = board_.find(rank, rank_, name);
    EXPECT_FALSE(found->is_fetched);
    found->is_over = true;
  }

 private:
  class Sent final : public End {
   public:
    Sent(OfferBoard& board, std::shared_ptr<OfferBoard::Offer> offer)
        : board_(board), offer_(std::move(offer)) {}
    ~Sent() override { EXPECT_TRUE(offer_->is_over) << "its memory goes while it is on offer"; }
    Sent(const Sent&) = delete;
    Sent& operator=(const Sent&) = delete;
    Status poll(bool& ended) override {
      board_.go_on(*offer_);
      ended = offer_->is_over;
      return {};
    }
    void stop() noexcept override {
      if (!offer_->is_fetched) offer_->is_over = true;
    }

   private:
    OfferBoard& board_;
    std::shared_ptr<OfferBoard::Offer> offer_;
  };
  class Received final : public End {
   public:
    Received(OfferBoard& board, std::shared_ptr<OfferBoard::Offer> offer)
        : board_(board), offer_(std::move(offer)) {}
    ~Received() override { EXPECT_TRUE(offer_->is_over) << "its place goes while it comes"; }
    Received(const Received&) = delete;
    Received& operator=(const Received&) = delete;
    Status poll(bool& ended) override {
      board_.go_on(*offer_);
      ended = offer_->is_over;
      if (!ended || offer_->has_come) return {};
      return {StatusCode::network, "its sender has withdrawn it"};
    }
    void stop() noexcept override {}

   private:
    OfferBoard& board_;
    std::shared_ptr<OfferBoard::Offer> offer_;
  };

  OfferBoard& board_;
  int rank_;
};

}  // namespace accord::test
