// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace accord::bench {
namespace {

// Linear interpolation between the two nearest ranks, as numpy.percentile does. `sorted` is not
// empty.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return sorted[below] * (1 - weight) + sorted[above] * weight;
}

Estimate robust_estimate(const std::vector<double>& values) {
  constexpr double kDeviationToSigma = 1.4826;  // of a normal distribution
  constexpr double kMeanToMedian = 1.2533;      // standard error of a median over that of a mean
  constexpr std::size_t kBlocksMin = 3;
  Estimate estimate{median(values), std::numeric_limits<double>::quiet_NaN()};
  if (values.size() < kBlocksMin) return estimate;
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - estimate.value));
  estimate.error = kMeanToMedian * kDeviationToSigma * median(deviations) /
                   std::sqrt(static_cast<double>(values.size()));
  return estimate;
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return {quantile(sorted, 0.5), quantile(sorted, 0.05), quantile(sorted, 0.95), sorted.front(),
          sorted.back()};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

std::vector<double> block_medians(std::span<const double> samples, std::size_t block_count) {
  std::vector<double> medians;
  for (std::size_t block = 0; block < block_count; ++block) {
    const std::size_t begin = samples.size() * block / block_count;
    const std::size_t end = samples.size() * (block + 1) / block_count;
    const auto part = samples.subspan(begin, end - begin);
    medians.push_back(median({part.begin(), part.end()}));
  }
  return medians;
}

Comparison compare(std::span<const double> ours, std::span<const double> other) {
  std::vector<double> ratios, differences;
  for (std::size_t block = 0; block < std::min(ours.size(), other.size()); ++block) {
    if (ours[block] > 0) ratios.push_back(other[block] / ours[block]);
    differences.push_back(ours[block] - other[block]);
  }
  if (ratios.empty()) return {};
  return {robust_estimate(ratios), robust_estimate(differences)};
}

}  // namespace accord::bench
