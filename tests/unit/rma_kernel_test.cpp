// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One-sided operations that come often enough for a kernel, which the host runtime has too: what it
// does, and that nothing else is asked for it.
#include <cstring>
#include <numeric>
#include <thread>

#include "device/direct_work.h"
#include "device/inbox_server.h"
#include "forwarding_runtime.h"
#include "idle_port.h"
#include "rma/batch.h"
#include "rma/target.h"
#include "support.h"

namespace accord::test {
namespace {

using namespace accord::rma;

// Counts what goes by copies.
class CountingRuntime final : public ForwardingRuntime {
 public:
  int copies = 0;
  int layouts = 0;

  Status batch_begin(int device, const device::CopyBatch& batch,
                     device::CopyTicket& ticket) override {
    layouts += static_cast<int>(batch.laid_out.size());
    return device::host_runtime().batch_begin(device, batch, ticket);
  }
  Status copy_batch(int device, const device::CopyBatch& batch) override {
    layouts += static_cast<int>(batch.laid_out.size());
    return batch.laid_out.empty() ? copy(device, batch.plain.copies())
                                  : device::host_runtime().copy_batch(device, batch);
  }
  Status copy(int device, std::span<const device::Copy> list) override {
    ++copies;
    return ForwardingRuntime::copy(device, list);
  }
  Status copy_begin(int device, std::span<const device::Copy> list,
                    device::CopyTicket& ticket) override {
    ++copies;
    return ForwardingRuntime::copy_begin(device, list, ticket);
  }
  Status inbox_server(int device, device::InboxServer*& server) override {
    return device::host_runtime().inbox_server(device, server);
  }
  bool can_reduce(device::ReduceOp op, device::Element element) override {
    return device::host_runtime().can_reduce(op, element);
  }
};

CountingRuntime& runtime() {
  static CountingRuntime& instance = *new CountingRuntime;
  return instance;
}

class Memory {
 public:
  explicit Memory(std::size_t count) : count_(count) {
    EXPECT_OK(runtime().allocate(0, device::MemoryKind::device, count * 4, pointer_));
    device::PointerInfo where;
    EXPECT_TRUE(runtime().classify(pointer_, where));
    where.runtime = &runtime();
    place_ = {.start = static_cast<std::byte*>(pointer_), .where = where};
    fill(0);
  }
  ~Memory() { EXPECT_OK(runtime().free(pointer_)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const Place& place() const { return place_; }
  void fill(int first) {
    std::vector<int> list(count_);
    std::iota(list.begin(), list.end(), first);
    const device::Copy one{pointer_, list.data(), count_ * 4};
    EXPECT_OK(device::host_runtime().copy(0, {&one, 1}));
  }
  std::vector<int> content() const {
    std::vector<int> list(count_);
    const device::Copy one{list.data(), pointer_, count_ * 4};
    EXPECT_OK(device::host_runtime().copy(0, {&one, 1}));
    return list;
  }

 private:
  std::size_t count_;
  void* pointer_ = nullptr;
  Place place_;
};

Pieces ints(int first, int count) {
  return {{first * std::int64_t{4}, static_cast<std::uint64_t>(count) * 4}};
}

// Until operations have come often enough.
void warm_up() {
  device::DirectWorker& worker = device::DirectWorker::of(runtime(), 0);
  while (!worker.is_wanted()) {
  }
}

class rma_kernel : public ::testing::Test {
 protected:
  void SetUp() override {
    batch_.use_kernels(true);
    runtime().copies = 0;
  }
  // As few tries as there are: other programs may take the processor's time.
  template <class Do>
  void by_kernel(Do act) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      warm_up();
      runtime().copies = 0;
      act();
      if (runtime().copies == 0) return;
    }
    ADD_FAILURE() << "it always took copies";
  }

