// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// accord_bench: times MPI operations on any kind of memory, verified, beside other ways of doing
// the same. `accord bench` starts it under mpiexec; it runs with Accord preloaded and without.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/accord_library.h"
#include "bench/environment.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "bench/plan.h"
#include "bench/report.h"
#include "bench/session.h"
#include "bench/way.h"

namespace accord::bench {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitWrongResult = 1;
constexpr int kExitUsage = 2;

KnownNames known_names() {
  KnownNames names;
  for (const Operation& operation : operations()) names.operations.emplace_back(operation.name);
  for (const Element& element : elements()) names.types.emplace_back(element.name);
  for (const NamedReduceOp& row : reduce_ops()) names.ops.emplace_back(row.name);
  names.peers = peer_names();
  return names;
}

std::vector<std::size_t> sizes_of(const Session& session, const Operation& operation) {
  if (!operation.has_data) return {session.element->size_bytes};
  const Options& options = session.options;
  std::vector<std::size_t> sizes;
  for (std::size_t size_bytes = options.size_bytes_min; size_bytes <= options.size_bytes_max;
       size_bytes *= options.size_factor) {
    if (size_bytes >= session.element->size_bytes) sizes.push_back(size_bytes);
    if (size_bytes > options.size_bytes_max / options.size_factor) break;
  }
  return sizes;
}

// Why `operation` cannot be measured at all in this run; empty when it can.
std::string cannot_measure(const Session& session, const Operation& operation) {
  if (session.ranks < operation.ranks_min) {
    return fmt::format("needs {} ranks", operation.ranks_min);
  }
  if (operation.reduces && !supports(*session.element, session.op)) {
    return fmt::format("MPI defines no {} of {}", session.options.op, session.options.type);
  }
  return "";
}

void measure_operation(const Session& session, const Operation& operation,
                       const std::vector<Way*>& ways, Report& report, Progress& progress) {
  const std::string why_not = cannot_measure(session, operation);
  if (!why_not.empty()) {
    report.note(fmt::format("{}: not measured: {}", operation.name, why_not));
    return;
  }
  report.begin_operation(operation);
  ProgramBuffers buffers(session);
  for (const std::size_t size_bytes : sizes_of(session, operation)) {
    const SizeResult result = measure_size(session, operation, size_bytes, ways, buffers, progress);
    progress.clear();
    if (!result.why_not.empty()) {
      report.leave_out(operation, result,
                       fmt::format("{}: stopped before {}: {}", operation.name,
                                   size_text(size_bytes), result.why_not));
      return;
    }
    report.add(operation, result);
  }
}

// Points one by one. Communicators of algorithms are kept, since making one opens the peers'
// memory.
void measure_plan(const Session& session, const std::vector<PlannedPoint>& plan, Way& ours,
                  Report& report, Progress& progress) {
  std::map<std::string, std::unique_ptr<Way>> named;
  ProgramBuffers buffers(session);
  const Operation* last = nullptr;
  for (const PlannedPoint& point : plan) {
    const Operation& operation = *find_operation(point.operation);
    if (const std::string why_not = cannot_measure(session, operation); !why_not.empty()) {
      report.note(fmt::format("{}: not measured: {}", operation.name, why_not));
      continue;
    }
    if (&operation != last) report.begin_operation(operation);
    last = &operation;
    std::vector<Way*> ways = {&ours};
    for (const std::string& algorithm : point.algorithms) {
      auto& way = named[algorithm];
      if (way == nullptr) way = make_algorithm(session, algorithm);
      ways.push_back(way.get());
    }
    const SizeResult result =
        measure_size(session, operation, point.size_bytes, ways, buffers, progress);
    progress.clear();
    if (result.why_not.empty()) {
      report.add(operation, result);
    } else {
      report.leave_out(operation, result,
                       fmt::format("{} {}: not measured: {}", operation.name,
                                   size_text(point.size_bytes), result.why_not));
    }
  }
}

int measure_all(const Options& options) {
  std::vector<PlannedPoint> plan;
  if (!options.plan_path.empty()) plan = read_plan(options.plan_path, known_names().operations);
  const Session session(options);
  std::vector<std::unique_ptr<Way>> owned;
  owned.push_back(
      make_direct(session, session.intercepted() ? "accord" : "direct", Reach::program));
  for (const std::string& name : options.algorithms) owned.push_back(make_algorithm(session, name));
  for (const std::string& peer : options.peers) owned.push_back(make_peer(session, peer));
  std::vector<Way*> ways;
  for (const auto& way : owned) ways.push_back(way.get());

  Report report(session);
  Progress progress(options.progress, session.rank == 0 ? Role::speaker : Role::silent);
  if (!plan.empty()) measure_plan(session, plan, *ways.front(), report, progress);
  std::size_t position = 0;
  for (const std::string& name : options.operations) {
    progress.set_position(fmt::format("[{} of {}] ", ++position, options.operations.size()));
    measure_operation(session, *find_operation(name), ways, report, progress);
  }
  return session.max(report.found_fault() ? 1 : 0) > 0 ? kExitWrongResult : kExitOk;
}

int run(const Options& options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    return measure_all(options);
  } catch (const UsageError& error) {
    if (rank == 0) fmt::print(stderr, "accord_bench: {}\n", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    // The other ranks may be waiting in a call that this one will never make.
    fmt::print(stderr, "accord_bench: rank {}: {}\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, kExitUsage);
    return kExitUsage;
  }
}

// Help, lists and complaints need no MPI and come before MPI_Init: whoever starts ranks tells them
// their numbers in the environment, so only the first speaks.
bool launched_as_other_rank() {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* rank = std::getenv(name);
    if (rank != nullptr) return std::string(rank) != "0";
  }
  return false;
}

// The others leave without an error, which would end the job before the first has spoken.
int leave_with(const std::string& message, int exit_code) {
  if (launched_as_other_rank()) return kExitOk;
  fmt::print(exit_code == kExitOk ? stdout : stderr, "{}", message);
  return exit_code;
}

}  // namespace
}  // namespace accord::bench

int main(int argc, char** argv) {
  using namespace accord::bench;
  const ParsedOptions parsed = parse_options({argv, argv + argc}, known_names());
  if (parsed.exit_code >= 0) return leave_with(parsed.message, parsed.exit_code);
  if (const std::string conflict = nccl_conflict(parsed.options.peers); !conflict.empty())
    return leave_with("accord_bench: " + conflict + "\n", kExitUsage);
  set_nccl_environment(parsed.options.peers);
  const Memory memories[] = {parsed.options.send_memory, parsed.options.recv_memory};
  if (std::ranges::count(memories, Memory::host) != 2) AccordLibrary::want_device_memory();
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return kExitUsage;
  const int exit_code = run(parsed.options);
  MPI_Finalize();
  return exit_code;
}
