// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// accord_programs: the random programs of tests/model as a job of a real MPI, with Accord under its
// calls where that is preloaded. See kUsage.
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "callbacks.h"
#include "held.h"
#include "job.h"
#include "named_reach.h"
#include "program_json.h"
#include "random.h"
#include "run_program.h"
#include "watchdog.h"

namespace accord::programs {
namespace {

constexpr const char* kUsage =
    "accord_programs [--seed S] [--count N] [--seconds T] [--threads N] [--length N] [--host]\n"
    "                [--patience F] [--reach] [--way PATH=CALL,...] [--program FILE]\n"
    "                [--write FILE]\n"
    "  --threads N   of a rank, at most; more than one asks for MPI_THREAD_MULTIPLE\n"
    "  --host        all buffers are the host's, as without Accord\n"
    "  --patience F  times 8 seconds without progress are a hang\n"
    "  --reach       fails where all N programs together never do something that they can\n"
    "  --way P=C,... with --reach also where these calls never go by that path (accord_last_path)\n"
    "  --program F   runs this one instead of random ones\n"
    "  --write F     writes the first program there, and ends\n";

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t count = 100;
  double seconds = 0;  // 0: all of them
  int threads = 1;
  int length = 20;
  double patience = 1;
  bool host = false;
  bool reach = false;
  std::vector<std::string> ways;
  std::string program;
  std::string write;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--host" || name == "--reach") {
      (name == "--host" ? options.host : options.reach) = true;
      continue;
    }
    if (++i == argc) return false;
    const char* const value = argv[i];
    if (name == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--count") {
      options.count = std::strtoull(value, nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (name == "--threads") {
      options.threads = std::max(1, std::atoi(value));
    } else if (name == "--length") {
      options.length = std::max(2, std::atoi(value));
    } else if (name == "--patience") {
      options.patience = std::strtod(value, nullptr);
    } else if (name == "--way") {
      options.ways.emplace_back(value);
    } else if (name == "--program") {
      options.program = value;
    } else if (name == "--write") {
      options.write = value;
    } else {
      return false;
    }
  }
  return true;
}

// What the MPI is asked for: MPI 3 has no persistent collectives, and MPICH 4.0 none that work.
model::GeneratorOptions generator_options(const Options& options) {
  model::GeneratorOptions generator;
  generator.ranks = job.size;
  generator.threads_max = options.threads;
  generator.length_max = options.length;
  generator.persistent_collectives =
      MPI_VERSION >= 4 && works("inactive persistent collectives in arrays");
  generator.compose_percent = 20;
  generator.gaps_in_reductions = works("user operations on types with a trailing gap");
  if (!works("blocking reduce_scatter in place"))
    generator.never_in_place.push_back(model::Collective::reduce_scatter);
  if (!works("nonblocking alltoallv in place") || !works("persistent alltoallv in place") ||
      !works("nonblocking alltoallw in place") || !works("persistent alltoallw in place"))
    generator.never_in_place.push_back(model::Collective::alltoallv);
  generator.probes_of_own_messages = works("probe of a message to oneself");
  generator.nonblocking_dup = works("idup beside other collectives");
  if (!works("nonblocking reduce_scatter"))
    generator.without.push_back(model::Collective::reduce_scatter);
  return generator;
}

model::Program make_program(const Options& options, std::uint64_t seed) {
  model::Program program = generate(seed, generator_options(options));
  program.salt = model::Random(seed).next();
  return program;
}

model::Program read_program(const std::string& path) {
  std::ifstream file(path);
  return from_json({std::istreambuf_iterator<char>(file), {}});
}

void set_up(int* argc, char*** argv, const Options& options) {
  const int wanted = options.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  int provided = 0;
  MPI_Init_thread(argc, argv, wanted, &provided);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.size);
  job.has_threads = wanted == MPI_THREAD_MULTIPLE;
  job.on_devices = !options.host;
  job.patience_s = std::max(1, static_cast<int>(8 * options.patience));
  char version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  job.flavour = conformance::read_flavour(version);
  start_watchdog();
  if (provided < wanted) fail(Symptom::error, "the MPI has no MPI_THREAD_MULTIPLE");
  if (job.size < 2) fail(Symptom::error, "programs take two ranks at least");
  set_up_callbacks();
}