  IdlePort port_;
  core::Engine engine_{port_};
  Batch batch_;
};

TEST_F(rma_kernel, does_what_has_been_collected_at_once) {
  const Memory window(400);
  Memory origin(400);
  by_kernel([&] {
    origin.fill(1000);
    for (int i = 0; i < 50; ++i)
      EXPECT_OK(batch_.add(Batch::Direction::put, {window.place(), ints(7 * i, 2)},
                           {origin.place(), ints(3 * i, 2)}));
    EXPECT_OK(batch_.add(Batch::Direction::get, {origin.place(), ints(399, 1)},
                         {window.place(), ints(399, 1)}));
    EXPECT_OK(batch_.finish(engine_));
  });
  for (int i = 0; i < 50; ++i) {
    const auto at = static_cast<std::size_t>(7 * i);
    EXPECT_EQ(window.content()[at + 1], 1001 + 3 * i);
    EXPECT_EQ(window.content()[at + 2], 7 * i + 2);
  }
  EXPECT_EQ(origin.content()[399], 399);
}

TEST_F(rma_kernel, joins_what_is_next_to_each_other_in_both) {
  const Memory window(1000);
  Memory origin(1000);
  origin.fill(5000);
  warm_up();
  int begun = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_OK(batch_.add(Batch::Direction::put, {window.place(), ints(i, 1)},
                         {origin.place(), ints(i, 1)}));
    begun = runtime().copies;
  }
  EXPECT_EQ(begun, 0);  // a thousand are one, which waits for its end
  EXPECT_OK(batch_.finish(engine_));
  EXPECT_EQ(window.content(), origin.content());
}

TEST_F(rma_kernel, does_not_take_what_it_does_not_reach) {
  const Memory window(100);
  std::vector<int> plain(100, 9);
  warm_up();
  EXPECT_OK(batch_.add(Batch::Direction::put, {window.place(), ints(10, 5)},
                       {Place::host(plain.data()), ints(0, 5)}));
  EXPECT_OK(batch_.finish(engine_));
  EXPECT_EQ(runtime().copies, 1);
  EXPECT_EQ(window.content()[14], 9);
}

// Every other number of the origin to every third one of the window, and back.
TEST_F(rma_kernel, follows_layouts_at_both_ends) {
  constexpr int kNumbers = 1000;
  const Memory window(3 * kNumbers);
  Memory origin(2 * kNumbers);
  origin.fill(9000);
  const auto every = [](std::ptrdiff_t step, std::ptrdiff_t offset) {
    const auto type = std::make_shared<const core::Typemap>(
        std::vector<device::Run>{{.offset_bytes = 0, .length_bytes = 4, .packed_bytes = 0}},
        4 * step);
    return core::Segment{type, kNumbers, 4 * offset};
  };
  const auto end = [](const Memory& memory, const core::Segment& layout) {
    return End{memory.place(), pieces_of(layout), layout};
  };
  runtime().layouts = 0;
  EXPECT_OK(batch_.add(Batch::Direction::put, end(window, every(3, 2)), end(origin, every(2, 1))));
  EXPECT_OK(batch_.finish(engine_));
  EXPECT_EQ(runtime().layouts, 1);
  const std::vector<int> there = window.content();
  for (int i = 0; i < kNumbers; ++i) {
    const auto at = static_cast<std::size_t>(3 * i);
    ASSERT_EQ(there[at], 3 * i);
    ASSERT_EQ(there[at + 2], 9001 + 2 * i);
  }
  EXPECT_OK(batch_.add(Batch::Direction::get, end(origin, every(2, 0)), end(window, every(3, 1))));
  EXPECT_OK(batch_.finish(engine_));
  EXPECT_EQ(runtime().layouts, 2);
  for (int i = 0; i < kNumbers; ++i)
    ASSERT_EQ(origin.content()[static_cast<std::size_t>(2 * i)], 3 * i + 1);
}

class rma_kernel_update : public rma_kernel {
 protected:
  rma_kernel_update() {
    target_ = Target(window_.place(), &words_, 0, &lines_, nullptr);
    target_.use_worker(&device::DirectWorker::of(runtime(), 0));
  }

