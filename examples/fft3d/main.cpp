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
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

#include "check.h"
#include "device.h"
#include "options.h"
#include "transform3d.h"

namespace fft3d {
namespace {

int rank_in_node() {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return rank;
}

struct Times {
  double us = 0;      // forward and backward
  double mpi_us = 0;  // in MPI calls
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The median of what the slowest rank takes.
Times measure(int repeats, Device& device, Transform3d& transform, const Array<double>& points,
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
  return {median(all) * 1e6, median(in_mpi) * 1e6};
}

// By the convention of the field, 5 n log2 n operations for a complex transform.
double operations(const Problem& problem) {
  const double n = 1.0 * problem.size[0] * problem.size[1] * problem.size[2];
  return 2 * (problem.real ? 2.5 : 5) * n * std::log2(n);
}

// A line for people and one for `accord bench --app`.
void report(const Problem& problem, const std::string& memory, int repeats, const Times& times,
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
bool solve(const Problem& problem, Device& device, int repeats, bool reports) {
  Transform3d transform(device, MPI_COMM_WORLD, problem);
  const std::size_t doubles = transform.points().elements() * (problem.real ? 1 : 2);
  Array<double> points(device, doubles);
  Array<Complex> waves(device, transform.waves().elements());
  Array<double> returned(device, doubles);

  Checker checker(MPI_COMM_WORLD, problem, transform);
  Errors errors;
  errors.sine = checker.sine(points, waves);
  const Times times = measure(repeats, device, transform, points, waves, returned);
  // Other points than those before, or what an exchange fails to bring would still lie there.
  errors.definition = checker.definition(points, waves);
  errors.round_trip = checker.round_trip(waves, returned);
  if (reports) report(problem, device.name(), repeats, times, errors);
  return errors.are_small();
}

bool solve_all(const Options& options, bool reports) {
  const std::unique_ptr<Device> device = open_device(options.memory, rank_in_node());
  bool correct = true;
  for (const Problem& problem : options.problems)
    correct = solve(problem, *device, options.repeats, reports) && correct;
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
    if (rank == 0) std::fprintf(stderr, "fft3d: %s\n", error.what());
    return 2;
  }
  try {
    return solve_all(options, rank == 0) ? 0 : 1;
  } catch (const std::exception& error) {  // of this rank, for which the others would wait
    std::fprintf(stderr, "fft3d: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 3;
  }
}

}  // namespace
}  // namespace fft3d

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = fft3d::run(argc, argv, rank, ranks);
  MPI_Finalize();
  return code;
}
