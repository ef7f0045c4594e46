// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages for people, on stderr only: lower case, exact cause, rank first. The logger never calls
// MPI; the shim tells it the rank once.
#pragma once

#include <fmt/core.h>

#include <string_view>

namespace accord::log {

enum class Level { error, warn, info, debug, trace };

bool enabled(Level level) noexcept;
void write(Level level, std::string_view message);
void set_rank(int rank) noexcept;

template <class... Args>
void message(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::error, format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::warn, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::debug, format, std::forward<Args>(args)...);
}

}  // namespace accord::log
