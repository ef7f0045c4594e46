// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Carries schedules out on all ranks at once, on words instead of numbers: an operation puts its
// operands into brackets, so that a result tells in which order it was made.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "partitioned/schedule.h"

namespace accord::partitioned {
namespace {

using Words = std::vector<std::string>;
using Blocks = std::vector<Words>;

struct Rank {
  Schedule schedule;
  Blocks contribution;
  Blocks result;
  Words work;
  std::size_t step = 0;
  bool given = false;
};

class World {
 public:
  explicit World(std::vector<Rank> ranks) : ranks_(std::move(ranks)) {}

  // Until nobody can go on; whether all came to their end, and nothing is left on its way.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < ranks_.size(); ++i) moved = advance(static_cast<int>(i)) || moved;
    }
    const bool empty =
        std::ranges::all_of(mail_, [](const auto& box) { return box.second.empty(); });
    return empty && std::ranges::all_of(
                        ranks_, [](const Rank& rank) { return rank.step == rank.schedule.size(); });
  }
  const Rank& rank(int number) const { return ranks_[static_cast<std::size_t>(number)]; }

 private:
  static Words& block_of(Rank& rank, const Place& place) {
    if (place.area == Area::work) return rank.work;
    Blocks& blocks = place.area == Area::contribution ? rank.contribution : rank.result;
    return blocks.at(static_cast<std::size_t>(place.block));
  }
  static Words read(Rank& rank, const Place& place) {
    const Words& block = block_of(rank, place);
    const std::size_t count = std::min(place.count, block.size() - place.first);
    const auto first = block.begin() + static_cast<std::ptrdiff_t>(place.first);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }
  static void write(Rank& rank, const Step& step, const Words& words) {
    Words& block = block_of(rank, step.into);
    const std::size_t room = std::min(step.into.count, block.size() - step.into.first);
    ASSERT_EQ(words.size(), room);
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::string& there = block[step.into.first + i];
      if (step.combine == Combine::store) there = words[i];
      if (step.combine == Combine::before) there = "(" + words[i] + there + ")";
      if (step.combine == Combine::after) there = "(" + there + words[i] + ")";
    }
  }

  bool advance(int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.step == rank.schedule.size()) return false;
    const Step& step = rank.schedule[rank.step];
    if (!rank.given) {
      for (const Outgoing& one : step.outgoing) {
        EXPECT_NE(one.peer, number);
        mail_[{number, one.peer}].push_back(read(rank, one.place));
      }
    }
    rank.given = true;
    if (step.from == number) {
      write(rank, step, read(rank, step.own));
    } else if (step.from != Step::kNobody) {
      auto& box = mail_[{step.from, number}];
      if (box.empty()) return false;
      write(rank, step, box.front());
      box.pop_front();
    }
    ++rank.step;
    rank.given = false;
    return true;
  }

  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Words>> mail_;
};

// What rank `rank` has for element i.
std::string word(int rank, std::size_t i) {
  return std::string(1, static_cast<char>('a' + rank)) + std::to_string(i % 10);
}
Words words(int rank, std::size_t count, std::size_t first = 0) {
  Words made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(word(rank, first + i));
  return made;
}

// ((0 op 1) op 2) ... of the first `contributors` ranks.
std::string folded(int contributors, std::size_t i) {
  std::string all = word(0, i);
  for (int rank = 1; rank < contributors; ++rank) all = "(" + all + word(rank, i) + ")";
  return all;
}

std::string without_brackets(std::string text) {
  std::erase_if(text, [](char letter) { return letter == '(' || letter == ')'; });
  return text;
}
std::string sorted(std::string text) {
  text = without_brackets(std::move(text));
  std::ranges::sort(text);
  return text;
}

// As exactly as the outline asks for.
void expect_reduced(const ReductionOutline& outline, int contributors, const Words& got) {
  ASSERT_EQ(got.size(), outline.count);
  for (std::size_t i = 0; i < outline.count; ++i) {
    const std::string wanted = folded(contributors, i);
    if (outline.in_rank_order) {
      EXPECT_EQ(got[i], wanted);
    } else if (!outline.commutative) {
      EXPECT_EQ(without_brackets(got[i]), without_brackets(wanted));
    } else {
      EXPECT_EQ(sorted(got[i]), sorted(wanted));
    }
  }
}

template <class Make>
World reduction_world(ReductionOutline outline, Make make) {
  std::vector<Rank> ranks;
  for (outline.rank = 0; outline.rank < outline.size; ++outline.rank) {
    ranks.push_back({.schedule = make(outline),
                     .contribution = {words(outline.rank, outline.count)},
                     .result = {Words(outline.count, "?")},
                     .work = Words(outline.count, "!")});
  }
  return World(std::move(ranks));
}

