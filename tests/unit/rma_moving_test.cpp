// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Puts and gets of two services that go by a transport: messages only name them.
#include <utility>

#include "board_transport.h"
#include "rma_services.h"

namespace accord::test {
namespace {

class BoardTransports final : public rma::Transports {
 public:
  BoardTransports(OfferBoard& board, int rank) : transport_(board, rank) {}
  std::int32_t choose(int, std::size_t, const device::PointerInfo&) override { return 0; }
  net::Transport* find(std::int32_t number) override { return number == 0 ? &transport_ : nullptr; }

 private:
  BoardTransport transport_;
};

class MovingService : public Service {
 protected:
  MovingService() : Service(&origins_, &targets_) {}
  // Puts and gets `count` numbers from that one of the window on.
  Status move(message::Kind kind, int first, int count, const OnDevice& memory,
              std::int32_t transport = 0) {
    rma::Service::Question question;
    question.header.kind = kind;
    question.header.transport = transport;
    const Pieces pieces = ints({{first, count}});
    question.pieces = pieces;
    question.memory = {memory.place().start, static_cast<std::size_t>(count) * sizeof(int),
                       memory.place().where};
    return origin_.ask(1, question, {}, progress_);
  }
  bool ends() {
    for (int i = 0; i < 100 && !progress_->is_done(); ++i) go_on();
    return progress_->is_done() && origin_.is_quiet(1) && board_.unfinished() == 0;
  }

  OfferBoard board_{7};
  BoardTransports origins_{board_, 0};
  BoardTransports targets_{board_, 1};
};

using rma_moving = MovingService;

TEST_F(rma_moving, puts_from_memory_to_memory) {
  const OnDevice origin(counted(5000, kCount));
  EXPECT_OK(move(message::Kind::put, 10, 900, origin));
  EXPECT_FALSE(progress_->is_done());
  EXPECT_FALSE(origin_.is_quiet(1));
  EXPECT_TRUE(ends());
  EXPECT_OK(progress_->status);
  std::vector<int> wanted = counted(0, kCount);
  for (int i = 0; i < 900; ++i) wanted[static_cast<std::size_t>(10 + i)] = 5000 + i;
  EXPECT_EQ(memory_.content(), wanted);
  EXPECT_EQ(board_.posted_on_devices(), 1u);
}

TEST_F(rma_moving, gets_from_memory_to_memory) {
  const OnDevice result(std::vector<int>(kCount, -1));
  EXPECT_OK(move(message::Kind::get, 100, kCount - 100, result));
  EXPECT_TRUE(ends());
  EXPECT_OK(progress_->status);
  std::vector<int> wanted = counted(100, kCount);
  std::fill(wanted.end() - 100, wanted.end(), -1);
  EXPECT_EQ(result.content(), wanted);
}

TEST_F(rma_moving, carries_out_what_comes_after_it_meanwhile) {
  const OnDevice origin(counted(5000, kCount));
  EXPECT_OK(move(message::Kind::put, 0, 10, origin));
  EXPECT_OK(ask(message::Kind::put, ints({{20, 1}}), {-20}));
  (void)target_.advance(port_);
  EXPECT_EQ(memory_.content()[20], -20);
  EXPECT_TRUE(ends());
  EXPECT_EQ(memory_.content()[9], 5009);
}

// Its memory is the user's again, though nobody has come for it.
TEST_F(rma_moving, ends_with_an_error_beyond_the_window_or_by_no_transport) {
  const OnDevice origin(counted(5000, kCount));
  EXPECT_OK(move(message::Kind::put, 1, kCount, origin));
  EXPECT_TRUE(ends());
  EXPECT_CODE(out_of_window, progress_->status);
  progress_ = std::make_shared<Progress>();
  EXPECT_OK(move(message::Kind::get, kCount, 1, origin));
  EXPECT_TRUE(ends());
  EXPECT_CODE(out_of_window, progress_->status);
  EXPECT_EQ(memory_.content(), counted(0, kCount));
  progress_ = std::make_shared<Progress>();
  EXPECT_OK(move(message::Kind::get, 0, 1, origin, 3));
  EXPECT_TRUE(ends());
  EXPECT_CODE(unsupported, progress_->status);
}

TEST_F(rma_moving, takes_back_what_the_dead_have_not_fetched) {
  const OnDevice origin(counted(5000, kCount));
  EXPECT_OK(move(message::Kind::put, 0, kCount, origin));
  lines_[1] = cut_line();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!origin_.is_quiet(1) && std::chrono::steady_clock::now() < give_up)
    (void)origin_.advance(port_);
  EXPECT_TRUE(progress_->is_done());
  EXPECT_CODE(device_error, progress_->status);
  EXPECT_EQ(board_.unfinished(), 0u);
}

// What the target is reading is not the user's, whatever else has gone wrong.
TEST_F(rma_moving, is_not_done_while_its_memory_is_being_read) {
  const OnDevice origin(counted(5000, kCount));
  EXPECT_OK(move(message::Kind::put, 0, kCount, origin));
  while (board_.unfinished() != 0 && !board_.is_fetched(1)) (void)target_.advance(port_);
  board_.hold(true);
  message::Packet question;  // which the origin cannot answer
  question.header.kind = message::Kind::life;
  question.header.from = 1;
  const auto* const begin = reinterpret_cast<const std::byte*>(&question);
  post_.messages.push_front({1, 0, message::kPacketTag, {begin, begin + question.size_bytes()}});
  post_.is_broken = true;
  for (int i = 0; i < 100; ++i) go_on();
  EXPECT_FALSE(progress_->is_done());
  board_.hold(false);
  EXPECT_TRUE(ends());
  EXPECT_CODE(network, progress_->status);
}

TEST_F(rma_moving, believes_no_reply_that_offers_nothing) {
  const OnDevice result(std::vector<int>(kCount, -1));
  EXPECT_OK(move(message::Kind::get, 0, kCount, result));
  message::Packet reply;
  reply.header.from = 1;
  reply.header.number = 1;
  const auto* const begin = reinterpret_cast<const std::byte*>(&reply);
  post_.messages.push_front({1, 0, message::kPacketTag, {begin, begin + reply.size_bytes()}});
  (void)origin_.advance(port_);
  EXPECT_TRUE(progress_->is_done());
  EXPECT_CODE(mismatch, progress_->status);
  go_on();
  target_.close();
  for (int i = 0; i < 100 && board_.unfinished() != 0; ++i) (void)target_.advance(port_);
  EXPECT_EQ(target_.advance(port_), core::Operation::Phase::done);
}

}  // namespace
}  // namespace accord::test
