// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Binary cross-entropy of a classifier of many labels, trained on samples that are spread over the
// ranks. In each step a kernel computes each label's loss and its gradient with respect to the
// label's bias over the rank's own samples, all ranks sum these up, and the kernel of the next step
// corrects the biases by the sums. Ordinarily the host waits for the kernel and calls
// MPI_Allreduce; with a partitioned allreduce each partition of the labels is summed up as soon as
// its blocks are through. Both are compared with one process that has all samples.
//
//   nvcc -x cu -std=c++17 partitioned_loss.cpp -o partitioned_loss -I ../include
//       -I $MPI/include -L $MPI/lib -lmpi -L ../build/lib -laccord
//   accord run -n 2 ./partitioned_loss [labels] [samples] [steps] [partitions]
//
// Labels are a multiple of 256 times the partitions, samples are those of a rank. Time is that of a
// step, of the slowest rank, the median of some runs; goodput is the bytes that a rank contributes
// over that time.
#include <cmath>
#include <cstdlib>
#include <string>

#include "blocks.h"

namespace {

constexpr int kRuns = 5;
constexpr int kLabels = 256;  // of a block
constexpr int kLabelsChecked = 64;
constexpr float kRate = 2.0f;
// On average over the samples: a sum of floats, in whatever order, is not that of doubles.
constexpr double kTolerance = 1e-5;

// The model's score of a label for a sample, and whether the sample has the label.
ON_BOTH float score_of(int label, int sample) {
  return static_cast<float>((label * 7 + sample * 13) % 101 - 50) / 25.0f;
}
ON_BOTH bool has_label(int label, int sample) { return (label + sample * 5) % 7 < 2; }

// Of each label next to one another, so that a partition has both.
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
  MPIX_Prequest request;

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

struct Training {
  int rank = 0;
  int ranks = 0;
  int labels = 0;
  int samples = 0;
  int partitions = 0;
  DeviceArray<float> biases;
  DeviceArray<Sums> made;
  DeviceArray<Sums> sums[2];  // a step reads those of the last one while its own come

  int blocks() const { return labels / kLabels; }
  void compute(int step, MPIX_Prequest request) const {
    const Step kernel{
        biases.data(),   sums[(step + 1) % 2].data(), made.data(), rank * samples, samples,
        ranks * samples, blocks() / partitions,       request};
    launch(blocks(), kernel);
  }
  void reset() {
    biases.write(std::vector<float>(static_cast<std::size_t>(labels)));
    for (DeviceArray<Sums>& each : sums)
      each.write(std::vector<Sums>(static_cast<std::size_t>(labels)));
  }
};

class Ordinary {
 public:
  explicit Ordinary(const Training& training) : training_(training) {}
  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      training_.compute(step, MPIX_PREQUEST_NULL);
      synchronise();
      MPI_Allreduce(training_.made.data(), training_.sums[step % 2].data(), 2 * training_.labels,
                    MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
  }

 private:
  const Training& training_;
};

class Partitioned {
 public:
  explicit Partitioned(const Training& training) : training_(training) {
    // So many blocks make a partition, and each of them marks it.
    MPI_Info info;
    MPI_Info_create(&info);
    const std::string blocks = std::to_string(training.blocks() / training.partitions);
    MPI_Info_set(info, "accord_marks", blocks.c_str());
    MPI_Info_set(info, "accord_arrivals", "host");  // only MPI_Wait looks for them
    for (int i = 0; i < 2; ++i) {
      MPIX_Pallreduce_init(training.made.data(), training.sums[i].data(), training.partitions,
                           2 * training.labels / training.partitions, MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD, info, &requests_[i]);
      MPIX_Prequest_create(&on_device_[i], requests_[i]);
    }
    MPI_Info_free(&info);
  }
  ~Partitioned() {
    synchronise();  // no kernel may use the requests any more
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      MPI_Request& request = requests_[step % 2];
      MPI_Start(&request);
      MPIX_Pbuf_prepare(request);
      training_.compute(step, on_device_[step % 2]);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }

