// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a test's programs have reached, by names that the test gives: calls by form, the verbs of
// their lists and the like.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "program.h"

namespace accord::model {

void reached(const char* group, const std::string& name);
// That it must be.
void expect_reached(const char* group, const std::string& name);

using NamedCounts = std::map<std::pair<std::string, std::string>, std::uint64_t>;
NamedCounts named_counts();
void forget_named();
// Lines of group, name and count, of several processes.
std::string to_lines(const NamedCounts& counts);
NamedCounts sum_of(const std::string& lines);
std::string report_of(const NamedCounts& counts);
// What was expected and never was, a line each.
std::string missing_in(const NamedCounts& counts);

// The names of what every program may have: the verbs, the collectives by form, and where its
// buffers come from.
void expect_programs(const GeneratorOptions& options);

}  // namespace accord::model
