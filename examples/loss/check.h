// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What one process finds that has all samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "training.h"

namespace loss {

// A mean over the samples may be off by this: a sum of floats, in whatever order, is not that of
// doubles.
constexpr double kTolerance = 1e-5;

// What the last of `steps` steps finds for a label, by the formulas as they are in books: the mean.
struct Means {
  double loss = 0;
  double gradient = 0;
};
inline Means serial(int label, int first_sample, int samples, int steps) {
  double bias = 0;
  Means means;
  for (int step = 0; step < steps; ++step) {
    bias -= static_cast<double>(kRate) * means.gradient;
    means = {};
    for (int sample = first_sample; sample < first_sample + samples; ++sample) {
      const double s = 1 / (1 + std::exp(-static_cast<double>(score_of(label, sample)) - bias));
      const bool has = has_label(label, sample);
      means.loss -= std::log(has ? s : 1 - s) / samples;
      means.gradient += (has ? s - 1 : s) / samples;
    }
  }
  return means;
}

inline double difference(float sum, int samples, double wanted) {
  const double found = std::fabs(static_cast<double>(sum) / samples - wanted);
  return std::isfinite(found) ? found : std::numeric_limits<double>::max();
}

// By how much means of the last step differ at most. Labels do not depend on one another, so that a
// number of them, from all places, tell enough.
inline double largest_difference(const std::vector<Sums>& got, int first_sample, int samples,
                                 int steps) {
  constexpr long kLabelsChecked = 64;
  const long last = static_cast<long>(got.size()) - 1;
  double largest = 0;
  for (long i = 0; i < kLabelsChecked; ++i) {
    const auto label = static_cast<int>(last * i / (kLabelsChecked - 1));
    const Means wanted = serial(label, first_sample, samples, steps);
    const Sums& sums = got[static_cast<std::size_t>(label)];
    largest = std::max({largest, difference(sums.loss, samples, wanted.loss),
                        difference(sums.gradient, samples, wanted.gradient)});
  }
  return largest;
}

}  // namespace loss
