// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges of several ranks, threads of one process, over any runtime: calls of all kinds
// and lengths, with what each rank must have received. Their ends are on one device, where they
// share a server, or on several.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

#include "inbox_rank.h"

namespace accord::test {

class InboxCalls {
 public:
  // All ranks on device 0, or one after the other on two.
  Status open(device::DeviceRuntime& runtime, int ranks, int devices) {
    all_.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      ACCORD_TRY(all_[static_cast<std::size_t>(rank)].open(runtime, rank % devices, rank, ranks));
    return InboxRank::connect(all_);
  }
  Status close() {
    for (InboxRank& rank : all_) ACCORD_TRY(rank.close());
    return {};
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
  using Bytes = std::vector<unsigned char>;

  enum class Call { bcast, gather, allgather, alltoall, allreduce, alltoallv };
  struct CallAndFormat {
    Call call;
    bool in_packets;
  };
  static constexpr CallAndFormat kCallsAndFormats[] = {
      {Call::bcast, false},    {Call::bcast, true},      {Call::gather, true},
      {Call::gather, false},   {Call::allgather, true},  {Call::allgather, false},
      {Call::alltoall, false}, {Call::alltoall, true},   {Call::alltoallv, false},
      {Call::allreduce, true}, {Call::allreduce, false}, {Call::allreduce, true}};
  static constexpr std::size_t kSizes[] = {8, 100, 5000, 8192, 8196, 100000, kLaneBytes};

  struct Exchange {
    Call call;
    int ranks;
    int root;
    std::size_t block_bytes;  // of alltoallv at most
    bool in_packets;

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

  static unsigned seed(int number, int from) { return static_cast<unsigned>(number * 10 + from); }

  // What `from` has for `to`, for each of the calls a block of its own.
  static Bytes block_of(const Exchange& exchange, int number, int from, int to) {
    const bool blocks = exchange.sends_blocks();
    const auto all = pattern(exchange.block_bytes * static_cast<std::size_t>(exchange.ranks),
                             seed(number, from));
    const auto first =
        all.begin() + static_cast<std::ptrdiff_t>(
                          blocks ? static_cast<std::size_t>(to) * exchange.block_bytes : 0);
    return {first, first + static_cast<std::ptrdiff_t>(exchange.length(from, to))};
  }

  // What `rank` has received, by what the call means.
  static Bytes expected(const Exchange& exchange, int number, int rank) {
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

  // Calls in words and in packets take turns, so that each finds what the other left in the lanes.
  bool may_go_in_packets(Call call) const {
    std::vector<device::PacketReach> reach;
    for (const InboxRank& one : all_) reach.push_back(one.server().packet_reach());
    return call != Call::alltoallv && device::all_take_packets(reach);
  }

  // Every rank makes the same calls. A lane is written again once its reader is through with the
  // last call, which is the caller's business.
  template <class Wait>
  void run(int rank, Wait wait) {
    InboxRank& own = all_[static_cast<std::size_t>(rank)];
    const auto ranks = static_cast<int>(all_.size());
    int number = 0;
    for (const std::size_t block_bytes : kSizes) {
      for (const auto [call, in_packets] : kCallsAndFormats) {
        if (in_packets && !may_go_in_packets(call)) continue;
        if (block_bytes == kLaneBytes && !in_packets) continue;  // nothing new
        const Exchange exchange{call, ranks, number % ranks, block_bytes, in_packets};
        ++number;
        const Bytes data =
            pattern(block_bytes * static_cast<std::size_t>(ranks), seed(number, rank));
        EXPECT_OK(own.copy(own.src(), data.data(), data.size()));
        InboxTicket ticket = ticket_of(own, exchange, rank);
        const auto parts = parts_of(own, exchange, rank);
        if (call == Call::alltoallv) ticket.exchange.parts = parts;
        EXPECT_OK(own.run(ticket));
        EXPECT_EQ(InboxTicket::State::idle, ticket.state);
        const Bytes result = expected(exchange, number, rank);
        Bytes seen(result.size());
        EXPECT_OK(own.copy(seen.data(), own.dst(), seen.size()));
        EXPECT_TRUE(result == seen)
            << "rank " << rank << " of " << ranks << ", call " << static_cast<int>(call) << ", "
            << block_bytes << " bytes" << (in_packets ? " in packets" : "");
        wait();
      }
    }
  }

  static InboxTicket ticket_of(InboxRank& own, const Exchange& exchange, int rank) {
    InboxTicket ticket = own.ticket(exchange.block_bytes);
    ticket.exchange.in_packets = exchange.in_packets;
    for (int peer = 0; peer < exchange.ranks; ++peer) {
      if (exchange.sends(rank, peer) && exchange.length(rank, peer) != 0)
        ticket.exchange.send_to |= device::inbox_bit(peer);
      if (exchange.sends(peer, rank) && exchange.length(peer, rank) != 0)
        ticket.exchange.receive_from |= device::inbox_bit(peer);
    }
    ticket.exchange.send_stride_bytes = exchange.call == Call::alltoall ? exchange.block_bytes : 0;
    ticket.exchange.receive_stride_bytes = exchange.takes_blocks() ? exchange.block_bytes : 0;
    if (exchange.call == Call::allreduce) {
      ticket.exchange.op = device::ReduceOp::bxor;
      ticket.exchange.element = device::Element::uint32;
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

}  // namespace accord::test