  static constexpr Update kSum{.op = 1,
                               .type = 3,
                               .element_bytes = 4,
                               .device_op = device::ReduceOp::sum,
                               .element = device::Element::int32};
  Memory window_{16};
  Words words_;
  LifeLines lines_ = LifeLines(1);
  Target target_;
};

TEST_F(rma_kernel_update, adds_numbers_of_any_memory_and_tells_what_was_there) {
  const Memory origin(16);
  int one = 100;
  int before[2] = {};
  const End on_device{origin.place(), ints(4, 2)};
  const End on_host{Place::host(&one), ints(0, 1)};
  const End result{Place::host(before), {{0, 4}, {4, 4}}};
  by_kernel([&] {
    window_.fill(0);
    bool done = false;
    EXPECT_OK(target_.update_at_once(kSum, ints(1, 2).front(), on_device, nullptr, &result, done));
    EXPECT_TRUE(done);
    EXPECT_OK(target_.update_at_once(kSum, ints(1, 1).front(), on_host, nullptr, nullptr, done));
    EXPECT_TRUE(done);
  });
  EXPECT_EQ(before[0], 1);
  EXPECT_EQ(before[1], 2);
  EXPECT_EQ(window_.content()[1], 1 + 4 + 100);
  EXPECT_EQ(window_.content()[2], 2 + 5);
  EXPECT_EQ(words_.update_holder.load(), 0U);
}

TEST_F(rma_kernel_update, swaps_what_is_as_expected) {
  const int expected[2] = {3, 77};
  const int given = 50;
  int before = -1;
  const End origin{Place::host(const_cast<int*>(&given)), ints(0, 1)};
  const End result{Place::host(&before), ints(0, 1)};
  constexpr Update kReplaces{.op = Update::kReplace};
  for (const int which : {0, 1}) {
    const End compare{Place::host(const_cast<int*>(expected)), ints(which, 1)};
    window_.fill(0);
    warm_up();
    bool done = false;
    EXPECT_OK(
        target_.update_at_once(kReplaces, ints(3, 1).front(), origin, &compare, &result, done));
    ASSERT_TRUE(done);
    EXPECT_EQ(before, 3);
    EXPECT_EQ(window_.content()[3], which == 0 ? 50 : 3);
  }
}

TEST_F(rma_kernel_update, leaves_to_others_what_it_cannot_do) {
  Update without_kernel = kSum;
  without_kernel.element = device::Element::float64_int32;  // 12 bytes
  without_kernel.device_op = device::ReduceOp::minloc;
  const Memory origin(16);
  const End end{origin.place(), ints(0, 3)};
  const End apart{origin.place(), {{0, 4}, {8, 8}}};
  bool done = true;
  warm_up();
  EXPECT_OK(
      target_.update_at_once(without_kernel, ints(0, 3).front(), end, nullptr, nullptr, done));
  EXPECT_FALSE(done);
  EXPECT_OK(target_.update_at_once(kSum, ints(0, 3).front(), apart, nullptr, nullptr, done));
  EXPECT_FALSE(done);
  EXPECT_EQ(window_.content()[1], 1);
}

TEST_F(rma_kernel_update, and_those_of_many_threads_are_all_there) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 200;
  Target slow = Target(window_.place(), &words_, 0, &lines_,
                       [](const Update&, const std::byte* in, std::byte* inout, std::size_t) {
                         int numbers[2];
                         std::memcpy(&numbers[0], in, 4);
                         std::memcpy(&numbers[1], inout, 4);
                         numbers[1] += numbers[0];
                         std::memcpy(inout, &numbers[1], 4);
                         return Status();
                       });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      int one = 1;
      const End origin{Place::host(&one), ints(0, 1)};
      for (int time = 0; time < kTimes; ++time) {
        bool done = false;
        EXPECT_OK(target_.update_at_once(kSum, ints(5, 1).front(), origin, nullptr, nullptr, done));
        if (!done)
          EXPECT_OK(
              slow.update(kSum, ints(5, 1), reinterpret_cast<const std::byte*>(&one), nullptr));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(window_.content()[5], 5 + kThreads * kTimes);
}

}  // namespace
}  // namespace accord::test
