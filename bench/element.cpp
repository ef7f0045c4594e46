// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <cstring>
#include <limits>

namespace accord::bench {
namespace {

// Half precision, for integers only: the values here have at most 11 significant bits.
struct Float16 {
  std::uint16_t bits = 0;
};
struct Bfloat16 {
  std::uint16_t bits = 0;
};
struct Byte {
  std::uint8_t bits = 0;
};

struct WideComplex {
  std::int64_t real = 0;
  std::int64_t imag = 0;
};

double to_double(Float16 value) {
  const int exponent = (value.bits >> 10) & 31;
  const double fraction = value.bits & 1023;
  const double magnitude =
      exponent == 0
          ? fraction * 0x1p-24
          : (1024 + fraction) *
                std::bit_cast<double>(static_cast<std::uint64_t>(exponent - 25 + 1023) << 52);
  return (value.bits & 0x8000) != 0 ? -magnitude : magnitude;
}
double to_double(Bfloat16 value) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16));
}

template <class T>
T narrow(std::int64_t value) {
  return static_cast<T>(value);
}
template <>
Float16 narrow<Float16>(std::int64_t value) {
  const auto magnitude = static_cast<std::uint32_t>(value < 0 ? -value : value);
  if (magnitude == 0) return {};
  const int top = std::bit_width(magnitude) - 1;
  const std::uint32_t fraction = (top <= 10 ? magnitude << (10 - top) : magnitude >> (top - 10));
  const std::uint32_t bits = (static_cast<std::uint32_t>(top + 15) << 10) | (fraction & 1023U);
  return {static_cast<std::uint16_t>(bits | (value < 0 ? 0x8000U : 0U))};
}
template <>
Bfloat16 narrow<Bfloat16>(std::int64_t value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return {static_cast<std::uint16_t>(bits >> 16)};
}
template <>
Byte narrow<Byte>(std::int64_t value) {
  return {static_cast<std::uint8_t>(value)};
}
template <class T>
T narrow(WideComplex value) {
  using Part = typename T::value_type;
  return {static_cast<Part>(value.real), static_cast<Part>(value.imag)};
}

template <class T>
struct IsComplex : std::false_type {};
template <class Part>
struct IsComplex<std::complex<Part>> : std::true_type {};
template <class T>
using Wide = std::conditional_t<IsComplex<T>::value, WideComplex, std::int64_t>;
template <class T>
constexpr bool kSigned = IsComplex<T>::value || std::is_signed_v<T> || std::is_same_v<T, Float16> ||
                         std::is_same_v<T, Bfloat16>;

// A bijection of 32 bits whose every output bit depends on every input bit.
inline std::uint32_t scramble(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x9E3779B1U;
  x ^= x >> 15;
  x *= 0x85EBCA77U;
  return x ^ (x >> 13);
}

// Rank and epoch enter differently: no rank's data may equal another's of an earlier epoch.
std::uint32_t seed_of(const Pattern& pattern, int rank) {
  std::uint32_t seed = scramble(static_cast<std::uint32_t>(pattern.epoch >> 32) + 0x6A09E667U);
  seed = scramble(seed + static_cast<std::uint32_t>(pattern.epoch));
  return scramble(seed + 0x9E3779B1U * (static_cast<std::uint32_t>(rank) + 1U));
}

// What rank r sends as its element i is draw(i). Made once per rank, since the loops over i are
// hot.
template <class T>
class Generator {
 public:
  Generator(const Pattern& pattern, int rank)
      : seed_(seed_of(pattern, rank)),
        mask_(pattern.mask),
        bias_(kSigned<T> ? static_cast<std::int64_t>(pattern.mask / 2) : 0),
        sign_(kSigned<T> ? 1U : 0U),
        two_(rank < kRanksWithTwo ? 1U : 0U),
        kind_(pattern.kind) {}