// visit(outline) for every size, count, length of elements and kind of operation.
template <class Visit>
void each_reduction(Visit visit) {
  for (int size = 1; size <= 9; ++size) {
    for (const std::size_t count : {0, 1, 2, 5, 9, 30}) {
      for (const std::size_t element_bytes : {4, 1 << 20}) {
        for (const bool commutative : {true, false}) {
          for (const bool in_rank_order : {false, true}) {
            visit(ReductionOutline{.rank = 0,
                                   .size = size,
                                   .count = count,
                                   .element_bytes = element_bytes,
                                   .commutative = commutative,
                                   .in_rank_order = in_rank_order});
          }
        }
      }
    }
  }
}

TEST(partitioned_schedule, allreduce) {
  each_reduction([](const ReductionOutline& outline) {
    World world = reduction_world(outline, allreduce_schedule);
    ASSERT_TRUE(world.run());
    for (int rank = 0; rank < outline.size; ++rank) {
      expect_reduced(outline, outline.size, world.rank(rank).result[0]);
      // The same to the last bit.
      EXPECT_EQ(world.rank(rank).result, world.rank(0).result);
    }
  });
}

TEST(partitioned_schedule, long_allreduces_go_around_a_ring) {
  const ReductionOutline outline{.rank = 1,
                                 .size = 4,
                                 .count = 4 << 20,
                                 .element_bytes = 4,
                                 .commutative = true,
                                 .in_rank_order = false};
  std::size_t given = 0;
  for (const Step& step : allreduce_schedule(outline)) {
    for (const Outgoing& one : step.outgoing) {
      EXPECT_EQ(one.peer, 2);
      given += one.place.count;
    }
    EXPECT_TRUE(step.from == 0 || step.from == 1);
  }
  EXPECT_EQ(given, outline.count / 4 * 6);  // 2 (size - 1) / size of all
}

// One of exchanges for each bit of the number of ranks, and one more at both ends where that is no
// power of two. Of two ranks all are short.
TEST(partitioned_schedule, short_allreduces_take_few_steps) {
  const auto received = [](int rank, int size, std::size_t element_bytes) {
    int count = 0;
    for (const Step& step : allreduce_schedule({.rank = rank,
                            .size = size,
                            .count = 1024,
                            .element_bytes = element_bytes,
                            .commutative = true,
                            .in_rank_order = false}))
      count += step.from != Step::kNobody && step.from != rank ? 1 : 0;
    return count;
  };
  EXPECT_EQ(received(1, 2, 4), 1);
  EXPECT_EQ(received(1, 2, 1 << 20), 1);
  EXPECT_EQ(received(3, 4, 4), 2);
  EXPECT_EQ(received(3, 4, 512), 2);
  EXPECT_EQ(received(5, 8, 4), 3);
  EXPECT_EQ(received(0, 6, 4), 1);
  EXPECT_EQ(received(1, 6, 4), 3);
  EXPECT_EQ(received(5, 6, 4), 2);
  EXPECT_EQ(received(3, 4, 1 << 20), 6);
}

TEST(partitioned_schedule, reduce) {
  each_reduction([](const ReductionOutline& outline) {
    for (int root = 0; root < outline.size; ++root) {
      World world = reduction_world(
          outline, [root](const ReductionOutline& one) { return reduce_schedule(one, root); });
      ASSERT_TRUE(world.run());
      expect_reduced(outline, outline.size, world.rank(root).result[0]);
    }
  });
}

TEST(partitioned_schedule, scan) {
  each_reduction([](const ReductionOutline& outline) {
    World world = reduction_world(outline, scan_schedule);
    ASSERT_TRUE(world.run());
    for (int rank = 0; rank < outline.size; ++rank)
      expect_reduced(outline, rank + 1, world.rank(rank).result[0]);
  });
}

TEST(partitioned_schedule, exscan) {
  each_reduction([](const ReductionOutline& outline) {
    World world = reduction_world(outline, exscan_schedule);
    ASSERT_TRUE(world.run());
    EXPECT_EQ(world.rank(0).result[0], Words(outline.count, "?"));
    for (int rank = 1; rank < outline.size; ++rank)
      expect_reduced(outline, rank, world.rank(rank).result[0]);
  });
}

