// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Calls in which every pair of ranks has a size of its own: each pair gets its bytes, straight
// where its sender's buffer can be lent and through a lane of its region where not, whatever the
// other pairs do; and ranks that disagree get an error, not each other's memory.
#include "coll/pairs/pairwise_exchange.h"

#include <functional>

#include "node_collective.h"

namespace accord::test {
namespace {

constexpr const char* kWay = "node-pairs";
constexpr unsigned char kUntouched = 0xbb;

// Byte `at` of what `sender` has for `receiver`.
unsigned char sent_value(int sender, int receiver, int round, std::size_t at) {
  return value(sender * 5 + receiver, round, at);
}

// How the blocks of a rank lie in its buffer: elements of a byte, each with a gap behind it, or
// without.
struct Side {
  device::MemoryKind kind = device::MemoryKind::device;
  bool strided = false;
};

using Sizes = std::vector<std::vector<std::size_t>>;  // by sender and receiver

// The blocks of one rank, in reverse order, with room before each.
class Blocks {
 public:
  static constexpr std::size_t kGap = 3;

  Blocks(const std::vector<std::size_t>& sizes, const Side& side)
      : step_(side.strided ? 2 : 1), places_(sizes.size()) {
    std::size_t room = 0;
    for (std::size_t peer = sizes.size(); peer-- > 0;) {
      places_[peer] = room + kGap;
      room = places_[peer] + sizes[peer] * step_;
    }
    buffer_ = std::make_unique<Buffer>(room + kGap, side.kind);
    type_ = side.strided
                ? std::make_shared<const core::Typemap>(std::vector<core::Run>{{0, 1, 0}}, 2)
                : core::Typemap::contiguous(1);
  }

  Buffer& buffer() const { return *buffer_; }
  std::size_t place(std::size_t peer, std::size_t at) const { return places_[peer] + at * step_; }

  core::CallEnd end(const std::vector<std::size_t>& sizes) const {
    core::CallEnd made = buffer_->end(0);
    for (std::size_t peer = 0; peer < sizes.size(); ++peer) {
      made.segment.count += sizes[peer];
      made.blocks.push_back({type_, sizes[peer], static_cast<std::ptrdiff_t>(places_[peer])});
    }
    return made;
  }

 private:
  std::size_t step_;
  std::vector<std::size_t> places_;
  std::unique_ptr<Buffer> buffer_;
  std::shared_ptr<const core::Typemap> type_;
};

// An alltoallv on buffers of its own, run again and again.
class Exchange {
 public:
  Exchange(
      NodeWorld& world, Sizes sizes, std::size_t lend_bytes,
      const std::function<Side(int, bool)>& side = [](int, bool) { return Side(); })
      : world_(world), sizes_(std::move(sizes)), received_(sizes_), lend_bytes_(lend_bytes) {
    for (std::size_t sender = 0; sender < sizes_.size(); ++sender) {
      for (std::size_t receiver = 0; receiver < sizes_.size(); ++receiver)
        received_[receiver][sender] = sizes_[sender][receiver];
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      in_.emplace_back(sizes_[at(rank)], side(rank, true));
      out_.emplace_back(received_[at(rank)], side(rank, false));
    }
  }

  // What `receiver` expects of `sender` instead of what that sends.
  void expect_instead(int receiver, int sender, std::size_t size_bytes) {
    received_[at(receiver)][at(sender)] = size_bytes;
  }

  std::vector<Status> outcomes(std::vector<std::string>& ways) {
    ++round_;
    std::vector<coll::CollArgs> views;
    for (int rank = 0; rank < ranks(); ++rank) {
      fill(rank);
      views.push_back(view(rank));
    }
    ways.assign(at(ranks()), "");
    results_.assign(at(ranks()), {});
    return world_.outcomes(
        views,
        [&](int rank) {
          Buffer& out = out_[at(rank)].buffer();
          results_[at(rank)] = out.read(out.size_bytes());
          in_[at(rank)].buffer().write(Bytes(in_size(rank), 0xdd));
          out.write(Bytes(out.size_bytes(), 0xee));
        },
        ways);
  }

  void run() {
    std::vector<std::string> ways;
    for (const Status& status : outcomes(ways)) EXPECT_OK(status);
    for (const std::string& way : ways) EXPECT_EQ(kWay, way);
    for (int rank = 0; rank < ranks(); ++rank) check(rank);
  }

