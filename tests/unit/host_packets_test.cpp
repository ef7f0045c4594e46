// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges in packets by two CPU threads at once: none is seen torn, and neither format
// takes what the other has left in a lane. What they move and combine: host_inbox_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "device/host/inbox.h"

namespace accord::device {
namespace {

constexpr std::size_t kLaneBytes = 1024;
constexpr std::size_t kWords = 240;  // of a block: a bundle is 12 of them
constexpr std::uint32_t kCalls = 20000;

// The sender's call of this number. Data looks like epochs of calls to come.
std::vector<std::uint32_t> block_of(std::uint32_t epoch) {
  std::vector<std::uint32_t> words(kWords);
  for (std::size_t i = 0; i < kWords; ++i)
    words[i] = epoch + kInboxLanesPerRank * static_cast<std::uint32_t>(i % 3);
  return words;
}

struct Pair {
  std::vector<InboxWord> memory =
      std::vector<InboxWord>(inbox_bytes(2, kLaneBytes) / sizeof(InboxWord));
  std::atomic<std::uint32_t> drained{0};  // calls

  std::byte* inbox() { return reinterpret_cast<std::byte*>(memory.data()); }
  InboxExchange exchange(std::uint32_t epoch, int rank, bool in_packets) {
    InboxExchange made;
    made.inbox = inbox();
    made.inbox_number = 1;
    made.lane_bytes = kLaneBytes;
    made.rank = rank;
    made.epoch = epoch;
    made.turn = epoch % kInboxLanesPerRank;
    made.in_packets = in_packets;
    made.block_bytes = kWords * sizeof(std::uint32_t);
    return made;
  }
};

// Rank 0 sends as far ahead as lanes allow, and rank 1 looks all the time.
void run(bool (*in_packets)(std::uint32_t epoch)) {
  Pair pair;
  std::thread sender([&] {
    for (std::uint32_t epoch = 1; epoch <= kCalls; ++epoch) {
      while (pair.drained.load(std::memory_order_acquire) + kInboxLanesPerRank < epoch)
        std::this_thread::yield();
      const std::vector<std::uint32_t> block = block_of(epoch);
      InboxExchange exchange = pair.exchange(epoch, 0, in_packets(epoch));
      exchange.src = block.data();
      exchange.send_to = inbox_bit(1);
      std::byte* const inboxes[] = {nullptr, pair.inbox()};
      inbox_send(exchange, inboxes);
    }
  });
  std::uint32_t wrong = 0;
  for (std::uint32_t epoch = 1; epoch <= kCalls; ++epoch) {
    std::vector<std::uint32_t> seen(kWords);
    InboxExchange exchange = pair.exchange(epoch, 1, in_packets(epoch));
    exchange.dst = seen.data();
    exchange.receive_from = inbox_bit(0);
    for (unsigned looks = 0; !inbox_receive(exchange); ++looks)
      if (looks % 16 == 15) std::this_thread::yield();
    wrong += seen != block_of(epoch) ? 1 : 0;
    pair.drained.store(epoch, std::memory_order_release);
  }
  sender.join();
  EXPECT_EQ(0U, wrong) << "of " << kCalls;
}

TEST(HostPackets, are_never_torn) {
  if (!cpu_keeps_packets_whole()) GTEST_SKIP() << "not by this CPU";
  run([](std::uint32_t) { return true; });
}

TEST(HostPackets, take_turns_with_words_in_the_same_lanes) {
  if (!cpu_keeps_packets_whole()) GTEST_SKIP() << "not by this CPU";
  run([](std::uint32_t epoch) { return epoch % 3 == 0; });
}

}  // namespace
}  // namespace accord::device