  Wide<T> draw(std::size_t index) const {
    const std::uint32_t bits = scramble(static_cast<std::uint32_t>(index) ^ seed_) ^
                               static_cast<std::uint32_t>(index >> 32);
    if constexpr (IsComplex<T>::value) {
      if (kind_ == ValueKind::factor) return power_of_i(bits);
      return {number(bits), number(scramble(bits + 0x165667B1U))};
    } else {
      switch (kind_) {
        case ValueKind::factor:
          return static_cast<std::int64_t>(1U + ((bits >> 1) & two_)) *
                 (1 - 2 * static_cast<std::int64_t>(bits & sign_));
        case ValueKind::truth:
          return bits & 3U;
        case ValueKind::number:
          break;
      }
      return number(bits);
    }
  }

 private:
  static constexpr int kRanksWithTwo = 6;  // 2 to the 6th fits into every type

  std::int64_t number(std::uint32_t bits) const {
    return static_cast<std::int64_t>((bits >> 8) & mask_) - bias_;
  }
  static WideComplex power_of_i(std::uint32_t bits) {
    constexpr std::array<WideComplex, 4> kPowers = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};
    return kPowers[bits & 3U];
  }

  std::uint32_t seed_;
  std::uint32_t mask_;
  std::int64_t bias_;
  std::uint32_t sign_;
  std::uint32_t two_;
  ValueKind kind_;
};

template <class T>
void source(const Pattern& pattern, int rank, IndexRange range, void* out) {
  const Generator<T> generator(pattern, rank);
  T* elements = static_cast<T*>(out);
  for (std::size_t i = 0; i < range.count; ++i) {
    elements[i] = narrow<T>(generator.draw(range.first + i));
  }
}

WideComplex apply(ReduceOp op, WideComplex a, WideComplex b) {
  if (op == ReduceOp::sum) return {a.real + b.real, a.imag + b.imag};
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}

std::int64_t apply(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::land:
      return (a != 0 && b != 0) ? 1 : 0;
    case ReduceOp::lor:
      return (a != 0 || b != 0) ? 1 : 0;
    case ReduceOp::lxor:
      return ((a != 0) != (b != 0)) ? 1 : 0;
    case ReduceOp::band:
      return a & b;
    case ReduceOp::bor:
      return a | b;
    case ReduceOp::bxor:
      return a ^ b;
  }
  return 0;
}

template <class T>
void reduced(const Pattern& pattern, ReduceOp op, RankRange ranks, IndexRange range, void* out) {
  constexpr std::size_t kBlock = 1024;  // stays in the first-level cache while all ranks are added
  std::array<Wide<T>, kBlock> sums;
  T* elements = static_cast<T*>(out);
  for (std::size_t begin = 0; begin < range.count; begin += kBlock) {
    const std::size_t count = std::min(kBlock, range.count - begin);
    for (int rank = ranks.first; rank < ranks.last; ++rank) {
      const Generator<T> generator(pattern, rank);
      for (std::size_t i = 0; i < count; ++i) {
        const Wide<T> value = generator.draw(range.first + begin + i);
        sums[i] = rank == ranks.first ? value : apply(op, sums[i], value);
      }
    }
    for (std::size_t i = 0; i < count; ++i) elements[begin + i] = narrow<T>(sums[i]);
  }
}

bool same(Float16 a, Float16 b) { return to_double(a) == to_double(b); }
bool same(Bfloat16 a, Bfloat16 b) { return to_double(a) == to_double(b); }
bool same(Byte a, Byte b) { return a.bits == b.bits; }
template <class T>
bool same(T a, T b) {
  return a == b;
}

// Equal bits are the rule; 0 and -0 are equal values all the same (products of complex numbers).
template <class T>
std::size_t mismatch(const void* expected, const void* got, std::size_t count) {
  if (std::memcmp(expected, got, count * sizeof(T)) == 0) return count;
  const T* a = static_cast<const T*>(expected);
  const T* b = static_cast<const T*>(got);
  for (std::size_t i = 0; i < count; ++i) {
    if (!same(a[i], b[i])) return i;
  }
  return count;
}

