// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges of the Level Zero runtime, over the real loader, its validation layer and the
// test driver, which runs the kernels as the CPU's compiler has made them, or the library's SPIR-V
// by OpenCL (ACCORD_TEST_ZE_OPENCL).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../unit/inbox_calls.h"
#include "device/direct_work.h"
#include "device/reduce_functions.h"
#include "device/reduce_on_host.h"
#include "driver_control.h"

namespace accord::device {
DeviceRuntime& level_zero_runtime();
}

namespace accord::test {
namespace {

using device::BFloat16;
using device::Complex;
using device::DeviceRuntime;
using device::DoubleDouble;
using device::Element;
using device::Float16;
using device::FloatFloat;
using device::FloatInt;
using device::inbox_bit;
using device::IntInt;
using device::ReduceOp;
using level_zero::DriverControl;
using Bytes = std::vector<unsigned char>;

DeviceRuntime& runtime() { return device::level_zero_runtime(); }

bool devices_lack(const char* what) {
  const char* asked = std::getenv("ACCORD_TEST_ZE_WITHOUT");
  return asked != nullptr && std::string(asked) == what;
}

// Some ranks of one device, which are asked for one after the other.
class LevelZeroInbox : public testing::Test {
 protected:
  static constexpr std::size_t kRanks = 3;

  void SetUp() override {
    if (devices_lack("spirv") || devices_lack("atomics"))
      GTEST_SKIP() << "for devices with kernels";
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      ASSERT_OK(ranks_[rank].open(runtime(), 0, static_cast<int>(rank), kRanks));
    ASSERT_OK(InboxRank::connect(ranks_));
  }
  void TearDown() override {
    for (InboxRank& rank : ranks_) {
      if (rank.src() != nullptr) EXPECT_OK(rank.close());
    }
  }

  // Rank 0 to itself.
  InboxTicket to_itself(std::size_t size_bytes) {
    InboxTicket ticket = ranks_[0].ticket(size_bytes);
    ticket.exchange.send_to = ticket.exchange.receive_from = inbox_bit(0);
    return ticket;
  }
  Status run(InboxTicket& ticket) { return ranks_[0].run(ticket); }

  void set(std::size_t rank, std::byte* to, const Bytes& bytes) {
    EXPECT_OK(ranks_[rank].copy(to, bytes.data(), bytes.size()));
  }
  Bytes get(std::size_t rank, const std::byte* from, std::size_t size_bytes) {
    Bytes bytes(size_bytes);
    EXPECT_OK(ranks_[rank].copy(bytes.data(), from, size_bytes));
    return bytes;
  }

  // An allreduce: all but the last one find that data is missing at first.
  void reduce(const std::vector<Bytes>& blocks, ReduceOp op, Element element) {
    std::vector<InboxTicket> tickets;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      set(rank, ranks_[rank].src(), blocks[rank]);
      InboxTicket& ticket = tickets.emplace_back(ranks_[rank].ticket(blocks[rank].size()));
      ticket.exchange.send_to = ticket.exchange.receive_from = inbox_bit(kRanks) - 1;
      ticket.exchange.op = op;
      ticket.exchange.element = element;
      ASSERT_OK(ranks_[rank].try_to_run(ticket));
      const bool last = rank + 1 == kRanks;
      EXPECT_EQ(last ? InboxTicket::State::idle : InboxTicket::State::late, ticket.state);
    }
    for (std::size_t rank = 0; rank + 1 < kRanks; ++rank)
      ASSERT_OK(ranks_[rank].run(tickets[rank]));
  }

  // The same by the CPU.
  static Bytes reduced(const std::vector<Bytes>& blocks, ReduceOp op, Element element) {
    std::vector<const void*> sources;
    for (const Bytes& block : blocks) sources.push_back(block.data());
    Bytes sum(blocks[0].size());
    device::reduce_on_host(
        {sum.data(), sources, sum.size() / device::element_bytes(element), op, element});
    return sum;
  }

  void check_reduction(const std::vector<Bytes>& blocks, ReduceOp op, Element element) {
    reduce(blocks, op, element);
    const Bytes wanted = reduced(blocks, op, element);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(wanted, get(rank, ranks_[rank].dst(), wanted.size()))
          << "rank " << rank << ", element " << static_cast<int>(element) << ", op "
          << static_cast<int>(op);
    }
  }

  InboxRank ranks_[kRanks];
};

