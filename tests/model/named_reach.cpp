// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "named_reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "sight.h"

namespace accord::model {
namespace {

HiddenMutex named_mutex;
NamedCounts& named() {
  static NamedCounts all;
  return all;
}

}  // namespace

void reached(const char* group, const std::string& name) {
  const HiddenLock locked(named_mutex);
  ++named()[{group, name}];
}

void expect_reached(const char* group, const std::string& name) {
  const HiddenLock locked(named_mutex);
  named().try_emplace({group, name}, 0);
}

NamedCounts named_counts() {
  const HiddenLock locked(named_mutex);
  return named();
}

void forget_named() {
  const HiddenLock locked(named_mutex);
  named().clear();
}

std::string to_lines(const NamedCounts& counts) {
  std::string lines;
  for (const auto& [key, count] : counts)
    lines += fmt::format("{}\t{}\t{}\n", key.first, key.second, count);
  return lines;
}

NamedCounts sum_of(const std::string& lines) {
  NamedCounts sum;
  std::istringstream all(lines);
  std::string group, name, count;
  while (std::getline(all, group, '\t') && std::getline(all, name, '\t') &&
         std::getline(all, count))
    sum[{group, name}] += std::stoull(count);
  return sum;
}

std::string report_of(const NamedCounts& counts) {
  std::string text;
  std::string group;
  for (const auto& [key, count] : counts) {
    if (key.first != group) text += (group.empty() ? "  " : "\n  ") + key.first + ":";
    group = key.first;
    text += fmt::format(" {} {},", key.second, count);
  }
  return text + "\n";
}

std::string missing_in(const NamedCounts& counts) {
  std::string missing;
  for (const auto& [key, count] : counts)
    if (count == 0) missing += fmt::format("{} {}\n", key.first, key.second);
  return missing;
}

void expect_programs(const GeneratorOptions& options) {
  const auto last = options.threads_max > 1 ? Action::Verb::await : Action::Verb::iprobe;
  for (int verb = 0; verb <= static_cast<int>(last); ++verb)
    expect_reached("verb", name_of(static_cast<Action::Verb>(verb)));
  for (int number = 0; number <= static_cast<int>(Collective::free); ++number) {
    const auto kind = static_cast<Collective>(number);
    const auto& without = options.without;
    if (std::find(without.begin(), without.end(), kind) != without.end()) continue;
    expect_reached(name_of(Form::blocking), name_of(kind));
    if (kind >= Collective::split || (kind == Collective::dup && !options.nonblocking_dup))
      continue;
    expect_reached(name_of(Form::nonblocking), name_of(kind));
    if (kind != Collective::dup && options.persistent_collectives)
      expect_reached(name_of(Form::persistent), name_of(kind));
  }
  for (const char* name : {"fresh", "of new memory", "used again", "beside another",
                           "of freed memory", "at old address", "pool in use"})
    expect_reached("buffer", name);
}

}  // namespace accord::model