  // What the others have of each other while one rank has yet to come; then it comes.
  void run_with_a_late_rank(int late) {
    constexpr int kPolls = 1000;
    ++round_;
    std::vector<coll::CollArgs> views;
    for (int rank = 0; rank < ranks(); ++rank) {
      fill(rank);
      views.push_back(view(rank));
    }
    std::vector<std::unique_ptr<coll::Exchange>> exchanges(at(ranks()));
    std::vector<char> done(at(ranks()), 0);
    const auto poll_all = [&] {
      for (int rank = 0; rank < ranks(); ++rank) {
        bool is_done = done[at(rank)] != 0;
        if (exchanges[at(rank)] && !is_done) EXPECT_OK(exchanges[at(rank)]->advance(is_done));
        done[at(rank)] = is_done ? 1 : 0;
      }
    };
    const auto come = [&](int rank) {
      exchanges[at(rank)] = make_exchange(world_.shared_group(rank), views[at(rank)]);
    };
    for (int rank = 0; rank < ranks(); ++rank)
      if (rank != late) come(rank);
    for (int polls = 0; polls < kPolls; ++polls) poll_all();
    const auto read_all = [&] {
      results_.clear();
      for (Blocks& out : out_) results_.push_back(out.buffer().read(out.buffer().size_bytes()));
    };
    read_all();
    for (int rank = 0; rank < ranks(); ++rank)
      if (rank != late) check(rank, late);
    come(late);
    while (std::ranges::find(done, 0) != done.end()) poll_all();
    read_all();
    for (int rank = 0; rank < ranks(); ++rank) check(rank);
  }

