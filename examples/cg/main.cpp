// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Conjugate gradients for Poisson's equation on a grid in device memory, spread over the ranks. An
// ordinary MPI program, which hands device memory to MPI as to a CUDA-aware one.
//
//   mpicxx -O2 -std=c++17 -I include examples/cg/main.cpp -o cg -ldl
//   accord run -n 4 ./cg --size 64x64x64 --exchange packed --dots device,staged
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/numbers.h"
#include "../common/options.h"
#include "../common/report.h"
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

// The solution that is sought: known numbers at all points.
double solution_at(const app::Triple& size, int x, int y, int z) {
  const bool is_inside = x >= 0 && x < size[0] && y >= 0 && y < size[1] && z >= 0 && z < size[2];
  return is_inside ? app::number_of_point(size, x, y, z) : 0;
}

// What it is the solution for. Computed from its definition, without any message.
std::vector<double> right_hand_side(const app::Grid& grid) {
  std::vector<double> b(grid.layout().count(), 0.0);
  grid.for_points([&](std::size_t at, int x, int y, int z) {
    const auto u = [&](int dx, int dy, int dz) {
      return solution_at(grid.size(), x + dx, y + dy, z + dz);
    };
    b[at] = 6 * u(0, 0, 0) - u(-1, 0, 0) - u(1, 0, 0) - u(0, -1, 0) - u(0, 1, 0) - u(0, 0, -1) -
            u(0, 0, 1);
  });
  return b;
}

// |x - solution| / |solution|
double relative_error(const app::Grid& grid, const std::vector<double>& x) {
  std::array<double, 2> squares{};
  grid.for_points([&](std::size_t at, int px, int py, int pz) {
    const double wanted = solution_at(grid.size(), px, py, pz);
    squares[0] += (x[at] - wanted) * (x[at] - wanted);
    squares[1] += wanted * wanted;
  });
  MPI_Allreduce(MPI_IN_PLACE, squares.data(), 2, MPI_DOUBLE, MPI_SUM, grid.comm());
  return std::sqrt(squares[0] / squares[1]);
}

// The largest eigenvalue of the matrix by the smallest: an error is at most so many times as large
// as its residual.
double condition(const app::Triple& size) {
  double least = 0;
  double most = 0;
  for (const int n : size) {
    const double half_angle = std::acos(-1.0) / 2 / (n + 1);
    least += 4 * std::pow(std::sin(half_angle), 2);
    most += 4 * std::pow(std::cos(half_angle), 2);
  }
  return most / least;
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
    MPI_Barrier(grid.comm());
    const double mpi_before = solver.seconds_in_mpi();
    const double start = MPI_Wtime();
    measured.solution = solver.solve(b, most_iterations);
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
  const bool correct = measured.solution.converged && residual < 2 * kTolerance &&
                       error < 2 * kTolerance * condition(one.size);
  if (rank != 0) return correct;
  const std::string words = app::text(one.size) + " over " + app::text(grid.ranks()) + " by " +
                            one.exchange + ", dots " + one.dots;
  std::printf("%d iterations to a residual of %.1e; times are those of an iteration\n",
              measured.solution.iterations, residual);
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
