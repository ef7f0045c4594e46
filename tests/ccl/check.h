// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What every collective library must do: each collective with each element and operation that it
// takes, against a reference written anew, with counts from nothing to more than fits anywhere.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "../unit/reference_elements.h"
#include "library.h"
#include "ranks.h"

namespace accord::test {

using Float16 = Half<10>;
using BFloat16 = Half<7>;

template <class T>
inline constexpr int kType = -1;
template <>
inline constexpr int kType<std::int8_t> = ncclInt8;
template <>
inline constexpr int kType<std::uint8_t> = ncclUint8;
template <>
inline constexpr int kType<std::int32_t> = ncclInt32;
template <>
inline constexpr int kType<std::uint32_t> = ncclUint32;
template <>
inline constexpr int kType<std::int64_t> = ncclInt64;
template <>
inline constexpr int kType<std::uint64_t> = ncclUint64;
template <>
inline constexpr int kType<Float16> = ncclFloat16;
template <>
inline constexpr int kType<float> = ncclFloat32;
template <>
inline constexpr int kType<double> = ncclFloat64;
template <>
inline constexpr int kType<BFloat16> = ncclBfloat16;

// Numbers that round, of both signs where there are signs.
template <class T>
T element(int rank, std::size_t index) {
  const int number = static_cast<int>((static_cast<std::size_t>(rank) * 7 + index * 5) % 13);
  if constexpr (is_half<T>) {
    return T::nearest(static_cast<float>(number - 6) * 0.37F);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number - 6) / static_cast<T>(7);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(number - 6);
  } else {
    return static_cast<T>(number);
  }
}

template <class T>
std::vector<T> elements(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t at = 0; at < count; ++at) values[at] = element<T>(rank, at);
  return values;
}

// What the reference calculates in.
template <class T>
auto wide(T value) {
  if constexpr (is_half<T>) {
    return value.value();
  } else if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    return static_cast<std::int64_t>(value);
  }
}

