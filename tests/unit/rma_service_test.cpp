// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The service that does one-sided operations by messages, two of which talk to each other here.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "node/life_line.h"
#include "rma_services.h"

namespace accord::test {
namespace {

using rma_service = Service;

TEST_F(rma_service, does_the_requests_of_one_origin_in_their_order) {
  std::vector<int> result(3, -1);
  EXPECT_OK(ask(message::Kind::put, ints({{5, 2}}), {70, 71}));
  EXPECT_OK(ask(message::Kind::update, ints({{5, 1}, {9, 1}}), {1, 2}));
  EXPECT_OK(ask(message::Kind::get, ints({{5, 2}, {9, 1}}), {}, {on_host(result), ints({{0, 3}})}));
  EXPECT_FALSE(origin_.is_quiet(1));
  EXPECT_FALSE(progress_->is_done());
  go_on();
  EXPECT_TRUE(origin_.is_quiet(1));
  EXPECT_TRUE(progress_->is_done());
  EXPECT_EQ(result, (std::vector<int>{71, 71, 11}));
}

// Each MPI call of a rank polls it: in a job of many ranks that must not look at each of them.
TEST_F(rma_service, looks_only_at_those_that_have_asked_for_something) {
  constexpr int kRanks = 5000;
  LifeLines lines(kRanks);
  rma::Service asked{std::make_unique<FakeWire>(post_, 1), 1, kRanks, own_, lines};
  EXPECT_OK(asked.open());
  for (int poll = 0; poll < 100; ++poll) (void)asked.advance(port_);
  EXPECT_EQ(asked.looks(), 0u);
  EXPECT_OK(ask(message::Kind::put, ints({{5, 1}}), {70}));
  EXPECT_OK(ask(message::Kind::put, ints({{6, 1}}), {71}));
  for (int poll = 0; poll < 100; ++poll) (void)asked.advance(port_);
  EXPECT_LE(asked.looks(), 2u);
  EXPECT_EQ(memory_.content()[5], 70);
  EXPECT_EQ(memory_.content()[6], 71);
}

TEST_F(rma_service, sends_what_is_long_after_its_header) {
  std::vector<int> result(kCount, -1);
  EXPECT_OK(ask(message::Kind::put, ints({{0, kCount}}), counted(7, kCount)));
  EXPECT_OK(ask(message::Kind::fetch, ints({{0, kCount}}), std::vector<int>(kCount, 1),
                {on_host(result), ints({{0, kCount}})}));
  go_on();
  EXPECT_EQ(result, counted(7, kCount));
  EXPECT_EQ(memory_.content(), counted(8, kCount));
}

TEST_F(rma_service, gives_a_lock_once_it_is_free) {
  ASSERT_TRUE(try_lock(words_, LockKind::exclusive, 1));
  EXPECT_OK(ask(message::Kind::lock, {}, {}));
  go_on();
  EXPECT_FALSE(progress_->is_done());
  unlock(words_, LockKind::exclusive);
  go_on();
  EXPECT_TRUE(progress_->is_done());
  EXPECT_FALSE(try_lock(words_, LockKind::exclusive, 1));
  EXPECT_OK(ask(message::Kind::unlock, {}, {}));
  go_on();
  EXPECT_TRUE(try_lock(words_, LockKind::exclusive, 1));
}

// By its request, or by the next flush where it has none.
TEST_F(rma_service, tells_the_origin_of_an_error_once) {
  lines_[0] = cut_line();
  words_.update_holder = 1;
  EXPECT_OK(ask(message::Kind::update, ints({{0, 1}}), {1}));
  go_on();
  EXPECT_TRUE(progress_->is_done());
  EXPECT_CODE(device_error, progress_->status);
  EXPECT_OK(origin_.take_error(1));
  progress_ = nullptr;
  EXPECT_OK(ask(message::Kind::update, ints({{0, 1}}), {1}));
  go_on();
  EXPECT_TRUE(origin_.is_quiet(1));
  EXPECT_CODE(device_error, origin_.take_error(1));
  EXPECT_OK(origin_.take_error(1));
}

// A socket holds 11 parcels. This rank is in a call that is not about its window.
TEST_F(rma_service, makes_room_for_the_parcels_of_its_peers) {
  int told[2];
  ASSERT_EQ(0, ::pipe(told));
  const pid_t child = ::fork();
  if (child == 0) {
    node::DescriptorPort port;
    const Status opened = port.open();
    if (::write(told[1], &port.address(), sizeof port.address()) < 0 || !opened.ok()) ::_exit(1);
    target_.makes_room_in(port);
    for (;; ::usleep(100)) (void)target_.advance(port_);
  }
  node::PortAddress peer;
  ASSERT_EQ(static_cast<ssize_t>(sizeof peer), ::read(told[0], &peer, sizeof peer));
  node::DescriptorPort port;
  ASSERT_OK(port.open());
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (int item = 0; item < 40; ++item)
    for (bool sent = false; !sent && std::chrono::steady_clock::now() < give_up; ::sched_yield())
      ASSERT_OK(port.send(peer, {0, item, 0}, {&told[0], 1}, sent));
  EXPECT_LT(std::chrono::steady_clock::now(), give_up);
  ::kill(child, SIGKILL);
  EXPECT_EQ(child, ::waitpid(child, nullptr, 0));
  for (const int end : told) ::close(end);
}

TEST_F(rma_service, takes_nothing_more_where_it_cannot_send) {
  EXPECT_OK(ask(message::Kind::put, ints({{0, 1}}), {1}));
  post_.is_broken = true;
  go_on();  // the target cannot reply
  EXPECT_CODE(network, ask(message::Kind::put, ints({{0, 1}}), {1}));
}

// What a rank may send that is none of Accord's.
TEST_F(rma_service, believes_nothing_of_a_header) {
  message::Packet good;
  good.header.kind = message::Kind::put;
  good.header.from = 0;
  good.header.body_bytes = sizeof(Piece) + sizeof(int);
  good.header.pieces = 1;
  const Piece piece = ints({{5, 1}}).front();
  std::memset(good.body, 0, sizeof good.body);
  std::memcpy(good.body, &piece, sizeof piece);
  const auto send = [&](auto change, std::ptrdiff_t length_change = 0) {
    message::Packet bad = good;
    change(bad);
    const auto* const begin = reinterpret_cast<const std::byte*>(&bad);
    const std::size_t length = good.size_bytes() + static_cast<std::size_t>(length_change);
    post_.messages.push_back({0, 1, message::kPacketTag, {begin, begin + length}});
    go_on();
  };
  const auto with_piece = [&](Piece other) {
    return [other](message::Packet& one) { std::memcpy(one.body, &other, sizeof other); };
  };
  using Packet = message::Packet;
  send([](Packet& one) { one.header.from = 2; });
  send([](Packet& one) { one.header.from = -1; });
  send([](Packet&) {}, -1);
  send([](Packet&) {}, -100);
  send([](Packet& one) { one.header.pieces = std::uint64_t{1} << 60; });
  send([](Packet& one) { one.header.pieces = 0; });
  send([](Packet& one) { one.header.body_bytes = std::uint64_t{1} << 40; });
  send([](Packet& one) { one.header.kind = static_cast<message::Kind>(99); });
  send([](Packet& one) { one.header.kind = message::Kind::compare; });
  send([](Packet& one) { one.header.kind = message::Kind::unlock; });
  send([](Packet& one) {
    one.header.kind = message::Kind::update;
    one.header.update.element_bytes = 0;
  });
  send(with_piece({-4, 4}));
  send(with_piece({kCount * 4, 4}));
  send(with_piece({0, std::uint64_t{1} << 63}));
  EXPECT_EQ(memory_.content(), counted(0, kCount));
  good.header.number = 7;
  send([](Packet&) {});
  EXPECT_EQ(memory_.content()[5], 0);
  EXPECT_TRUE(
      std::ranges::none_of(post_.messages, [](const Post::Message& one) { return one.to == 1; }));
}

TEST_F(rma_service, gives_back_a_lock_only_to_its_holder) {
  ASSERT_TRUE(try_lock(words_, LockKind::exclusive, 1));
  EXPECT_OK(ask(message::Kind::unlock, {}, {}));
  go_on();
  EXPECT_CODE(no_epoch, progress_->status);
  EXPECT_FALSE(try_lock(words_, LockKind::shared, 1));
}

TEST_F(rma_service, takes_replies_of_whom_it_has_asked_alone) {
  std::vector<int> result(2, -1);
  EXPECT_OK(ask(message::Kind::get, ints({{5, 2}}), {}, {on_host(result), ints({{0, 2}})}));
  message::Packet reply;
  reply.header.from = 0;
  reply.header.number = 1;
  const auto* const begin = reinterpret_cast<const std::byte*>(&reply);
  post_.messages.push_front({0, 0, message::kPacketTag, {begin, begin + reply.size_bytes()}});
  EXPECT_EQ(origin_.advance(port_), core::Operation::Phase::issued);
  EXPECT_FALSE(progress_->is_done());
  // Too short.
  reply.header.from = 1;
  post_.messages.push_front({1, 0, message::kPacketTag, {begin, begin + reply.size_bytes()}});
  EXPECT_EQ(origin_.advance(port_), core::Operation::Phase::issued);
  EXPECT_TRUE(progress_->is_done());
  EXPECT_CODE(mismatch, progress_->status);
}

// On two nodes.
class FarService : public Service {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < 2; ++rank) {
      const auto line = std::make_shared<node::LifeLine>();
      (rank == 0 ? target_ : origin_).watch(rank, line);
      lines_[static_cast<std::size_t>(rank)] = line;
    }
    Service::SetUp();
  }
  // For longer than the timeout, which is two seconds here.
  template <class Step>
  void go_on_for(std::chrono::milliseconds time, Step step) {
    for (const auto end = std::chrono::steady_clock::now() + time;
         std::chrono::steady_clock::now() < end; ::usleep(1000))
      step();
  }
  // No sooner than after the timeout: later on a machine that stands still in between.
  template <class Step, class Done>
  bool go_on_until(Step step, Done done) {
    const auto begin = std::chrono::steady_clock::now();
    auto now = begin;
    for (; !done() && now - begin < std::chrono::seconds(20);
         ::usleep(1000), now = std::chrono::steady_clock::now())
      step();
    EXPECT_GE(now - begin, std::chrono::milliseconds(1900));
    return done();
  }
};

