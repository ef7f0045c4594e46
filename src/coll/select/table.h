// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What `accord tune` has found on one kind of machine: for a collective among so many ranks, and
// for messages, from which size on which algorithm is the fastest. Read from the file that it
// wrote; whoever calls (coll/select/selection) says what becomes of one that cannot be used. Knows
// no mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "coll/select/names.h"

namespace accord::coll {

class Table {
 public:
  // Files of another schema are refused: what their numbers mean has changed.
  static constexpr int kSchema = 1;

  // All or nothing: a table that is wrong in one place leaves `table` empty. The status says what
  // is wrong and where.
  static Status parse(std::string_view json, Table& table);
  static Status read(const std::string& path, Table& table);

  // From `first_bytes` on, up to where the next range begins.
  template <class Way>
  struct RangeOf {
    std::size_t first_bytes = 0;
    Way algorithm{};
  };
  using Range = RangeOf<Variant>;
  using MessageRange = RangeOf<MessageWay>;
  using NetRange = RangeOf<NetWay>;

  // The range that `size_bytes` lies in; null where the table says nothing of such calls.
  const Range* find(node::Kind kind, int ranks, std::size_t size_bytes) const noexcept;
  // The same where they are on several nodes.
  const Range* find_across(node::Kind kind, int ranks, std::size_t size_bytes) const noexcept;
  // The same of messages within a node, and of those between nodes.
  const MessageRange* find_message(std::size_t size_bytes) const noexcept;
  const NetRange* find_net_message(std::size_t size_bytes) const noexcept;
  // Some go by a design.
  bool has_design() const noexcept;

  // Equal on two ranks exactly when both choose alike.
  std::uint64_t hash() const noexcept;
  bool empty() const noexcept {
    return rows_.empty() && across_.empty() && messages_.empty() && net_messages_.empty();
  }
  // The device runtime that it was measured with.
  const std::string& runtime() const noexcept { return runtime_; }

 private:
  struct Row {
    node::Kind kind;
    int ranks;
    std::vector<Range> ranges;  // in the order of their sizes, the first from 0 on
  };
  friend struct TableReader;
  static const Range* find_in(const std::vector<Row>& rows, node::Kind kind, int ranks,
                              std::size_t size_bytes) noexcept;

  std::vector<Row> rows_;
  std::vector<Row> across_;             // of ranks on several nodes: two levels, or as nobody asks
  std::vector<MessageRange> messages_;  // as those of a row
  std::vector<NetRange> net_messages_;
  std::string runtime_;
};

}  // namespace accord::coll
