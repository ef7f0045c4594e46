// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions of any runtime against arithmetic written anew here: every element and operation, any
// number of sources, any alignment, dst among the sources or not. Bytes around the result must
// stay.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "device/device_runtime.h"
#include "device/reduction.h"
#include "reference_elements.h"
#include "support.h"

// X(element, type of the reference)
#define ACCORD_TEST_ELEMENTS(X)                             \
  X(int8, std::int8_t)                                      \
  X(uint8, std::uint8_t)                                    \
  X(int16, std::int16_t)                                    \
  X(uint16, std::uint16_t)                                  \
  X(int32, std::int32_t)                                    \
  X(uint32, std::uint32_t)                                  \
  X(int64, std::int64_t)                                    \
  X(uint64, std::uint64_t)                                  \
  X(float16, Half<10>)                                      \
  X(bfloat16, Half<7>)                                      \
  X(float32, float)                                         \
  X(float64, double)                                        \
  X(complex64, std::complex<float>)                         \
  X(complex128, std::complex<double>)                       \
  X(float32_int32, ValueAndIndex<float, std::int32_t>)      \
  X(float64_int32, ValueAndIndex<double, std::int32_t>)     \
  X(int64_int32, ValueAndIndex<std::int64_t, std::int32_t>) \
  X(int32_int32, ValueAndIndex<std::int32_t, std::int32_t>) \
  X(int16_int32, ValueAndIndex<std::int16_t, std::int32_t>) \
  X(float32_float32, ValueAndIndex<float, float>)           \
  X(float64_float64, ValueAndIndex<double, double>)

namespace accord::test {

using device::CopyTicket;
using device::DeviceRuntime;
using device::Element;
using device::MemoryKind;
using device::ReduceOp;
using device::Reduction;

constexpr ReduceOp kAllOps[] = {ReduceOp::sum,  ReduceOp::prod, ReduceOp::min,    ReduceOp::max,
                                ReduceOp::land, ReduceOp::lor,  ReduceOp::lxor,   ReduceOp::band,
                                ReduceOp::bor,  ReduceOp::bxor, ReduceOp::minloc, ReduceOp::maxloc};

template <class T>
bool is_valid(ReduceOp op) {
  const bool locates = op == ReduceOp::minloc || op == ReduceOp::maxloc;
  if (is_pair<T> || locates) return is_pair<T> && locates;
  if (std::is_integral_v<T>) return true;
  if (op == ReduceOp::sum || op == ReduceOp::prod) return true;
  const bool ordered = std::is_floating_point_v<T> || is_half<T>;
  return ordered && (op == ReduceOp::min || op == ReduceOp::max);
}

template <class T>
T reference(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide_a = static_cast<unsigned long long>(a);
    const auto wide_b = static_cast<unsigned long long>(b);
    switch (op) {
      case ReduceOp::sum:
        return static_cast<T>(wide_a + wide_b);
      case ReduceOp::prod:
        return static_cast<T>(wide_a * wide_b);
      case ReduceOp::min:
        return std::min(a, b);
      case ReduceOp::max:
        return std::max(a, b);
      case ReduceOp::land:
        return bool(a) && bool(b) ? 1 : 0;
      case ReduceOp::lor:
        return bool(a) || bool(b) ? 1 : 0;
      case ReduceOp::lxor:
        return bool(a) != bool(b) ? 1 : 0;
      case ReduceOp::band:
        return static_cast<T>(wide_a & wide_b);
      case ReduceOp::bor:
        return static_cast<T>(wide_a | wide_b);
      case ReduceOp::bxor:
        return static_cast<T>(wide_a ^ wide_b);
      default:
        break;
    }
    return a;
  } else if constexpr (is_half<T>) {
    if (op == ReduceOp::sum) return T::nearest(a.value() + b.value());
    if (op == ReduceOp::prod) return T::nearest(a.value() * b.value());
    const bool takes_b = op == ReduceOp::min ? b.value() < a.value() : a.value() < b.value();
    return takes_b ? b : a;
  } else if constexpr (is_pair<T>) {
    if (a.value == b.value) return b.index < a.index ? b : a;
    const bool takes_b = op == ReduceOp::minloc ? b.value < a.value : b.value > a.value;
    return takes_b ? b : a;
  } else {
    if (op == ReduceOp::sum) return a + b;
    if (op == ReduceOp::prod) return a * b;
    if constexpr (std::is_floating_point_v<T>) {
      return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
    }
    return a;
  }
}