using rma_far_service = FarService;
using std::chrono::milliseconds;

TEST_F(rma_far_service, waits_for_a_holder_that_does_nothing_but_live) {
  EXPECT_OK(ask(message::Kind::lock, {}, {}));
  go_on();
  EXPECT_TRUE(progress_->is_done());
  go_on_for(milliseconds(4500), [&] {
    go_on();
    target_.await(-1);
  });
  EXPECT_OK(check_lock(words_, lines_));
  const auto ends = [&] {
    go_on();
    return target_.ends_asking();
  };
  EXPECT_TRUE(ends() || ends());
}

TEST_F(rma_far_service, names_a_holder_that_gives_no_sign_of_life) {
  rma::Service::Question question;
  question.header.kind = message::Kind::lock;
  question.header.lock = LockKind::exclusive;
  EXPECT_OK(origin_.ask(1, question, {}, progress_));
  go_on();
  EXPECT_TRUE(progress_->is_done());
  EXPECT_EQ(0, holder_of(words_));
  EXPECT_OK(check_lock(words_, lines_));
  EXPECT_TRUE(go_on_until([&] { (void)target_.advance(port_); },
                          [&] { return !check_lock(words_, lines_).ok(); }));
  const Status lost = check_lock(words_, lines_);
  EXPECT_CODE(device_error, lost);
  EXPECT_NE(std::string::npos, lost.message().find("rank 0")) << lost.message();
}

