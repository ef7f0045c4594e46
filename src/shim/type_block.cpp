// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/type_block.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shim/shim.h"
#include "shim/type_contents.h"

namespace accord::shim {
namespace {

using device::Block;
using device::BlockRow;
using Numbers = std::span<const MPI_Count>;

std::size_t unsigned_of(MPI_Count count) {
  return static_cast<std::size_t>(std::max<MPI_Count>(0, count));
}

// A type that others are made of.
struct Part {
  Block block;
  MPI_Count extent = 0;

  Block repeated(MPI_Count count) const {
    return block.repeated(unsigned_of(count), static_cast<std::ptrdiff_t>(extent));
  }
};

// The only predefined types with gaps are the pairs of C.
std::optional<Block> named_block(MPI_Datatype datatype, const Extent& extent) {
  const auto size = unsigned_of(extent.size);
  if (extent.size == extent.bytes) return Block::run(size);
  const MPI_Datatype pairs[] = {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT,
                                MPI_LONG_DOUBLE_INT};
  if (std::find(std::begin(pairs), std::end(pairs), datatype) == std::end(pairs)) return {};
  const std::size_t value_bytes = size - sizeof(int);
  const std::size_t index_at = (value_bytes + alignof(int) - 1) / alignof(int) * alignof(int);
  BlockRow row;
  row.append(Block::run(value_bytes));
  row.append(Block::run(sizeof(int)).moved(static_cast<std::ptrdiff_t>(index_at)));
  return std::move(row).finish();
}

// Blocks of one type: lengths and displacements, these in units of `unit` bytes.
Block indexed(const Part& part, Numbers lengths, Numbers displacements, MPI_Count unit) {
  BlockRow row;
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    const MPI_Count length = lengths.size() == 1 ? lengths[0] : lengths[i];
    row.append(part.repeated(length).moved(static_cast<std::ptrdiff_t>(displacements[i] * unit)));
  }
  return std::move(row).finish();
}

Block structure(const std::vector<Part>& parts, Numbers lengths, Numbers displacements) {
  BlockRow row;
  for (std::size_t i = 0; i < parts.size(); ++i)
    row.append(parts[i].repeated(lengths[i]).moved(static_cast<std::ptrdiff_t>(displacements[i])));
  return std::move(row).finish();
}

// Of MPI_Type_get_value_index: as C lays out a struct.
Block pair(const std::vector<Part>& parts) {
  const auto value_bytes = static_cast<MPI_Count>(parts[0].block.size_bytes());
  const auto index_bytes = static_cast<MPI_Count>(parts[1].block.size_bytes());
  const MPI_Count ones[] = {1, 1};
  const MPI_Count at[] = {0, (value_bytes + index_bytes - 1) / index_bytes * index_bytes};
  return structure(parts, ones, at);
}

// One dimension of an array after the other, that which counts fastest in memory first.
class Array {
 public:
  explicit Array(const Part& element) : block_(element.block), step_(element.extent) {}

  void subarray(MPI_Count size, MPI_Count count, MPI_Count first) {
    block_ = repeated(count).moved(static_cast<std::ptrdiff_t>(first * step_));
    step_ *= size;
  }

  // Every `processes`-th block of `length`, from number `process` on; the last may be shorter.
  void cyclic(MPI_Count size, MPI_Count length, MPI_Count processes, MPI_Count process) {
    const MPI_Count round = processes * length;
    const MPI_Count first = process * length;
    const MPI_Count left = std::max<MPI_Count>(0, size - first);
    const MPI_Count whole = left / round + (left % round >= length ? 1 : 0);
    BlockRow row;
    row.append(repeated(length)
                   .repeated(unsigned_of(whole), static_cast<std::ptrdiff_t>(round * step_))
                   .moved(static_cast<std::ptrdiff_t>(first * step_)));
    if (left % round < length)
      row.append(repeated(left % round)
                     .moved(static_cast<std::ptrdiff_t>((first + whole * round) * step_)));
    block_ = std::move(row).finish();
    step_ *= size;
  }

  const Block& block() const { return block_; }

 private:
  Block repeated(MPI_Count count) const {
    return block_.repeated(unsigned_of(count), static_cast<std::ptrdiff_t>(step_));
  }

