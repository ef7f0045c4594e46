// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/table.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "bench/options.h"

namespace accord::bench {
namespace {

constexpr std::size_t kBandwidthFromBytes = std::size_t{64} << 10;

bool shows_bandwidth(const SizeSummary& row, const WaySummary& way) {
  return row.size_bytes >= kBandwidthFromBytes && way.bus_bandwidth > 0;
}

// Four significant digits, so that 0.3 us and 3 s both fit.
std::string number(double value) {
  if (value < 10) return fmt::format("{:.3f}", value);
  if (value < 100) return fmt::format("{:.2f}", value);
  if (value < 10000) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string value_of(const SizeSummary& row, const WaySummary& way) {
  if (!way.why_not.empty()) return "-";
  return shows_bandwidth(row, way) ? number(way.bus_bandwidth) + " GB/s"
                                   : number(way.time_us.median) + " us";
}

// An unknown error is shown as such.
std::string error_text(double error, int decimals) {
  return std::isnan(error) ? "?" : fmt::format("{:.{}f}", error, decimals);
}

std::string ratio_of(const WaySummary& way) {
  if (!way.why_not.empty() || way.against_ours.ratio.value <= 0) return "-";
  const Estimate& ratio = way.against_ours.ratio;
  return fmt::format("{:.3f}±{}", ratio.value, error_text(ratio.error, 3));
}

// Pads by characters, not bytes: "±" is one character of two bytes.
std::string padded(const std::string& text, std::size_t width) {
  std::size_t characters = 0;
  for (const char byte : text) characters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return characters < width ? std::string(width - characters, ' ') + text : text;
}

std::string difference_of(const SizeSummary& row, const WaySummary& way) {
  if (ratio_of(way) == "-" || row.size_bytes >= kBandwidthFromBytes) return "-";
  const Estimate& difference = way.against_ours.difference;
  return fmt::format("{:+.1f}±{}", difference.value * 1e3, error_text(difference.error * 1e3, 1));
}

std::string checked_text(const SizeSummary& row) {
  std::string text = "-";
  for (const WaySummary& way : row.ways) {
    if (!way.fault.empty()) return "WRONG";
    if (way.verified > 0) text = "ok";
  }
  return text;
}

}  // namespace

void Table::print_heading(const SizeSummary& row) {
  fmt::print("\n{}\n", title_);
  for (std::size_t i = 0; i < row.ways.size(); ++i) {
    const WaySummary& way = row.ways[i];
    const std::string remark = fmt::format("# {} not measured: {}\n", way.way, way.why_not);
    if (!way.why_not.empty() && said_.insert(remark).second) fmt::print("{}", remark);
    if (way.why_not.empty() && i > 0) columns_.push_back(i);
  }
  std::string line =
      fmt::format("{:>8} {:>14} {:>10} {:>10}", "size", row.ways.front().way, "p5 us", "p95 us");
  for (const std::size_t i : columns_) {
    const std::string& name = row.ways[i].way;
    line += fmt::format(" | {:>15} {:>13}", name, "ratio");
    if (name == "mpi") line += fmt::format(" {:>13}", "ours-mpi ns");
  }
  if (columns_.size() > 1) line += fmt::format(" | {:>15} {:>13}", "best peer", "ratio");
  fmt::print("{} | {:>7} {}\n", line, "checked", "path");
}

void Table::print(const SizeSummary& row) {
  if (!started_) print_heading(row);
  started_ = true;
  const WaySummary& ours = row.ways.front();
  const bool measured = ours.why_not.empty();
  std::string line = fmt::format("{:>8} {:>14} {:>10} {:>10}", size_text(row.size_bytes),
                                 value_of(row, ours), measured ? number(ours.time_us.p5) : "-",
                                 measured ? number(ours.time_us.p95) : "-");
  for (const std::size_t i : columns_) {
    const WaySummary& peer = row.ways[i];
    line += fmt::format(" | {:>15} {}", value_of(row, peer), padded(ratio_of(peer), 13));
    if (peer.way == "mpi") line += " " + padded(difference_of(row, peer), 13);
  }
  if (columns_.size() > 1) {
    const WaySummary* const best = best_peer(row);
    line += fmt::format(" | {:>15} {}", best == nullptr ? "-" : best->way,
                        padded(best == nullptr ? "-" : ratio_of(*best), 13));
  }
  fmt::print("{} | {:>7} {}\n", line, checked_text(row), ours.path.empty() ? "-" : ours.path);
  std::fflush(stdout);
}

}  // namespace accord::bench
