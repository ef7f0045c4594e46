// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/select/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace accord::coll {

namespace {

using nlohmann::json;

// Of a table of every collective among many numbers of ranks with all that was measured; something
// larger is no table.
constexpr std::size_t kFileBytesMax = std::size_t{16} << 20;

Status bad(std::string text) { return {StatusCode::invalid_argument, std::move(text)}; }

const json* member(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

// A name of the file as a message shows it: whatever the file holds, the message stays a line.
std::string quoted(const std::string& name) {
  constexpr std::size_t kShown = 60;
  std::string shown = name.substr(0, kShown);
  std::ranges::replace_if(
      shown, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return fmt::format("\"{}{}\"", shown, name.size() <= kShown ? "" : "...");
}

// Only of numbers: writing out anything else takes stack for each level of it.
std::string schema_text(const json* schema) {
  return schema != nullptr && schema->is_number() ? schema->dump() : "unknown";
}

}  // namespace

// Has the members of Table at hand.
struct TableReader {
  template <class Way, class Find>
  static Status read_range(const json& given, Find find, std::vector<Table::RangeOf<Way>>& ranges) {
    const json* const first_bytes = member(given, "first_bytes");
    const std::string name = text_of(member(given, "algorithm"));
    const auto algorithm = find(name);
    if (!algorithm) return bad(fmt::format("{} is no algorithm of this Accord", quoted(name)));
    if (first_bytes == nullptr || !first_bytes->is_number_unsigned())
      return bad("a range lacks first_bytes");
    const auto first = first_bytes->get<std::size_t>();
    if (ranges.empty() ? first != 0 : first <= ranges.back().first_bytes)
      return bad("its ranges do not follow one another from 0 on");
    ranges.push_back({first, *algorithm});
    return {};
  }

  template <class Way, class Find>
  static Status read_ranges(const json& given, const std::string& name, int ranks, Find find,
                            std::vector<Table::RangeOf<Way>>& read) {
    const json* const ranges = member(given, "ranges");
    if (ranges == nullptr || !ranges->is_array() || ranges->empty())
      return bad(fmt::format("{} among {} without ranges", name, ranks));
    for (const json& range : *ranges) {
      if (Status status = read_range<Way>(range, find, read); !status.ok())
        return bad(fmt::format("{} among {}: {}", name, ranks, status.message()));
    }
    return {};
  }

  template <class Way, class Find>
  static Status read_messages(const json& given, const std::string& name, int ranks, Find find,
                              std::vector<Table::RangeOf<Way>>& read) {
    if (ranks != kRanksOfMessage)
      return bad(fmt::format("{} among {}: a message has two ranks", name, ranks));
    if (!read.empty()) return bad(fmt::format("{} among {} stands there twice", name, ranks));
    return read_ranges<Way>(given, name, ranks, find, read);
  }

  static Status read_row(const json& given, Table& table) {
    const std::string name = text_of(member(given, "collective"));
    const json* const ranks = member(given, "ranks");
    const auto kind = find_collective(name);
    if (!kind && name != kMessages && name != kNetMessages)
      return bad(fmt::format("{} is no collective", quoted(name)));
    if (ranks == nullptr || !ranks->is_number_unsigned() || ranks->get<std::uint64_t>() > INT32_MAX)
      return bad(fmt::format("{} without a number of ranks", name));
    const int count = ranks->get<int>();
    if (name == kMessages)
      return read_messages<MessageWay>(given, name, count, find_message_way, table.messages_);
    if (name == kNetMessages)
      return read_messages<NetWay>(given, name, count, find_net_way, table.net_messages_);
    const json* const across = member(given, "across_nodes");
    const bool is_across = across != nullptr && across->is_boolean() && across->get<bool>();
    std::vector<Table::Row>& rows = is_across ? table.across_ : table.rows_;
    Table::Row row{*kind, count, {}};
    ACCORD_TRY(read_ranges<Variant>(given, name, count, find_algorithm, row.ranges));
    const bool again = std::ranges::any_of(rows, [&](const Table::Row& other) {
      return other.kind == row.kind && other.ranks == row.ranks;
    });
    if (again) return bad(fmt::format("{} among {} stands there twice", name, row.ranks));
    const bool is_other = std::ranges::any_of(row.ranges, [](const Table::Range& range) {
      const Variant& one = range.algorithm;
      return one != Variant() && (!one.is(algorithms::two_level) || one.one_leader);
    });
    if (is_across && is_other)
      return bad(fmt::format("{} among {}: only two levels go across nodes", name, row.ranks));
    rows.push_back(std::move(row));
    return {};
  }

  static Status read_table(const json& given, Table& table) {
    if (!given.is_object() || text_of(member(given, "format")) != "accord-table")
      return bad("it is no table of accord tune");
    const json* const schema = member(given, "schema");
    if (schema == nullptr || *schema != Table::kSchema)
      return bad(fmt::format("its schema is {}, and this Accord reads {}", schema_text(schema),
                             Table::kSchema));
    const json* const machine = member(given, "machine");
    table.runtime_ = machine == nullptr ? "" : text_of(member(*machine, "runtime"));
    if (table.runtime_.empty()) return bad("it does not say on which machine it was measured");
    const json* const choices = member(given, "choices");
    if (choices == nullptr || !choices->is_array()) return bad("it has no choices");
    for (const json& row : *choices) ACCORD_TRY(read_row(row, table));
    return {};
  }
};

Status Table::parse(std::string_view text, Table& table) {
  table = {};
  const json given = json::parse(text, nullptr, false);
  if (given.is_discarded()) return bad("it is no JSON, or cut off");
  Table made;
  ACCORD_TRY(TableReader::read_table(given, made));
  table = std::move(made);
  return {};
}

Status Table::read(const std::string& path, Table& table) {
  table = {};
  std::ifstream file(path, std::ios::binary);
  if (!file) return bad(fmt::format("it cannot be opened ({})", std::strerror(errno)));
  std::string text;
  std::array<char, 65536> part;
  // Sets a state of the stream where it fails, as on a folder; iterators would throw.
  while (file.read(part.data(), part.size()) || file.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kFileBytesMax) return bad("it is too long for a table");
  }
  if (file.bad()) return bad("it cannot be read");
  return parse(text, table);
}

namespace {

// Null where there are none.
template <class Range>
const Range* range_of(const std::vector<Range>& ranges, std::size_t size_bytes) {
  if (ranges.empty()) return nullptr;
  const auto after = std::ranges::upper_bound(ranges, size_bytes, {}, &Range::first_bytes);
  return &*std::prev(after);
}

}  // namespace

const Table::Range* Table::find_in(const std::vector<Row>& rows, node::Kind kind, int ranks,
                                   std::size_t size_bytes) noexcept {
  for (const Row& row : rows) {
    if (row.kind == kind && row.ranks == ranks) return range_of(row.ranges, size_bytes);
  }
  return nullptr;
}

const Table::Range* Table::find(node::Kind kind, int ranks, std::size_t size_bytes) const noexcept {
  return find_in(rows_, kind, ranks, size_bytes);
}

const Table::Range* Table::find_across(node::Kind kind, int ranks,
                                       std::size_t size_bytes) const noexcept {
  return find_in(across_, kind, ranks, size_bytes);
}

const Table::MessageRange* Table::find_message(std::size_t size_bytes) const noexcept {
  return range_of(messages_, size_bytes);
}

const Table::NetRange* Table::find_net_message(std::size_t size_bytes) const noexcept {
  return range_of(net_messages_, size_bytes);
}

bool Table::has_design() const noexcept {
  const auto by_design = [](const NetWay& way) { return way.way == NetWay::Way::design; };
  const auto has_some = [&](const Row& row) {
    return std::ranges::any_of(row.ranges, by_design,
                               [](const Range& range) { return range.algorithm.between; });
  };
  return std::ranges::any_of(net_messages_, by_design, &NetRange::algorithm) ||
         std::ranges::any_of(rows_, has_some) || std::ranges::any_of(across_, has_some);
}

std::uint64_t Table::hash() const noexcept {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&hash](std::uint64_t word) { hash = (hash ^ word) * 1099511628211ull; };
  for (const std::vector<Row>* rows : {&rows_, &across_}) {
    mix(rows->size());
    for (const Row& row : *rows) {
      mix(static_cast<std::uint64_t>(row.kind));
      mix(static_cast<std::uint64_t>(row.ranks));
      for (const auto& [first_bytes, algorithm] : row.ranges) {
        mix(first_bytes);
        hash = mixed(hash, name_of(algorithm));
      }
    }
  }
  for (const auto& [first_bytes, way] : messages_) {
    mix(first_bytes);
    hash = mixed(hash, name_of(way));
  }
  for (const auto& [first_bytes, way] : net_messages_) {
    mix(first_bytes);
    hash = mixed(mixed(hash, kNetMessages.data()), name_of(way));
  }
  return hash;
}

}  // namespace accord::coll
