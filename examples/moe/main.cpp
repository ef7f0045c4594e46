// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The communication of a layer of a mixture of experts: tokens go to the ranks of the experts that
// a gate chooses for them, and come back. An ordinary MPI program, which hands device memory to MPI
// as to a CUDA-aware one.
//
//   mpicxx -O2 -std=c++17 -I include examples/moe/*.cpp -o moe -ldl
//   accord run -n 4 ./moe --tokens 4096 --hidden 1024 --skew 0,50 --exchange alltoallv,staged
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "../common/report.h"
#include "check.h"
#include "layer.h"
#include "options.h"

namespace moe {
namespace {

struct Fill {
  Tokens tokens;
  int hidden;
  float* numbers;

  ON_DEVICE void operator()(int i) const { numbers[i] = tokens.number(i / hidden, i % hidden); }
};

// A layer with the tokens of this rank. Each step has other tokens, so the counts change, too.
class Steps {
 public:
  Steps(const Problem& problem, int rank)
      : problem_(problem),
        rank_(rank),
        layer_(MPI_COMM_WORLD, problem),
        tokens_(static_cast<std::size_t>(problem.tokens) *
                static_cast<std::size_t>(problem.hidden)),
        result_(tokens_.count()) {}

  // Returns seconds and those in MPI, of the slowest rank.
  app::Times run(int step, int count) {
    app::Kernel kernel(stream_);
    kernel.run(count * problem_.hidden,
               Fill{Tokens(step, rank_), problem_.hidden, kernel.writes(tokens_)});
    stream_.synchronise();
    MPI_Barrier(MPI_COMM_WORLD);
    const double mpi_before = layer_.seconds_in_mpi();
    const double start = MPI_Wtime();
    layer_.run(tokens_, count, crowded(step), result_);
    double us[2] = {(MPI_Wtime() - start) * 1e6, (layer_.seconds_in_mpi() - mpi_before) * 1e6};
    MPI_Allreduce(MPI_IN_PLACE, us, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {us[0], us[1]};
  }
  // Returns how many numbers are wrong on this rank.
  long long check(int step, int count) {
    run(step, count);
    return wrong_numbers(problem_, Tokens(step, rank_), count, crowded(step), result_.read());
  }

 private:
  int crowded(int step) const { return (step * 7 + problem_.experts) % problem_.experts; }

  Problem problem_;
  int rank_;
  app::Stream stream_;
  Layer layer_;
  app::Array<float> tokens_;
  app::Array<float> result_;
};

// Returns how many numbers are wrong, of all ranks.
double solve(const Problem& problem, int repeats, int rank) {
  constexpr int kWarmUp = 3;
  Steps steps(problem, rank);
  long long wrong = steps.check(0, problem.tokens);
  std::vector<double> all;
  std::vector<double> in_mpi;
  for (int step = 1; step <= kWarmUp + repeats; ++step) {
    const app::Times times = steps.run(step, problem.tokens);
    if (step <= kWarmUp) continue;
    all.push_back(times.us);
    in_mpi.push_back(times.mpi_us);
  }
  // Fewer tokens, none on some ranks, and all of them again.
  const int step = kWarmUp + repeats + 1;
  const int counts[] = {problem.tokens - problem.tokens / 3, rank % 2 == 0 ? 0 : problem.tokens,
                        rank % 2 == 1 ? 0 : problem.tokens / 2, problem.tokens};
  for (int i = 0; i < 4; ++i) wrong += steps.check(step + i, counts[i]);
  const double all_wrong = app::largest(static_cast<double>(wrong), MPI_COMM_WORLD);
  if (rank == 0) {
    char words[128];
    std::snprintf(words, sizeof words, "%dx%d to %d of %d experts skew %d by %s", problem.tokens,
                  problem.hidden, problem.top, problem.experts, problem.skew,
                  problem.exchange.c_str());
    app::report("moe", words, app::device_name(), {app::median(all), app::median(in_mpi)},
                all_wrong, all_wrong == 0);
  }
  return all_wrong;
}

bool solve_all(const Options& options, int rank) {
  app::open_device(options.memory, app::rank_in_node(MPI_COMM_WORLD));
  bool correct = true;
  for (const Problem& problem : options.problems)
    correct = solve(problem, options.repeats, rank) == 0 && correct;
  return correct;
}

// Exit status: 1 for a wrong result, 2 for wrong options. All ranks have the same one.
int run(int argc, char** argv, int rank, int ranks) {
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) {
    if (rank == 0) std::fputs(kHelp, stdout);
    return 0;
  }
  Options options;
  try {
    options = read_options(argc, argv, ranks);
  } catch (const std::exception& error) {
    if (rank == 0) std::fprintf(stderr, "moe: %s\n", error.what());
    return 2;
  }
  try {
    return solve_all(options, rank) ? 0 : 1;
  } catch (const std::exception& error) {  // of this rank, for which the others would wait
    std::fprintf(stderr, "moe: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 3;
  }
}

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = moe::run(argc, argv, rank, ranks);
  MPI_Finalize();
  return code;
}
