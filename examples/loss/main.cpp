// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Binary cross-entropy of a classifier of many labels, trained on samples that are spread over the
// ranks. In each step a kernel computes each label's loss and its gradient with respect to the
// label's bias over the rank's own samples, all ranks sum these up, and the kernel of the next step
// corrects the biases by the sums. Ordinarily the host waits for the kernel and calls
// MPI_Allreduce; with a partitioned allreduce each partition of the labels is summed up as soon as
// its blocks are through. All ways are compared with one process that has all samples.
//
//   mpicxx -O2 -std=c++17 -I include examples/loss/main.cpp -o loss -ldl -pthread
//   accord run -n 2 ./loss --labels 4096 --way ordinary,partitioned
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "../common/options.h"
#include "../common/partitioned_calls.h"
#include "../common/report.h"
#include "check.h"
#include "training.h"
#include "ways.h"

namespace loss {
namespace {

constexpr int kFirstChecked = 50;  // other samples than those of the measured runs

const char* const kHelp =
    "loss: binary cross-entropy of many labels, summed over the ranks, and checks it\n"
    "  --labels N         a multiple of 256 times the partitions (32768)\n"
    "  --samples N        samples of a rank (256)\n"
    "  --way WAY          ordinary, staged, or partitioned, which takes Accord (all that there "
    "are)\n"
    "  --steps N          steps of a run (50)\n"
    "  --partitions N     partitions of the labels (8)\n"
    "  --repeats N        runs that are measured (5)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "There may be several numbers of labels and samples, and ways, with commas between them.\n";

struct Problems {
  std::vector<int> labels;
  std::vector<int> samples;
  app::Words ways;
  int steps = 0;
  int partitions = 0;
  int repeats = 0;
  std::string memory;
};

Problems read(int argc, char** argv, int ranks) {
  constexpr int kMost = 1 << 26;  // the model counts in int
  const app::Options options(argc, argv,
                             {{"--labels", "32768"},
                              {"--samples", "256"},
                              {"--way", "ordinary,staged,partitioned"},
                              {"--steps", "50"},
                              {"--partitions", "8"},
                              {"--repeats", "5"},
                              {"--memory", "auto"}});
  Problems problems;
  problems.labels = options.numbers("--labels", kLabels, kMost);
  problems.samples = options.numbers("--samples", 1, (kMost - kFirstChecked) / ranks);
  problems.ways = options.several("--way", {"ordinary", "staged", "partitioned"});
  problems.steps = options.number("--steps");
  problems.partitions = options.number("--partitions", 1, kMost / kLabels);
  problems.repeats = options.number("--repeats");
  problems.memory = options.word("--memory", {"auto", "cuda", "accord", "host"});
  const int multiple = kLabels * problems.partitions;
  for (const int labels : problems.labels)
    if (labels % multiple != 0)
      app::Options::refuse("--labels", "a multiple of " + std::to_string(multiple),
                           std::to_string(labels));
  return problems;
}

// A step, of the slowest rank, the median of some runs.
app::Times measure(Way& way, Training& training, const Problems& problems) {
  std::vector<double> all;
  std::vector<double> in_mpi;
  for (int i = -1; i < problems.repeats; ++i) {
    training.reset(0);
    MPI_Barrier(MPI_COMM_WORLD);
    const double mpi_before = way.seconds_in_mpi();
    const double start = MPI_Wtime();
    way.run(problems.steps);
    double seconds[2] = {MPI_Wtime() - start, way.seconds_in_mpi() - mpi_before};
    MPI_Allreduce(MPI_IN_PLACE, seconds, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i < 0) continue;
    all.push_back(seconds[0] / problems.steps * 1e6);
    in_mpi.push_back(seconds[1] / problems.steps * 1e6);
  }
  return {app::median(all), app::median(in_mpi)};
}

// Whether it is right.
bool solve(const std::string& name, Training& training, const Problems& problems,
           const std::string& words, int rank) {
  const std::unique_ptr<Way> way = make_way(name, training);
  const app::Times times = measure(*way, training, problems);
  training.reset(kFirstChecked);
  way->run(problems.steps);
  const std::vector<Sums> sums = training.read(problems.steps - 1);
  const double error =
      app::largest(largest_difference(sums, kFirstChecked, training.all_samples(), problems.steps),
                   MPI_COMM_WORLD);
  const bool correct = error <= kTolerance;
  if (rank != 0) return correct;
  double loss = 0;
  for (const Sums& each : sums) loss += static_cast<double>(each.loss);
  std::printf("mean loss %.4f in step %d\n",
              loss / training.all_samples() / static_cast<double>(sums.size()), problems.steps);
  app::report("loss", words + " by " + name, app::device_name(), times, error, correct);
  return correct;
}

bool solve_all(const Problems& problems, int rank) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  app::open_device(problems.memory, app::rank_in_node(MPI_COMM_WORLD));
  const app::Words ways = app::possible_ways("loss", problems.ways, rank);
  bool correct = true;
  for (const int labels : problems.labels)
    for (const int samples : problems.samples) {
      Training training({labels, samples}, problems.partitions, rank, ranks);
      const std::string words =
          std::to_string(labels) + " labels of " + std::to_string(samples) + " samples";
      for (const std::string& way : ways)
        correct = solve(way, training, problems, words, rank) && correct;
    }
  return correct;
}

}  // namespace
}  // namespace loss

int main(int argc, char** argv) {
  return app::run_program(argc, argv, "loss", loss::kHelp, loss::read, loss::solve_all);
}
