// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies that follow a layout, against a walk byte by byte: random types, random cuts, both
// directions and all forms. For any runtime; gaps and surroundings must keep their bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "device/layout_copy.h"
#include "support.h"

namespace accord::test {

using device::LayoutCopy;
using device::Typemap;

using Random = std::mt19937;

inline std::size_t below(Random& random, std::size_t limit) { return random() % limit; }

// A type and, independently, where each of its packed bytes lies.
struct RandomType {
  std::shared_ptr<const Typemap> type;
  std::vector<std::ptrdiff_t> bytes;
};

inline RandomType make_type(const std::vector<device::Run>& runs, std::ptrdiff_t extent_bytes) {
  RandomType result;
  for (const device::Run& run : runs) {
    for (std::size_t i = 0; i < run.length_bytes; ++i) {
      const bool padding = run.offset_bytes == device::kPadding;
      result.bytes.push_back(padding ? device::kPadding
                                     : run.offset_bytes + static_cast<std::ptrdiff_t>(i));
    }
  }
  result.type = std::make_shared<const Typemap>(runs, extent_bytes);
  return result;
}

// A vector of vectors of ... blocks, some steps backwards, all of it in multiples of `unit`.
inline RandomType nested_type(Random& random, std::size_t levels, std::size_t unit) {
  std::vector<device::Run> runs{
      {static_cast<std::ptrdiff_t>(unit * below(random, 3)), unit * (1 + below(random, 3)), 0}};
  auto span = static_cast<std::ptrdiff_t>(runs[0].length_bytes);
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t count = 2 + below(random, 2);
    const bool back = below(random, 5) == 0;
    const std::ptrdiff_t step = span + static_cast<std::ptrdiff_t>(unit * (1 + below(random, 2)));
    const std::vector<device::Run> inner = runs;
    for (std::size_t i = 1; i < count; ++i) {
      for (device::Run run : inner) {
        run.offset_bytes += (back ? -step : step) * static_cast<std::ptrdiff_t>(i);
        runs.push_back(run);
      }
    }
    span += step * static_cast<std::ptrdiff_t>(count - 1);
  }
  return make_type(runs, span + static_cast<std::ptrdiff_t>(unit * below(random, 3)));
}

// Blocks of any length in any order, now and then padding.
inline RandomType indexed_type(Random& random, std::size_t unit) {
  std::vector<device::Run> runs;
  std::size_t at = 0;
  for (std::size_t i = 1 + below(random, 40); i > 0; --i) {
    if (below(random, 20) == 0) runs.push_back({device::kPadding, unit, 0});
    runs.push_back({static_cast<std::ptrdiff_t>(at * unit), unit * below(random, 4), 0});
    at += runs.back().length_bytes / unit + below(random, 3);
  }
  for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[below(random, i)]);
  const auto extent = static_cast<std::ptrdiff_t>((at + below(random, 2)) * unit);
  return make_type(runs, below(random, 6) == 0 ? -extent : extent);
}

// An irregular one again and again, in two levels of steps, whose elements may go on in them.
inline RandomType repeated_type(Random& random, std::size_t unit) {
  const RandomType inner = indexed_type(random, unit);
  const std::ptrdiff_t span = std::abs(inner.type->extent_bytes());
  const std::size_t counts[] = {1 + below(random, 3), 1 + below(random, 2)};
  const auto gap = static_cast<std::ptrdiff_t>(unit * below(random, 3));
  const std::ptrdiff_t steps[] = {span, static_cast<std::ptrdiff_t>(counts[0]) * span + gap};
  RandomType result;
  for (std::size_t outer = 0; outer < counts[1]; ++outer) {
    for (std::size_t copy = 0; copy < counts[0]; ++copy) {
      for (const std::ptrdiff_t byte : inner.bytes) {
        const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(outer) * steps[1] +
                                    static_cast<std::ptrdiff_t>(copy) * steps[0];
        result.bytes.push_back(byte == device::kPadding ? byte : byte + from);
      }
    }
  }
  const auto end = static_cast<std::ptrdiff_t>(counts[1]) * steps[1];
  const device::Block all =
      inner.type->block().repeated(counts[0], steps[0]).repeated(counts[1], steps[1]);
  result.type = std::make_shared<const Typemap>(
      all, end + static_cast<std::ptrdiff_t>(unit * below(random, 2)));
  return result;
}

inline RandomType random_type(Random& random) {
  constexpr std::size_t kUnits[] = {1, 2, 4, 8, 16};
  const std::size_t unit = kUnits[below(random, std::size(kUnits))];
  if (below(random, 3) == 0) return repeated_type(random, unit);
  return below(random, 2) == 0 ? nested_type(random, below(random, 6), unit)
                               : indexed_type(random, unit);
}

constexpr std::size_t kLayoutBytes = std::size_t{1} << 18;
constexpr std::ptrdiff_t kLayoutOrigin = kLayoutBytes / 2;

// A copy between two areas of kLayoutBytes, and which byte of which area each byte goes to.
struct RandomCopy {
  LayoutCopy copy{};
  std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> moves;  // among elements, in `other`
};

