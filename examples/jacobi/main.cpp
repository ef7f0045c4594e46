// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Jacobi's method on a grid of rows by columns, cut into a slab of rows a rank: each point becomes
// the mean of its four neighbours, again and again, and before each sweep a rank needs the rows
// that border its slab from the ranks above and below. Ordinarily the host waits for the kernel
// that makes these rows and then sends them, or puts them where they belong; with partitioned
// communication the blocks that make them send them, while others are still at work. All ways are
// compared with each other, and with one process that does it all.
//
//   mpicxx -O2 -std=c++17 -I include examples/jacobi/*.cpp -o jacobi -ldl
//   accord run -n 2 ./jacobi --grid 128x256 --way ordinary,partitioned
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../common/options.h"
#include "../common/partitioned_calls.h"
#include "../common/report.h"
#include "check.h"
#include "ways.h"

namespace jacobi {
namespace {

const char* const kHelp =
    "jacobi: Jacobi's method on a grid in device memory, cut into slabs of rows, and checks it\n"
    "  --grid RxC         rows and columns (64Nx256, 256Nx1024 and 1024Nx4096 of N ranks)\n"
    "  --way WAY          ordinary, put, staged, or partitioned, which takes Accord (all but put)\n"
    "  --sweeps N         sweeps of a run (500)\n"
    "  --residual K       sweeps from one residual to the next, 0 is none (10)\n"
    "  --repeats N        runs that are measured (5)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "There may be several grids and ways, with commas between them.\n";

struct Problems {
  std::vector<Shape> grids;
  app::Words ways;
  int sweeps = 0;
  int residual = 0;  // every so many sweeps; 0 is never
  int repeats = 0;
  std::string memory;
};

Shape read_grid(const std::string& word, int ranks) {
  Shape grid;
  char rest = 0;
  if (std::sscanf(word.c_str(), "%dx%d%c", &grid.rows, &grid.columns, &rest) != 2)
    app::Options::refuse("--grid", "RxC", word);
  if (!is_possible(grid, ranks))
    app::Options::refuse("--grid",
                         "a row for each rank, and a multiple of 4 columns, of 1024 beyond", word);
  return grid;
}

Problems read(int argc, char** argv, int ranks) {
  const auto rows = [ranks](int of_a_rank) { return std::to_string(of_a_rank * ranks); };
  const app::Options options(
      argc, argv,
      {{"--grid", rows(64) + "x256," + rows(256) + "x1024," + rows(1024) + "x4096"},
       {"--way", "ordinary,staged,partitioned"},
       {"--sweeps", "500"},
       {"--residual", "10"},
       {"--repeats", "5"},
       {"--memory", "auto"}});
  Problems problems;
  for (const std::string& grid : options.list("--grid"))
    problems.grids.push_back(read_grid(grid, ranks));
  problems.ways = options.several("--way", {"ordinary", "put", "staged", "partitioned"});
  problems.sweeps = options.number("--sweeps");
  problems.residual = options.number("--residual", 0);
  problems.repeats = options.number("--repeats");
  problems.memory = options.word("--memory", {"auto", "cuda", "accord", "host"});
  return problems;
}

Result run(Way& way, Grid& grid, const std::vector<float>& first, int sweeps, int every) {
  for (app::Array<float>& plane : grid.planes) plane.write(first);
  std::vector<float> residuals = way.run(sweeps, every);
  return {grid.planes[sweeps % 2].read(), std::move(residuals)};
}

// A sweep, of the slowest rank, the median of some runs.
app::Times measure(Way& way, Grid& grid, const std::vector<float>& first,
                   const Problems& problems) {
  std::vector<double> all;
  std::vector<double> in_mpi;
  for (int i = -1; i < problems.repeats; ++i) {
    for (app::Array<float>& plane : grid.planes) plane.write(first);
    MPI_Barrier(MPI_COMM_WORLD);
    const double mpi_before = way.seconds_in_mpi();
    const double start = MPI_Wtime();
    way.run(problems.sweeps, problems.residual);
    double seconds[2] = {MPI_Wtime() - start, way.seconds_in_mpi() - mpi_before};
    MPI_Allreduce(MPI_IN_PLACE, seconds, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i < 0) continue;
    all.push_back(seconds[0] / problems.sweeps * 1e6);
    in_mpi.push_back(seconds[1] / problems.sweeps * 1e6);
  }
  return {app::median(all), app::median(in_mpi)};
}

// What all ways are compared with.
struct Wanted {
  int sweeps;  // that one process makes
  int every;
  Result serial;
  Result first_way;  // all sweeps
};

// Returns how many numbers are wrong, of all ranks.
double solve(const std::string& name, Grid& grid, const Problems& problems, Wanted& wanted,
             bool reports) {
  const std::vector<float> first = initial_plane(grid.shape, grid.first_row);
  const std::unique_ptr<Way> way = make_way(name, grid);
  const app::Times times = measure(*way, grid, first, problems);
  const Result few = run(*way, grid, first, wanted.sweeps, wanted.every);
  const Result all = run(*way, grid, first, problems.sweeps, problems.residual);
  if (wanted.first_way.plane.empty()) wanted.first_way = all;
  const double wrong = app::largest(
      differences(few, wanted.serial) + differences(all, wanted.first_way), MPI_COMM_WORLD);
  if (reports) {
    char words[80];
    std::snprintf(words, sizeof words, "%dx%d by %s", grid.whole.rows, grid.whole.columns,
                  name.c_str());
    app::report("jacobi", words, app::device_name(), times, wrong, wrong == 0);
  }
  return wrong;
}

bool solve_all(const Problems& problems, int rank) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  app::open_device(problems.memory, app::rank_in_node(MPI_COMM_WORLD));
  const app::Words ways = app::possible_ways("jacobi", problems.ways, rank);
  bool correct = true;
  for (const Shape& whole : problems.grids) {
    Grid grid(whole, rank, ranks);
    Wanted wanted;
    wanted.sweeps = sweeps_to_check(whole, problems.sweeps);
    wanted.every = std::min(problems.residual, std::max(wanted.sweeps / 3, 1));
    wanted.serial = serial(grid, wanted.sweeps, wanted.every);
    for (const std::string& way : ways)
      correct = solve(way, grid, problems, wanted, rank == 0) == 0 && correct;
  }
  return correct;
}

}  // namespace
}  // namespace jacobi

int main(int argc, char** argv) {
  return app::run_program(argc, argv, "jacobi", jacobi::kHelp, jacobi::read, jacobi::solve_all);
}
