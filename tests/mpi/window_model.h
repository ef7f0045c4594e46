// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What random one-sided programs are made of: memory of each kind, types, layouts, operations, and
// the sequential model that says what they come to. Needs MPI and no window.
#pragma once

#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

namespace accord::test {

using Random = std::mt19937_64;

inline int draw(Random& random, int below) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(below));
}

enum class Kind { host, device, managed, none };

// Memory of a kind, from whose content the CPU stays away.
class Memory {
 public:
  Memory(Kind kind, const std::vector<std::byte>& content)
      : kind_(kind), size_bytes_(content.size()) {
    if (size_bytes_ == 0) return;
    if (kind == Kind::host) {
      pointer_ = std::malloc(size_bytes_);
      std::memcpy(pointer_, content.data(), size_bytes_);
      return;
    }
    const auto wanted = kind == Kind::device ? ACCORD_MEMORY_DEVICE : ACCORD_MEMORY_MANAGED;
    if (accord_malloc(&pointer_, size_bytes_, wanted) != ACCORD_OK ||
        accord_memcpy(pointer_, content.data(), size_bytes_) != ACCORD_OK)
      MPI_Abort(MPI_COMM_WORLD, 1);
  }
  ~Memory() {
    if (kind_ == Kind::host) std::free(pointer_);
    if (kind_ != Kind::host && pointer_ != nullptr) (void)accord_free(pointer_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* at(std::size_t offset_bytes) const {
    return static_cast<std::byte*>(pointer_) + offset_bytes;
  }
  void* pointer() const { return pointer_; }
  std::vector<std::byte> content() const {
    std::vector<std::byte> bytes(size_bytes_);
    if (size_bytes_ == 0) return bytes;
    if (kind_ == Kind::host)
      std::memcpy(bytes.data(), pointer_, size_bytes_);
    else
      (void)accord_memcpy(bytes.data(), pointer_, size_bytes_);
    return bytes;
  }

 private:
  Kind kind_;
  std::size_t size_bytes_;
  void* pointer_ = nullptr;
};

// What elements are.
struct Type {
  MPI_Datatype datatype;
  std::size_t bytes;
  bool is_floating;
};
inline const Type& type_of(int number) {
  static const Type list[] = {{MPI_INT32_T, 4, false},
                              {MPI_UINT64_T, 8, false},
                              {MPI_DOUBLE, 8, true},
                              {MPI_INT16_T, 2, false}};
  return list[number];
}
inline constexpr int kTypes = 4;

enum Op { sum, max, min, bxor, replace, no_op, kOps };
inline MPI_Op handle_of(Op op) {
  const MPI_Op list[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_REPLACE, MPI_NO_OP};
  return list[op];
}

template <class Number>
Number combined(Op op, Number target, Number origin) {
  switch (op) {
    case sum:
      return static_cast<Number>(target + origin);
    case max:
      return std::max(target, origin);
    case min:
      return std::min(target, origin);
    case bxor:
      if constexpr (std::is_integral_v<Number>) return static_cast<Number>(target ^ origin);
      return target;
    case replace:
      return origin;
    default:
      return target;
  }
}

template <class Number>
void combine_as(Op op, std::byte* target, const std::byte* origin) {
  Number one{};
  Number other{};
  std::memcpy(&one, target, sizeof one);
  std::memcpy(&other, origin, sizeof other);
  one = combined(op, one, other);
  std::memcpy(target, &one, sizeof one);
}

inline void combine(const Type& type, Op op, std::byte* target, const std::byte* origin) {
  if (type.is_floating) return combine_as<double>(op, target, origin);
  if (type.bytes == 2) return combine_as<std::int16_t>(op, target, origin);
  if (type.bytes == 4) return combine_as<std::int32_t>(op, target, origin);
  combine_as<std::uint64_t>(op, target, origin);
}

// `count` elements of which `block` follow one another, blocks `step` elements apart.
struct Layout {
  int count = 1;
  int block = 1;
  int step = 1;

  int spanned() const { return (count / block - 1) * step + block; }
  std::size_t place(int element) const {
    return static_cast<std::size_t>(element / block * step + element % block);
  }
  static Layout drawn(Random& random, int count, int room) {
    Layout layout{count, count, count};
    const int block = 1 + draw(random, count);
    if (count % block == 0 && draw(random, 2) == 0) {
      layout.block = block;
      layout.step = block + draw(random, 3);
      if (layout.spanned() > room) layout = {count, count, count};
    }
    return layout;
  }
};

// The datatype for an end, as several elements or as one of a derived type.
class Datatype {
 public:
  Datatype(const Type& type, const Layout& layout) {
    if (layout.block == layout.count) {
      handle_ = type.datatype;
      count_ = layout.count;
      return;
    }
    MPI_Type_vector(layout.count / layout.block, layout.block, layout.step, type.datatype,
                    &handle_);
    MPI_Type_commit(&handle_);
    is_derived_ = true;
  }
  ~Datatype() {
    if (is_derived_) MPI_Type_free(&handle_);
  }
  Datatype(const Datatype&) = delete;
  Datatype& operator=(const Datatype&) = delete;
  MPI_Datatype handle() const { return handle_; }
  int count() const { return count_; }

 private:
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
  int count_ = 1;
  bool is_derived_ = false;
};

inline constexpr std::size_t kSlotBytes = 8;
// Each type has a part of the window, so that no doubles are made of other numbers' bytes.
inline constexpr int kTypeSlots = 60;

// Small whole numbers: sums are exact, and no MPI's way of overflow matters.
inline void draw_numbers(Random& random, const Type& type, std::byte* first,
                         std::size_t size_bytes) {
  constexpr int kBelow = 100;
  for (std::size_t at = 0; at + type.bytes <= size_bytes; at += type.bytes) {
    const int number = draw(random, kBelow);
    const double floating = number;
    if (type.is_floating)
      std::memcpy(first + at, &floating, type.bytes);
    else
      for (std::size_t i = 0; i < type.bytes; ++i)
        first[at + i] = static_cast<std::byte>(i == 0 ? number : 0);  // little endian
  }
}

inline std::vector<std::byte> drawn_window(Random& random) {
  constexpr std::size_t kTypeBytes = kTypeSlots * kSlotBytes;
  std::vector<std::byte> bytes(kTypes * kTypeBytes);
  for (std::size_t i = 0; i < kTypes; ++i)
    draw_numbers(random, type_of(static_cast<int>(i)), &bytes[i * kTypeBytes], kTypeBytes);
  return bytes;
}

enum class Call { put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap, kCalls };

struct Operation {
  Call call = Call::put;
  int origin = 0;
  int target = 0;
  int type = 0;
  Op op = sum;
  std::size_t target_offset_bytes = 0;
  Layout at_target;
  Layout at_origin;
  Kind origin_kind = Kind::host;
  Kind result_kind = Kind::host;
  bool by_request = false;
  bool matches = false;             // compare_and_swap
  std::vector<std::byte> data;      // of the origin, with gaps
  std::vector<std::byte> compared;  // one element
  // What is expected, and what comes to pass.
  std::vector<std::byte> result_before;
  std::vector<std::byte> result;  // with gaps; of gets and fetches
  std::unique_ptr<Memory> origin_memory;
  std::unique_ptr<Memory> result_memory;
  std::unique_ptr<Memory> compare_memory;

  bool has_result() const { return call != Call::put && call != Call::accumulate; }
};

class Model {
 public:
  std::vector<std::vector<std::byte>> windows;

  void apply(Operation& one) {
    const Type& type = type_of(one.type);
    one.result_before.assign(one.data.size(), std::byte{0x5a});
    one.result = one.result_before;
    if (one.call == Call::compare_and_swap) prepare_compare(one, type);
    for (int i = 0; i < one.at_target.count; ++i) {
      std::byte* const there =
          &windows[static_cast<std::size_t>(one.target)]
                  [one.target_offset_bytes + one.at_target.place(i) * type.bytes];
      const std::size_t here = one.at_origin.place(i) * type.bytes;
      if (one.has_result()) std::memcpy(&one.result[here], there, type.bytes);
      if (one.call == Call::put) std::memcpy(there, &one.data[here], type.bytes);
      if (one.call == Call::compare_and_swap && one.matches)
        std::memcpy(there, &one.data[here], type.bytes);
      if (one.call == Call::accumulate || one.call == Call::get_accumulate ||
          one.call == Call::fetch_and_op)
        combine(type, one.op, there, &one.data[here]);
    }
  }

 private:
  void prepare_compare(Operation& one, const Type& type) const {
    const std::byte* const there =
        &windows[static_cast<std::size_t>(one.target)][one.target_offset_bytes];
    one.compared.assign(there, there + type.bytes);
    if (!one.matches) one.compared[0] ^= std::byte{1};
  }
};

}  // namespace accord::test
