// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "base/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

namespace accord {
namespace {

constexpr std::string_view kPrefix = "ACCORD_";
// Set by our own launcher and by test programs: neither settings nor mistakes.
constexpr std::string_view kLauncherNames[] = {"ACCORD_HOME", "ACCORD_LIBRARY",
                                               "ACCORD_NCCL_LIBRARY", "ACCORD_NVSHMEM_LIBRARY",
                                               "ACCORD_PYTHON"};
constexpr std::string_view kTestPrefix = "ACCORD_TEST_";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string environment_name(std::string_view field) {
  std::string result(kPrefix);
  for (char c : field) {
    result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

// The words of a text that starts with "a|b|c:"; none for any other text.
std::vector<std::string> choices_of(std::string_view text) {
  std::vector<std::string> words;
  const std::string_view head = text.substr(0, text.find(':'));
  const bool words_only = std::all_of(head.begin(), head.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_' || c == '|';
  });
  if (head.size() == text.size() || !words_only || head.find('|') == std::string_view::npos) {
    return words;
  }
  for (std::size_t start = 0; start <= head.size();) {
    const std::size_t end = std::min(head.find('|', start), head.size());
    words.emplace_back(head.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) {
    if (!result.empty()) result += ", ";
    result += word;
  }
  return result;
}

// One overload a type: stores the value and returns true, or leaves it alone and says what was
// expected.

bool parse_value(std::string_view given, const std::vector<std::string>&, Flag& value,
                 std::string& expected) {
  const std::string word = lower(given);
  for (std::string_view yes : {"1", "on", "true", "yes"}) {
    if (word == yes) return value = true, true;
  }
  for (std::string_view no : {"0", "off", "false", "no"}) {
    if (word == no) return value = false, true;
  }
  expected = "0, 1, on, off, true, false, yes or no";
  return false;
}

bool parse_value(std::string_view given, const std::vector<std::string>&, Bytes& value,
                 std::string& expected) {
  if (parse_bytes(given, value).ok()) return true;
  expected = "a size such as 65536, 64K, 1.5M or 2G";
  return false;
}

bool parse_value(std::string_view given, const std::vector<std::string>&, Count& value,
                 std::string& expected) {
  Count number = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  if (error == std::errc{} && end == given.data() + given.size() && number >= 0) {
    value = number;
    return true;
  }
  expected = "a whole number of at least 0";
  return false;
}

bool parse_value(std::string_view given, const std::vector<std::string>& choices, Text& value,
                 std::string& expected) {
  if (choices.empty()) return value = given, true;
  const std::string word = lower(given);
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return value = word, true;
  expected = "one of " + joined(choices);
  return false;
}

const char* type_name(Flag, bool) { return "flag"; }
const char* type_name(Bytes, bool) { return "bytes"; }
const char* type_name(Count, bool) { return "count"; }
const char* type_name(const Text&, bool has_choices) { return has_choices ? "choice" : "text"; }

constexpr std::uint64_t kEmptyHash = 14695981039346656037ULL;

std::uint64_t mix(std::uint64_t hash, std::string_view text) {  // FNV-1a, the final NUL included
  for (std::size_t i = 0; i <= text.size(); ++i) {
    hash ^= i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    hash *= 1099511628211ULL;
  }
  return hash;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

struct Variable {
  std::string name;       // a renamed setting has its new one
  std::string_view text;  // empty means unset, as for most programs
  std::string_view written_name;
};
using Variables = std::vector<Variable>;

Variables accord_variables(const char* const* environment) {
  Variables variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equal = entry.find('=');
    if (equal == std::string_view::npos || !entry.starts_with(kPrefix)) continue;
    const std::string_view name = entry.substr(0, equal);
    variables.push_back({std::string(name), entry.substr(equal + 1), name});
  }
  return variables;
}

struct Renaming {
  std::string_view old_field;
  std::string_view field;
};

// The address of the new field is taken only so that a name that is no setting does not compile.
constexpr Renaming kRenamings[] = {
#define RENAMED(old_field, field) \
  Renaming{#old_field, (static_cast<void>(&Config::field), std::string_view(#field))},
#include "base/config.def"
};

// Gives variables with an old name the new one, and drops those whose new name is set, too.
void use_new_names(Variables& variables, std::vector<std::string>& warnings) {
  for (const Renaming& renaming : kRenamings) {
    const std::string old_name = environment_name(renaming.old_field);
    const std::string name = environment_name(renaming.field);
    const bool is_new_set = std::ranges::any_of(
        variables, [&](const Variable& each) { return each.name == name && !each.text.empty(); });
    bool is_old_set = false;
    for (Variable& variable : variables) {
      if (variable.name != old_name) continue;
      is_old_set = is_old_set || !variable.text.empty();
      variable.name = name;
      if (is_new_set) variable.text = {};
    }
    if (is_old_set)
      warnings.push_back(fmt::format("{} is called {} now{}", old_name, name,
                                     is_new_set ? ", which is set, too, and counts" : ""));
  }
}

std::vector<std::string> old_names_of(std::string_view name) {
  std::vector<std::string> names;
  for (const Renaming& renaming : kRenamings) {
    if (environment_name(renaming.field) == name)
      names.push_back(environment_name(renaming.old_field));
  }
  return names;
}

// What one line of config.def says, for the function below.
struct SettingLine {
  std::string name;
  const char* default_text;
  SettingScope scope;
  Audience audience;
  const char* text;
};

template <class Value>
void read_setting(const SettingLine& line, const Variables& variables, Value& value,
                  Settings& settings, std::string& problems) {
  const std::vector<std::string> choices = choices_of(line.text);
  std::string expected;
  parse_value(line.default_text, choices, value, expected);
  SettingRow row{.name = line.name,
                 .type = type_name(value, !choices.empty()),
                 .default_value = line.default_text,
                 .value = line.default_text,
                 .origin = "default",
                 .scope = line.scope,
                 .audience = line.audience,
                 .text = line.text,
                 .old_names = old_names_of(line.name)};
  for (const Variable& given : variables) {
    if (given.name != line.name || given.text.empty()) continue;
    if (parse_value(given.text, choices, value, expected)) {
      row.value = given.text;
      row.origin = "environment";
    } else {
      problems += fmt::format("{}{} is \"{}\" but must be {}", problems.empty() ? "" : "; ",
                              given.written_name, given.text, expected);
    }
  }
  row.value_hash = mix(mix(kEmptyHash, line.name), fmt::format("{}", value));
  if (line.scope == SettingScope::equal) {
    settings.equal_hash = mix(settings.equal_hash, line.name);
    settings.equal_hash = mix(settings.equal_hash, fmt::format("{}", value));
  }
  settings.rows.push_back(std::move(row));
}

void find_unknown(const Variables& variables, Settings& settings) {
  for (const Variable& variable : variables) {
    const std::string_view name = variable.name;
    const auto has_name = [name](const SettingRow& row) { return row.name == name; };
    if (std::ranges::find(kLauncherNames, name) != std::end(kLauncherNames) ||
        name.starts_with(kTestPrefix) ||
        std::any_of(settings.rows.begin(), settings.rows.end(), has_name)) {
      continue;
    }
    const auto nearest = std::min_element(
        settings.rows.begin(), settings.rows.end(), [name](const auto& a, const auto& b) {
          return edit_distance(name, a.name) < edit_distance(name, b.name);
        });
    settings.warnings.push_back(
        fmt::format("{} is no setting; the nearest is {}", name, nearest->name));
  }
}

const Settings& process_settings() {
  // Never destroyed: messages may still be written while the process exits.
  static const Settings& settings = *new Settings(read_settings(environ));
  return settings;
}

}  // namespace

const char* name_of(Audience audience) {
  switch (audience) {
    case Audience::user:
      return "user";
    case Audience::threshold:
      return "threshold";
    case Audience::expert:
      break;
    case Audience::test:
      return "test";
  }
  return "expert";
}

Settings read_settings(const char* const* environment) {
  Settings settings;
  settings.equal_hash = kEmptyHash;
  Variables variables = accord_variables(environment);
  use_new_names(variables, settings.warnings);
  std::string problems;
#define SETTING(field, type, default_value, setting_scope, setting_audience, setting_text)       \
  read_setting(SettingLine{environment_name(#field), default_value, SettingScope::setting_scope, \
                           Audience::setting_audience, setting_text},                            \
               variables, settings.config.field, settings, problems);
#include "base/config.def"
  if (!problems.empty()) {
    settings.status = Status(StatusCode::invalid_argument, std::move(problems));
  }
  find_unknown(variables, settings);
  return settings;
}

Status parse_bytes(std::string_view text, std::size_t& size_bytes) {
  const Status bad(StatusCode::invalid_argument,
                   fmt::format("\"{}\" is no size; write 65536, 64K, 1.5M or 2G", text));
  constexpr std::uint64_t kMax = std::numeric_limits<std::size_t>::max();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;
  std::uint64_t fraction_scale = 1;
  std::size_t i = 0;
  for (; i < text.size() && is_digit(text[i]); ++i) {
    const auto digit = static_cast<std::uint64_t>(text[i] - '0');
    if (whole > (kMax - digit) / 10) return bad;
    whole = whole * 10 + digit;
  }
  if (i == 0) return bad;
  const bool has_fraction = i < text.size() && text[i] == '.';
  if (has_fraction) {
    const std::size_t first = ++i;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      if (i - first >= 6) return bad;  // enough for people, and the product below cannot overflow
      fraction = fraction * 10 + static_cast<std::uint64_t>(text[i] - '0');
      fraction_scale *= 10;
    }
    if (i == first) return bad;
  }
  std::string unit = lower(text.substr(i));
  unsigned shift = 0;
  if (!unit.empty()) {
    constexpr std::string_view kLetters = "kmgt";
    const std::size_t power = kLetters.find(unit[0]);
    if (power == std::string_view::npos) return bad;
    shift = static_cast<unsigned>(10 * (power + 1));
    unit.erase(0, 1);
    if (!unit.empty() && unit != "b" && unit != "ib") return bad;
  } else if (has_fraction) {
    return bad;
  }
  const std::uint64_t below = (fraction << shift) / fraction_scale;
  if (whole > (kMax >> shift) || (whole << shift) > kMax - below) return bad;
  size_bytes = static_cast<std::size_t>((whole << shift) + below);
  return Status();
}

const Config& config() { return process_settings().config; }
Status config_status() { return process_settings().status; }
const std::vector<std::string>& config_warnings() { return process_settings().warnings; }
const std::vector<SettingRow>& config_rows() { return process_settings().rows; }
std::uint64_t config_warnings_hash() {
  std::uint64_t hash = kEmptyHash;
  for (const std::string& warning : config_warnings()) hash = mix(hash, warning);
  return hash;
}
std::uint64_t config_equal_hash() { return process_settings().equal_hash; }

}  // namespace accord