TEST_F(rma_far_service, names_a_target_that_gives_no_sign_of_life) {
  EXPECT_OK(ask(message::Kind::put, ints({{0, 1}}), {1}));
  EXPECT_TRUE(
      go_on_until([&] { (void)origin_.advance(port_); }, [&] { return progress_->is_done(); }));
  EXPECT_TRUE(origin_.is_quiet(1));
  EXPECT_NE(std::string::npos, progress_->status.message().find("rank 1 is gone"));
  EXPECT_CODE(device_error, ask(message::Kind::put, ints({{0, 1}}), {1}));
}

// As in a fence.
TEST_F(rma_far_service, ends_a_wait_for_a_rank_that_gives_no_sign_of_life) {
  EXPECT_TRUE(go_on_until(
      [&] {
        target_.await(-1);
        (void)target_.advance(port_);
      },
      [&] { return !check_peer(lines_, 0).ok(); }));
  EXPECT_CODE(device_error, check_peer(lines_, 0));
}

TEST_F(rma_far_service, gives_nobody_up_whom_it_does_not_ask_any_more) {
  EXPECT_TRUE(target_.ends_asking());
  go_on_for(milliseconds(3000), [&] {
    target_.await(-1);
    (void)target_.advance(port_);
  });
  EXPECT_OK(check_peer(lines_, 0));
}

