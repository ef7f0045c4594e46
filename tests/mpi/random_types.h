// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Random nested datatypes of every combiner, and where their bytes lie by the rules of the
// standard: blocks may overlap, lie in any order and below the address of the buffer. Only extents
// are the host MPI's.
#pragma once

#include <mpi.h>

#include <array>
#include <random>
#include <string>
#include <vector>

namespace accord::test {

using Offsets = std::vector<MPI_Aint>;

struct DrawnType {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  Offsets bytes{};  // in the order of the typemap
};

inline MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint low = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &low, &extent);
  return extent;
}

class RandomTypes {
 public:
  explicit RandomTypes(unsigned seed) : random_(seed) {}

  // To be freed. text() says what it is made of.
  DrawnType make() {
    text_.clear();
    return nested(between(1, 4));
  }
  const std::string& text() const { return text_; }
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

 private:
  std::vector<int> numbers(std::size_t count, int low, int high) {
    std::vector<int> drawn(count);
    for (int& number : drawn) number = between(low, high);
    return drawn;
  }

  static void append(Offsets& all, const Offsets& bytes, MPI_Aint at) {
    for (const MPI_Aint byte : bytes) all.push_back(at + byte);
  }

  static DrawnType basic(MPI_Datatype handle) {
    int size = 0;
    MPI_Type_size(handle, &size);
    DrawnType type{handle};
    for (int byte = 0; byte < size; ++byte) type.bytes.push_back(byte);
    if (handle == MPI_SHORT_INT) type.bytes = {0, 1, 4, 5, 6, 7};
    return type;
  }

  // Predefined; none has padding, which some MPIs pack and some do not.
  DrawnType basic() {
    const std::array types = {MPI_CHAR,       MPI_SHORT,     MPI_INT,      MPI_DOUBLE,
                              MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_INT, MPI_C_DOUBLE_COMPLEX};
    if (between(0, 9) != 0) return basic(types[random_() % types.size()]);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    switch (between(0, 2)) {
      case 0:
        MPI_Type_create_f90_real(15, 300, &type);
        break;
      case 1:
        MPI_Type_create_f90_complex(6, 30, &type);
        break;
      default:
        MPI_Type_create_f90_integer(9, &type);
    }
    return basic(type);
  }

  DrawnType nested(int levels) {
    if (levels == 0) {
      DrawnType type = basic();
      MPI_Type_dup(type.handle, &type.handle);
      return type;
    }
    const bool is_direct = levels == 1 && between(0, 1) == 0;
    DrawnType old = is_direct ? basic() : nested(levels - 1);
    DrawnType type = combined(old);
    if (!is_direct) MPI_Type_free(&old.handle);
    return type;
  }

  // Blocks of `lengths` at `places`, which are bytes.
  static Offsets placed(const DrawnType& old, const std::vector<int>& lengths,
                        const Offsets& places) {
    const MPI_Aint extent = extent_of(old.handle);
    Offsets all;
    for (std::size_t i = 0; i < places.size(); ++i)
      for (int j = 0; j < lengths[i]; ++j) append(all, old.bytes, places[i] + j * extent);
    return all;
  }

  DrawnType combined(const DrawnType& old) {
    const int kind = between(0, 12);
    text_ = std::to_string(kind) + (text_.empty() ? "" : " of " + text_);
    const MPI_Aint extent = extent_of(old.handle);
    const auto count = static_cast<std::size_t>(between(0, 4));
    const int blocks = static_cast<int>(count);
    std::vector<int> lengths = numbers(count, 0, 3);
    std::vector<int> places = numbers(count, -6, 12);
    if (between(0, 2) == 0) {  // in equal steps
      for (std::size_t i = 0; i < count; ++i) places[i] = 4 * static_cast<int>(i);
    }
    Offsets bytes;
    for (const int place : places)
      bytes.push_back(place * extent + (kind == 4 || kind == 6 ? 0 : place % 3));
    const int length = between(0, 3);
    const int stride = between(-20, 30);
    if (kind == 2 || kind == 3)
      for (std::size_t i = 0; i < count; ++i)
        bytes[i] = static_cast<MPI_Aint>(i) * stride * (kind == 2 ? extent : 1);
    const bool is_of_one_length = kind == 2 || kind == 3 || kind == 6 || kind == 7;
    if (is_of_one_length) lengths.assign(count, length);
    DrawnType type{MPI_DATATYPE_NULL, placed(old, lengths, bytes)};
    switch (kind) {
      case 0:
        MPI_Type_dup(old.handle, &type.handle);
        type.bytes = old.bytes;
        break;
      case 1:
        MPI_Type_contiguous(blocks, old.handle, &type.handle);
        type.bytes = placed(old, {blocks}, {0});
        break;
      case 2:
        MPI_Type_vector(blocks, length, stride, old.handle, &type.handle);
        break;
      case 3:
        MPI_Type_create_hvector(blocks, length, stride, old.handle, &type.handle);
        break;
      case 4:
        MPI_Type_indexed(blocks, lengths.data(), places.data(), old.handle, &type.handle);
        break;
      case 5:
        MPI_Type_create_hindexed(blocks, lengths.data(), bytes.data(), old.handle, &type.handle);
        break;
      case 6:
        MPI_Type_create_indexed_block(blocks, length, places.data(), old.handle, &type.handle);
        break;
      case 7:
        MPI_Type_create_hindexed_block(blocks, length, bytes.data(), old.handle, &type.handle);
        break;
      case 8:
        return structure(old, lengths, bytes);
      case 9:
        MPI_Type_create_resized(old.handle, between(-20, 20), extent + between(0, 20),
                                &type.handle);
        type.bytes = old.bytes;
        break;
      case 10:
        return subarray(old);
      default:
        return darray(old);
    }
    return type;
  }

