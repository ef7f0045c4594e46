// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges of several ranks: threads of one process, whose ends are on one device, where
// they share a server that does one part after the other and must let go of those that wait for
// the rest, or on several. Part of cuda_inbox_test.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "cuda_inbox_rig.h"

namespace accord::test {
namespace {

using device::Element;
using device::inbox_bit;
using device::ReduceOp;
using Bytes = std::vector<unsigned char>;

enum class Call { bcast, gather, allgather, alltoall, allreduce, alltoallv };
constexpr Call kCalls[] = {Call::bcast,    Call::gather,    Call::allgather,
                           Call::alltoall, Call::alltoallv, Call::allreduce};
constexpr std::size_t kSizes[] = {8, 100, 5000, 8192, 8196, 100000};

struct Exchange {
  Call call;
  int ranks;
  int root;
  std::size_t block_bytes;  // of alltoallv at most

  std::size_t length(int from, int to) const {
    if (call != Call::alltoallv) return block_bytes;
    const int choice = (2 * from + to + root) % 3;
    return choice == 0 ? 0 : choice == 1 ? block_bytes : block_bytes / 2 + 1;
  }
  bool sends(int from, int to) const {
    return call == Call::bcast ? from == root : call != Call::gather || to == root;
  }
  bool sends_blocks() const { return call == Call::alltoall || call == Call::alltoallv; }
  bool takes_blocks() const { return call != Call::bcast && call != Call::allreduce; }
};

unsigned seed(int number, int from) { return static_cast<unsigned>(number * 10 + from); }

// What `from` has for `to`, for each of the calls a block of its own.
Bytes block_of(const Exchange& exchange, int number, int from, int to) {
  const bool blocks = exchange.sends_blocks();
  const auto all =
      pattern(exchange.block_bytes * static_cast<std::size_t>(exchange.ranks), seed(number, from));
  const auto first =
      all.begin() +
      static_cast<std::ptrdiff_t>(blocks ? static_cast<std::size_t>(to) * exchange.block_bytes : 0);
  return {first, first + static_cast<std::ptrdiff_t>(exchange.length(from, to))};
}

// What `rank` has received, by what the call means.
Bytes expected(const Exchange& exchange, int number, int rank) {
  Bytes result;
  for (int from = 0; from < exchange.ranks; ++from) {
    if (!exchange.sends(from, rank)) continue;
    const Bytes block = block_of(exchange, number, from, rank);
    if (exchange.call != Call::allreduce || result.empty()) {
      result.insert(result.end(), block.begin(), block.end());
      continue;
    }
    for (std::size_t i = 0; i < block.size(); ++i)
      result[i] = static_cast<unsigned char>(result[i] ^ block[i]);
  }
  return result;
}

class CudaInboxRanks : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (nothing_to_test() != nullptr) GTEST_SKIP() << nothing_to_test();
  }

  // All on device 0, or one after the other on two.
  Status open(int ranks, int devices) {
    all_.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      ACCORD_TRY(all_[static_cast<std::size_t>(rank)].open(rank % devices, rank, ranks));
    return InboxRank::connect(all_);
  }

  void run_all() {
    const auto ranks = static_cast<int>(all_.size());
    std::barrier together(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] { run(rank, [&] { together.arrive_and_wait(); }); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  // Every rank makes the same calls. A lane is written again once its reader is through with the
  // last call, which is the caller's business.
  template <class Wait>
  void run(int rank, Wait wait) {
    InboxRank& own = all_[static_cast<std::size_t>(rank)];
    const auto ranks = static_cast<int>(all_.size());
    int number = 0;
    for (const std::size_t block_bytes : kSizes) {
      for (const Call call : kCalls) {
        const Exchange exchange{call, ranks, number % ranks, block_bytes};
        ++number;
        const Bytes data =
            pattern(block_bytes * static_cast<std::size_t>(ranks), seed(number, rank));
        EXPECT_OK(copy_one(own.src(), data.data(), data.size(), own.device()));
        InboxTicket ticket = ticket_of(own, exchange, rank);
        const auto parts = parts_of(own, exchange, rank);
        if (call == Call::alltoallv) ticket.exchange.parts = parts;
        EXPECT_OK(own.run(ticket));
        EXPECT_EQ(InboxTicket::State::idle, ticket.state);
        const Bytes result = expected(exchange, number, rank);
        Bytes seen(result.size());
        EXPECT_OK(copy_one(seen.data(), own.dst(), seen.size(), own.device()));
        EXPECT_TRUE(result == seen) << "rank " << rank << " of " << ranks << ", call "
                                    << static_cast<int>(call) << ", " << block_bytes << " bytes";
        wait();
      }
    }
  }

  static InboxTicket ticket_of(InboxRank& own, const Exchange& exchange, int rank) {
    InboxTicket ticket = own.ticket(exchange.block_bytes);
    for (int peer = 0; peer < exchange.ranks; ++peer) {
      if (exchange.sends(rank, peer) && exchange.length(rank, peer) != 0)
        ticket.exchange.send_to |= inbox_bit(peer);
      if (exchange.sends(peer, rank) && exchange.length(peer, rank) != 0)
        ticket.exchange.receive_from |= inbox_bit(peer);
    }
    ticket.exchange.send_stride_bytes = exchange.call == Call::alltoall ? exchange.block_bytes : 0;
    ticket.exchange.receive_stride_bytes = exchange.takes_blocks() ? exchange.block_bytes : 0;
    if (exchange.call == Call::allreduce) {
      ticket.exchange.op = ReduceOp::bxor;
      ticket.exchange.element = Element::uint32;
    }
    return ticket;
  }

  // One behind the other, without gaps where they are received.
  static std::vector<device::InboxPart> parts_of(const InboxRank& own, const Exchange& exchange,
                                                 int rank) {
    std::vector<device::InboxPart> parts;
    std::byte* dst = own.dst();
    for (int peer = 0; peer < exchange.ranks; ++peer) {
      parts.push_back({.src = own.src() + static_cast<std::size_t>(peer) * exchange.block_bytes,
                       .dst = dst,
                       .send_bytes = exchange.length(rank, peer),
                       .receive_bytes = exchange.length(peer, rank)});
      dst += parts.back().receive_bytes;
    }
    return parts;
  }

  std::vector<InboxRank> all_;
};

TEST_P(CudaInboxRanks, on_one_device) {
  const Status opened = open(GetParam(), 1);
  if (opened.code() == StatusCode::unsupported) GTEST_SKIP() << opened.message();
  ASSERT_OK(opened);
  run_all();
}

TEST_P(CudaInboxRanks, on_two_devices) {
  if (cuda_runtime().device_count() < 2) GTEST_SKIP() << "one device only";
  Context contexts[2] = {};
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(Result::success, driver().primary_context_retain(&contexts[device], device));
  }
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(Result::success, driver().context_push(contexts[device]));
    const Result result = driver().context_enable_peer_access(contexts[1 - device], 0);
    Context popped = nullptr;
    ASSERT_EQ(Result::success, driver().context_pop(&popped));
    if (result != Result::success && result != Result::peer_access_already_enabled)
      GTEST_SKIP() << "no peer access";
  }
  const Status opened = open(GetParam(), 2);
  if (opened.code() == StatusCode::unsupported) GTEST_SKIP() << opened.message();
  ASSERT_OK(opened);
  run_all();
}

INSTANTIATE_TEST_SUITE_P(All, CudaInboxRanks, testing::Values(2, 3, 4),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace accord::test
