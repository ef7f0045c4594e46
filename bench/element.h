// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Element types and the data they carry: what rank r sends as its element i, and what a reduction
// of it must give, for every type. Values are small integers, so that every order of summation
// gives the same bits, and no partial result leaves the type (Open MPI saturates 8-bit sums, MPICH
// wraps them). Knows no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accord::bench {

enum class ElementClass { signed_integer, unsigned_integer, floating, complex, byte };

enum class ReduceOp { sum, prod, min, max, land, lor, lxor, band, bor, bxor };

struct NamedReduceOp {
  const char* name;
  ReduceOp op;
};
const std::vector<NamedReduceOp>& reduce_ops();

enum class ValueKind {
  number,  // any number of the pattern's width
  factor,  // 1, -1, 2: what may be multiplied over many ranks
  truth,   // 0 to 3
};

// What the data of one measurement depends on, besides rank and index.
struct Pattern {
  std::uint64_t epoch = 0;  // differs for every fill
  ValueKind kind = ValueKind::number;
  std::uint32_t mask = 0;  // numbers have these bits
};

struct RankRange {
  int first = 0;
  int last = 0;  // one past
};

struct IndexRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

struct Element {
  const char* name;
  std::size_t size_bytes;
  ElementClass kind;
  std::int64_t exact_max;  // every integer up to here is exact

  // Writes the elements `range` of what `rank` sends to `out`: [range.count] elements.
  void (*source)(const Pattern& pattern, int rank, IndexRange range, void* out);
  // The same elements, reduced over `ranks` in rank order.
  void (*reduced)(const Pattern& pattern, ReduceOp op, RankRange ranks, IndexRange range,
                  void* out);
  // Index of the first of `count` elements whose values differ; `count` when none does.
  std::size_t (*mismatch)(const void* expected, const void* got, std::size_t count);
  std::string (*text)(const void* element);
};

const std::vector<Element>& elements();
const Element* find_element(std::string_view name);

// Whether MPI defines `op` for `element`.
bool supports(const Element& element, ReduceOp op);

// The widest data that stays exact when `op` (none: plain copies) is applied over `ranks` ranks.
Pattern make_pattern(const Element& element, std::optional<ReduceOp> op, int ranks,
                     std::uint64_t epoch);

}  // namespace accord::bench