  Block block_;
  MPI_Count step_;
};

// The dimensions in the order in which they count in memory.
template <class Visit>
void for_each_dimension(std::size_t dimensions, MPI_Count order, Visit visit) {
  for (std::size_t i = 0; i < dimensions; ++i) visit(order == MPI_ORDER_C ? dimensions - 1 - i : i);
}

// Large counts come behind all integers.
Block subarray(const Part& part, Numbers numbers, bool large) {
  const auto dimensions = unsigned_of(numbers[0]);
  const Numbers shape = numbers.subspan(large ? 2 : 1);
  Array array(part);
  for_each_dimension(dimensions, large ? numbers[1] : shape[3 * dimensions], [&](std::size_t i) {
    array.subarray(shape[i], shape[dimensions + i], shape[2 * dimensions + i]);
  });
  return array.block();
}

Block darray(const Part& part, Numbers numbers, bool large) {
  const auto dimensions = unsigned_of(numbers[2]);
  const Numbers after_sizes = numbers.subspan(large ? 3 : 3 + dimensions);
  const Numbers sizes =
      large ? after_sizes.subspan(3 * dimensions + 1) : numbers.subspan(3, dimensions);
  const Numbers distributions = after_sizes.first(dimensions);
  const Numbers arguments = after_sizes.subspan(dimensions, dimensions);
  const Numbers processes = after_sizes.subspan(2 * dimensions, dimensions);
  // Processes are always in the order of C.
  std::vector<MPI_Count> coordinates(dimensions);
  MPI_Count rank = numbers[1];
  for (std::size_t i = dimensions; i-- > 0; rank /= processes[i])
    coordinates[i] = rank % processes[i];
  Array array(part);
  for_each_dimension(dimensions, after_sizes[3 * dimensions], [&](std::size_t i) {
    const bool is_default = arguments[i] == MPI_DISTRIBUTE_DFLT_DARG;
    if (distributions[i] == MPI_DISTRIBUTE_NONE) {
      array.subarray(sizes[i], sizes[i], 0);
    } else if (distributions[i] == MPI_DISTRIBUTE_CYCLIC) {
      array.cyclic(sizes[i], is_default ? 1 : arguments[i], processes[i], coordinates[i]);
    } else {
      const MPI_Count share = (sizes[i] + processes[i] - 1) / processes[i];
      array.cyclic(sizes[i], is_default ? share : arguments[i], processes[i], coordinates[i]);
    }
  });
  return array.block();
}

// What a type that is not predefined comes to.
std::optional<Block> combined(const TypeContents& contents, const std::vector<Part>& parts) {
  const Numbers numbers = contents.numbers();
  const Part& part = parts[0];
  const auto count = numbers.empty() ? 0 : unsigned_of(numbers[0]);
  switch (contents.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return part.block;
    case MPI_COMBINER_CONTIGUOUS:
      return part.repeated(numbers[0]);
    case MPI_COMBINER_VECTOR:
      return part.repeated(numbers[1])
          .repeated(count, static_cast<std::ptrdiff_t>(numbers[2] * part.extent));
    case MPI_COMBINER_HVECTOR:
      return part.repeated(numbers[1]).repeated(count, static_cast<std::ptrdiff_t>(numbers[2]));
    case MPI_COMBINER_INDEXED:
      return indexed(part, numbers.subspan(1, count), numbers.subspan(1 + count, count),
                     part.extent);
    case MPI_COMBINER_HINDEXED:
      return indexed(part, numbers.subspan(1, count), numbers.subspan(1 + count, count), 1);
    case MPI_COMBINER_INDEXED_BLOCK:
      return indexed(part, numbers.subspan(1, 1), numbers.subspan(2, count), part.extent);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return indexed(part, numbers.subspan(1, 1), numbers.subspan(2, count), 1);
    case MPI_COMBINER_STRUCT:
      return structure(parts, numbers.subspan(1, count), numbers.subspan(1 + count, count));
    case MPI_COMBINER_SUBARRAY:
      return subarray(part, numbers, contents.is_large());
    case MPI_COMBINER_DARRAY:
      return darray(part, numbers, contents.is_large());
    default:
      return std::nullopt;
  }
}

// Knows the types within one by their handles. Those that the host MPI gives out are copies of its
// own (Open MPI), which get the handles of others once they are freed: so all are kept to the end.
class Decoder {
 public:
  std::optional<Block> block_of(MPI_Datatype datatype, const Extent& extent) {
    if (extent.size == 0) return Block();
    const int combiner = combiner_of(datatype);
    if (combiner == MPI_COMBINER_NAMED) return named_block(datatype, extent);
    if (is_predefined(combiner) && combiner != kCombinerValueIndex)
      return Block::run(unsigned_of(extent.size));
    const TypeContents& contents = contents_.emplace_back(datatype);
    std::vector<Part> parts;
    for (const MPI_Datatype type : contents.types()) {
      const Part* const part = find(type);
      if (part == nullptr) return std::nullopt;
      parts.push_back(*part);
    }
    if (combiner == kCombinerValueIndex && parts.size() == 2) return pair(parts);
    return parts.empty() ? std::nullopt : combined(contents, parts);
  }

 private:
  const Part* find(MPI_Datatype datatype) {
    if (const auto found = parts_.find(to_bits(datatype)); found != parts_.end())
      return &found->second;
    Extent extent;
    if (!has_extent(datatype, extent)) return nullptr;
    auto block = block_of(datatype, extent);
    if (!block) return nullptr;
    return &parts_.emplace(to_bits(datatype), Part{*std::move(block), extent.bytes}).first->second;
  }

  std::list<TypeContents> contents_;
  std::unordered_map<std::uint64_t, Part> parts_;
};

}  // namespace

bool has_extent(MPI_Datatype datatype, Extent& extent) {
  return host::Type_size_x(datatype, &extent.size) == MPI_SUCCESS && extent.size >= 0 &&
         host::Type_get_extent_x(datatype, &extent.lower_bound, &extent.bytes) == MPI_SUCCESS;
}

std::optional<Block> block_of(MPI_Datatype datatype, const Extent& extent) {
  return Decoder().block_of(datatype, extent);
}

}  // namespace accord::shim
