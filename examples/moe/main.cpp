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

#include <climits>
#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"
#include "../common/report.h"
#include "check.h"
#include "layer.h"

namespace moe {
namespace {

const char* const kHelp =
    "moe: takes tokens to the experts of other ranks and back, and checks what they become\n"
    "  --tokens N         tokens of a rank (4096)\n"
    "  --hidden N         floats of a token (1024)\n"
    "  --experts N        experts of all ranks together (8)\n"
    "  --top K            experts of a token, 1 or 2 (2)\n"
    "  --skew PERCENT     tokens that ask for the same expert, another one in each step (0)\n"
    "  --exchange HOW     alltoallv, messages, or staged, by the program's own copies (alltoallv)\n"
    "  --repeats N        steps that are measured (20)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "Of all but repeats and memory there may be several, with commas between them.\n";

struct Problems {
  std::vector<Problem> cases;
  int repeats = 0;
  std::string memory;
};

// MPI counts in int, and all tokens may go to one rank.
void refuse_impossible(const Problem& problem, int ranks) {
  if (problem.experts < problem.top)
    app::Options::refuse("--experts", "as many as --top at least", std::to_string(problem.experts));
  const long long rows = static_cast<long long>(problem.tokens) * problem.top * ranks;
  if (rows > INT_MAX / problem.hidden)
    app::Options::refuse("--tokens", "less than 2^31 floats of all ranks",
                         std::to_string(problem.tokens));
}

Problems read(int argc, char** argv, int ranks) {
  constexpr int kExpertsMax = 4096;  // or numbers would be rounded
  const app::Options options(argc, argv,
                             {{"--tokens", "4096"},
                              {"--hidden", "1024"},
                              {"--experts", "8"},
                              {"--top", "2"},
                              {"--skew", "0"},
                              {"--exchange", "alltoallv"},
                              {"--repeats", "20"},
                              {"--memory", "auto"}});
  Problems problems;
  problems.memory = options.word("--memory", {"auto", "cuda", "accord", "host"});
  problems.repeats = options.number("--repeats");
  const app::Words hows = options.several("--exchange", {"alltoallv", "messages", "staged"});
  for (const int tokens : options.numbers("--tokens"))
    for (const int hidden : options.numbers("--hidden"))
      for (const int experts : options.numbers("--experts", 1, kExpertsMax))
        for (const int top : options.numbers("--top", 1, kTopMax))
          for (const int skew : options.numbers("--skew", 0, 100))
            for (const std::string& how : hows) {
              problems.cases.push_back({tokens, hidden, experts, top, skew, how});
              refuse_impossible(problems.cases.back(), ranks);
            }
  return problems;
}

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

bool solve_all(const Problems& problems, int rank) {
  app::open_device(problems.memory, app::rank_in_node(MPI_COMM_WORLD));
  bool correct = true;
  for (const Problem& problem : problems.cases)
    correct = solve(problem, problems.repeats, rank) == 0 && correct;
  return correct;
}

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return app::run_program(argc, argv, "moe", moe::kHelp, moe::read, moe::solve_all);
}