// Integers of all sizes and many zeros; small fractions, and what is special about comparing.
template <class T>
T value(std::mt19937& random, ReduceOp op) {
  if constexpr (std::is_integral_v<T>) {
    const std::uint64_t bits = (std::uint64_t{random()} << 32) | random();
    return random() % 4 == 0 ? T{0} : static_cast<T>(bits);
  } else if constexpr (std::is_floating_point_v<T>) {
    const T specials[] = {T{0}, -T{0}, std::numeric_limits<T>::infinity(),
                          -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()};
    const bool compares = op == ReduceOp::min || op == ReduceOp::max;
    if (compares && random() % 4 == 0) return specials[random() % std::size(specials)];
    return (static_cast<T>(random() % 4001) - 2000) / 999;
  } else if constexpr (is_half<T>) {
    // Any bits at all, or numbers that are near enough to each other for sums to be rounded.
    const auto bits = static_cast<std::uint16_t>(random());
    return random() % 4 == 0 ? T{bits} : T::nearest(value<float>(random, op));
  } else if constexpr (is_pair<T>) {
    // Mostly few different values, so that the index decides.
    T pair;
    pair.value = static_cast<decltype(pair.value)>(static_cast<int>(random() % 5) - 2);
    pair.index = static_cast<decltype(pair.index)>(static_cast<int>(random() % 1000) - 500);
    if (random() % 4 == 0) pair.value = value<decltype(pair.value)>(random, ReduceOp::min);
    return pair;
  } else {
    using Part = typename T::value_type;
    const Part re = value<Part>(random, op);
    return {re, value<Part>(random, op)};
  }
}

// Waits for a reduction on device 0.
inline Status reduce(DeviceRuntime& runtime, const Reduction& reduction) {
  CopyTicket ticket;
  ACCORD_TRY(runtime.reduce_begin(0, reduction, ticket));
  for (bool done = false; !done;) ACCORD_TRY(runtime.copy_done(ticket, done));
  return Status();
}

// Equal buffers in a row, in memory of the runtime, and what they should hold.
class Slots {
 public:
  Slots(DeviceRuntime& runtime, std::size_t count, std::size_t size_bytes,
        MemoryKind kind = MemoryKind::device, int device = 0)
      : runtime_(runtime), device_(device), size_bytes_((size_bytes + 255) / 256 * 256) {
    void* pointer = nullptr;
    EXPECT_OK(runtime.allocate(device, kind, count * size_bytes_, pointer));
    memory_ = static_cast<std::byte*>(pointer);
    for (std::size_t i = 0; i < count; ++i) {
      contents_.push_back(pattern(size_bytes_, static_cast<unsigned>(i + 1)));
    }
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() { EXPECT_OK(runtime_.free(memory_)); }

  std::byte* at(std::size_t slot) const { return memory_ + slot * size_bytes_; }
  std::vector<unsigned char>& contents(std::size_t slot) { return contents_[slot]; }
  void upload(std::size_t slot) { copy(at(slot), contents_[slot].data()); }
  std::vector<unsigned char> download(std::size_t slot) {
    std::vector<unsigned char> bytes(size_bytes_);
    copy(bytes.data(), at(slot));
    return bytes;
  }

 private:
  void copy(void* dst, const void* src) {
    const device::Copy one{dst, src, size_bytes_};
    EXPECT_OK(runtime_.copy(device_, {&one, 1}));
  }

  DeviceRuntime& runtime_;
  int device_;
  std::size_t size_bytes_;
  std::byte* memory_ = nullptr;
  std::vector<std::vector<unsigned char>> contents_;
};

// How far the elements of each slot are from its start. Slot 0 is the one for dst.
enum class Alignment { full, common, own, odd };
inline std::size_t offset_of(Element element, Alignment alignment, std::size_t slot) {
  const std::size_t step = device::element_alignment(element);
  switch (alignment) {
    case Alignment::full:
      return 32;
    case Alignment::common:
      return 16 + step;
    case Alignment::own:
      return 16 + step * (slot % 5);
    case Alignment::odd:
      return 17 + 2 * (slot % 7);
  }
  return 0;
}
constexpr std::size_t kSlackBytes = 128;

// One element, operation and alignment: the data is random and on the device.
template <class T>
class ReductionCheck {
 public:
  ReductionCheck(DeviceRuntime& runtime, Element element, ReduceOp op, Alignment alignment,
                 std::size_t sources, std::size_t count)
      : runtime_(runtime),
        element_(element),
        op_(op),
        alignment_(alignment),
        slots_(runtime, sources + 1, count * sizeof(T) + kSlackBytes) {
    std::mt19937 random(static_cast<unsigned>(count) + static_cast<unsigned>(op) * 100);
    for (std::size_t slot = 1; slot <= sources; ++slot) {
      for (std::size_t i = 0; i < count; ++i) {
        const T next = value<T>(random, op);
        std::memcpy(bytes(slot, i), &next, sizeof next);
      }
      slots_.upload(slot);
    }
  }