std::string text_of(Float16 value) { return fmt::format("{}", to_double(value)); }
std::string text_of(Bfloat16 value) { return fmt::format("{}", to_double(value)); }
std::string text_of(Byte value) { return fmt::format("{:#04x}", value.bits); }
template <class Part>
std::string text_of(std::complex<Part> value) {
  return fmt::format("({},{})", value.real(), value.imag());
}
template <class T>
std::string text_of(T value) {
  if constexpr (sizeof(T) == 1) {
    return fmt::format("{}", static_cast<int>(value));
  } else {
    return fmt::format("{}", value);
  }
}
template <class T>
std::string text(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return text_of(value);
}

template <class T>
Element row(const char* name, ElementClass kind, std::int64_t exact_max) {
  return {name, sizeof(T), kind, exact_max, source<T>, reduced<T>, mismatch<T>, text<T>};
}

}  // namespace

const std::vector<Element>& elements() {
  constexpr auto kSignedInteger = ElementClass::signed_integer;
  constexpr auto kUnsignedInteger = ElementClass::unsigned_integer;
  constexpr auto kFloating = ElementClass::floating;
  constexpr auto kComplex = ElementClass::complex;
  static const std::vector<Element> rows = {
      row<std::int8_t>("int8", kSignedInteger, 127),
      row<std::int16_t>("int16", kSignedInteger, 32767),
      row<std::int32_t>("int32", kSignedInteger, std::numeric_limits<std::int32_t>::max()),
      row<std::int64_t>("int64", kSignedInteger, std::int64_t{1} << 53),
      row<std::uint8_t>("uint8", kUnsignedInteger, 255),
      row<std::uint16_t>("uint16", kUnsignedInteger, 65535),
      row<std::uint32_t>("uint32", kUnsignedInteger, std::numeric_limits<std::int32_t>::max()),
      row<std::uint64_t>("uint64", kUnsignedInteger, std::int64_t{1} << 53),
      row<Float16>("float16", kFloating, 2048),
      row<Bfloat16>("bfloat16", kFloating, 256),
      row<float>("float32", kFloating, std::int64_t{1} << 24),
      row<double>("float64", kFloating, std::int64_t{1} << 53),
      row<std::complex<float>>("complex64", kComplex, std::int64_t{1} << 24),
      row<std::complex<double>>("complex128", kComplex, std::int64_t{1} << 53),
      row<Byte>("byte", ElementClass::byte, 255),
  };
  return rows;
}

const std::vector<NamedReduceOp>& reduce_ops() {
  static const std::vector<NamedReduceOp> rows = {
      {"sum", ReduceOp::sum},   {"prod", ReduceOp::prod}, {"min", ReduceOp::min},
      {"max", ReduceOp::max},   {"land", ReduceOp::land}, {"lor", ReduceOp::lor},
      {"lxor", ReduceOp::lxor}, {"band", ReduceOp::band}, {"bor", ReduceOp::bor},
      {"bxor", ReduceOp::bxor},
  };
  return rows;
}

const Element* find_element(std::string_view name) {
  for (const Element& element : elements()) {
    if (name == element.name) return &element;
  }
  return nullptr;
}

bool supports(const Element& element, ReduceOp op) {
  const bool bits = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  switch (element.kind) {
    case ElementClass::signed_integer:
    case ElementClass::unsigned_integer:
      return true;
    case ElementClass::floating:
      return op == ReduceOp::sum || op == ReduceOp::prod || op == ReduceOp::min ||
             op == ReduceOp::max;
    case ElementClass::complex:
      return op == ReduceOp::sum || op == ReduceOp::prod;
    case ElementClass::byte:
      return bits;
  }
  return false;
}

Pattern make_pattern(const Element& element, std::optional<ReduceOp> op, int ranks,
                     std::uint64_t epoch) {
  Pattern pattern;
  pattern.epoch = epoch;
  const std::int64_t terms = op == ReduceOp::sum ? ranks : 1;
  const auto limit =
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(element.exact_max / terms, 1, 0xFFFF));
  pattern.mask = static_cast<std::uint32_t>(std::bit_floor(limit + 1) - 1);
  if (op == ReduceOp::prod) pattern.kind = ValueKind::factor;
  if (op == ReduceOp::land || op == ReduceOp::lor || op == ReduceOp::lxor) {
    pattern.kind = ValueKind::truth;
  }
  return pattern;
}

}  // namespace accord::bench
