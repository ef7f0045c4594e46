// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// An environment, a line each variable; "ACCORD_" is added to lines that begin with '_'.
#include <fmt/format.h>

#include <vector>

#include "base/config.h"
#include "fuzz.h"

namespace {

using accord::Settings;

std::vector<std::string> variables_of(std::string_view text) {
  std::vector<std::string> variables;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    // A variable ends at its first NUL.
    variables.emplace_back((line.starts_with("_") ? "ACCORD" + line : line).c_str());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return variables;
}

Settings read(const std::vector<std::string>& variables) {
  std::vector<const char*> environment;
  for (const std::string& variable : variables) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  return accord::read_settings(environment.data());
}

// As they were understood: 64K is 65536.
std::vector<std::string> values_of(const Settings& settings) {
  using namespace accord;
  std::vector<std::string> values;
#define SETTING(field, type, default_text, scope, audience, text) \
  values.push_back(fmt::format("{}", settings.config.field));
#include "base/config.def"
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = settings.rows[i].name + "=" + values[i];
  return values;
}

// A size, whole or refused; its number of bytes is a size, too.
void check_bytes(std::string_view text) {
  constexpr std::size_t kUntouched = 77;
  std::size_t size_bytes = kUntouched;
  if (!accord::parse_bytes(text, size_bytes).ok()) {
    FUZZ_CHECK(size_bytes == kUntouched);
    return;
  }
  std::size_t again = 0;
  FUZZ_CHECK(accord::parse_bytes(fmt::format("{}", size_bytes), again).ok());
  FUZZ_CHECK(again == size_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  check_bytes(text);
  const std::vector<std::string> variables = variables_of(text);
  const Settings settings = read(variables);

  // What was read, written out, means the same: values as given, and as they were understood.
  std::vector<std::string> printed;
  for (const accord::SettingRow& row : settings.rows) {
    FUZZ_CHECK(row.origin == "default" || row.origin == "environment");
    if (row.origin == "environment") printed.push_back(row.name + "=" + row.value);
  }
  const Settings again = read(printed);
  FUZZ_CHECK(again.status.ok() && again.warnings.empty());
  FUZZ_CHECK(again.equal_hash == settings.equal_hash);
  printed = values_of(again);
  const Settings third = read(printed);
  FUZZ_CHECK(third.status.ok());
  FUZZ_CHECK(third.rows.size() == settings.rows.size());
  for (std::size_t i = 0; i < third.rows.size(); ++i)
    FUZZ_CHECK(third.rows[i].value_hash == settings.rows[i].value_hash);
  FUZZ_CHECK(third.equal_hash == settings.equal_hash);
  return 0;
}