TEST(partitioned_schedule, reduce_scatter) {
  for (int size = 1; size <= 9; ++size) {
    std::vector<Rank> ranks;
    for (int rank = 0; rank < size; ++rank) {
      Rank one{.schedule = reduce_scatter_schedule(rank, size, false),
               .contribution = {},
               .result = {Words(static_cast<std::size_t>(rank), "?")},
               .work = Words(static_cast<std::size_t>(rank))};
      // As many elements as the number of the rank that gets them.
      for (int to = 0; to < size; ++to)
        one.contribution.push_back(words(rank, static_cast<std::size_t>(to)));
      ranks.push_back(std::move(one));
    }
    World world(std::move(ranks));
    ASSERT_TRUE(world.run());
    for (int rank = 0; rank < size; ++rank) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i)
        EXPECT_EQ(world.rank(rank).result[0][i], folded(size, i));
    }
  }
}

// In place, a result may only be stored once every partition's contribution has been read.
TEST(partitioned_schedule, reduce_scatter_in_place_waits_for_all_partitions) {
  for (const bool in_place : {false, true}) {
    const Schedule schedule = reduce_scatter_schedule(1, 3, in_place);
    for (const Step& step : schedule)
      EXPECT_EQ(step.together, in_place && step.into.area == Area::result);
  }
}

TEST(partitioned_schedule, broadcast) {
  for (int size = 1; size <= 17; ++size) {
    for (int root = 0; root < size; ++root) {
      std::vector<Rank> ranks;
      for (int rank = 0; rank < size; ++rank) {
        ranks.push_back({.schedule = broadcast_schedule(rank, size, root),
                         .contribution = {rank == root ? words(root, 3) : Words()},
                         .result = {Words(3, "?")},
                         .work = {}});
      }
      World world(std::move(ranks));
      ASSERT_TRUE(world.run());
      for (int rank = 0; rank < size; ++rank) {
        const Words wanted = rank == root ? Words(3, "?") : words(root, 3);
        EXPECT_EQ(world.rank(rank).result[0], wanted);
      }
    }
  }
}

// Two blocks from each rank to each, itself included: they arrive in the order in which they are
// given.
TEST(partitioned_schedule, direct) {
  constexpr int kSize = 4;
  std::vector<Rank> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    Rank one;
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    for (int turn = 0; turn < 2; ++turn) {
      for (int peer = 0; peer < kSize; ++peer) {
        const int block = turn * kSize + peer;
        one.contribution.push_back(words(rank, 2, static_cast<std::size_t>(block)));
        one.result.push_back(Words(2, "?"));
        outgoing.push_back({peer, {.area = Area::contribution, .block = block}});
        incoming.push_back({peer, {.area = Area::result, .block = block}});
      }
    }
    one.schedule = direct_schedule(rank, outgoing, incoming);
    ranks.push_back(std::move(one));
  }
  World world(std::move(ranks));
  ASSERT_TRUE(world.run());
  for (int rank = 0; rank < kSize; ++rank) {
    for (int block = 0; block < 2 * kSize; ++block) {
      const int from = block % kSize;
      const int sent = block / kSize * kSize + rank;
      EXPECT_EQ(world.rank(rank).result[static_cast<std::size_t>(block)],
                words(from, 2, static_cast<std::size_t>(sent)));
    }
  }
}

// What a rank keeps stays as it is.
TEST(partitioned_schedule, blocks) {
  constexpr int kSize = 3;
  constexpr int kRoot = 1;
  for (const node::Kind kind :
       {node::Kind::allgather, node::Kind::alltoall, node::Kind::gather, node::Kind::scatter}) {
    for (const bool keeps_own : {false, true}) {
      const bool blocks_in = kind == node::Kind::alltoall || kind == node::Kind::scatter;
      const bool blocks_out = kind != node::Kind::scatter;
      std::vector<Rank> ranks;
      for (int rank = 0; rank < kSize; ++rank) {
        Rank one;
        one.schedule =
            block_schedule({.kind = kind, .size = kSize, .root = kRoot}, rank, keeps_own);
        for (int block = 0; block < kSize; ++block) {
          one.contribution.push_back(words(rank, 2, static_cast<std::size_t>(block)));
          one.result.push_back(Words(2, "?"));
        }
        ranks.push_back(std::move(one));
      }
      World world(std::move(ranks));
      ASSERT_TRUE(world.run());
      for (int to = 0; to < kSize; ++to) {
        for (int from = 0; from < kSize; ++from) {
          if (!blocks_out && from != kRoot) continue;
          const bool gets =
              (kind != node::Kind::gather || to == kRoot) && !(keeps_own && to == from);
          const std::size_t sent = blocks_in ? static_cast<std::size_t>(to) : 0;
          EXPECT_EQ(world.rank(to).result[blocks_out ? static_cast<std::size_t>(from) : 0],
                    gets ? words(from, 2, sent) : Words(2, "?"));
        }
      }
    }
  }
}

}  // namespace
}  // namespace accord::partitioned