  // Everything that `rank` gets, and nothing else, lies in its receive buffer.
  void check(int rank, int but_not_from = -1) {
    Bytes expected(out_[at(rank)].buffer().size_bytes(), kUntouched);
    for (int sender = 0; sender < ranks(); ++sender) {
      if (sender == but_not_from) continue;
      for (std::size_t i = 0; i < sizes_[at(sender)][at(rank)]; ++i)
        expected[out_[at(rank)].place(at(sender), i)] = sent_value(sender, rank, round_, i);
    }
    EXPECT_EQ(expected, results_[at(rank)]) << "round " << round_ << " rank " << rank;
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  int ranks() const { return static_cast<int>(sizes_.size()); }
  std::size_t in_size(int rank) { return in_[at(rank)].buffer().size_bytes(); }

  void fill(int rank) {
    Bytes bytes(in_size(rank), 0xaa);
    for (int receiver = 0; receiver < ranks(); ++receiver) {
      for (std::size_t i = 0; i < sizes_[at(rank)][at(receiver)]; ++i)
        bytes[in_[at(rank)].place(at(receiver), i)] = sent_value(rank, receiver, round_, i);
    }
    in_[at(rank)].buffer().write(bytes);
    Buffer& out = out_[at(rank)].buffer();
    out.write(Bytes(out.size_bytes(), kUntouched));
  }

  coll::CollArgs view(int rank) {
    coll::CollArgs made;
    made.exchange = node::Call{.kind = Kind::alltoallv, .size = ranks()};
    made.rank = rank;
    made.ways.lend_bytes = lend_bytes_;
    made.in = in_[at(rank)].end(sizes_[at(rank)]);
    made.out = out_[at(rank)].end(received_[at(rank)]);
    return made;
  }

  NodeWorld& world_;
  Sizes sizes_;
  Sizes received_;  // by receiver and sender
  std::size_t lend_bytes_;
  std::vector<Blocks> in_;
  std::vector<Blocks> out_;
  std::vector<Bytes> results_;
  int round_ = 0;
};

Sizes random_sizes(int ranks, std::mt19937& random) {
  static constexpr std::size_t kMenu[] = {0, 0, 1, 255, 3000, 9000, 40000};
  Sizes sizes(static_cast<std::size_t>(ranks));
  for (auto& row : sizes) {
    for (int peer = 0; peer < ranks; ++peer) row.push_back(kMenu[random() % std::size(kMenu)]);
  }
  return sizes;
}
Sizes equal_sizes(int ranks, std::size_t size_bytes) {
  const auto many = static_cast<std::size_t>(ranks);
  return Sizes(many, std::vector<std::size_t>(many, size_bytes));
}

TEST(Lanes, LieSideBySideInTheRegion) {
  for (const std::size_t region_bytes : {9216u, 65536u, 1u << 27}) {
    for (const std::size_t count : {1u, 2u, 3u}) {
      const node::Lanes lanes(region_bytes, count);
      for (const std::size_t size_bytes : {1u, 5000u, 1u << 20, 1u << 30}) {
        const std::size_t chunk_bytes = lanes.chunk_bytes(size_bytes);
        ASSERT_GT(chunk_bytes, 0u);
        EXPECT_EQ(0u, chunk_bytes % 256);
        for (std::size_t lane = 0; lane < count; ++lane) {
          const std::size_t next = lane + 1 < count ? lanes.first_bytes(lane + 1) : region_bytes;
          EXPECT_LE(lanes.first_bytes(lane) + node::Lanes::kSlots * chunk_bytes, next);
        }
        for (std::size_t chunk = 1; chunk < node::Lanes::kSlots; ++chunk)
          EXPECT_EQ(chunk * chunk_bytes, node::Lanes::chunk_first_bytes(chunk, chunk_bytes));
        EXPECT_EQ(0u, node::Lanes::chunk_first_bytes(node::Lanes::kSlots, chunk_bytes));
      }
    }
  }
}

TEST(PairwiseExchange, EveryPairGetsItsBytes) {
  std::mt19937 random(5);
  for (const int ranks : {1, 2, 3, 5}) {
    NodeWorld world(ranks, kRegionBytes, static_cast<unsigned>(ranks));
    for (const std::size_t lend_bytes : {0, 1, 3000}) {
      for (int draw = 0; draw < 6; ++draw) {
        std::vector<Side> sides(static_cast<std::size_t>(2 * ranks));
        for (Side& side : sides) {
          if (random() % 3 == 0) side.kind = device::MemoryKind::pinned;
          side.strided = random() % 3 == 0;
        }
        Exchange exchange(world, random_sizes(ranks, random), lend_bytes,
                          [&](int rank, bool sends) {
                            return sides[static_cast<std::size_t>(2 * rank + (sends ? 1 : 0))];
                          });
        for (int round = 0; round < 4; ++round) exchange.run();
        if (HasFailure()) return;
      }
    }
  }
}

// A buffer that cannot be lent costs only the pairs that it is the sender's of.
TEST(PairwiseExchange, LendsWhatCanBeLent) {
  constexpr int kRanks = 3;
  NodeWorld world(kRanks, kRegionBytes, 8);
  Exchange exchange(world, equal_sizes(kRanks, 5000), 1, [](int rank, bool sends) {
    return Side{
        .kind = rank == 0 && sends ? device::MemoryKind::pinned : device::MemoryKind::device,
        .strided = rank == 1 && !sends};
  });
  for (int round = 0; round < 3; ++round) exchange.run();
  const auto before = coll::PairwiseExchange::counters();
  exchange.run();
  const auto after = coll::PairwiseExchange::counters();
  EXPECT_EQ(4u, after.lent - before.lent);  // of two ranks to the two others each
  EXPECT_EQ(2u, after.through_region - before.through_region);
}

// From one layout to another, or to none, in one copy.
TEST(PairwiseExchange, LendsWhatLiesInEqualSteps) {
  constexpr int kRanks = 3;
  NodeWorld world(kRanks, kRegionBytes, 8);
  Exchange exchange(world, equal_sizes(kRanks, 5000), 1,
                    [](int rank, bool sends) { return Side{.strided = sends || rank != 1}; });
  for (int round = 0; round < 3; ++round) exchange.run();
  const auto before = coll::PairwiseExchange::counters();
  exchange.run();
  const auto after = coll::PairwiseExchange::counters();
  EXPECT_EQ(6u, after.lent - before.lent);
  EXPECT_EQ(before.through_region, after.through_region);
}

TEST(PairwiseExchange, BeginsLongBlocksBeforeAllRanksHaveCome) {
  NodeWorld world(3, kRegionBytes, 17);
  Exchange exchange(world, equal_sizes(3, std::size_t{1} << 20), 1);
  for (int call = 0; call < 3; ++call) exchange.run();
  exchange.run_with_a_late_rank(2);
}

TEST(PairwiseExchange, LendsNothingShort) {
  NodeWorld world(2, kRegionBytes, 8);
  const auto before = coll::PairwiseExchange::counters();
  Exchange exchange(world, equal_sizes(2, 5000), 5001);
  for (int round = 0; round < 4; ++round) exchange.run();
  EXPECT_EQ(before.lent, coll::PairwiseExchange::counters().lent);
}

// In place, with lanes of different length in both directions: rank 0 has three of them.
TEST(PairwiseExchange, InPlaceSwapsWhatTheRanksHave) {
  constexpr int kRanks = 4;
  constexpr std::size_t kLong = 100000;
  NodeWorld world(kRanks, kRegionBytes, 21);
  // By pair, the same in both directions; no block for oneself.
  const Sizes sizes{{0, kLong, 300, 1}, {kLong, 0, 0, 0}, {300, 0, 0, 7000}, {1, 0, 7000, 0}};
  std::vector<Blocks> blocks;
  for (const auto& row : sizes) blocks.emplace_back(row, Side());
  for (int round = 0; round < 4; ++round) {
    std::vector<coll::CollArgs> views(kRanks);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      Bytes bytes(blocks[rank].buffer().size_bytes(), kUntouched);
      for (std::size_t peer = 0; peer < kRanks; ++peer) {
        for (std::size_t i = 0; i < sizes[rank][peer]; ++i)
          bytes[blocks[rank].place(peer, i)] =
              sent_value(static_cast<int>(rank), static_cast<int>(peer), round, i);
      }
      blocks[rank].buffer().write(bytes);
      views[rank].exchange = node::Call{.kind = Kind::alltoallv, .size = kRanks};
      views[rank].rank = static_cast<int>(rank);
      views[rank].ways.lend_bytes = 1;
      views[rank].in_place = true;
      views[rank].in = views[rank].out = blocks[rank].end(sizes[rank]);
    }
    EXPECT_EQ(kWay, world.run(views, [](int) {}));
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      Bytes expected(blocks[rank].buffer().size_bytes(), kUntouched);
      for (std::size_t peer = 0; peer < kRanks; ++peer) {
        for (std::size_t i = 0; i < sizes[rank][peer]; ++i)
          expected[blocks[rank].place(peer, i)] =
              sent_value(static_cast<int>(peer), static_cast<int>(rank), round, i);
      }
      EXPECT_EQ(expected, blocks[rank].buffer().read(expected.size())) << "rank " << rank;
    }
  }
}

// Calls that go otherwise between them use the same regions, boards and numbers.
TEST(PairwiseExchange, TakesTurnsWithOtherCalls) {
  constexpr int kRanks = 3;
  NodeWorld world(kRanks, kRegionBytes, 6);
  std::mt19937 random(6);
  Collective gather(world, make_case(Kind::allgather, kRanks, 30000));
  Collective sum(world, make_case(Kind::allreduce, kRanks, 50000), device::MemoryKind::pinned);
  Exchange lent(world, equal_sizes(kRanks, 20000), 1);
  Exchange mixed(world, random_sizes(kRanks, random), 3000, [](int rank, bool) {
    return Side{.kind = rank == 1 ? device::MemoryKind::pinned : device::MemoryKind::device};
  });
  for (int call = 0; call < 60; ++call) {
    switch (random() % 4) {
      case 0:
        gather.run();
        break;
      case 1:
        sum.run();
        break;
      case 2:
        lent.run();
        break;
      default:
        mixed.run();
    }
    if (HasFailure()) return;
  }
}

class MistakeTest : public testing::TestWithParam<std::size_t> {};

// Rank 2 expects of rank 0 more or less than that sends, or nothing: both have an error, unless it
// is nothing, when rank 2 does not even look; all get what they should of the other pairs, and the
// next call is as good as any.
TEST_P(MistakeTest, IsAnErrorOfItsPairAlone) {
  constexpr int kRanks = 3;
  constexpr std::size_t kSent = 60000;  // more than a lane holds
  for (const bool lent : {false, true}) {
    NodeWorld world(kRanks, kRegionBytes, 11);
    Exchange exchange(world, equal_sizes(kRanks, kSent), lent ? 1 : 0);
    Exchange wrong(world, equal_sizes(kRanks, kSent), lent ? 1 : 0);
    for (int round = 0; round < 4; ++round) exchange.run();
    wrong.expect_instead(2, 0, GetParam());
    for (int round = 0; round < 4; ++round) {
      std::vector<std::string> ways;
      const std::vector<Status> statuses = wrong.outcomes(ways);
      EXPECT_OK(statuses[1]);
      if (GetParam() != 0) {
        EXPECT_EQ(GetParam() < kSent ? StatusCode::truncated : StatusCode::mismatch,
                  statuses[2].code());
        EXPECT_NE(std::string::npos, statuses[2].message().find("60000"));
      }
      EXPECT_EQ(StatusCode::mismatch, statuses[0].code()) << statuses[0].message();
      EXPECT_NE(std::string::npos, statuses[0].message().find("rank 2"));
      wrong.check(0);
      wrong.check(1);
      wrong.check(2, 0);
    }
    exchange.run();
  }
}

INSTANTIATE_TEST_SUITE_P(All, MistakeTest, testing::Values(0, 1, 59999, 60001));

// Each waits for what the other does not send.
TEST(PairwiseExchange, NobodyWaitsForASenderThatSendsNothing) {
  NodeWorld world(2, kRegionBytes, 3);
  Exchange exchange(world, equal_sizes(2, 0), 1);
  std::vector<std::string> ways;
  exchange.expect_instead(0, 1, 100);
  exchange.expect_instead(1, 0, 100);
  for (const Status& status : exchange.outcomes(ways))
    EXPECT_EQ(StatusCode::mismatch, status.code());
}

// Calls in which one rank sends another the bytes of a buffer, polled rank by rank.
class Transfers {
 public:
  static constexpr std::size_t kBytes = 1000;
  struct Way {
    int sender;
    int receiver;
  };

