// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Jacobi's method on a grid of rows by columns, cut into a slab of rows a rank: each point becomes
// the mean of its four neighbours, again and again, and before each sweep a rank needs the rows
// that border its slab from the ranks above and below. Ordinarily the host waits for the kernel
// that makes these rows and then sends them; with partitioned communication the blocks that make
// them send them, while others are still at work. All ways are compared with each other, and with
// one process that does it all.
//
//   mpicxx -O2 -std=c++17 -I include examples/jacobi/*.cpp -o jacobi -ldl
//   accord run -n 2 ./jacobi --grid 128x256 --way ordinary,partitioned
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "../common/report.h"
#include "check.h"
#include "options.h"
#include "ways.h"

namespace jacobi {
namespace {

Result run(Way& way, Grid& grid, const std::vector<float>& first, int sweeps, int every) {
  for (app::Array<float>& plane : grid.planes) plane.write(first);
  std::vector<float> residuals = way.run(sweeps, every);
  return {grid.planes[sweeps % 2].read(), std::move(residuals)};
}

// A sweep, of the slowest rank, the median of some runs.
app::Times measure(Way& way, Grid& grid, const std::vector<float>& first, const Options& options) {
  std::vector<double> all;
  std::vector<double> in_mpi;
  for (int i = -1; i < options.repeats; ++i) {
    for (app::Array<float>& plane : grid.planes) plane.write(first);
    MPI_Barrier(MPI_COMM_WORLD);
    const double mpi_before = way.seconds_in_mpi();
    const double start = MPI_Wtime();
    way.run(options.sweeps, options.residual);
    double seconds[2] = {MPI_Wtime() - start, way.seconds_in_mpi() - mpi_before};
    MPI_Allreduce(MPI_IN_PLACE, seconds, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i < 0) continue;
    all.push_back(seconds[0] / options.sweeps * 1e6);
    in_mpi.push_back(seconds[1] / options.sweeps * 1e6);
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
double solve(const std::string& name, Grid& grid, const Options& options, Wanted& wanted,
             bool reports) {
  const std::vector<float> first = initial_plane(grid.shape, grid.first_row);
  const std::unique_ptr<Way> way = make_way(name, grid);
  const app::Times times = measure(*way, grid, first, options);
  const Result few = run(*way, grid, first, wanted.sweeps, wanted.every);
  const Result all = run(*way, grid, first, options.sweeps, options.residual);
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

bool solve_all(const Options& options, const std::vector<std::string>& ways, int rank, int ranks) {
  bool correct = true;
  for (const Shape& whole : options.grids) {
    Grid grid(whole, rank, ranks);
    Wanted wanted;
    wanted.sweeps = sweeps_to_check(whole, options.sweeps);
    wanted.every = std::min(options.residual, std::max(wanted.sweeps / 3, 1));
    wanted.serial = serial(grid, wanted.sweeps, wanted.every);
    for (const std::string& way : ways)
      correct = solve(way, grid, options, wanted, rank == 0) == 0 && correct;
  }
  return correct;
}

// Without those that cannot be here, which it tells of.
std::vector<std::string> possible_ways(const Options& options, bool tells) {
  const bool has_partitioned = app::device_name() != "host" && has_partitioned_way();
  if (options.ways.empty())
    return has_partitioned ? std::vector<std::string>{"ordinary", "staged", "partitioned"}
                           : std::vector<std::string>{"ordinary", "staged"};
  std::vector<std::string> ways;
  for (const std::string& way : options.ways)
    if (way != "partitioned" || has_partitioned) ways.push_back(way);
  if (ways.size() < options.ways.size() && tells)
    std::fputs("jacobi: --way partitioned takes Accord, and device memory that it carries\n",
               stderr);
  return ways;
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
    if (rank == 0) std::fprintf(stderr, "jacobi: %s\n", error.what());
    return 2;
  }
  try {
    app::open_device(options.memory, app::rank_in_node(MPI_COMM_WORLD));
    const std::vector<std::string> ways = possible_ways(options, rank == 0);
    if (ways.empty()) return 2;
    return solve_all(options, ways, rank, ranks) ? 0 : 1;
  } catch (const std::exception& error) {  // of this rank, for which the others would wait
    std::fprintf(stderr, "jacobi: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 3;
  }
}

}  // namespace
}  // namespace jacobi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = jacobi::run(argc, argv, rank, ranks);
  MPI_Finalize();
  return code;
}
