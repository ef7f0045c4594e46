// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/pack.h"

#include <limits>

#include "device/layout_copy.h"

namespace accord::device {
namespace {

constexpr std::uint64_t kNarrowMax = std::numeric_limits<std::uint32_t>::max();

}  // namespace

// Elements before the first one are left out, so that offsets stay small.
PackArguments pack_arguments(const LayoutCopy& copy) {
  const Typemap& type = *copy.type;
  const std::size_t skipped = copy.first_bytes / type.size_bytes();
  const std::ptrdiff_t skipped_bytes = static_cast<std::ptrdiff_t>(skipped) * type.extent_bytes();
  const bool same_layout = copy.form == LayoutCopy::Form::same;
  const bool is_typed = copy.form == LayoutCopy::Form::typed;
  return {.elements = copy.elements + skipped_bytes,
          .other = same_layout ? copy.other + skipped_bytes : copy.other,
          .first_bytes = copy.first_bytes - skipped * type.size_bytes(),
          .length_bytes = copy.length_bytes,
          .element_bytes = type.size_bytes(),
          .extent_bytes = type.extent_bytes(),
          .runs = type.regular() ? nullptr : type.runs().data(),
          .run_count = type.run_count(),
          .steps = type.steps(),
          .packs = copy.direction == LayoutCopy::Direction::pack ? 1U : 0U,
          .same_layout = same_layout ? 1U : 0U,
          .other_steps = is_typed ? copy.other_type->steps() : Steps(),
          .other_first_bytes = is_typed ? copy.first_bytes : 0};
}

std::size_t pack_word_bytes(const LayoutCopy& copy, const PackArguments& arguments) {
  std::uintptr_t bits = copy.type->run_bits() | kPackWordBytesMax |
                        reinterpret_cast<std::uintptr_t>(arguments.elements) |
                        reinterpret_cast<std::uintptr_t>(arguments.other) | arguments.first_bytes |
                        arguments.length_bytes;
  const bool several = arguments.first_bytes + arguments.length_bytes > arguments.element_bytes;
  if (several) bits |= static_cast<std::uintptr_t>(arguments.extent_bytes);
  if (copy.form == LayoutCopy::Form::typed)
    bits |= copy.other_type->run_bits() | arguments.other_first_bytes;
  return bits & (0 - bits);
}

bool pack_is_narrow(const PackArguments& arguments) {
  return arguments.first_bytes + arguments.length_bytes <= kNarrowMax &&
         arguments.other_first_bytes + arguments.length_bytes <= kNarrowMax &&
         arguments.element_bytes <= kNarrowMax;
}

}  // namespace accord::device
