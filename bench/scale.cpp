// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the structures of one rank cost that grow with its job: time and memory in jobs of a
// thousand to a hundred thousand ranks, of which this process plays one. It moves no data and needs
// neither an MPI nor a network. A step whose time at the next size would pass --limit, if it grew
// with the square, is left out there.
#include "bench/scale.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/commit.h"

namespace {

using namespace accord::bench;

struct Row {
  const ScaleStep* step;
  std::vector<std::optional<Cost>> costs;  // by size; nothing: left out
};

std::string time_in_words(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

std::string bytes_in_words(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  return bytes < 1e6 ? fmt::format("{:.1f} kB", bytes / 1e3)
                     : fmt::format("{:.1f} MB", bytes / 1e6);
}

std::string in_words(const std::optional<Cost>& cost) {
  if (!cost) return "left out";
  const std::string bytes = bytes_in_words(static_cast<double>(cost->bytes));
  return cost->seconds == 0 ? bytes : time_in_words(cost->seconds) + ", " + bytes;
}

Row measured(const ScaleStep& step, const std::vector<int>& sizes, int node, double limit_s) {
  Row row{&step, {}};
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    const Cost* const before = at != 0 && row.costs.back() ? &*row.costs.back() : nullptr;
    const double times = at != 0 ? static_cast<double>(sizes[at]) / sizes[at - 1] : 1;
    const bool is_left_out =
        at != 0 && (before == nullptr || before->seconds * times * times > limit_s);
    if (is_left_out)
      row.costs.emplace_back();
    else
      row.costs.push_back(step.measure({.ranks = sizes[at], .node = node}));
  }
  return row;
}

void print(const std::vector<Row>& rows, const std::vector<int>& sizes) {
  std::cout << "| what |";
  for (const int size : sizes) std::cout << fmt::format(" {} ranks |", size);
  std::cout << "\n| --- |";
  for (std::size_t at = 0; at < sizes.size(); ++at) std::cout << " --- |";
  for (const Row& row : rows) {
    std::cout << "\n| " << row.step->what << " |";
    for (const auto& cost : row.costs) std::cout << ' ' << in_words(cost) << " |";
  }
  std::cout << '\n';
}

void write(const std::string& path, const std::vector<Row>& rows, const std::vector<int>& sizes,
           int node, const std::string& command) {
  std::ofstream file(path);
  for (const Row& row : rows) {
    for (std::size_t at = 0; at < sizes.size(); ++at) {
      if (!row.costs[at]) continue;
      file << fmt::format(
          "{{\"what\": \"{}\", \"ranks\": {}, \"ranks_per_node\": {}, \"seconds\": {:.3g}, "
          "\"bytes\": {}, \"commit\": \"{}\", \"command\": \"{}\"}}\n",
          row.step->what, sizes[at], node, row.costs[at]->seconds, row.costs[at]->bytes,
          accord::commit(), command);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes{1024, 16384, 102400};
  int node = 8;
  double limit_s = 60;
  std::string json;
  CLI::App app("Time and memory of what grows with the ranks of a job");
  app.add_option("--ranks", sizes, "sizes of the job, rising")->delimiter(',');
  app.add_option("--node", node, "ranks of a node")->check(CLI::PositiveNumber);
  app.add_option("--limit", limit_s, "seconds that a step may take");
  app.add_option("--json", json, "file for the record, a line for each figure");
  std::string kind;
  std::size_t block_bytes = 0;
  std::size_t parcel_bytes = 0;
  auto* const plan = app.add_subcommand("plan", "instead: the rounds of a call in two levels");
  plan->add_option("kind", kind)->required()->check(CLI::IsMember({"allreduce", "alltoall"}));
  plan->add_option("bytes", block_bytes, "of the block between two ranks")->required();
  plan->add_option("parcel", parcel_bytes, "ACCORD_PARCEL_BYTES")->required();
  CLI11_PARSE(app, argc, argv);
  if (*plan) {
    const Job job{.ranks = sizes.front(), .node = node};
    std::cout << plan_in_json(kind == "alltoall", block_bytes, job, parcel_bytes);
    return 0;
  }
  std::vector<Row> rows;
  for (const ScaleStep& step : scale_steps()) rows.push_back(measured(step, sizes, node, limit_s));
  print(rows, sizes);
  if (!json.empty()) write(json, rows, sizes, node, fmt::format("accord_scale --node {}", node));
  return 0;
}
