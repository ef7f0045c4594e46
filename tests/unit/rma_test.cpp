// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One-sided operations: the runs of both ends, what happens to a target's memory under its locks,
// and the service that does it by messages, two of which talk to each other here.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <thread>

#include "device/registry.h"
#include "idle_port.h"
#include "node/life_line.h"
#include "rma/batch.h"
#include "rma/service.h"
#include "rma/window.h"
#include "support.h"

namespace accord::test {
namespace {

using namespace accord::rma;

std::vector<int> counted(int first, int count) {
  std::vector<int> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

// Numbers in memory of the host runtime.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<int>& content) : size_bytes_(content.size() * sizeof(int)) {
    EXPECT_OK(runtime_.allocate(0, device::MemoryKind::device, size_bytes_, pointer_));
    device::PointerInfo where;
    EXPECT_TRUE(runtime_.classify(pointer_, where));
    place_ = {.start = static_cast<std::byte*>(pointer_), .where = where};
    const Piece all{0, size_bytes_};
    EXPECT_OK(unpack(place_, {&all, 1}, reinterpret_cast<const std::byte*>(content.data())));
  }
  ~OnDevice() { EXPECT_OK(runtime_.free(pointer_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  const Place& place() const { return place_; }
  std::vector<int> content() const {
    std::vector<int> list(size_bytes_ / sizeof(int));
    const Piece all{0, size_bytes_};
    EXPECT_OK(pack(reinterpret_cast<std::byte*>(list.data()), place_, {&all, 1}));
    return list;
  }

 private:
  device::DeviceRuntime& runtime_ = device::default_runtime();
  std::size_t size_bytes_;
  void* pointer_ = nullptr;
  Place place_;
};

Place on_host(std::vector<int>& list) { return Place::host(list.data()); }

Pieces ints(std::initializer_list<std::pair<int, int>> first_and_count) {
  Pieces pieces;
  for (const auto& [first, count] : first_and_count)
    pieces.push_back({first * std::int64_t{4}, static_cast<std::uint64_t>(count) * 4});
  return pieces;
}

// What the host MPI does in a program: sums.
Status add(const Update&, const std::byte* in, std::byte* inout, std::size_t size_bytes) {
  for (std::size_t at = 0; at < size_bytes; at += sizeof(int)) {
    int one = 0;
    int other = 0;
    std::memcpy(&one, in + at, sizeof one);
    std::memcpy(&other, inout + at, sizeof other);
    one += other;
    std::memcpy(inout + at, &one, sizeof one);
  }
  return {};
}
constexpr Update kSum{.op = 1, .type = 3, .element_bytes = 4};

TEST(rma_pieces, follow_the_type_and_join_what_is_next_to_each_other) {
  const auto two_of_three = std::make_shared<const core::Typemap>(
      std::vector<device::Run>{{.offset_bytes = 0, .length_bytes = 8, .packed_bytes = 0}}, 12);
  const Pieces pieces = pieces_of({two_of_three, 3, 0}, 100);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[2].offset_bytes, 124);
  EXPECT_EQ(size_of(pieces), 24U);
  EXPECT_EQ(pieces_of({core::Typemap::contiguous(4), 5, 0}).size(), 1U);
}

TEST(rma_pieces, are_cut_anywhere) {
  const Pieces pieces = ints({{0, 2}, {5, 3}});
  const Pieces cut = slice(pieces, 6, 8);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[0].offset_bytes, 6);
  EXPECT_EQ(cut[0].length_bytes, 2U);
  EXPECT_EQ(cut[1].offset_bytes, 20);
  EXPECT_EQ(cut[1].length_bytes, 6U);
  EXPECT_TRUE(slice(pieces, 20, 4).empty());
}

TEST(rma_pieces, move_between_layouts_that_differ_and_leave_gaps_alone) {
  const OnDevice device(counted(0, 8));
  std::vector<int> host(10, -1);
  EXPECT_OK(move(on_host(host), ints({{1, 1}, {4, 3}}), device.place(), ints({{0, 3}, {6, 1}})));
  EXPECT_EQ(host, (std::vector<int>{-1, 0, -1, -1, 1, 2, 6, -1, -1, -1}));
}

TEST(rma_batch, does_what_it_has_taken_once_it_is_finished) {
  const OnDevice window(std::vector<int>(400, 0));
  std::vector<int> host = counted(1, 200);
  IdlePort port;
  core::Engine engine(port);
  Batch batch;
  for (int i = 0; i < 200; ++i)
    EXPECT_OK(batch.add(Batch::Direction::put, {window.place(), ints({{2 * i, 1}})},
                        {on_host(host), ints({{i, 1}})}));
  EXPECT_OK(batch.finish(engine));
  EXPECT_OK(batch.finish(engine));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(window.content()[static_cast<std::size_t>(2 * i)], i + 1);
  EXPECT_EQ(window.content()[399], 0);
}

TEST(rma_words, know_what_is_attached_of_devices) {
  Words words;
  DeviceRanges& ranges = words.device_ranges;
  const auto at = [](std::int64_t first, std::uint64_t length) { return Pieces{{first, length}}; };
  const auto start = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  const auto add = [&](std::uint64_t base, std::uint64_t size_bytes) {
    DeviceRanges::Entry entry;
    if (!ranges.next(entry)) return false;
    entry.base = base;
    entry.size_bytes = size_bytes;
    entry.memory.buffer_id = base;
    ranges.add(entry);
    return true;
  };
  EXPECT_FALSE(ranges.touch(at(1000, 8)));
  EXPECT_TRUE(add(1000, 100));
  EXPECT_TRUE(add(5000, 8));
  EXPECT_FALSE(ranges.touch(at(992, 8)));
  EXPECT_TRUE(ranges.touch(at(992, 9)));
  EXPECT_TRUE(ranges.touch(at(1099, 8)));
  EXPECT_FALSE(ranges.touch(at(1100, 8)));
  EXPECT_TRUE(ranges.touch(Pieces{{0, 4}, {5004, 4}}));
  DeviceRanges::Entry found;
  EXPECT_FALSE(ranges.find(at(1099, 8), found));
  EXPECT_FALSE(ranges.find(Pieces{{1000, 4}, {5004, 4}}, found));
  ASSERT_TRUE(ranges.find(Pieces{{5000, 4}, {5004, 4}}, found));
  EXPECT_EQ(found.memory.buffer_id, 5000U);
  EXPECT_EQ(found.generation, 1U);
  EXPECT_TRUE(ranges.remove(start(1000)));
  EXPECT_FALSE(ranges.remove(start(1000)));
  EXPECT_FALSE(ranges.touch(at(1000, 100)));
  std::uintptr_t next = 10000;
  while (add(next, 1)) next += 10;
  ASSERT_TRUE(ranges.find(at(10000, 1), found));
  EXPECT_EQ(found.generation, 2U);  // where the first one was
  EXPECT_TRUE(ranges.remove(start(10000)));
  EXPECT_TRUE(add(20000, 4));
  EXPECT_FALSE(ranges.empty());
}

TEST(rma_words, are_locked_by_one_or_shared) {
  Words words;
  EXPECT_TRUE(try_lock(words, LockKind::shared, 0));
  EXPECT_TRUE(try_lock(words, LockKind::shared, 1));
  EXPECT_FALSE(try_lock(words, LockKind::exclusive, 2));
  unlock(words, LockKind::shared);
  unlock(words, LockKind::shared);
  EXPECT_TRUE(try_lock(words, LockKind::exclusive, 2));
  EXPECT_FALSE(try_lock(words, LockKind::shared, 0));
  unlock(words, LockKind::exclusive);
  EXPECT_TRUE(try_lock(words, LockKind::shared, 0));
}

// The life line of a process that has ended.
std::shared_ptr<const node::LifeLine> cut_line() {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  ::close(ends[1]);
  return std::make_shared<const node::LifeLine>(node::Descriptor(ends[0]));
}

TEST(rma_words, name_a_holder_whose_process_has_ended) {
  Words words;
  LifeLines lines(3);
  lines[2] = cut_line();
  words.update_holder = 3;
  UpdateTurn turn;
  const Status taken = turn.take(words, 0, lines);
  EXPECT_EQ(taken.code(), StatusCode::device_error);
  EXPECT_NE(taken.message().find("rank 2"), std::string::npos);
  EXPECT_OK(check_lock(words, lines));
  EXPECT_TRUE(try_lock(words, LockKind::exclusive, 2));
  EXPECT_CODE(device_error, check_lock(words, lines));
}

// So that others come in between, if they may.
Status add_slowly(const Update& update, const std::byte* in, std::byte* inout,
                  std::size_t size_bytes) {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  return add(update, in, inout, size_bytes);
}

TEST(rma_target, updates_of_many_threads_are_all_there) {
  const OnDevice window(std::vector<int>(4, 0));
  Words words;
  const LifeLines lines(1);
  const Target target(window.place(), &words, 0, &lines, add_slowly);
  constexpr int kThreads = 4;
  constexpr int kTimes = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      const int one = 1;
      int before = -1;
      for (int time = 0; time < kTimes; ++time)
        EXPECT_OK(target.update(kSum, ints({{1, 1}}), reinterpret_cast<const std::byte*>(&one),
                                reinterpret_cast<std::byte*>(&before)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(window.content(), (std::vector<int>{0, kThreads * kTimes, 0, 0}));
}

TEST(rma_target, a_kernel_updates_where_neither_end_has_gaps) {
  const OnDevice window(counted(0, 8));
  const OnDevice origin(counted(100, 8));
  Words words;
  const LifeLines lines(1);
  const Target target(window.place(), &words, 0, &lines, nullptr);
  Update update = kSum;
  update.device_op = device::ReduceOp::sum;
  update.element = device::Element::int32;
  const Pieces whole = ints({{2, 4}});
  EXPECT_FALSE(target.can_reduce(update, whole, origin.place(), ints({{0, 2}, {4, 2}})));
  ASSERT_TRUE(target.can_reduce(update, whole, origin.place(), whole));
  EXPECT_OK(target.reduce(update, whole.front(), origin.place(), whole.front()));
  EXPECT_EQ(window.content(), (std::vector<int>{0, 1, 104, 106, 108, 110, 6, 7}));
  EXPECT_EQ(words.update_holder.load(), 0U);
}

TEST(rma_target, a_dynamic_window_has_what_is_attached) {
  std::vector<int> memory = counted(0, 8);
  Attached attached;
  Words words;
  const LifeLines lines(1);
  const Target target(Place::absolute(), &words, 0, &lines, add, &attached);
  const Pieces there{{static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&memory[2])), 12}};
  int found[3] = {};
  const Pieces all = ints({{0, 3}});
  EXPECT_CODE(out_of_window, target.get(there, Place::host(found), all));
  attached.add(memory.data(), 4 * sizeof(int));  // two parts that follow one another
  EXPECT_CODE(out_of_window, target.get(there, Place::host(found), all));
  attached.add(&memory[4], 4 * sizeof(int));
  EXPECT_OK(target.get(there, Place::host(found), all));
  EXPECT_EQ(found[2], 4);
  EXPECT_TRUE(attached.remove(memory.data()));
  EXPECT_FALSE(attached.remove(memory.data()));
}

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

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A program has as many windows as it likes, in a job of any size.
TEST(rma_window, keeps_no_descriptor_and_tells_few_bytes) {
  IdlePort port;
  core::Engine engine(port);
  const auto alone = [](const void* mine, void* all, std::size_t size_bytes) -> Status {
    EXPECT_LE(size_bytes, 64u);
    std::memcpy(all, mine, size_bytes);
    return {};
  };
  const auto open = [&] {
    auto window = std::make_unique<Window>(engine, 0, 1, add);
    EXPECT_OK(window->open({}, nullptr, alone));
    EXPECT_EQ(window->route(0), Route::direct);
    return window;
  };
  const auto first = open();  // with what all of a process share
  const std::size_t before = open_descriptors();
  std::vector<std::unique_ptr<Window>> windows;
  for (int i = 0; i < 20; ++i) windows.push_back(open());
  EXPECT_EQ(open_descriptors(), before);
}

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
  rma::Service origin_{std::make_unique<FakeWire>(post_, 0), 0, 2, nothing_, lines_};
  rma::Service target_{std::make_unique<FakeWire>(post_, 1), 1, 2, own_, lines_};
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
};

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

TEST_F(rma_service, tells_the_origin_of_an_error_once) {
  lines_[0] = cut_line();
  words_.update_holder = 1;
  EXPECT_OK(ask(message::Kind::update, ints({{0, 1}}), {1}));
  go_on();
  EXPECT_TRUE(progress_->is_done());
  EXPECT_CODE(device_error, progress_->status);
  EXPECT_CODE(device_error, origin_.take_error(1));
  EXPECT_OK(origin_.take_error(1));
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
  go_on_for(milliseconds(3000), [&] { (void)target_.advance(port_); });
  const Status lost = check_lock(words_, lines_);
  EXPECT_CODE(device_error, lost);
  EXPECT_NE(std::string::npos, lost.message().find("rank 0")) << lost.message();
}

TEST_F(rma_far_service, names_a_target_that_gives_no_sign_of_life) {
  EXPECT_OK(ask(message::Kind::put, ints({{0, 1}}), {1}));
  go_on_for(milliseconds(1000), [&] { (void)origin_.advance(port_); });
  EXPECT_FALSE(progress_->is_done());
  go_on_for(milliseconds(2000), [&] { (void)origin_.advance(port_); });
  EXPECT_TRUE(progress_->is_done());
  EXPECT_TRUE(origin_.is_quiet(1));
  EXPECT_NE(std::string::npos, origin_.take_error(1).message().find("rank 1 is gone"));
  EXPECT_CODE(device_error, ask(message::Kind::put, ints({{0, 1}}), {1}));
}

// As in a fence.
TEST_F(rma_far_service, ends_a_wait_for_a_rank_that_gives_no_sign_of_life) {
  go_on_for(milliseconds(3000), [&] {
    target_.await(-1);
    (void)target_.advance(port_);
  });
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
  EXPECT_NE(origin_.take_error(1).message().find("rank 1 is gone"), std::string::npos);
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
