// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the workers of a job know and nobody else: the key of their seals (seal.h), never sent
// between them. Random; rank 0 spreads it by the host MPI, and a proxy gets it in its environment,
// which only this user can read.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace accord::net {

using JobKey = std::array<std::uint64_t, 2>;

inline constexpr const char* kJobKeyVariable = "ACCORD_JOB_KEY";

inline std::string text_of(const JobKey& key) {
  char text[2 * sizeof key + 1];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(key[0]),
                static_cast<unsigned long long>(key[1]));
  return text;
}

// Zeros where the text is none.
inline JobKey job_key_in(std::string_view text) {
  constexpr std::size_t kDigits = 2 * sizeof(std::uint64_t);
  JobKey key{};
  if (text.size() != kDigits * key.size()) return {};
  for (std::size_t word = 0; word < key.size(); ++word) {
    const char* const first = text.data() + word * kDigits;
    const auto [end, error] = std::from_chars(first, first + kDigits, key[word], 16);
    if (error != std::errc{} || end != first + kDigits) return {};
  }
  return key;
}

}  // namespace accord::net