// Its rank computes, and gives signs of life all the same.
TEST_F(rma_far_service, answers_while_its_program_is_in_no_call) {
  class Standing final : public core::Operation {
   public:
    explicit Standing(rma::Service& service) : service_(service) { is_standing_ = true; }
    Phase advance(core::HostPort& port) override { return service_.advance(port); }

   private:
    rma::Service& service_;
  };
  core::Engine engine(port_);
  engine.allow_threads(true);
  engine.submit(std::make_shared<Standing>(target_), nullptr);
  ASSERT_TRUE(try_lock(words_, LockKind::exclusive, 1));
  EXPECT_OK(ask(message::Kind::lock, {}, {}));
  unlock(words_, LockKind::exclusive);
  test::IdlePort own_port;
  go_on_for(milliseconds(3500), [&] { (void)origin_.advance(own_port); });
  EXPECT_TRUE(progress_->is_done());
  engine.stop_thread();
}

TEST_F(rma_service, does_not_wait_for_a_rank_that_is_gone) {
  EXPECT_OK(ask(message::Kind::put, ints({{0, 1}}), {1}));
  (void)origin_.advance(port_);
  EXPECT_FALSE(origin_.is_quiet(1));
  lines_[1] = cut_line();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!origin_.is_quiet(1) && std::chrono::steady_clock::now() < give_up)
    (void)origin_.advance(port_);
  EXPECT_TRUE(origin_.is_quiet(1));
  EXPECT_TRUE(progress_->is_done());
  EXPECT_CODE(device_error, progress_->status);
  EXPECT_NE(progress_->status.message().find("rank 1 is gone"), std::string::npos);
}

TEST_F(rma_service, ends_though_the_receiver_of_a_message_is_gone) {
  post_.keeps_sends = true;
  EXPECT_OK(ask(message::Kind::put, ints({{0, kCount}}), counted(0, kCount)));
  origin_.close();
  EXPECT_EQ(origin_.advance(port_), core::Operation::Phase::issued);
  lines_[1] = cut_line();
  EXPECT_EQ(origin_.advance(port_), core::Operation::Phase::done);
}

TEST_F(rma_service, ends_when_it_is_closed) {
  EXPECT_OK(ask(message::Kind::put, ints({{0, 1}}), {1}));
  go_on();
  origin_.close();
  EXPECT_EQ(origin_.advance(port_), core::Operation::Phase::done);
}

}  // namespace
}  // namespace accord::test