  Transfers(int ranks, std::vector<Way> calls) : world_(ranks, kRegionBytes, 13) {
    for (const Way& way : calls) {
      Call call{.source = std::make_unique<Buffer>(kBytes),
                .target = std::make_unique<Buffer>(kBytes)};
      call.source->write(Bytes(kBytes, number(calls_.size())));
      for (int rank = 0; rank < ranks; ++rank) {
        coll::CollArgs view;
        view.exchange = node::Call{.kind = Kind::alltoallv, .size = ranks};
        view.rank = rank;
        if (rank == way.sender) view.in = end(*call.source, way.receiver, ranks);
        if (rank == way.receiver) view.out = end(*call.target, way.sender, ranks);
        call.views.push_back(std::move(view));
      }
      calls_.push_back(std::move(call));
    }
    for (int rank = 0; rank < ranks; ++rank) states_.emplace_back();
  }

  // Polls the call of a rank, which begins where it has ended the one before; whether it ends.
  bool ends(int rank) {
    State& state = states_[static_cast<std::size_t>(rank)];
    if (!state.exchange) {
      state.exchange = make_exchange(world_.shared_group(rank),
                                     calls_[state.ended].views[static_cast<std::size_t>(rank)]);
    }
    bool done = false;
    for (int polls = 0; polls < 20 && !done; ++polls) EXPECT_OK(state.exchange->advance(done));
    if (!done) return false;
    state.exchange.reset();
    ++state.ended;
    return true;
  }

