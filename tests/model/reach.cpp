// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "reach.h"

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "coll/select/names.h"
#include "sight.h"

namespace accord::model {
namespace {

constexpr int kKinds = static_cast<int>(node::Kind::alltoallv) + 1;

constexpr std::uint32_t bit(node::Kind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr std::uint32_t kNoKinds = 0;
constexpr std::uint32_t kPairKinds =
    bit(node::Kind::gatherv) | bit(node::Kind::scatterv) | bit(node::Kind::alltoallv);
constexpr std::uint32_t kNodeKinds = ((1u << kKinds) - 2) & ~kPairKinds;
constexpr std::uint32_t kReductions =
    bit(node::Kind::reduce) | bit(node::Kind::allreduce) | bit(node::Kind::reduce_scatter_block) |
    bit(node::Kind::reduce_scatter) | bit(node::Kind::scan) | bit(node::Kind::exscan);

struct Row {
  const char* name;
  std::uint32_t kinds;
};
constexpr Row kRows[] = {
#define ACCORD_MODEL_REACH(name, kinds) {#name, kinds},
    ACCORD_MODEL_REACHES(ACCORD_MODEL_REACH)
#undef ACCORD_MODEL_REACH
};

// By kind of collective; 0: of none.
std::array<std::array<std::atomic<std::uint64_t>, kKinds>, std::size(kRows)> counts;

std::uint64_t total(std::size_t row) {
  std::uint64_t sum = 0;
  for (const auto& count : counts[row]) sum += count.load();
  return sum;
}

}  // namespace

void reached(Reach what, int kind) noexcept {
  const auto column = static_cast<std::size_t>(kind == kNoKind ? 0 : kind);
  counts[static_cast<std::size_t>(what)][column].fetch_add(1, std::memory_order_relaxed);
}

void reached_direct(node::DirectForm form, node::Kind kind) noexcept {
  const int first = static_cast<int>(Reach::direct_copies);
  reached(static_cast<Reach>(first + static_cast<int>(form)), kind);
}

void forget_reached() {
  for (auto& row : counts)
    for (auto& count : row) count.store(0);
  forget_named();
}

std::string reach_report() {
  std::string text = "reached:\n";
  for (std::size_t row = 0; row < std::size(kRows); ++row) {
    text += fmt::format("  {:<22} {:>8}", kRows[row].name, total(row));
    for (int kind = 1; kind < kKinds; ++kind) {
      const std::uint64_t count = counts[row][static_cast<std::size_t>(kind)].load();
      if (count != 0)
        text += fmt::format("  {} {}", coll::name_of(static_cast<node::Kind>(kind)), count);
    }
    text += "\n";
  }
  return text + report_of(named_counts());
}

std::string never_reached() {
  std::string missing;
  for (std::size_t row = 0; row < std::size(kRows); ++row) {
    if (total(row) == 0) missing += fmt::format("{}\n", kRows[row].name);
    for (int kind = 1; kind < kKinds; ++kind) {
      const bool is_due = (kRows[row].kinds & bit(static_cast<node::Kind>(kind))) != 0;
      if (is_due && counts[row][static_cast<std::size_t>(kind)].load() == 0)
        missing += fmt::format("{} of {}\n", kRows[row].name,
                               coll::name_of(static_cast<node::Kind>(kind)));
    }
  }
  return missing + missing_in(named_counts());
}

}  // namespace accord::model
