// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Order statistics of samples, and the comparison of two ways measured in alternating blocks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace accord::bench {

struct Summary {
  double median = 0, p5 = 0, p95 = 0, min = 0, max = 0;
};
Summary summarize(std::span<const double> samples);

double median(std::vector<double> values);

// An estimate and its standard error, both from the blocks' medians. Too few blocks leave the error
// unknown: NaN.
struct Estimate {
  double value = 0;
  double error = 0;
};

// Block k of one way ran right beside block k of the other, so slow drift of the machine cancels in
// each pair. The value is the median over the pairs; the error is that of a median whose spread is
// taken from the median absolute deviation, which a few disturbed blocks do not move. Needs the
// same number of blocks.
struct Comparison {
  Estimate ratio;       // other / ours
  Estimate difference;  // ours - other
};
Comparison compare(std::span<const double> ours, std::span<const double> other);

// Medians of `block_count` runs of consecutive samples, as even as possible.
std::vector<double> block_medians(std::span<const double> samples, std::size_t block_count);

}  // namespace accord::bench
