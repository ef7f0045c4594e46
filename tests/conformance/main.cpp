// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// accord_conformance: generates random legal MPI programs and checks the MPI calls this process
// sees (Accord's, when it is preloaded or linked) against the host MPI itself on host copies of the
// same data.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "cases.h"
#include "driver.h"
#include "watchdog.h"

namespace accord::conformance {

const std::vector<Category>& categories() {
  static const std::vector<Category> list = {
      {"collective", 34, case_collective},
      {"overlap", 18, case_overlap},
      {"p2p", 20, case_p2p},
      {"exchange", 7, case_exchange},
      {"requests", 6, case_requests},
      {"columns", 6, case_columns},
      {"pack", 6, case_pack},
      {"errors", 4, case_errors},
      {"window", 1, case_window},
      {"progress", 3, case_progress},
      {"reuse", 6, case_reuse},
      {"partitioned", 6, case_partitioned},
  };
  return list;
}

namespace {

constexpr int kUsageCode = 2;
constexpr std::size_t kArenaBytesMin = 32U << 20;

std::string check_only(const Options& options) {
  for (const std::string& name : options.only) {
    std::string known;
    bool found = false;
    for (const Category& category : categories()) {
      known += std::string(" ") + category.name;
      found = found || name == category.name;
    }
    if (!found) return "no category '" + name + "'; there are" + known;
  }
  return {};
}

std::string choose_memory(Environment& environment) {
  Options& options = environment.options;
  if (options.memory.empty()) {
    options.memory = {ACCORD_MEMORY_HOST};
    if (environment.memory.has_accord() && environment.memory.device_count() > 0)
      options.memory = {ACCORD_MEMORY_HOST, ACCORD_MEMORY_PINNED, ACCORD_MEMORY_MANAGED,
                        ACCORD_MEMORY_DEVICE};
  }
  std::sort(options.memory.begin(),
            options.memory.end());  // device last: the "all on the device" mix
  environment.kinds = options.memory;
  if (options.device_required && environment.kinds.back() != ACCORD_MEMORY_DEVICE)
    return "--require-device: there is no device memory here";
  if (const int devices = environment.memory.device_count(); devices > 0)
    environment.memory.use_device(environment.rank % devices);
  return environment.memory.prepare(environment.kinds,
                                    std::max(kArenaBytesMin, 24 * options.bytes_max));
}

// Sets up everything a case needs. Returns an empty string or what is wrong.
std::string set_up(Environment& environment) {
  const Api& oracle = environment.apis.oracle;
  oracle.Comm_rank(MPI_COMM_WORLD, &environment.rank);
  oracle.Comm_size(MPI_COMM_WORLD, &environment.size);
  if (environment.options.ranks != 0 && environment.options.ranks != environment.size)
    return "--ranks " + std::to_string(environment.options.ranks) + ": there are " +
           std::to_string(environment.size);
  oracle.Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  oracle.Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  char version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {};
  int length = 0;
  oracle.Get_library_version(version, &length);
  environment.flavour = read_flavour(version);
  environment.elements = make_elements(oracle);
  environment.operations = make_operations();
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm self = MPI_COMM_NULL;
  oracle.Comm_dup(MPI_COMM_WORLD, &world);
  oracle.Comm_dup(MPI_COMM_SELF, &self);
  const std::uint64_t seed = environment.options.seed;
  environment.oracle_comms = std::make_unique<Communicators>(oracle, world, self, seed);
  environment.tested_comms =
      std::make_unique<Communicators>(environment.apis.tested, MPI_COMM_WORLD, MPI_COMM_SELF, seed);
  return choose_memory(environment);
}

void print_header(const Environment& environment) {
  if (environment.rank != 0) return;
  std::string kinds;
  for (accord_memory kind : environment.kinds) kinds += std::string(" ") + memory_name(kind);
  std::printf("conformance: %s, ranks %d, seed %llu, memory%s, runtime %s, devices %d, types %zu\n",
              environment.flavour.text.c_str(), environment.size,
              static_cast<unsigned long long>(environment.options.seed), kinds.c_str(),
              environment.memory.runtime_name(), environment.memory.device_count(),
              environment.elements.size());
  std::printf("conformance: oracle %s, tested calls go to %s\n",
              environment.apis.host_library.c_str(), environment.apis.tested_library.c_str());
  std::fflush(stdout);
}

int fail(const std::string& text) {
  std::fprintf(stderr, "accord_conformance: %s\n", text.c_str());
  return kUsageCode;
}

int run(int argc, char** argv) {
  Environment environment;
  std::string problem = parse_options(argc, argv, environment.options);
  if (problem.empty()) problem = check_only(environment.options);
  if (!problem.empty()) return fail(problem + "\n" + kUsage);
  if (problem = load_api(environment.apis); !problem.empty()) return fail(problem);
  const int level = environment.options.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  const int code =
      environment.apis.tested.Init_thread(&argc, &argv, level, &environment.thread_level);
  if (code != MPI_SUCCESS) return fail("MPI_Init_thread returned " + std::to_string(code));
  if (problem = set_up(environment); !problem.empty()) return fail(problem);
  print_header(environment);
  watchdog_start(environment.rank, environment.options.case_timeout_s);
  const int result = Driver(environment).run_all();
  environment.tested_comms.reset();
  environment.oracle_comms.reset();
  environment.apis.tested.Finalize();
  return result;
}

}  // namespace
}  // namespace accord::conformance

int main(int argc, char** argv) {
  try {
    return accord::conformance::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "accord_conformance: %s\n", error.what());
    return accord::conformance::kUsageCode;
  }
}