// "PATH=CALL,CALL"
void expect_way(const std::string& way) {
  const std::size_t equals = way.find('=');
  std::istringstream calls(way.substr(std::min(way.size(), equals + 1)));
  for (std::string call; std::getline(calls, call, ',');)
    model::expect_reached("way", fmt::format("{} by {}", call, way.substr(0, equals)));
}

// What can be reached here.
void expect_all(const Options& options) {
  for (const std::string& way : options.ways) expect_way(way);
  model::expect_programs(generator_options(options));
  for (const char* name :
       {"matched probe", "allgatherv", "gatherv", "scatterv", "alltoallv", "alltoallw"})
    model::expect_reached("call", name);
  for (const char* name : {"contiguous", "vector", "indexed", "subarray", "struct",
                           "vector of blocks", "hvector", "indexed blocks", "subarray of rows"})
    model::expect_reached("datatype", name);
}

// Of all ranks; whether something is missing.
bool report(const Options& options, MPI_Comm control) {
  const std::string own = model::to_lines(model::named_counts());
  std::vector<int> lengths(static_cast<std::size_t>(job.size));
  const int length = static_cast<int>(own.size());
  check(MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, control), "MPI_Gather");
  std::vector<int> places;
  std::size_t total = 0;
  for (const int of_rank : lengths) {
    places.push_back(static_cast<int>(total));
    total += static_cast<std::size_t>(of_rank);
  }
  std::string all(total, ' ');
  check(MPI_Gatherv(own.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(),
                    MPI_CHAR, 0, control),
        "MPI_Gatherv");
  if (job.rank != 0) return false;
  const model::NamedCounts counts = model::sum_of(all);
  std::printf("programs: reached\n%s", model::report_of(counts).c_str());
  const std::string missing = model::missing_in(counts);
  if (missing.empty()) return false;
  std::printf("programs: never reached:\n%s", missing.c_str());
  return options.reach;
}

// Whether the job goes on, by rank 0's clock.
bool goes_on(const Options& options, std::chrono::steady_clock::time_point start,
             MPI_Comm control) {
  if (options.seconds <= 0) return true;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  int flag = spent.count() < options.seconds ? 1 : 0;
  check(MPI_Bcast(&flag, 1, MPI_INT, 0, control), "MPI_Bcast");
  return flag != 0;
}

// Where a process has several threads, Linux makes its table of descriptors larger only once all
// processors have let go of the old one (synchronize_rcu). Where ranks outnumber cores and never
// sleep that can take longer than a hang.
void reserve_descriptors() {
  constexpr int kMost = 1000;
  const int last = fcntl(STDERR_FILENO, F_DUPFD, kMost);
  if (last >= 0) close(last);
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "%s", kUsage);
    return 2;
  }
  set_up(&argc, &argv, options);
  if (!options.write.empty()) {
    if (job.rank == 0) std::ofstream(options.write) << to_json(make_program(options, options.seed));
    MPI_Finalize();
    return 0;
  }
  expect_all(options);
  MPI_Comm control = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &control), "MPI_Comm_dup");
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t done = 0;
  Holdings holdings;
  for (; done < options.count && goes_on(options, start, control); ++done) {
    const std::uint64_t seed = options.seed + done;
    if (options.program.empty()) {
      run_program(make_program(options, seed), seed, control, fmt::format("program {}", seed));
    } else {
      run_program(read_program(options.program), seed, control, options.program);
    }
    holdings.note();
  }
  if (const std::string growth = holdings.growth(); !growth.empty()) fail(Symptom::data, growth);
  const bool lacks = report(options, control) && done == options.count;
  if (job.rank == 0) std::printf("programs: %llu are right\n", (unsigned long long)done);
  check(MPI_Comm_free(&control), "MPI_Comm_free");
  end_callbacks();
  MPI_Finalize();
  return lacks ? 1 : 0;
}

}  // namespace
}  // namespace accord::programs

int main(int argc, char** argv) {
  accord::programs::reserve_descriptors();  // before there are threads
  const accord::programs::WatchedThread me;
  try {
    return accord::programs::run(argc, argv);
  } catch (const std::exception& error) {
    accord::programs::fail(accord::programs::Symptom::error, error.what());
  }
}
