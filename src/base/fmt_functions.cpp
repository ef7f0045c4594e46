// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What {fmt} formats with, compiled here once. Its headers can hold all of it, which costs each
// file that formats something more than the rest of it, and its shared library is nothing that a
// preloaded one may depend on. So they hold all of it in this file alone, which is compiled without
// optimisation so that every function gets out, and only the declarations in the others.
#define FMT_HEADER_ONLY
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string>

namespace accord {

// Never called: needs all that formatting numbers, texts and times needs.
[[gnu::used]] static std::string format_all() {
  fmt::print("{:L}{:.3f}{}", 1, 1.5, 1.5F);
  return fmt::format("{:>8}{:x}{:L}{}{:%c}", "text", 1ULL, 1.5, true, std::tm());
}

}  // namespace accord
