// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/node_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace accord::node {
namespace {

constexpr int kWhole = -1;
std::atomic<int> part_of_process{kWhole};

// The numbers of a list; none where one of them is not a number.
std::vector<int> numbers_in(std::string_view list) {
  std::vector<int> numbers;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    const char* const last = list.data() + end;
    int number = 0;
    const auto [stopped, error] = std::from_chars(list.data() + start, last, number);
    if (error != std::errc{} || stopped != last || number < 0) return {};
    numbers.push_back(number);
    start = end + 1;
  }
  return numbers;
}

}  // namespace

std::uint64_t node_number() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  if (const auto part = own_part()) text += fmt::format(" {}", *part);
  return std::hash<std::string>{}(text) | 1;
}

Status part_of(std::string_view split, int rank, std::optional<int>& part) {
  part.reset();
  if (split == "off") return {};
  const std::vector<int> numbers = numbers_in(split);
  if (numbers.empty() || (numbers.size() == 1 && numbers[0] == 0)) {
    return {
        StatusCode::invalid_argument,
        fmt::format("ACCORD_NODE_SPLIT: \"{}\" is neither off, nor a number of ranks a node, nor "
                    "a list of the nodes of ranks; the machine is one node",
                    split)};
  }
  const auto index = static_cast<std::size_t>(rank);
  part = numbers.size() == 1 ? rank / numbers[0] : numbers[index % numbers.size()];
  return {};
}

void enter_part(int part) noexcept { part_of_process.store(part); }

std::optional<int> own_part() noexcept {
  const int part = part_of_process.load();
  return part == kWhole ? std::nullopt : std::optional(part);
}

}  // namespace accord::node
