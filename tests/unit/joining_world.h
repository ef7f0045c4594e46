// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Ranks of this process that join a group over the embedded host runtime, in a random order, by a
// host MPI that is a few lines: some may refuse, and they may be on several nodes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "coll/intra/joining.h"
#include "forwarding_runtime.h"
#include "idle_port.h"
#include "node/group.h"
#include "two_level_world.h"

namespace accord::test {

inline constexpr std::size_t kRegionBytes = 64 << 10;

// The host runtime as one rank has it: it may refuse to open, or run no kernels for now, and
// remembers what is open and freed.
class Watched final : public KernelRuntime {
 public:
  explicit Watched(int& open_count) : open_count_(open_count) {}
  bool refuses = false;
  int freed_while_open = 0;
  int closed_while_busy = 0;
  int freed = 0;

  Status open_memory(int device, const device::ExportedMemory& exported, void*& pointer) override {
    if (refuses) return {StatusCode::unsupported, "refused"};
    ++open_count_;
    return ForwardingRuntime::open_memory(device, exported, pointer);
  }
  Status close_memory(void* pointer) override {
    --open_count_;
    closed_while_busy += is_busy ? 1 : 0;
    return ForwardingRuntime::close_memory(pointer);
  }
  Status free(void* pointer) override {
    ++freed;
    freed_while_open += open_count_ > 0 ? 1 : 0;
    return ForwardingRuntime::free(pointer);
  }

 private:
  int& open_count_;
};

// A host MPI whose collectives are over as soon as all ranks have called them.
class Collectives final : public IdlePort {
 public:
  explicit Collectives(std::size_t ranks) : ranks_(ranks) {}

  // The requests of a rank are numbered; number n is complete when all have made n.
  int vote(std::size_t rank, const core::Vote& mine, core::Vote& all, core::HostRequest& request) {
    const auto number = begin(rank, request);
    if (votes_.size() <= number) votes_.resize(number + 1, mine);
    for (std::size_t word = 0; word < mine.words.size(); ++word)
      votes_[number].words[word] = std::min(votes_[number].words[word], mine.words[word]);
    ends_[{rank, number}] = [this, number, &all] { all = votes_[number]; };
    return 0;
  }
  int gather(std::size_t rank, const void* mine, void* all, std::size_t size_bytes,
             core::HostRequest& request) {
    const auto number = begin(rank, request);
    records_.resize(ranks_ * size_bytes);
    std::memcpy(&records_[rank * size_bytes], mine, size_bytes);
    ends_[{rank, number}] = [this, all] { std::memcpy(all, records_.data(), records_.size()); };
    return 0;
  }

  Status test(core::HostRequest& request, bool& done) override {
    const auto rank = static_cast<std::size_t>(request >> 32);
    const auto number = static_cast<std::size_t>(request & 0xffffffff);
    done = std::ranges::all_of(made_, [&](std::size_t made) { return made > number; });
    if (done) ends_.at({rank, number})();
    return {};
  }

 private:
  std::size_t begin(std::size_t rank, core::HostRequest& request) {
    const std::size_t number = made_[rank]++;
    request = static_cast<core::HostRequest>(rank) << 32 | number;
    return number;
  }

  std::size_t ranks_;
  std::vector<std::size_t> made_ = std::vector<std::size_t>(ranks_);
  std::vector<core::Vote> votes_;
  std::vector<std::byte> records_;
  std::map<std::pair<std::size_t, std::size_t>, std::function<void()>> ends_;
};

// Three ranks of this process that join; those of `refusing` cannot open. With `nodes`, by rank,
// the ranks of each join a group of theirs, and have no way to tell all ranks anything but votes.
struct JoiningWorld {
  static constexpr std::size_t kRanks = 3;

  explicit JoiningWorld(const std::vector<std::size_t>& refusing,
                        const std::vector<std::uint64_t>& nodes = {})
      : placements(kRanks, core::Placement::of(nodes)) {
    for (const std::size_t rank : refusing) runtimes[rank].refuses = true;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      coll::CollArgs& args = all_args[rank];
      args.rank = static_cast<int>(rank);
      args.exchange = node::Call{.kind = node::Kind::bcast, .size = kRanks};
      args.region_runtime = &runtimes[rank];
      args.host.issue_vote = [=, this](const core::Vote& mine, core::Vote& all,
                                       core::HostRequest& request) {
        return host.vote(rank, mine, all, request);
      };
      if (nodes.empty())
        args.host.issue_allgather = [=, this](const void* mine, void* all, std::size_t size_bytes,
                                              core::HostRequest& request) {
          return host.gather(rank, mine, all, size_bytes, request);
        };
    }
  }

  // In the order of `random`.
  void join(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::unique_ptr<coll::Joining>> joinings;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      std::optional<coll::Joining::Nodes> nodes;
      if (placements[rank].nodes() != 0)
        nodes.emplace(placements[rank], std::make_shared<BoardWire>(board, static_cast<int>(rank),
                                                                    BoardWire::kNever));
      joinings.push_back(std::make_unique<coll::Joining>(
          groups[rank], all_args[rank], node::Use{.region_bytes = region_bytes}, nodes));
      EXPECT_OK(joinings.back()->begin());
    }
    std::size_t left = kRanks;
    for (int polls = 0; left > 0 && polls < 10000; ++polls) {
      const std::size_t rank = random() % kRanks;
      if (joinings[rank] == nullptr) continue;
      bool done = false;
      EXPECT_OK(joinings[rank]->advance(host, done));
      if (!done) continue;
      joinings[rank].reset();
      --left;
    }
    EXPECT_EQ(0u, left);
  }

  std::size_t region_bytes = kRegionBytes;
  int open_count = 0;
  std::vector<core::Placement> placements;
  Board board{7};
  Collectives host{kRanks};
  std::array<Watched, kRanks> runtimes{Watched(open_count), Watched(open_count),
                                       Watched(open_count)};
  std::array<coll::CollArgs, kRanks> all_args;
  std::array<core::NodeGroup, kRanks> groups;
};

}  // namespace accord::test
