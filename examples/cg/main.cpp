// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Conjugate gradients for Poisson's equation on a grid in device memory, spread over the ranks. An
// ordinary MPI program, which hands device memory to MPI as to a CUDA-aware one.
//
//   mpicxx -O2 -std=c++17 -I include examples/cg/main.cpp -o cg -ldl
//   accord run -n 4 ./cg --size 64x64x64 --exchange packed --dots device,staged
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"
#include "../common/report.h"
#include "check.h"
#include "solver.h"

namespace cg {
namespace {

const char* const kHelp =
    "cg: conjugate gradients for Poisson's equation on a grid in device memory, and a check\n"
    "  --size NXxNYxNZ    points (128x128x128)\n"
    "  --exchange HOW     of borders: types (subarray types), neighbor (MPI_Ineighbor_alltoallw),\n"
    "                     packed (by kernels) or staged (by kernels and copies to the CPU) "
    "(packed)\n"
    "  --dots WHERE       MPI adds dot products on the device, or staged: on the CPU (device)\n"
    "  --repeats N        solutions that are measured (5)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "There may be several sizes, exchanges and places of dots, with commas between them.\n";

struct Case {
  app::Triple size;
  std::string exchange;
  std::string dots;
};
struct Problems {
  std::vector<Case> cases;
  int repeats = 0;
  std::string memory;
};

Problems read(int argc, char** argv, int ranks) {
  const app::Options options(argc, argv,
                             {{"--size", "128x128x128"},
                              {"--exchange", "packed"},
                              {"--dots", "device"},
                              {"--repeats", "5"},
                              {"--memory", "auto"}});
  Problems problems;
  problems.repeats = options.number("--repeats");
  problems.memory = options.word("--memory", {"auto", "cuda", "accord", "host"});
  for (const app::Triple& size : options.sizes("--size")) {
    app::Grid::refuse_less_than_a_point(size, ranks);
    for (const std::string& how :
         options.several("--exchange", {"types", "neighbor", "packed", "staged"}))
      for (const std::string& where : options.several("--dots", {"device", "staged"}))
        problems.cases.push_back({size, how, where});
  }
  return problems;
}

struct Measured {
  app::Times times;  // of an iteration
  Solution solution;
};

// The median of what an iteration takes on the slowest rank.
Measured measure(int repeats, const app::Grid& grid, Solver& solver) {
  constexpr int kWarmUp = 1;
  const std::vector<double> b = right_hand_side(grid);
  const int most_iterations = 100 + 10 * (grid.size()[0] + grid.size()[1] + grid.size()[2]);
  std::vector<double> all;
  std::vector<double> in_mpi;
  Measured measured;
  for (int i = -kWarmUp; i < repeats; ++i) {
    solver.start(b);
    MPI_Barrier(grid.comm());
    const double mpi_before = solver.seconds_in_mpi();
    const double start = MPI_Wtime();
    measured.solution = solver.solve(most_iterations);
    const int iterations = measured.solution.iterations;
    const double seconds = app::largest(MPI_Wtime() - start, grid.comm());
    const double mpi = app::largest(solver.seconds_in_mpi() - mpi_before, grid.comm());
    if (i < 0) continue;
    all.push_back(seconds / iterations);
    in_mpi.push_back(mpi / iterations);
  }
  measured.times = {app::median(all) * 1e6, app::median(in_mpi) * 1e6};
  return measured;
}

// Whether it is right.
bool solve(const Case& one, int repeats, int rank) {
  const app::Grid grid(MPI_COMM_WORLD, one.size, false);
  Solver solver(grid, one.exchange, one.dots);
  const Measured measured = measure(repeats, grid, solver);
  const double error = relative_error(grid, solver.read_solution());
  const double residual = solver.true_residual();
  const bool is_small = is_checked_serially(one.size);
  const double serial = is_small ? serial_error(grid, solver) : 0;
  const bool correct = measured.solution.converged && residual < 2 * kTolerance &&
                       error < 2 * kTolerance * condition(one.size) && serial < kSerialAllowed;
  if (rank != 0) return correct;
  const std::string words = app::text(one.size) + " over " + app::text(grid.ranks()) + " by " +
                            one.exchange + ", dots " + one.dots;
  std::printf("%d iterations to a residual of %.1e", measured.solution.iterations, residual);
  if (is_small) std::printf("; the first differ by %.1e from serial ones", serial);
  std::printf("\n");
  app::report("cg", words, app::device_name(), measured.times, error, correct);
  return correct;
}

bool solve_all(const Problems& problems, int rank) {
  app::open_device(problems.memory, app::rank_in_node(MPI_COMM_WORLD));
  bool correct = true;
  for (const Case& one : problems.cases) correct = solve(one, problems.repeats, rank) && correct;
  return correct;
}

}  // namespace
}  // namespace cg

int main(int argc, char** argv) {
  return app::run_program(argc, argv, "cg", cg::kHelp, cg::read, cg::solve_all);
}
