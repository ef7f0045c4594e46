// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "elements.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/reduce_functions.h"

namespace accord::fake {
namespace {

using device::BFloat16;
using device::Float16;

// What to calculate in: integers wrap, which signed ones may do only after a conversion.
template <class T>
using Wide = std::conditional_t<
    device::is_half<T>, float,
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, T>>;

template <class T>
Wide<T> load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (device::is_half<T>) {
    return device::to_float(value);
  } else {
    return static_cast<Wide<T>>(value);
  }
}

template <class T>
void store(Wide<T> value, std::byte* to) {
  T narrow;
  if constexpr (device::is_half<T>) {
    narrow = device::rounded<T>(value);
  } else {
    narrow = static_cast<T>(value);
  }
  std::memcpy(to, &narrow, sizeof narrow);
}

template <class W>
W combined(Reduction reduction, W left, W right) {
  if (reduction == Reduction::max) return std::max(left, right);
  if (reduction == Reduction::min) return std::min(left, right);
  if constexpr (std::is_integral_v<W>) {
    const auto a = static_cast<std::uint64_t>(left);
    const auto b = static_cast<std::uint64_t>(right);
    return static_cast<W>(reduction == Reduction::prod ? a * b : a + b);
  } else {
    return reduction == Reduction::prod ? left * right : left + right;
  }
}

template <class T>
void reduce_as(Reduction reduction, std::span<const std::byte> parts, std::span<std::byte> result) {
  for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
    Wide<T> value = load<T>(parts.data() + at);
    for (std::size_t part = result.size(); part < parts.size(); part += result.size()) {
      value = combined(reduction, value, load<T>(parts.data() + part + at));
    }
    if (reduction == Reduction::avg) {
      value /= static_cast<Wide<T>>(parts.size() / result.size());
    }
    store<T>(value, result.data() + at);
  }
}

}  // namespace

std::size_t size_of(Element element) {
  switch (element) {
    case Element::int8:
    case Element::uint8:
      return 1;
    case Element::float16:
    case Element::bfloat16:
      return 2;
    case Element::int32:
    case Element::uint32:
    case Element::float32:
      return 4;
    default:
      return 8;
  }
}

void reduce(Element element, Reduction reduction, std::span<const std::byte> parts,
            std::span<std::byte> result) {
  switch (element) {
    case Element::int8:
      return reduce_as<std::int8_t>(reduction, parts, result);
    case Element::uint8:
      return reduce_as<std::uint8_t>(reduction, parts, result);
    case Element::int32:
      return reduce_as<std::int32_t>(reduction, parts, result);
    case Element::uint32:
      return reduce_as<std::uint32_t>(reduction, parts, result);
    case Element::int64:
      return reduce_as<std::int64_t>(reduction, parts, result);
    case Element::uint64:
      return reduce_as<std::uint64_t>(reduction, parts, result);
    case Element::float16:
      return reduce_as<Float16>(reduction, parts, result);
    case Element::float32:
      return reduce_as<float>(reduction, parts, result);
    case Element::float64:
      return reduce_as<double>(reduction, parts, result);
    case Element::bfloat16:
      return reduce_as<BFloat16>(reduction, parts, result);
  }
}

}  // namespace accord::fake
