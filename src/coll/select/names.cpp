// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/select/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "base/config.h"
#include "device/registry.h"

namespace accord::coll {
namespace {

using node::Kind;

// Numbered as net/design.h numbers them.
enum class Design : unsigned {
#define DESIGN(name) name,
#include "net/designs.def"
#undef DESIGN
};

constexpr const Algorithm* kRegistry[] = {
#define ALGORITHM(name) &algorithms::name,
#include "coll/algorithms.def"
#undef ALGORITHM
};

static_assert(std::size(kRegistry) <= 32);  // bits of DeviceWays::offered

constexpr const char* kAutomatic = "auto";

constexpr MessageWayRow kMessageWays[] = {
    {"auto", MessageWay::automatic, ""},
    {"staged", MessageWay::staged, "staged"},
    {"copy-kernel", MessageWay::kernel, "node-p2p"},
    {"copy-engine", MessageWay::engine, "node-p2p"},
};

constexpr NetWayRow kNetWays[] = {
    {"auto", {}, ""},
    {"staged", {NetWay::Way::staged}, "staged"},
#define DESIGN(name) \
  {#name, {NetWay::Way::design, static_cast<unsigned>(Design::name)}, "net-" #name},
#include "net/designs.def"
#undef DESIGN
};

struct NamedKind {
  const char* name;
  Kind value;
};
constexpr NamedKind kKinds[] = {
    {"bcast", Kind::bcast},
    {"reduce", Kind::reduce},
    {"allreduce", Kind::allreduce},
    {"allgather", Kind::allgather},
    {"alltoall", Kind::alltoall},
    {"gather", Kind::gather},
    {"scatter", Kind::scatter},
    {"reduce_scatter_block", Kind::reduce_scatter_block},
    {"scan", Kind::scan},
    {"exscan", Kind::exscan},
    {"reduce_scatter", Kind::reduce_scatter},
    {"allgatherv", Kind::allgatherv},
    {"gatherv", Kind::gatherv},
    {"scatterv", Kind::scatterv},
    {"alltoallv", Kind::alltoallv},
    {"alltoallw", Kind::alltoallw},
    {"neighbor_allgather", Kind::neighbor_allgather},
    {"neighbor_allgatherv", Kind::neighbor_allgatherv},
    {"neighbor_alltoall", Kind::neighbor_alltoall},
    {"neighbor_alltoallv", Kind::neighbor_alltoallv},
    {"neighbor_alltoallw", Kind::neighbor_alltoallw},
};

template <class Rows>
auto find_row(const Rows& rows, std::string_view name) {
  return std::ranges::find_if(rows, [&](const auto& row) { return row.name == name; });
}

template <class Rows>
std::string names_of(const Rows& rows) {
  std::string names;
  for (const auto& row : rows) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

template <class Rows>
auto value_in(const Rows& rows, std::string_view name) {
  const auto row = find_row(rows, name);
  return row == std::end(rows) ? std::nullopt : std::optional(row->value);
}
template <class Rows, class Value>
const char* name_in(const Rows& rows, const Value& value) {
  const auto row = std::ranges::find_if(rows, [&](const auto& one) { return one.value == value; });
  return row == std::end(rows) ? "" : row->name;
}

// The simplest first.
template <class Visit>
void for_each_variant(Visit visit) {
  for (const Algorithm* algorithm : std::ranges::reverse_view(all_of_registry()))
    for (const NamedVariant& named : algorithm->variants) visit(*algorithm, named);
}

std::string algorithm_names() {
  std::string names = kAutomatic;
  for_each_variant([&](const Algorithm&, const NamedVariant& named) {
    names += fmt::format(", {}", named.name);
  });
  for (const ccl::Library* library : ccl::libraries())
    names += fmt::format(", {}", library->name());
  return names;
}

struct Chosen {
  AlgorithmChoice choice;
  std::string problem;
};
const Chosen& chosen() {
  // Never destroyed: calls of MPI may come until the process ends.
  static const Chosen& made = *new Chosen([] {
    Chosen read;
    read.choice = AlgorithmChoice::parse(config().algorithm, read.problem);
    if (!read.problem.empty()) read.problem = "ACCORD_ALGORITHM: " + read.problem;
    return read;
  }());
  return made;
}

}  // namespace

std::span<const Algorithm* const> all_of_registry() noexcept { return kRegistry; }

// Each library's has its name.
std::optional<Variant> find_algorithm(std::string_view name) {
  if (name == kAutomatic) return Variant();
  std::optional<Variant> found;
  for_each_variant([&](const Algorithm&, const NamedVariant& named) {
    if (named.name == name) found = named.variant;
  });
  if (found) return found;
  ccl::Library* const library = ccl::find(name);
  if (library == nullptr) return std::nullopt;
  return Variant{.algorithm = &algorithms::library, .library = library};
}
const char* name_of(const Variant& variant) {
  if (variant.algorithm == nullptr) return kAutomatic;
  if (variant.library != nullptr) return variant.library->name();
  const auto row = std::ranges::find_if(variant.algorithm->variants,
                                        [&](const auto& one) { return one.variant == variant; });
  return row == variant.algorithm->variants.end() ? "" : row->name;
}
std::optional<Kind> find_collective(std::string_view name) { return value_in(kKinds, name); }
const char* name_of(Kind kind) { return name_in(kKinds, kind); }

std::optional<MessageWay> find_message_way(std::string_view name) {
  return value_in(kMessageWays, name);
}
const char* name_of(MessageWay way) { return name_in(kMessageWays, way); }

std::optional<NetWay> find_net_way(std::string_view name) { return value_in(kNetWays, name); }
const char* name_of(const NetWay& way) { return name_in(kNetWays, way); }

std::vector<AlgorithmRow> all_algorithms() {
  std::vector<AlgorithmRow> rows{{kAutomatic, {}, ""}};
  for_each_variant([&](const Algorithm& algorithm, const NamedVariant& named) {
    rows.push_back({named.name, named.variant, named.path ? named.path : algorithm.name});
  });
  for (ccl::Library* library : ccl::libraries()) {
    if (library->open().ok() && library->takes(device::default_runtime().name()))
      rows.push_back({library->name(),
                      {.algorithm = &algorithms::library, .library = library},
                      library->name()});
  }
  return rows;
}
std::vector<MessageWayRow> all_message_ways() {
  return {std::begin(kMessageWays), std::end(kMessageWays)};
}
std::vector<NetWayRow> all_net_ways() { return {std::begin(kNetWays), std::end(kNetWays)}; }
std::vector<const char*> all_collectives() {
  std::vector<const char*> names;
  for (const NamedKind& row : kKinds) names.push_back(row.name);
  return names;
}

namespace {

// What an item says of messages; what it says wrong.
template <class Way>
void read_way(std::string_view item, std::optional<Way> found, const std::string& names, Way& way,
              std::string& problem) {
  if (found) {
    way = *found;
  } else {
    problem = fmt::format("\"{}\" is none of the ways {} of messages; it is ignored", item, names);
  }
}

}  // namespace

void AlgorithmChoice::read_item(std::string_view item, std::string& problem) {
  const std::size_t colon = item.find(':');
  const bool of_one = colon != std::string_view::npos;
  const std::string_view call = of_one ? item.substr(0, colon) : "";
  const std::string_view name = of_one ? item.substr(colon + 1) : item;
  if (call == kMessages)
    return read_way(item, find_message_way(name), names_of(kMessageWays), of_messages_, problem);
  if (call == kNetMessages)
    return read_way(item, find_net_way(name), names_of(kNetWays), of_net_messages_, problem);
  const auto kind = find_row(kKinds, call);
  const auto algorithm = find_algorithm(name);
  if (!algorithm || (of_one && kind == std::end(kKinds))) {
    problem = fmt::format(
        "\"{}\" is none of the algorithms {}, alone or after one of the collectives {}, {}, {} and "
        "a colon; it is ignored",
        item, algorithm_names(), names_of(kKinds), kMessages, kNetMessages);
  } else if (of_one) {
    of_kinds_.push_back({kind->value, *algorithm});
  } else {
    of_all_ = *algorithm;
  }
}

AlgorithmChoice AlgorithmChoice::parse(std::string_view list, std::string& problem) {
  AlgorithmChoice choice;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    choice.read_item(list.substr(start, end - start), problem);
    start = end + 1;
  }
  return choice;
}

Variant AlgorithmChoice::of(Kind kind) const {
  const auto last = std::find_if(of_kinds_.rbegin(), of_kinds_.rend(),
                                 [&](const OfKind& one) { return one.kind == kind; });
  return last == of_kinds_.rend() ? of_all_ : last->variant;
}

bool AlgorithmChoice::has_design() const {
  return of_net_messages_.way == NetWay::Way::design ||
         std::ranges::any_of(kKinds, [this](const NamedKind& row) {
           return of(row.value).between.way == NetWay::Way::design;
         });
}

bool AlgorithmChoice::any() const {
  const auto is_asked_for = [this](const NamedKind& row) { return of(row.value) != Variant(); };
  return of_messages_ != MessageWay::automatic || of_net_messages_ != NetWay() ||
         std::ranges::any_of(kKinds, is_asked_for);
}

std::uint64_t mixed(std::uint64_t hash, const char* name) {
  // FNV-1a, the final NUL included.
  const char* letter = name;
  do {
    hash = (hash ^ static_cast<unsigned char>(*letter)) * 1099511628211ull;
  } while (*letter++ != '\0');
  return hash;
}

std::uint64_t AlgorithmChoice::hash() const {
  std::uint64_t hash = 14695981039346656037ull;
  for (const NamedKind& row : kKinds) hash = mixed(hash, name_of(of(row.value)));
  return mixed(mixed(hash, name_of(of_messages_)), name_of(of_net_messages_));
}

const AlgorithmChoice& algorithm_choice() { return chosen().choice; }
const std::string& algorithm_problem() { return chosen().problem; }

}  // namespace accord::coll
