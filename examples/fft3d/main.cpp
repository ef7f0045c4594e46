// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Fourier transforms of a three-dimensional array in device memory, spread over the ranks. An
// ordinary MPI program, which hands device memory to MPI as to a CUDA-aware one.
//
//   mpicxx -O2 -std=c++17 -I include examples/fft3d/*.cpp -o fft3d -ldl
//   accord run -n 4 ./fft3d --size 256x256x256 --grid pencil --type r2c --reshape alltoallw
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "../common/options.h"
#include "../common/report.h"
#include "check.h"
#include "device.h"
#include "transform3d.h"

namespace fft3d {
namespace {

const char* const kHelp =
    "fft3d: transforms an array in device memory forward and backward, and checks it\n"
    "  --size NXxNYxNZ    points (128x128x128)\n"
    "  --grid PxQ         ranks along x and y; slab is Rx1, pencil is near a square (slab)\n"
    "  --type TYPE        c2c, or r2c, with real points (c2c)\n"
    "  --reshape HOW      alltoallv, alltoallw (with subarray types), messages, or staged: "
    "messages\n"
    "                     of copies in memory of the CPU (alltoallv)\n"
    "  --repeats N        pairs of transforms that are measured (20)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "                     (auto). Of several ranks have one after the other, in turns\n"
    "Of size, grid, type and reshape there may be several, with commas between them.\n";

struct Problems {
  std::vector<Problem> cases;
  int repeats = 0;
  app::Words memories;  // of rank 0, of rank 1, ...; then again
};

std::array<int, 2> read_grid(const std::string& word, int ranks) {
  std::array<int, 2> grid{ranks, 1};
  char rest = 0;
  if (word == "pencil") {
    grid = {0, 0};
    MPI_Dims_create(ranks, 2, grid.data());
  } else if (word != "slab" &&
             std::sscanf(word.c_str(), "%dx%d%c", &grid[0], &grid[1], &rest) != 2) {
    app::Options::refuse("--grid", "PxQ, slab or pencil", word);
  }
  if (grid[0] < 1 || grid[1] < 1 || static_cast<long long>(grid[0]) * grid[1] != ranks)
    app::Options::refuse("--grid", "a grid of " + std::to_string(ranks) + " ranks", word);
  return grid;
}

Problems read(int argc, char** argv, int ranks) {
  const app::Options options(argc, argv,
                             {{"--size", "128x128x128"},
                              {"--grid", "slab"},
                              {"--type", "c2c"},
                              {"--reshape", "alltoallv"},
                              {"--repeats", "20"},
                              {"--memory", "auto"}});
  Problems problems;
  problems.memories = options.several("--memory", {"auto", "cuda", "accord", "host"});
  problems.repeats = options.number("--repeats");
  const app::Words hows =
      options.several("--reshape", {"alltoallv", "alltoallw", "messages", "staged"});
  for (const std::array<int, 3>& size : options.sizes("--size"))
    for (const std::string& grid : options.list("--grid"))
      for (const std::string& type : options.several("--type", {"c2c", "r2c"}))
        for (const std::string& how : hows)
          problems.cases.push_back({size, read_grid(grid, ranks), type == "r2c", how});
  return problems;
}

// The median of what the slowest rank takes.
app::Times measure(int repeats, Device& device, Transform3d& transform, const Array<double>& points,
                   const Array<Complex>& waves, const Array<double>& returned) {
  constexpr int kWarmUp = 3;
  std::vector<double> all;
  std::vector<double> in_mpi;
  for (int i = -kWarmUp; i < repeats; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double mpi_before = transform.seconds_in_mpi();
    const double start = MPI_Wtime();
    transform.forward(points.data(), waves.data());
    transform.backward(waves.data(), returned.data());
    device.synchronise();
    double seconds[2] = {MPI_Wtime() - start, transform.seconds_in_mpi() - mpi_before};
    MPI_Allreduce(MPI_IN_PLACE, seconds, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i < 0) continue;
    all.push_back(seconds[0]);
    in_mpi.push_back(seconds[1]);
  }
  return {app::median(all) * 1e6, app::median(in_mpi) * 1e6};
}

// By the convention of the field, 5 n log2 n operations for a complex transform.
double operations(const Problem& problem) {
  const double n = 1.0 * problem.size[0] * problem.size[1] * problem.size[2];
  return 2 * (problem.real ? 2.5 : 5) * n * std::log2(n);
}

// A line for people and one for `accord bench --app`.
void report(const Problem& problem, const std::string& memory, int repeats, const app::Times& times,
            const Errors& errors) {
  const auto [nx, ny, nz] = problem.size;
  const auto [p, q] = problem.grid;
  char words[128];
  std::snprintf(words, sizeof words, "%dx%dx%d %s over %dx%d by %s", nx, ny, nz,
                problem.real ? "r2c" : "c2c", p, q, problem.reshape.c_str());
  const double gflops = operations(problem) / times.us / 1e3;
  const double error = std::max({errors.sine, errors.definition, errors.round_trip});
  const bool correct = errors.are_small();
  std::printf("%s in %s memory: %.1f us, %.1f of them in MPI; %.2f GFLOP/s; error %.1e: %s\n",
              words, memory.c_str(), times.us, times.mpi_us, gflops, error,
              correct ? "correct" : "WRONG");
  std::printf(
      "{\"app\": \"fft3d\", \"case\": \"%s\", \"memory\": \"%s\", \"repeats\": %d, "
      "\"us\": %.3f, \"mpi_us\": %.3f, \"gflops\": %.4f, \"errors\": {\"sine\": %.3e, "
      "\"definition\": %.3e, \"round_trip\": %.3e}, \"correct\": %s}\n",
      words, memory.c_str(), repeats, times.us, times.mpi_us, gflops, errors.sine,
      errors.definition, errors.round_trip, correct ? "true" : "false");
}

// Whether all is right.
bool solve(const Problem& problem, Device& device, const std::string& memory, int repeats,
           bool reports) {
  Transform3d transform(device, MPI_COMM_WORLD, problem);
  const std::size_t doubles = transform.points().elements() * (problem.real ? 1 : 2);
  Array<double> points(device, doubles);
  Array<Complex> waves(device, transform.waves().elements());
  Array<double> returned(device, doubles);

  Checker checker(MPI_COMM_WORLD, problem, transform);
  Errors errors;
  errors.sine = checker.sine(points, waves);
  const app::Times times = measure(repeats, device, transform, points, waves, returned);
  // Other points than those before, or what an exchange fails to bring would still lie there.
  errors.definition = checker.definition(points, waves);
  errors.round_trip = checker.round_trip(waves, returned);
  if (reports) report(problem, memory, repeats, times, errors);
  return errors.are_small();
}

bool solve_all(const Problems& problems, int rank) {
  const app::Words& memories = problems.memories;
  const std::unique_ptr<Device> device =
      open_device(memories[static_cast<std::size_t>(rank) % memories.size()],
                  app::rank_in_node(MPI_COMM_WORLD));
  std::string memory = device->name();
  for (std::size_t i = 1; i < memories.size(); ++i) memory += " and " + memories[i];
  bool correct = true;
  for (const Problem& problem : problems.cases)
    correct = solve(problem, *device, memory, problems.repeats, rank == 0) && correct;
  return correct;
}

}  // namespace
}  // namespace fft3d

int main(int argc, char** argv) {
  return app::run_program(argc, argv, "fft3d", fft3d::kHelp, fft3d::read, fft3d::solve_all);
}