  // Reduces the first sources to dst_slot: 0, or that of one of them; with copies to the other
  // sources' slots, or not.
  bool run(std::size_t sources, std::size_t count, std::size_t dst_slot, Status& status,
           bool with_copies = false) {
    slots_.upload(dst_slot);
    std::vector<std::size_t> target_slots{dst_slot};
    std::vector<void*> copies;
    for (std::size_t slot = 1; slot <= sources && with_copies; ++slot) {
      if (slot == dst_slot) continue;
      target_slots.push_back(slot);
      copies.push_back(pointer(slot));
    }
    std::vector<const void*> pointers;
    for (std::size_t slot = 1; slot <= sources; ++slot) pointers.push_back(pointer(slot));
    status = reduce(runtime_, {pointer(dst_slot), pointers, count, op_, element_, copies});
    if (!status.ok()) return false;
    bool same = true;
    for (const std::size_t slot : target_slots) {
      same = expected(sources, count, slot) == slots_.download(slot) && same;
      slots_.upload(slot);
    }
    return same;
  }

 private:
  // What a target holds afterwards.
  std::vector<unsigned char> expected(std::size_t sources, std::size_t count, std::size_t target) {
    std::vector<unsigned char> made = slots_.contents(target);
    for (std::size_t i = 0; i < count; ++i) {
      T result = load(1, i);
      for (std::size_t slot = 2; slot <= sources; ++slot) {
        result = reference(op_, result, load(slot, i));
      }
      std::memcpy(made.data() + offset_of(element_, alignment_, target) + i * sizeof(T), &result,
                  sizeof(T));
    }
    return made;
  }

  void* pointer(std::size_t slot) const {
    return slots_.at(slot) + offset_of(element_, alignment_, slot);
  }
  unsigned char* bytes(std::size_t slot, std::size_t i) {
    return slots_.contents(slot).data() + offset_of(element_, alignment_, slot) + i * sizeof(T);
  }
  T load(std::size_t slot, std::size_t i) {
    T result;
    std::memcpy(&result, bytes(slot, i), sizeof result);
    return result;
  }

  DeviceRuntime& runtime_;
  Element element_;
  ReduceOp op_;
  Alignment alignment_;
  Slots slots_;
};

// One of five, in turn, but every night all.
class InTurn {
 public:
  bool is_next() { return is_nightly_ || ++number_ % 5 == 0; }

