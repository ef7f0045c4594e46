// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions of the embedded host runtime, also with ACCORD_TEST_COPY_POLLS set.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device/reduce_functions.h"
#include "device/registry.h"
#include "reduction_check.h"
#include "support.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

// The setting is read at the first copy_begin or reduce_begin of a process, so this test comes
// first.
TEST(HostReduce, can_be_late) {
  EXPECT_EQ(0, test::in_child([] {
              setenv("ACCORD_TEST_COPY_POLLS", "3", 1);
              DeviceRuntime& runtime = host_runtime();
              test::Slots slots(runtime, 3, 100);
              for (std::size_t i = 0; i < 3; ++i) slots.upload(i);
              const std::vector<const void*> sources{slots.at(1), slots.at(2)};
              CopyTicket ticket;
              bool done = true;
              const Reduction reduction{slots.at(0), sources, 100, ReduceOp::bor, Element::uint8};
              if (!runtime.reduce_begin(0, reduction, ticket).ok() || ticket.handle == nullptr)
                return 1;
              for (int polls = 1; polls <= 2; ++polls) {
                if (!runtime.copy_done(ticket, done).ok() || done) return 2;
                if (slots.download(0) != slots.contents(0)) return 3;
              }
              if (!runtime.copy_done(ticket, done).ok() || !done) return 4;
              const bool reduced =
                  slots.download(0)[5] == (slots.contents(1)[5] | slots.contents(2)[5]);
              return reduced && ticket.handle == nullptr ? 0 : 5;
            }));
}

using test::Half;
using test::ValueAndIndex;
#define ACCORD_ELEMENT_TEST(element, ...) \
  TEST(HostReduce, element) { test::check_element<__VA_ARGS__>(host_runtime(), Element::element); }
ACCORD_TEST_ELEMENTS(ACCORD_ELEMENT_TEST)
#undef ACCORD_ELEMENT_TEST

// Every number of 16 bits, and what lies half way to the next one, and just beside that.
template <class Ours, class Reference>
void check_conversions() {
  for (unsigned bits = 0; bits <= 0xffff; ++bits) {
    const Reference number{static_cast<std::uint16_t>(bits)};
    const float value = number.value();
    const float seen = to_float(Ours{number.bits});
    ASSERT_EQ(std::isnan(value), std::isnan(seen)) << bits;
    if (std::isnan(value)) continue;
    ASSERT_EQ(value, seen) << bits;
    ASSERT_EQ(bits, rounded<Ours>(value).bits);
    if (std::isinf(value)) continue;
    const double next = Reference::magnitude((bits & 0x7fffU) + 1);
    const auto middle =
        static_cast<float>((std::fabs(double{value}) + next) / (std::signbit(value) ? -2 : 2));
    for (const float near :
         {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, value * 4),
          std::nextafter(middle, std::copysign(1e38F, value))}) {
      ASSERT_EQ(Reference::nearest(near).bits, rounded<Ours>(near).bits) << near;
    }
  }
  EXPECT_EQ(Reference::nearest(3e38F).bits, rounded<Ours>(3e38F).bits);
  EXPECT_EQ(0x7fff, rounded<Ours>(-std::numeric_limits<float>::quiet_NaN()).bits);
}
TEST(HostReduce, float16_conversions) { check_conversions<Float16, test::Half<10>>(); }
TEST(HostReduce, bfloat16_conversions) { check_conversions<BFloat16, test::Half<7>>(); }

TEST(HostReduce, large) { test::check_large(host_runtime()); }
TEST(HostReduce, many_sources) { test::check_many_sources(host_runtime()); }
TEST(HostReduce, kinds_of_memory) { test::check_kinds_of_memory(host_runtime()); }
TEST(HostReduce, errors) { test::check_errors(host_runtime()); }

TEST(HostReduce, buffers_must_lie_in_their_allocations) {
  test::Slots slots(host_runtime(), 1, 256);
  const void* const sources[] = {slots.at(0) + 1};
  CopyTicket ticket;
  const Reduction reduction{slots.at(0), sources, 256, ReduceOp::sum, Element::uint8};
  EXPECT_CODE(invalid_argument, host_runtime().reduce_begin(0, reduction, ticket));
  EXPECT_CODE(invalid_argument, host_runtime().reduce_begin(100, reduction, ticket));
}

}  // namespace
}  // namespace accord::device