 private:
  const Training& training_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPIX_Prequest on_device_[2] = {MPIX_PREQUEST_NULL, MPIX_PREQUEST_NULL};
};

struct Outcome {
  double us = 0;  // a step
  std::vector<Sums> sums;
};

template <class Way>
Outcome measure(Training& training, int steps) {
  Way way(training);
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    training.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    way.run(steps);
    times.push_back((MPI_Wtime() - start) / steps * 1e6);
  }
  return {largest(median(times)), training.sums[(steps + 1) % 2].read()};
}

// What the last of `steps` steps finds for a label, by the formulas as they are in books: the mean.
struct Means {
  double loss = 0;
  double gradient = 0;
};
Means serial(int label, int samples, int steps) {
  double bias = 0;
  Means means;
  for (int step = 0; step < steps; ++step) {
    bias -= static_cast<double>(kRate) * means.gradient;
    means = {};
    for (int sample = 0; sample < samples; ++sample) {
      const double s = 1 / (1 + std::exp(-static_cast<double>(score_of(label, sample)) - bias));
      const bool has = has_label(label, sample);
      means.loss -= std::log(has ? s : 1 - s) / samples;
      means.gradient += (has ? s - 1 : s) / samples;
    }
  }
  return means;
}

// Labels do not depend on one another, so that a number of them, from all places, tell enough.
int wrong(const Training& training, const std::vector<Sums>& got, int steps) {
  const int samples = training.ranks * training.samples;
  int found = 0;
  for (int i = 0; i < kLabelsChecked; ++i) {
    const int label =
        static_cast<int>(static_cast<long>(training.labels - 1) * i / (kLabelsChecked - 1));
    const Means wanted = serial(label, samples, steps);
    const Sums& sums = got[static_cast<std::size_t>(label)];
    const bool right =
        std::fabs(static_cast<double>(sums.loss) / samples - wanted.loss) <= kTolerance &&
        std::fabs(static_cast<double>(sums.gradient) / samples - wanted.gradient) <= kTolerance;
    found += right ? 0 : 1;
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  use_device_of(rank);
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int labels = argument(1, 32768);
  const int samples = argument(2, 256);
  const int steps = argument(3, 50);
  const int partitions = argument(4, 8);
  require(samples > 0 && steps > 0 && partitions > 0, "samples, steps and partitions");
  require(labels > 0 && labels % (kLabels * partitions) == 0,
          "a multiple of 256 x partitions labels");

  const auto count = static_cast<std::size_t>(labels);
  Training training{rank,
                    ranks,
                    labels,
                    samples,
                    partitions,
                    DeviceArray<float>(count),
                    DeviceArray<Sums>(count),
                    {DeviceArray<Sums>(count), DeviceArray<Sums>(count)}};
  const Outcome ordinary = measure<Ordinary>(training, steps);
  const Outcome partitioned = measure<Partitioned>(training, steps);
  const int mistakes =
      largest(wrong(training, ordinary.sums, steps) + wrong(training, partitioned.sums, steps));

  const double bytes = static_cast<double>(count * sizeof(Sums));
  double loss = 0;
  for (const Sums& sums : partitioned.sums)
    loss += static_cast<double>(sums.loss) / samples / ranks / labels;
  if (rank == 0) {
    std::printf("%d labels, %d partitions, %d samples of each of %d ranks, mean loss %.4f\n",
                labels, partitions, samples, ranks, loss);
    std::printf("MPI_Allreduce %.1f us (%.1f MB/s), partitioned %.1f us (%.1f MB/s), %.2fx\n",
                ordinary.us, bytes / ordinary.us, partitioned.us, bytes / partitioned.us,
                ordinary.us / partitioned.us);
    std::printf("%d steps in %s memory: %s\n", steps, accord_runtime_name(),
                mistakes == 0 ? "correct" : "WRONG");
  }
  MPI_Finalize();
  return mistakes == 0 ? 0 : 1;
}