 private:
  const bool is_nightly_ = std::getenv("ACCORD_TEST_NIGHTLY") != nullptr;
  int number_ = 0;
};

// All of the above for one element: each two of these meet.
template <class T>
void check_element(DeviceRuntime& runtime, Element element) {
  InTurn in_turn;
  InTurn in_turn_with_copies;
  constexpr std::size_t kCounts[] = {0, 1, 7, 33, 1021, 5003};
  constexpr Alignment kAlignments[] = {Alignment::full, Alignment::common, Alignment::own,
                                       Alignment::odd};
  ASSERT_EQ(sizeof(T), device::element_bytes(element));
  for (ReduceOp op : kAllOps) {
    ASSERT_EQ(is_valid<T>(op), runtime.can_reduce(op, element)) << static_cast<int>(op);
    if (!is_valid<T>(op)) continue;
    for (Alignment alignment : kAlignments) {
      ReductionCheck<T> check(runtime, element, op, alignment, 9, 5003);
      for (std::size_t sources : {1U, 2U, 3U, 9U}) {
        for (std::size_t count : kCounts) {
          for (std::size_t dst_slot : {std::size_t{0}, std::size_t{1}, sources}) {
            if (!in_turn.is_next()) continue;
            Status status;
            ASSERT_TRUE(check.run(sources, count, dst_slot, status))
                << "operation " << static_cast<int>(op) << " alignment "
                << static_cast<int>(alignment) << " sources " << sources << " count " << count
                << " dst " << dst_slot << ": " << status.message();
          }
          if (!in_turn_with_copies.is_next()) continue;
          Status status;
          ASSERT_TRUE(check.run(sources, count, sources, status, true))
              << "operation " << static_cast<int>(op) << " alignment "
              << static_cast<int>(alignment) << " sources " << sources << " count " << count
              << " with copies: " << status.message();
        }
      }
    }
  }
}

// Enough for every thread of a device to go round several times.
inline void check_large(DeviceRuntime& runtime) {
  constexpr std::size_t kCount = 3'000'017;
  for (Alignment alignment : {Alignment::full, Alignment::common, Alignment::own, Alignment::odd}) {
    Status status;
    ReductionCheck<float> sums(runtime, Element::float32, ReduceOp::sum, alignment, 3, kCount);
    EXPECT_TRUE(sums.run(3, kCount, 0, status)) << static_cast<int>(alignment) << status.message();
    EXPECT_TRUE(sums.run(2, kCount, 2, status)) << static_cast<int>(alignment) << status.message();
    ReductionCheck<std::uint8_t> bits(runtime, Element::uint8, ReduceOp::bxor, alignment, 2,
                                      kCount);
    EXPECT_TRUE(bits.run(2, kCount, 0, status)) << static_cast<int>(alignment) << status.message();
  }
}

// More than go into one launch. A runtime may refuse a dst that it would overwrite too early.
inline void check_many_sources(DeviceRuntime& runtime) {
  constexpr std::size_t kSources = 150;
  ReductionCheck<double> check(runtime, Element::float64, ReduceOp::sum, Alignment::own, kSources,
                               301);
  for (std::size_t sources : {63, 64, 65, 127, 128, 150}) {
    for (std::size_t dst_slot : {std::size_t{0}, std::size_t{1}, std::size_t{63}, sources}) {
      Status status;
      const bool same = check.run(sources, 301, dst_slot, status);
      const bool refused = status.code() == StatusCode::unsupported && dst_slot > 64;
      EXPECT_TRUE(same || refused) << sources << " to " << dst_slot << ": " << status.message();
    }
  }
}

inline void check_kinds_of_memory(DeviceRuntime& runtime) {
  for (MemoryKind kind : {MemoryKind::managed, MemoryKind::pinned}) {
    Slots near(runtime, 1, 1000);
    Slots other(runtime, 1, 1000, kind);
    near.upload(0);
    other.upload(0);
    const void* const sources[] = {near.at(0), other.at(0)};
    EXPECT_OK(reduce(runtime, {other.at(0), sources, 1000, ReduceOp::bxor, Element::uint8}));
    const auto seen = other.download(0);
    for (std::size_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(near.contents(0)[i] ^ other.contents(0)[i], seen[i]) << i;
    }
  }
}

inline void check_errors(DeviceRuntime& runtime) {
  Slots slots(runtime, 2, 100);
  int local[8] = {};
  const void* const sources[] = {slots.at(0), slots.at(1)};
  const void* const plain[] = {slots.at(0), local};
  Reduction good{slots.at(0), sources, 8, ReduceOp::sum, Element::int32};
  const auto code_of = [&](auto change) {
    Reduction bad = good;
    change(bad);
    CopyTicket ticket;
    ticket.handle = &ticket;
    const Status status = runtime.reduce_begin(0, bad, ticket);
    EXPECT_EQ(nullptr, ticket.handle) << status.message();
    return status.code();
  };
  EXPECT_EQ(StatusCode::invalid_argument, code_of([](Reduction& bad) { bad.sources = {}; }));
  EXPECT_EQ(StatusCode::invalid_argument, code_of([&](Reduction& bad) { bad.sources = plain; }));
  EXPECT_EQ(StatusCode::invalid_argument, code_of([&](Reduction& bad) { bad.dst = local; }));
  EXPECT_EQ(StatusCode::invalid_argument, code_of([](Reduction& bad) { bad.count = SIZE_MAX; }));
  EXPECT_EQ(StatusCode::unsupported, code_of([](Reduction& bad) { bad.op = ReduceOp::none; }));
  EXPECT_EQ(StatusCode::unsupported, code_of([](Reduction& bad) { bad.element = Element::none; }));
  EXPECT_EQ(StatusCode::unsupported, code_of([](Reduction& bad) {
              bad.op = ReduceOp::min;
              bad.element = Element::complex64;
            }));
  EXPECT_EQ(StatusCode::unsupported, code_of([](Reduction& bad) { bad.op = ReduceOp::maxloc; }));
  constexpr auto kNoOp = static_cast<ReduceOp>(static_cast<int>(ReduceOp::maxloc) + 1);
  constexpr auto kNoElement = static_cast<Element>(static_cast<int>(Element::float64_float64) + 1);
  EXPECT_EQ(StatusCode::unsupported, code_of([](Reduction& bad) { bad.op = kNoOp; }));
  EXPECT_EQ(StatusCode::ok, code_of([](Reduction& none) { none.count = 0; }));
  EXPECT_FALSE(runtime.can_reduce(ReduceOp::none, Element::int32));
  EXPECT_FALSE(runtime.can_reduce(ReduceOp::sum, Element::none));
  EXPECT_FALSE(runtime.can_reduce(kNoOp, Element::int32));
  EXPECT_FALSE(runtime.can_reduce(ReduceOp::sum, kNoElement));
}

}  // namespace accord::test