// Between elements and one of another type, which has steps: as long a part as both have.
inline RandomCopy between_layouts(Random& random, const RandomType& drawn, std::ptrdiff_t shift,
                                  bool packs, std::byte* elements, std::byte* other) {
  constexpr std::size_t kUnits[] = {1, 4, 8, 16};
  const RandomType far =
      nested_type(random, below(random, 4), kUnits[below(random, std::size(kUnits))]);
  RandomCopy result;
  const std::size_t size = drawn.bytes.size();
  const std::size_t total = size == 0 ? 0 : std::min(far.bytes.size(), 3 * size);
  const std::size_t first = below(random, 2) * below(random, total / 16 + 1) * 16;
  const std::size_t length = total - std::min(total, first);
  result.copy = {.type = drawn.type,
                 .elements = elements + kLayoutOrigin + shift,
                 .other = other + kLayoutOrigin,
                 .first_bytes = first,
                 .length_bytes = length,
                 .direction = packs ? LayoutCopy::Direction::pack : LayoutCopy::Direction::unpack,
                 .form = LayoutCopy::Form::typed,
                 .other_type = far.type};
  for (std::size_t i = first; i < first + length; ++i) {
    if (drawn.bytes[i % size] == device::kPadding) continue;
    const std::ptrdiff_t at =
        static_cast<std::ptrdiff_t>(i / size) * drawn.type->extent_bytes() + drawn.bytes[i % size];
    result.moves.emplace_back(kLayoutOrigin + shift + at, kLayoutOrigin + far.bytes[i]);
  }
  return result;
}

inline RandomCopy random_copy(Random& random, std::byte* elements, std::byte* other) {
  const RandomType drawn = random_type(random);
  RandomCopy result;
  const std::size_t size = drawn.bytes.size();
  const std::size_t total = size * (1 + below(random, 4));
  std::size_t first = below(random, total + 1);
  std::size_t length = below(random, total - first + 1);
  if (size > 0 && below(random, 2) == 0) {  // whole elements, as most calls have
    first -= first % size;
    length = total - first;
  }
  const auto shift = static_cast<std::ptrdiff_t>(below(random, 2) * below(random, 32));
  const bool same = below(random, 2) == 0;
  const bool packs = below(random, 2) == 0;
  if (below(random, 3) == 0) return between_layouts(random, drawn, shift, packs, elements, other);
  result.copy = {.type = drawn.type,
                 .elements = elements + kLayoutOrigin + shift,
                 .other = other + kLayoutOrigin,
                 .first_bytes = first,
                 .length_bytes = length,
                 .direction = packs ? LayoutCopy::Direction::pack : LayoutCopy::Direction::unpack,
                 .form = same ? LayoutCopy::Form::same : LayoutCopy::Form::packed};
  for (std::size_t i = first; i < first + length; ++i) {
    if (drawn.bytes[i % size] == device::kPadding) continue;
    const std::ptrdiff_t at =
        static_cast<std::ptrdiff_t>(i / size) * drawn.type->extent_bytes() + drawn.bytes[i % size];
    result.moves.emplace_back(kLayoutOrigin + shift + at,
                              kLayoutOrigin + (same ? at : static_cast<std::ptrdiff_t>(i - first)));
  }
  return result;
}

// The areas after the moves, done one by one.
inline void move_bytes(const RandomCopy& random, std::vector<unsigned char>& elements,
                       std::vector<unsigned char>& other) {
  for (const auto& [at, there] : random.moves) {
    unsigned char& here = elements[static_cast<std::size_t>(at)];
    unsigned char& far = other[static_cast<std::size_t>(there)];
    (random.copy.direction == LayoutCopy::Direction::pack ? far : here) =
        random.copy.direction == LayoutCopy::Direction::pack ? here : far;
  }
}

// Copies on the runtime between its device memory and memory of the given kind.
class Layouts {
 public:
  Layouts(device::DeviceRuntime& runtime, device::MemoryKind other_kind) : runtime_(runtime) {
    EXPECT_OK(runtime_.allocate(0, device::MemoryKind::device, kLayoutBytes, elements_));
    EXPECT_OK(runtime_.allocate(0, other_kind, kLayoutBytes, other_));
  }
  Layouts(const Layouts&) = delete;
  Layouts& operator=(const Layouts&) = delete;
  ~Layouts() {
    EXPECT_OK(runtime_.free(elements_));
    EXPECT_OK(runtime_.free(other_));
  }

  void check(int rounds, unsigned seed) {
    Random random(seed);
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      const RandomCopy drawn =
          random_copy(random, static_cast<std::byte*>(elements_), static_cast<std::byte*>(other_));
      auto elements = pattern(kLayoutBytes, 2 * static_cast<unsigned>(round));
      auto other = pattern(kLayoutBytes, 2 * static_cast<unsigned>(round) + 1);
      copy(elements_, elements.data());
      copy(other_, other.data());
      device::CopyBatch batch;
      batch.append(drawn.copy);
      if (round % 2 == 0) {
        EXPECT_OK(runtime_.copy_batch(0, batch));
      } else {
        finish(batch);
      }
      move_bytes(drawn, elements, other);
      std::vector<unsigned char> seen(kLayoutBytes);
      copy(seen.data(), elements_);
      EXPECT_TRUE(seen == elements) << "elements, round " << round;
      copy(seen.data(), other_);
      EXPECT_TRUE(seen == other) << "other side, round " << round;
    }
  }

 private:
  void copy(void* dst, const void* src) {
    const device::Copy one{dst, src, kLayoutBytes};
    EXPECT_OK(runtime_.copy(0, {&one, 1}));
  }
  void finish(const device::CopyBatch& batch) {
    device::CopyTicket ticket;
    EXPECT_OK(runtime_.batch_begin(0, batch, ticket));
    bool done = false;
    while (!done) ASSERT_OK(runtime_.copy_done(ticket, done));
  }

  device::DeviceRuntime& runtime_;
  void* elements_ = nullptr;
  void* other_ = nullptr;
};

}  // namespace accord::test
