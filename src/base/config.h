// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Settings: read once from the environment, immutable afterwards, each with its origin. Declared in
// config.def, one line a setting. Knows neither MPI nor devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace accord {

using Flag = bool;
using Bytes = std::size_t;
using Count = std::int64_t;
using Text = std::string;

struct Config {
#define SETTING(field, type, default_text, scope, audience, text) type field{};
#include "base/config.def"
};

enum class SettingScope { local, equal };

// Whom a setting is for, as config.def explains.
enum class Audience { user, threshold, expert, test };
const char* name_of(Audience audience);

// One row of `accord info`.
struct SettingRow {
  std::string name;  // ACCORD_...
  std::string type;
  std::string default_value;
  std::string value;   // as given by the user, or the default
  std::string origin;  // "default" or "environment"
  SettingScope scope = SettingScope::local;
  Audience audience = Audience::expert;
  std::string text;
  std::vector<std::string> old_names;  // that are still read
  std::uint64_t value_hash = 0;        // of what the value means: 64K is 65536
};

// The settings of this process. First use reads the environment; a bad value keeps the default and
// is reported by config_status(), which MPI_Init turns into an error. Thread-safe.
const Config& config();

// ok, or one clear sentence per bad value.
Status config_status();

// One sentence per environment variable that starts with ACCORD_ and is no setting, with the
// nearest name, and per old name of a setting, with the new one.
const std::vector<std::string>& config_warnings();
// Equal on two ranks exactly when they have the same warnings.
std::uint64_t config_warnings_hash();

const std::vector<SettingRow>& config_rows();

// Equal on two ranks exactly when all settings of scope `equal` have the same value on both.
std::uint64_t config_equal_hash();

// Everything above for any environment, a null-terminated list of NAME=value. For tests; the
// functions above are this of the process's own environment, read once.
struct Settings {
  Config config;
  Status status;
  std::vector<std::string> warnings;
  std::vector<SettingRow> rows;
  std::uint64_t equal_hash = 0;
};
Settings read_settings(const char* const* environment);

// Parses "64", "64K", "1M", "2G", "1.5M" (powers of 1,024; an optional B or iB after the letter).
Status parse_bytes(std::string_view text, std::size_t& size_bytes);

}  // namespace accord