TEST_F(LevelZeroInbox, bytes_arrive_whatever_their_number_and_place) {
  for (const std::size_t size_bytes : {1, 7, 8, 15, 16, 17, 512, 4095, 4096, 4097, 100001}) {
    for (const std::size_t shift : {0, 1, 4}) {
      const Bytes data = pattern(size_bytes, static_cast<unsigned>(size_bytes + shift));
      const Bytes guard = pattern(16, 5);
      std::byte* const dst = ranks_[0].dst() + 2 * shift;
      set(0, ranks_[0].src() + shift, data);
      set(0, dst + size_bytes, guard);
      InboxTicket ticket = to_itself(size_bytes);
      ticket.exchange.src = ranks_[0].src() + shift;
      ticket.exchange.dst = dst;
      ASSERT_OK(run(ticket));
      ASSERT_EQ(InboxTicket::State::idle, ticket.state);
      ASSERT_EQ(data, get(0, dst, size_bytes)) << size_bytes << " " << shift;
      ASSERT_EQ(guard, get(0, dst + size_bytes, guard.size())) << size_bytes << " " << shift;
    }
  }
}

TEST_F(LevelZeroInbox, an_exchange_may_be_in_place) {
  const Bytes data = pattern(50000, 3);
  set(0, ranks_[0].src(), data);
  InboxTicket ticket = to_itself(data.size());
  ticket.exchange.dst = ranks_[0].src() + 8;
  ASSERT_OK(run(ticket));
  EXPECT_EQ(data, get(0, ranks_[0].src() + 8, data.size()));
}

TEST_F(LevelZeroInbox, results_may_go_to_pinned_memory) {
  void* staging = nullptr;
  ASSERT_OK(runtime().allocate(0, MemoryKind::pinned, kLaneBytes, staging));
  const Bytes data = pattern(10000, 4);
  set(0, ranks_[0].src(), data);
  InboxTicket ticket = to_itself(data.size());
  ticket.exchange.dst = staging;
  ticket.exchange.dst_on_host = true;
  ASSERT_OK(run(ticket));
  EXPECT_EQ(0, std::memcmp(staging, data.data(), data.size()));
  EXPECT_OK(runtime().free(staging));
}

TEST_F(LevelZeroInbox, who_does_not_send_is_not_waited_for) {
  InboxTicket ticket = to_itself(100);
  ticket.exchange.receive_from |= inbox_bit(1);
  for (const auto patience :
       {InboxTicket::Patience::short_wait, InboxTicket::Patience::long_wait}) {
    ticket.patience = patience;
    ASSERT_OK(ranks_[0].try_to_run(ticket));
    EXPECT_EQ(InboxTicket::State::late, ticket.state);
    EXPECT_TRUE(ticket.sent);
  }
  bool done = false;
  ranks_[0].server().stop(ticket, done);
  EXPECT_TRUE(done);
  ticket = to_itself(100);
  EXPECT_OK(run(ticket));
}

// What is under way when it is given up has ended before the ticket is.
TEST_F(LevelZeroInbox, an_exchange_can_be_given_up) {
  InboxTicket ticket = to_itself(100);
  ticket.exchange.receive_from |= inbox_bit(1);
  ASSERT_OK(ranks_[0].server().begin(ticket));
  for (bool done = false; !done;) ranks_[0].server().stop(ticket, done);
  EXPECT_EQ(InboxTicket::State::idle, ticket.state);
}

// Numbers without rounding or overflow, so that an order of the ranks shows only where it counts.
template <class T>
T value(std::size_t i) {
  const auto small = static_cast<float>(static_cast<int>(i * 7 % 13) - 6);
  if constexpr (device::is_half<T>) {
    return device::rounded<T>(small);
  } else if constexpr (device::is_complex<T>) {
    return {static_cast<decltype(T::re)>(small), static_cast<decltype(T::im)>(i % 3)};
  } else if constexpr (device::is_pair<T>) {
    return {static_cast<decltype(T::value)>(small), static_cast<decltype(T::index)>(i % 5)};
  } else {
    return static_cast<T>(small + 6);
  }
}

template <class T>
std::vector<Bytes> blocks_of() {
  std::vector<Bytes> blocks;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::vector<T> values;
    for (std::size_t i = 0; i < 101; ++i) values.push_back(value<T>(i + rank * 5));
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
    blocks.emplace_back(bytes, bytes + values.size() * sizeof(T));
  }
  return blocks;
}

