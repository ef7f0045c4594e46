// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A classifier of many labels: the kernel of a step, and what a rank has of the training.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "../common/launch.h"

namespace loss {

constexpr int kLabels = 256;  // of a block
constexpr float kRate = 2.0f;

// The model's score of a label for a sample, and whether the sample has the label.
ON_BOTH inline float score_of(int label, int sample) {
  return static_cast<float>((label * 7 + sample * 13) % 101 - 50) / 25.0f;
}
ON_BOTH inline bool has_label(int label, int sample) { return (label + sample * 5) % 7 < 2; }

// Both sums of a label lie next to one another, so that a partition has both.
struct Sums {
  float loss;
  float gradient;
};

// Each block has kLabels labels; several make a partition. Without a request it is the ordinary
// kernel.
struct Step {
  float* biases;
  const Sums* last;  // of all samples, in the step before
  Sums* made;        // of this rank's samples
  int first_sample;
  int samples;      // of this rank
  int samples_all;  // of all ranks
  int blocks_per_partition;
  MPIX_Prequest request = MPIX_PREQUEST_NULL;

  ON_DEVICE void operator()(Block block) const {
    compute(block);
    if (request != MPIX_PREQUEST_NULL)
      MPIX_Pready_block(block.number / blocks_per_partition, request);
  }
  ON_DEVICE void compute(Block block) const {
    const int first = block.number * kLabels;
    View<float> bias(biases + first, kLabels);
    View<const Sums> before(last + first, kLabels);
    View<Sums> now(made + first, kLabels);
    for (int i = block.thread; i < kLabels; i += block.threads) {
      bias[i] -= kRate * before[i].gradient / static_cast<float>(samples_all);
      now[i] = sums_of(first + i, bias[i]);
    }
  }
  // With the sigmoid s of z: -log(s) of samples that have the label, -log(1 - s) of others; its
  // derivative is s - 1 or s.
  ON_DEVICE Sums sums_of(int label, float bias) const {
    Sums sums{0.0f, 0.0f};
    for (int sample = first_sample; sample < first_sample + samples; ++sample) {
      const float z = score_of(label, sample) + bias;
      const float has = has_label(label, sample) ? 1.0f : 0.0f;
      const float small = std::exp(-std::fabs(z));  // never overflows
      sums.loss += (z > 0.0f ? z : 0.0f) - z * has + std::log1p(small);
      sums.gradient += (z > 0.0f ? 1.0f : small) / (1.0f + small) - has;
    }
    return sums;
  }
};

struct Case {
  int labels = 0;
  int samples = 0;  // of a rank
};

class Training {
 public:
  Training(const Case& one, int partitions, int rank, int ranks)
      : case_(one), partitions_(partitions), rank_(rank), ranks_(ranks) {}

  // Begins anew. `first_sample` is that of rank 0; the other ranks' follow.
  void reset(int first_sample) {
    const std::size_t count = made_.count();
    first_sample_ = first_sample;
    biases_.write(std::vector<float>(count));
    made_.write(std::vector<Sums>(count));
    for (const app::Array<Sums>& each : sums_) each.write(std::vector<Sums>(count));
  }
  // Begins the kernel of a step. With a request its blocks mark the partitions.
  void compute(app::Stream& stream, int step, MPIX_Prequest request = MPIX_PREQUEST_NULL) const {
    const Step kernel{biases_.data(),
                      sums(step + 1),
                      made(),
                      first_sample_ + rank_ * case_.samples,
                      case_.samples,
                      all_samples(),
                      blocks_per_partition(),
                      request};
    app::launch_on(stream, blocks(), kernel);
  }

  Sums* made() const { return made_.data(); }
  // Where the sums of a step go. A step reads those of the last one while its own come.
  Sums* sums(int step) const { return sums_[step % 2].data(); }
  std::vector<Sums> read(int step) const { return sums_[step % 2].read(); }

  int floats() const { return 2 * case_.labels; }
  int partitions() const { return partitions_; }
  int blocks_per_partition() const { return blocks() / partitions_; }
  int all_samples() const { return ranks_ * case_.samples; }

 private:
  int blocks() const { return case_.labels / kLabels; }
  std::size_t labels() const { return static_cast<std::size_t>(case_.labels); }

  Case case_;
  int first_sample_ = 0;
  int partitions_;
  int rank_;
  int ranks_;
  app::Array<float> biases_{labels()};
  app::Array<Sums> made_{labels()};  // of this rank's samples
  app::Array<Sums> sums_[2] = {app::Array<Sums>(labels()), app::Array<Sums>(labels())};
};

}  // namespace loss
