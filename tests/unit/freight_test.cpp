// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages that go piece by piece between two workers, with less memory than they want at either
// end: they arrive whole, both ways at once, and neither end lets go of memory that the other still
// writes to.
#include "net/freight.h"

#include "../fuzz/fake_worker.h"
#include "device/registry.h"
#include "device/staging_pool.h"
#include "net/carriage.h"
#include "net/landing.h"
#include "net_processes.h"
#include "support.h"

namespace accord::test {
namespace {

using net::Carriage;
using net::Freight;
using net::Landing;
using net::Memory;

constexpr std::size_t kPiece = 32 << 10;
constexpr std::uint64_t kFirstLanding = 1000;

// Memory of the embedded device, which no CPU may touch.
class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<char>& bytes) : size_(bytes.size()) {
    auto& runtime = device::default_runtime();
    if (!runtime.allocate(0, device::MemoryKind::device, size_, start_).ok()) ::_exit(4);
    copy(start_, bytes.data());
  }
  ~DeviceBytes() { (void)device::default_runtime().free(start_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  Memory memory() const {
    return {.start = start_, .size_bytes = size_, .where = device::classify(start_)};
  }
  bool is(const std::vector<char>& expected) const {
    std::vector<char> copied(size_);
    copy(copied.data(), start_);
    return copied == expected;
  }

 private:
  void copy(void* to, const void* from) const {
    const device::Copy one{.dst = to, .src = from, .row_bytes = size_};
    if (!device::default_runtime().copy(0, {&one, 1}).ok()) ::_exit(4);
  }
  std::size_t size_;
  void* start_ = nullptr;
};

struct Ways {
  const char* name;
  Carriage::Way out;
  Landing::Way in;
};
class FreightOf : public TwoProcesses, public testing::WithParamInterface<Ways> {};

Carriage::Target target_of(const End& end, std::uint64_t landing) {
  return {.worker = end.addresses[1], .landing = landing, .name = "the other one"};
}

// Moves all on until `done`.
bool go_on_until(End& end, Freight& freight, const std::function<bool()>& done) {
  return end.wait([&] {
    const auto locked = end.worker->lock();
    freight.refuse_strangers();
    return done();
  });
}

// Each sends many to the other at once, with room for two pieces of all of them at either end, and
// no two lengths alike. What comes first of a message, its landing or its carrier, differs.
bool exchange(End& end, const Ways& ways) {
  constexpr std::uint64_t kMessages = 10;
  const auto size_of = [](std::uint64_t i) { return i * 37123 + 1; };
  Freight freight(*end.worker, {.piece_bytes = kPiece, .pieces_of_one = 4, .bytes_max = 2 * kPiece},
                  "it");
  device::staging_pool().trim();
  const auto had = device::staging_pool().counters().misses;
  std::vector<std::unique_ptr<DeviceBytes>> sent, received;
  std::vector<std::unique_ptr<Carriage>> carriages;
  std::vector<std::unique_ptr<Landing>> landings;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    sent.push_back(std::make_unique<DeviceBytes>(pattern(size_of(i), static_cast<int>(i))));
    received.push_back(std::make_unique<DeviceBytes>(std::vector<char>(size_of(i), 'x')));
    landings.push_back(
        std::make_unique<Landing>(freight, kFirstLanding + i, received.back()->memory(), ways.in));
  }
  end.tell(bytes_of("go"));
  (void)end.hear();
  for (std::uint64_t i = kMessages; i-- > 0;)
    carriages.push_back(std::make_unique<Carriage>(freight, sent[i]->memory(),
                                                   target_of(end, kFirstLanding + i), ways.out));
  bool right = true;
  const auto advance_all = [&](auto& ends) {
    std::erase_if(ends, [&](const auto& each) {
      bool done = false;
      const Status status = each->advance(done);
      if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
      right = right && status.ok();
      return done || !status.ok();
    });
  };
  const bool ended = go_on_until(end, freight, [&] {
    advance_all(carriages);
    advance_all(landings);
    return carriages.empty() && landings.empty();
  });
  for (std::uint64_t i = 0; i < kMessages; ++i)
    right = right && received[i]->is(pattern(size_of(i), static_cast<int>(i)));
  // Two pieces that landed, and two that were carried.
  right = right && device::staging_pool().counters().misses - had <= 4;
  end.tell(bytes_of("go"));
  return right && ended && end.serve_until_told();
}

TEST_P(FreightOf, arrives_both_ways_at_once_with_little_memory) {
  run([](End& end) { EXPECT_TRUE(exchange(end, GetParam())); },
      [](End& end) { return exchange(end, GetParam()); });
}

// A landing that is given up fails only once its carrier has let go of it, which here it does when
// it is told to go on.
TEST_P(FreightOf, is_not_let_go_while_it_may_be_written) {
  const auto bounds =
      Freight::Bounds{.piece_bytes = kPiece, .pieces_of_one = 4, .bytes_max = 8 * kPiece};
  run(
      [&](End& end) {
        Freight freight(*end.worker, bounds, "it");
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        Landing landing(freight, kFirstLanding, to.memory(), GetParam().in);
        end.tell(bytes_of("go"));
        bool done = false;
        Status status;
        const auto advance = [&] {
          status = landing.advance(done);
          return done || !status.ok();
        };
        // It has come, and has been granted something, once the other end says so.
        EXPECT_TRUE(end.wait([&] {
          const auto locked = end.worker->lock();
          return advance() || end.has_news();
        }));
        (void)end.hear();
        EXPECT_OK(status);
        EXPECT_FALSE(done);
        landing.stop();
        for (const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
             std::chrono::steady_clock::now() < until;) {
          end.worker->progress();
          EXPECT_FALSE(advance()) << status.message();
        }
        end.tell(bytes_of("go"));
        EXPECT_TRUE(end.wait(advance));
        EXPECT_CODE(network, status);
        end.tell(bytes_of("go"));
        EXPECT_TRUE(end.serve_until_told());
      },
      [&](End& end) {
        (void)end.hear();
        Freight freight(*end.worker, bounds, "it");
        const DeviceBytes from(pattern(kLong, 3));
        Carriage carriage(freight, from.memory(), target_of(end, kFirstLanding), GetParam().out);
        bool done = false;
        Status status = carriage.advance(done);
        // Something is granted, and nothing is put: nobody calls advance.
        if (!end.wait([&] { return carriage.must_be_polled(); })) return false;
        end.tell(bytes_of("go"));
        (void)end.wait([&] { return end.has_news(); });
        (void)end.hear();
        const bool ended = end.wait([&] {
          status = carriage.advance(done);
          return done || !status.ok();
        });
        end.tell(bytes_of("go"));
        return ended && status.code() == StatusCode::network && end.serve_until_told();
      });
}

TEST_P(FreightOf, for_nobody_is_declined_and_a_dead_carrier_is_an_error) {
  const auto bounds =
      Freight::Bounds{.piece_bytes = kPiece, .pieces_of_one = 4, .bytes_max = 8 * kPiece};
  run(
      [&](End& end) {
        Freight freight(*end.worker, bounds, "it");
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        Landing landing(freight, kFirstLanding, to.memory(), GetParam().in);
        end.tell(bytes_of("go"));
        bool done = false;
        Status status;
        EXPECT_TRUE(go_on_until(end, freight, [&] {
          status = landing.advance(done);
          return done || !status.ok();
        }));
        EXPECT_CODE(network, status);
        EXPECT_NE(std::string::npos, status.message().find("the carrier")) << status.message();
      },
      [&](End& end) {
        (void)end.hear();
        Freight freight(*end.worker, bounds, "the carrier");
        const DeviceBytes from(pattern(kLong, 3));
        bool done = false;
        {
          Carriage lost(freight, from.memory(), target_of(end, 7), GetParam().out);
          Status status;
          const bool ended = end.wait([&] {
            status = lost.advance(done);
            return done || !status.ok();
          });
          if (!ended || status.code() != StatusCode::unsupported) return false;
        }
        Carriage carriage(freight, from.memory(), target_of(end, kFirstLanding), GetParam().out);
        (void)carriage.advance(done);
        if (!end.wait([&] { return carriage.must_be_polled(); })) return false;
        ::kill(::getpid(), SIGKILL);
        return false;
      });
}

// The other end waits for them.
class Scarce final : public fuzz::FakeWorker {
 public:
  using What = net::FreightNote::What;
  Status post(Peer& peer, unsigned kind, Bytes message) override {
    if (refuses) return {StatusCode::network, "no memory for a message"};
    net::FreightNote note;
    std::memcpy(static_cast<void*>(&note), message.data(), sizeof note);
    told.push_back(note.what);
    return FakeWorker::post(peer, kind, message);
  }
  // As if the other end had told it.
  void hear(const net::FreightNote& note) {
    std::vector<std::byte> message(sizeof note + 8);
    std::memcpy(message.data(), &note, sizeof note);
    deliver(1, message);
    progress();
  }
  bool refuses = false;
  std::vector<What> told;
};

TEST(Freight, tells_of_errors_once_there_is_memory_for_a_message) {
  using What = net::FreightNote::What;
  Scarce worker;
  Freight freight(worker, {.piece_bytes = kPiece, .pieces_of_one = 1, .bytes_max = 2 * kPiece},
                  "it");
  std::vector<char> bytes(kPiece);
  const Memory memory{.start = bytes.data(), .size_bytes = bytes.size(), .where = {}};
  const std::vector<std::byte> address(8);
  Carriage carriage(freight, memory, {.worker = address, .landing = 7, .name = "that one"},
                    Carriage::Way::straight);
  Landing landing(freight, kFirstLanding, memory, Landing::Way::straight);
  Landing idle(freight, kFirstLanding + 1, memory, Landing::Way::straight);
  bool done = false;
  EXPECT_OK(carriage.advance(done));
  worker.hear({.what = What::begin, .to = kFirstLanding, .from = 1, .size_bytes = kPiece});
  EXPECT_OK(landing.advance(done));
  worker.hear({.what = What::begin, .to = 8, .from = 2, .size_bytes = kPiece});
  worker.hear({.what = What::begin, .to = kFirstLanding + 1, .from = 3, .size_bytes = kPiece});
  EXPECT_EQ((std::vector{What::begin, What::grant}), worker.told);
  worker.refuses = true;
  carriage.stop();
  landing.stop();
  idle.stop();
  freight.refuse_strangers();
  EXPECT_TRUE(freight.has_strangers());
  EXPECT_OK(carriage.advance(done));
  EXPECT_FALSE(done);
  EXPECT_OK(landing.advance(done));
  EXPECT_FALSE(done);
  EXPECT_OK(idle.advance(done));
  EXPECT_FALSE(done);
  worker.refuses = false;
  worker.told.clear();
  freight.refuse_strangers();
  EXPECT_FALSE(freight.has_strangers());
  EXPECT_CODE(network, carriage.advance(done));
  EXPECT_OK(landing.advance(done));
  EXPECT_CODE(network, idle.advance(done));
  EXPECT_EQ((std::vector{What::refusal, What::end, What::refusal, What::refusal}), worker.told);
  worker.hear({.what = What::end, .to = kFirstLanding});
  EXPECT_CODE(network, landing.advance(done));
}

INSTANTIATE_TEST_SUITE_P(
    by, FreightOf,
    testing::Values(Ways{"chunks_to_pieces", Carriage::Way::by_chunks, Landing::Way::by_pieces},
                    Ways{"chunks_straight", Carriage::Way::by_chunks, Landing::Way::straight},
                    Ways{"itself_to_pieces", Carriage::Way::straight, Landing::Way::by_pieces},
                    Ways{"itself_straight", Carriage::Way::straight, Landing::Way::straight}),
    [](const auto& ways) { return std::string(ways.param.name); });

}  // namespace
}  // namespace accord::test
