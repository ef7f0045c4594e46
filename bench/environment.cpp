// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace accord::bench {
namespace {

constexpr const char* kNoWindows = "NCCL_SYM_NOWIN_ENABLE";

bool contains(const std::vector<std::string>& peers, std::string_view name) {
  return std::ranges::find(peers, name) != peers.end();
}

}  // namespace

std::string settings_in_environment(std::string_view prefix) {
  std::vector<std::string> settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string setting = *entry;
    if (setting.starts_with(prefix) && !setting.ends_with('=')) settings.push_back(setting);
  }
  std::ranges::sort(settings);
  return fmt::format("{}", fmt::join(settings, " "));
}

std::string nccl_conflict(const std::vector<std::string>& peers) {
  const char* const given = std::getenv(kNoWindows);
  const bool is_set = given != nullptr && *given != '\0' && std::string_view(given) != "0";
  for (const char* plain : {"nccl", "nccl-grouped"}) {
    if (!contains(peers, plain)) continue;
    if (contains(peers, "nccl-nowin")) {
      return fmt::format(
          "the peers {} and nccl-nowin exclude each other, since NCCL reads {} once in a process: "
          "measure them in two runs",
          plain, kNoWindows);
    }
    if (is_set)
      return fmt::format("with {}={} the peer {} is nccl-nowin", kNoWindows, given, plain);
  }
  return "";
}

void set_nccl_environment(const std::vector<std::string>& peers) {
  if (contains(peers, "nccl-nowin")) ::setenv(kNoWindows, "1", 1);
}

}  // namespace accord::bench
