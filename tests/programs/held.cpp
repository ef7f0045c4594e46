// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "held.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>

namespace accord::programs {
namespace {

constexpr std::size_t kSeenMin = 30;

std::string growth_of(std::span<const Held> seen, std::size_t Held::*what, const char* name) {
  std::vector<std::size_t> numbers;
  for (const Held& held : seen) numbers.push_back(held.*what);
  const auto third = static_cast<std::ptrdiff_t>(numbers.size() / 3);
  std::size_t medians[3];
  std::size_t most[3];
  for (std::ptrdiff_t i = 0; i < 3; ++i) {
    const auto begin = numbers.begin() + i * third;
    std::sort(begin, begin + third);
    medians[i] = begin[third / 2];
    most[i] = begin[third - 1];
  }
  if (medians[1] <= most[0] || medians[2] <= most[1]) return {};
  return fmt::format("the process keeps {}: {}, then {}, then {}", name, medians[0], medians[1],
                     medians[2]);
}

}  // namespace

Held held_now() {
  Held held;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++held.descriptors;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t rights = line.find(' ');
    if (rights != std::string::npos && rights + 4 < line.size() && line[rights + 4] == 's')
      ++held.mappings;
  }
  return held;
}

std::string Holdings::growth() const {
  if (seen_.size() < kSeenMin) return {};
  const std::string descriptors = growth_of(seen_, &Held::descriptors, "descriptors");
  return !descriptors.empty() ? descriptors
                              : growth_of(seen_, &Held::mappings, "mappings of shared memory");
}

}  // namespace accord::programs