  DrawnType structure(const DrawnType& old, const std::vector<int>& lengths, const Offsets& bytes) {
    DrawnType type;
    std::vector<MPI_Datatype> handles;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const DrawnType part = between(0, 1) == 0 ? old : basic();
      handles.push_back(part.handle);
      append(type.bytes, placed(part, {lengths[i]}, {bytes[i]}), 0);
    }
    MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), bytes.data(),
                           handles.data(), &type.handle);
    return type;
  }

  static constexpr std::size_t kDimensions = 3;
  using Shape = std::array<int, kDimensions>;

  // The elements of an array of `sizes` whose indices are in `owned`.
  static Offsets elements(const DrawnType& old, const Shape& sizes, int order,
                          const std::array<std::vector<int>, kDimensions>& owned) {
    const std::size_t slow = order == MPI_ORDER_C ? 0 : 2;
    const std::size_t fast = 2 - slow;
    const MPI_Aint extent = extent_of(old.handle);
    Offsets all;
    for (const int i : owned[slow])
      for (const int j : owned[1])
        for (const int k : owned[fast])
          append(all, old.bytes, extent * ((i * sizes[1] + j) * sizes[fast] + k));
    return all;
  }

  int order() { return between(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

  DrawnType subarray(const DrawnType& old) {
    Shape sizes{};
    Shape parts{};
    Shape starts{};
    std::array<std::vector<int>, kDimensions> owned;
    for (std::size_t d = 0; d < kDimensions; ++d) {
      sizes[d] = between(1, 4);
      parts[d] = between(1, sizes[d]);
      starts[d] = between(0, sizes[d] - parts[d]);
      for (int i = 0; i < parts[d]; ++i) owned[d].push_back(starts[d] + i);
    }
    const int by = order();
    DrawnType type{MPI_DATATYPE_NULL, elements(old, sizes, by, owned)};
#if MPI_VERSION >= 4
    if (between(0, 1) == 0) {
      const auto large = [](const Shape& from) {
        return std::array<MPI_Count, kDimensions>{from[0], from[1], from[2]};
      };
      MPI_Type_create_subarray_c(3, large(sizes).data(), large(parts).data(), large(starts).data(),
                                 by, old.handle, &type.handle);
      return type;
    }
#endif
    MPI_Type_create_subarray(3, sizes.data(), parts.data(), starts.data(), by, old.handle,
                             &type.handle);
    return type;
  }

  DrawnType darray(const DrawnType& old) {
    Shape sizes{};
    Shape kinds{};
    Shape arguments{};
    Shape processes{};
    Shape coordinates{};
    std::array<std::vector<int>, kDimensions> owned;
    int number = 1;
    int rank = 0;
    for (std::size_t d = 0; d < kDimensions; ++d) {
      sizes[d] = between(1, 7);
      kinds[d] = std::array{MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                            MPI_DISTRIBUTE_NONE}[random_() % 3];
      processes[d] = kinds[d] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 3);
      coordinates[d] = between(0, processes[d] - 1);
      const int share = (sizes[d] + processes[d] - 1) / processes[d];
      int length = kinds[d] == MPI_DISTRIBUTE_CYCLIC ? between(1, 3) : share;
      arguments[d] = length;
      if (kinds[d] == MPI_DISTRIBUTE_NONE || between(0, 1) == 0) {
        arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
        if (kinds[d] == MPI_DISTRIBUTE_CYCLIC) length = 1;
      }
      // Open MPI 5.0 tells any size and extent of an array of which a process has nothing.
      if (coordinates[d] * length >= sizes[d]) coordinates[d] = 0;
      for (int i = 0; i < sizes[d]; ++i)
        if (i / length % processes[d] == coordinates[d]) owned[d].push_back(i);
      number *= processes[d];
      rank = rank * processes[d] + coordinates[d];
    }
    const int by = order();
    DrawnType type{MPI_DATATYPE_NULL, elements(old, sizes, by, owned)};
#if MPI_VERSION >= 4
    if (between(0, 1) == 0) {
      const std::array<MPI_Count, kDimensions> large = {sizes[0], sizes[1], sizes[2]};
      MPI_Type_create_darray_c(number, rank, 3, large.data(), kinds.data(), arguments.data(),
                               processes.data(), by, old.handle, &type.handle);
      return type;
    }
#endif
    MPI_Type_create_darray(number, rank, 3, sizes.data(), kinds.data(), arguments.data(),
                           processes.data(), by, old.handle, &type.handle);
    return type;
  }

  std::mt19937 random_;
  std::string text_;
};

}  // namespace accord::test