TEST_F(LevelZeroInbox, combines_every_element) {
#define ACCORD_CHECK(element, type, op) \
  check_reduction(blocks_of<type>(), ReduceOp::op, Element::element);
  ACCORD_REDUCTIONS(ACCORD_CHECK)
#undef ACCORD_CHECK
}

// One of 1e30 and one of -1e30 cancel out only where nothing comes between them.
TEST_F(LevelZeroInbox, combines_in_the_order_of_the_ranks) {
  std::vector<Bytes> blocks;
  for (const float number : {1e30F, -1e30F, 1.0F}) {
    Bytes& block = blocks.emplace_back(sizeof number);
    std::memcpy(block.data(), &number, sizeof number);
  }
  check_reduction(blocks, ReduceOp::sum, Element::float32);
  float sum = 0;
  const Bytes bytes = get(2, ranks_[2].dst(), sizeof sum);
  std::memcpy(&sum, bytes.data(), sizeof sum);
  EXPECT_EQ(1.0F, sum);
}

// By the CPU, where the driver does not take the module of that element. Names one that no other
// test of the process has asked for: the answer is kept.
TEST_F(LevelZeroInbox, combines_where_the_driver_refuses) {
  if (devices_lack("fp64")) GTEST_SKIP() << "for devices that reduce";
  if (std::getenv("GTEST_TOTAL_SHARDS") != nullptr) GTEST_SKIP() << "in a process of its own";
  const DriverControl driver;
  driver.fail("zeModuleCreate:1+");
  check_reduction(blocks_of<std::int16_t>(), ReduceOp::max, Element::int16);
  driver.fail("");
  check_reduction(blocks_of<std::int16_t>(), ReduceOp::max, Element::int16);
}

// A launch that the driver refuses is an error of that exchange alone.
TEST_F(LevelZeroInbox, an_error_is_of_one_exchange) {
  const DriverControl driver;
  for (const char* function :
       {"zeCommandQueueExecuteCommandLists", "zeFenceQueryStatus", "zeFenceReset"}) {
    driver.fail(std::string(function) + ":1");
    InboxTicket ticket = to_itself(100);
    const Status status = run(ticket);
    driver.fail("");
    EXPECT_EQ(std::string(function) == "zeFenceReset", status.ok()) << function;
    EXPECT_EQ(InboxTicket::State::idle, ticket.state);
    ticket = to_itself(100);
    EXPECT_OK(run(ticket));
  }
}

TEST_F(LevelZeroInbox, keeps_nothing) {
  const DriverControl driver;
  const auto work = [&] {
    InboxCalls calls;
    ASSERT_OK(calls.open(runtime(), 1, 1));
    InboxTicket ticket = to_itself(5000);
    ASSERT_OK(run(ticket));
    ticket = to_itself(100);
    ticket.exchange.receive_from |= inbox_bit(1);
    ASSERT_OK(ranks_[0].try_to_run(ticket));
    ASSERT_OK(calls.close());
  };
  work();
  const Held before = driver.held();
  for (int i = 0; i < 10; ++i) work();
  EXPECT_EQ(before, driver.held());
}

// A launch takes no less than a copy does.
TEST_F(LevelZeroInbox, does_not_fetch_messages) {
  const device::Copy copy{.dst = ranks_[0].dst(), .src = ranks_[0].src(), .row_bytes = 100};
  bool done = true;
  ASSERT_OK(device::DirectWorker::of(runtime(), 0).copy({&copy, 1}, done));
  EXPECT_FALSE(done);
}

TEST(LevelZeroInboxes, take_atomic_accesses) {
  if (!devices_lack("atomics") && !devices_lack("spirv")) GTEST_SKIP() << "for devices without";
  InboxServer* server = nullptr;
  EXPECT_CODE(unsupported, runtime().inbox_server(0, server));
}

class LevelZeroInboxRanks : public testing::TestWithParam<int> {};

TEST_P(LevelZeroInboxRanks, make_all_calls) {
  if (devices_lack("spirv") || devices_lack("atomics")) GTEST_SKIP() << "for devices with kernels";
  InboxCalls calls;
  ASSERT_OK(calls.open(runtime(), GetParam(), 1));
  calls.run_all();
  EXPECT_OK(calls.close());
}

INSTANTIATE_TEST_SUITE_P(All, LevelZeroInboxRanks, testing::Values(2, 3, 4),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace accord::test
