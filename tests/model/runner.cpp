// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "runner.h"

#include <limits>

#include "node/device_pool.h"
#include "program_run.h"
#include "world.h"

namespace accord::model {
namespace {

constexpr long kAllActions = std::numeric_limits<long>::max();

}  // namespace

std::string run(const Program& program, const RunOptions& given) {
  RunOptions options = given;
  options.watches = true;
  World world(program.ranks, options,
              {program.threads_allowed, program.pipeline_bytes, program.chunk_bytes,
               program.exchange, options.mutation});
  Scheduler& scheduler = world.scheduler();
  // The reference has no Accord, hence no device memory.
  const bool accord = options.backend == RunOptions::Backend::accord;
  Run run(program, world, accord, accord);
  const Failing& failure = options.failure;
  scheduler.describe_thread = [&run](std::size_t index) { return run.describe(index); };
  std::vector<std::function<void()>> bodies;
  const auto threads = static_cast<std::size_t>(program.threads);
  for (std::size_t i = 0; i < program.lists.size(); ++i) {
    bodies.emplace_back([&, i] {
      const auto rank = static_cast<int>(i / threads);
      node::device_pool_owner = rank + 1;
      const bool is_chosen = failure.kind == Failing::Kind::rank && failure.rank_of == rank;
      try {
        if (!run.run_thread(i, is_chosen ? failure.after : kAllActions)) throw RankStopped();
        if (i % threads == 0) world.user(rank).finalize();
      } catch (const RankStopped&) {
        dead_ranks.fetch_or(1u << rank);
      }
    });
  }
  scheduler.run(std::move(bodies));
  // The copy of a receive that is freed already may fail, and nobody is left to be told.
  if (!scheduler.failed() && failure.kind == Failing::Kind::none) run.check_ended();
  run.drop_buffers();  // what memory is left then is nobody's
  return world.verdict();
}

std::string run_ranks(int ranks, const RunOptions& options, const ShimOptions& shim_options,
                      const std::function<void(Rank&)>& body) {
  ShimOptions mutated = shim_options;
  mutated.mutation = options.mutation;
  World world(ranks, options, mutated);
  world.scheduler().describe_thread = [](std::size_t rank) { return fmt::format("rank {}", rank); };
  std::vector<std::function<void()>> bodies;
  for (int rank = 0; rank < ranks; ++rank) {
    bodies.emplace_back([&, rank] {
      node::device_pool_owner = rank + 1;
      Rank self{rank, world.scheduler(), world.user(rank), world.shim(rank)};
      body(self);
      self.mpi.finalize();
    });
  }
  world.scheduler().run(std::move(bodies));
  return world.verdict();
}

}  // namespace accord::model
