// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Steps of a 27-point stencil on a periodic grid in device memory, spread over the ranks. An
// ordinary MPI program, which hands device memory to MPI as to a CUDA-aware one.
//
//   mpicxx -O2 -std=c++17 -I include examples/stencil3d/main.cpp -o stencil3d -ldl
//   accord run -n 4 ./stencil3d --size 128x128x128 --exchange types,packed
#include <mpi.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/options.h"
#include "../common/report.h"
#include "check.h"
#include "stencil.h"

namespace stencil3d {
namespace {

const char* const kHelp =
    "stencil3d: steps of a 27-point stencil on a periodic grid in device memory, and a check\n"
    "  --size NXxNYxNZ    points (128x128x128)\n"
    "  --exchange HOW     types (subarray types), neighbor (MPI_Ineighbor_alltoallw), packed (by\n"
    "                     kernels) or staged (by kernels and copies to the CPU) (types)\n"
    "  --repeats N        runs of 20 steps that are measured (10)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "There may be several sizes and exchanges, with commas between them.\n";

struct Case {
  app::Triple size;
  std::string exchange;
};
struct Problems {
  std::vector<Case> cases;
  int repeats = 0;
  std::string memory;
};

Problems read(int argc, char** argv, int ranks) {
  const app::Options options(argc, argv,
                             {{"--size", "128x128x128"},
                              {"--exchange", "types"},
                              {"--repeats", "10"},
                              {"--memory", "auto"}});
  Problems problems;
  problems.repeats = options.number("--repeats");
  problems.memory = options.word("--memory", {"auto", "cuda", "accord", "host"});
  for (const app::Triple& size : options.sizes("--size")) {
    app::Grid::refuse_less_than_a_point(size, ranks);
    for (const std::string& how :
         options.several("--exchange", {"types", "neighbor", "packed", "staged"}))
      problems.cases.push_back({size, how});
  }
  return problems;
}

// The median of what a step takes on the slowest rank.
app::Times measure(int repeats, const app::Grid& grid, Stencil& stencil) {
  constexpr int kWarmUp = 2;
  constexpr int kSteps = 20;
  std::vector<double> all;
  std::vector<double> in_mpi;
  stencil.write(random_field(grid));
  for (int i = -kWarmUp; i < repeats; ++i) {
    MPI_Barrier(grid.comm());
    const double mpi_before = stencil.seconds_in_mpi();
    const double start = MPI_Wtime();
    for (int step = 0; step < kSteps; ++step) stencil.step();
    const double seconds = app::largest(MPI_Wtime() - start, grid.comm());
    const double mpi = app::largest(stencil.seconds_in_mpi() - mpi_before, grid.comm());
    if (i < 0) continue;
    all.push_back(seconds / kSteps);
    in_mpi.push_back(mpi / kSteps);
  }
  return {app::median(all) * 1e6, app::median(in_mpi) * 1e6};
}

// Whether it is right.
bool solve(const Case& one, int repeats, int rank) {
  const app::Grid grid(MPI_COMM_WORLD, one.size, true);
  Stencil stencil(grid, one.exchange);
  const app::Times times = measure(repeats, grid, stencil);
  const double error = std::max(wave_error(grid, stencil), serial_error(grid, stencil));
  const bool correct = error < kAllowed;
  const std::string words =
      app::text(one.size) + " over " + app::text(grid.ranks()) + " by " + one.exchange;
  if (rank == 0) app::report("stencil3d", words, app::device_name(), times, error, correct);
  return correct;
}

bool solve_all(const Problems& problems, int rank) {
  app::open_device(problems.memory, app::rank_in_node(MPI_COMM_WORLD));
  bool correct = true;
  for (const Case& one : problems.cases) correct = solve(one, problems.repeats, rank) && correct;
  return correct;
}

}  // namespace
}  // namespace stencil3d

int main(int argc, char** argv) {
  return app::run_program(argc, argv, "stencil3d", stencil3d::kHelp, stencil3d::read,
                          stencil3d::solve_all);
}