  void expect_arrived(std::size_t call) {
    EXPECT_EQ(Bytes(kBytes, number(call)), calls_[call].target->read(kBytes)) << "call " << call;
  }

 private:
  struct Call {
    std::unique_ptr<Buffer> source;
    std::unique_ptr<Buffer> target;
    std::vector<coll::CollArgs> views{};
  };
  struct State {
    std::size_t ended = 0;
    std::unique_ptr<coll::Exchange> exchange;
  };

  static unsigned char number(std::size_t call) { return static_cast<unsigned char>(call + 1); }
  static core::CallEnd end(const Buffer& buffer, int peer, int ranks) {
    core::CallEnd made = buffer.end(kBytes);
    made.blocks.resize(static_cast<std::size_t>(ranks));
    made.blocks[static_cast<std::size_t>(peer)] = made.segment;
    return made;
  }

  NodeWorld world_;
  std::vector<Call> calls_;
  std::vector<State> states_;
};

// What a sender said and put into its region must stay until the receiver, who may be late, has it.
TEST(PairwiseExchange, ASenderIsAheadOfItsReceiverByOneCall) {
  Transfers transfers(2, {{1, 0}, {1, 0}, {1, 0}});
  ASSERT_TRUE(transfers.ends(1));
  for (const std::size_t call : {0u, 1u}) {
    ASSERT_FALSE(transfers.ends(1));
    ASSERT_TRUE(transfers.ends(0));
    transfers.expect_arrived(call);
    ASSERT_TRUE(transfers.ends(1));
  }
  ASSERT_TRUE(transfers.ends(0));
  transfers.expect_arrived(2);
}

// Also where the next call is for somebody else.
TEST(PairwiseExchange, ARegionIsWrittenOnlyWhenAllHaveReadIt) {
  Transfers transfers(3, {{1, 0}, {1, 2}});
  ASSERT_TRUE(transfers.ends(1));
  ASSERT_TRUE(transfers.ends(2));
  ASSERT_FALSE(transfers.ends(1));
  ASSERT_FALSE(transfers.ends(2));
  ASSERT_TRUE(transfers.ends(0));
  transfers.expect_arrived(0);
  ASSERT_TRUE(transfers.ends(1));
  ASSERT_TRUE(transfers.ends(2));
  transfers.expect_arrived(1);
}

}  // namespace
}  // namespace accord::test