template <class T>
T reference(int ranks, std::size_t index, int op) {
  auto value = wide(element<T>(0, index));
  for (int rank = 1; rank < ranks; ++rank) {
    const auto other = wide(element<T>(rank, index));
    if (op == ncclSum || op == ncclAvg) value += other;
    if (op == ncclProd) value *= other;
    if (op == ncclMax) value = std::max(value, other);
    if (op == ncclMin) value = std::min(value, other);
  }
  if (op == ncclAvg) value /= static_cast<decltype(value)>(ranks);
  if constexpr (is_half<T>) {
    return T::nearest(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
std::vector<T> references(int ranks, std::size_t first, std::size_t count, int op) {
  std::vector<T> values(count);
  for (std::size_t at = 0; at < count; ++at) values[at] = reference<T>(ranks, first + at, op);
  return values;
}

template <class T>
bool same(const std::vector<T>& left, const std::vector<T>& right) {
  return left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(T)) == 0);
}

// Nothing, one, few, and more than fits into a lane.
constexpr std::size_t kCounts[] = {0, 1, 37, 9'001};

template <class T, class Library>
void check_reductions(const Library& library, typename Library::Comm comm, const Rank& rank) {
  const auto ranks = static_cast<std::size_t>(rank.count);
  for (int op = ncclSum; op <= ncclAvg; ++op) {
    if (!library.takes(kType<T>, op)) continue;
    SCOPED_TRACE("type " + std::to_string(kType<T>) + " op " + std::to_string(op));
    for (const std::size_t count : kCounts) {
      const std::vector<T> wanted = references<T>(rank.count, 0, count, op);
      const std::vector<T> own = elements<T>(rank.rank, count);
      std::vector<T> result(count);
      ASSERT_EQ(0, library.all_reduce(own.data(), result.data(), count, kType<T>, op, comm));
      EXPECT_TRUE(same(wanted, result));
      std::vector<T> in_place = own;
      ASSERT_EQ(0, library.all_reduce(in_place.data(), in_place.data(), count, kType<T>, op, comm));
      EXPECT_TRUE(same(wanted, in_place));

      const int root = rank.count - 1;
      std::vector<T> at_root(count);
      ASSERT_EQ(0, library.reduce(own.data(), at_root.data(), count, kType<T>, op, root, comm));
      EXPECT_TRUE(same(rank.rank == root ? wanted : std::vector<T>(count), at_root));

      const std::vector<T> all = elements<T>(rank.rank, ranks * count);
      const std::size_t first = static_cast<std::size_t>(rank.rank) * count;
      std::vector<T> share(count);
      ASSERT_EQ(0, library.reduce_scatter(all.data(), share.data(), count, kType<T>, op, comm));
      EXPECT_TRUE(same(references<T>(rank.count, first, count, op), share));
    }
  }
}

template <class T, class Library>
void check_movements(const Library& library, typename Library::Comm comm, const Rank& rank) {
  if (!library.takes(kType<T>, ncclSum)) return;
  SCOPED_TRACE("type " + std::to_string(kType<T>));
  for (const std::size_t count : kCounts) {
    const std::vector<T> own = elements<T>(rank.rank, count);
    for (int root = 0; root < rank.count; ++root) {
      std::vector<T> result(count);
      ASSERT_EQ(0, library.broadcast(own.data(), result.data(), count, kType<T>, root, comm));
      EXPECT_TRUE(same(elements<T>(root, count), result));
    }
    std::vector<T> wanted;
    for (int peer = 0; peer < rank.count; ++peer) {
      const std::vector<T> block = elements<T>(peer, count);
      wanted.insert(wanted.end(), block.begin(), block.end());
    }
    std::vector<T> all(wanted.size());
    ASSERT_EQ(0, library.all_gather(own.data(), all.data(), count, kType<T>, comm));
    EXPECT_TRUE(same(wanted, all));

    std::vector<T> in_place(wanted.size());
    T* block = in_place.data() + static_cast<std::size_t>(rank.rank) * count;
    std::copy(own.begin(), own.end(), block);
    ASSERT_EQ(0, library.all_gather(block, in_place.data(), count, kType<T>, comm));
    EXPECT_TRUE(same(wanted, in_place));
  }
}

// Each pair of ranks another count, both ways at once, the own rank included, the receives first.
template <class Library>
void check_pairs(const Library& library, typename Library::Comm comm, const Rank& rank) {
  const auto count_of = [](int from, int to) {
    return static_cast<std::size_t>(from * 9001 + to * 5);
  };
  std::vector<std::vector<float>> received;
  for (int peer = 0; peer < rank.count; ++peer) received.emplace_back(count_of(peer, rank.rank));
  const std::vector<float> own = elements<float>(rank.rank, 40'000);
  ASSERT_EQ(0, library.group_start());
  for (int peer = 0; peer < rank.count; ++peer) {
    std::vector<float>& to = received[static_cast<std::size_t>(peer)];
    EXPECT_EQ(0, library.receive(to.data(), to.size(), ncclFloat32, peer, comm));
    const std::size_t count = count_of(rank.rank, peer);
    EXPECT_EQ(0, library.send(own.data(), count, ncclFloat32, peer, comm));
  }
  ASSERT_EQ(0, library.group_end());
  for (int peer = 0; peer < rank.count; ++peer) {
    const std::vector<float>& block = received[static_cast<std::size_t>(peer)];
    EXPECT_TRUE(same(elements<float>(peer, block.size()), block)) << "from " << peer;
  }
}

template <class Library>
void check_reductions_and_movements(const Library& library, typename Library::Comm comm,
                                    const Rank& rank) {
  const auto each = [&]<class... T>() {
    (check_reductions<T>(library, comm, rank), ...);
    (check_movements<T>(library, comm, rank), ...);
  };
  each.template operator()<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t,
                           std::uint64_t, Float16, BFloat16, float, double>();
}

// Block `block` of `rank`, where every rank has one for each peer.
inline std::vector<float> block_of(int rank, int block, std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(rank * 100 + block * 10));
  return values;
}

inline std::vector<float> blocks(int count, const auto& block) {
  std::vector<float> all;
  for (int at = 0; at < count; ++at) {
    const std::vector<float> one = block(at);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// all_to_all(from, to, count): of float32.
void check_all_to_all(const Rank& rank, const auto& all_to_all) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{15'000}}) {
    const auto own = [&](int peer) { return block_of(rank.rank, peer, count); };
    const auto theirs = [&](int peer) { return block_of(peer, rank.rank, count); };
    const std::vector<float> send = blocks(rank.count, own);
    std::vector<float> result(send.size());
    ASSERT_EQ(0, all_to_all(send.data(), result.data(), count));
    EXPECT_TRUE(same(blocks(rank.count, theirs), result));
  }
}

}  // namespace accord::test
