// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "world.h"

#include "device/staging_pool.h"
#include "fake_device.h"
#include "native_mpi.h"
#include "node/group.h"
#include "symptom.h"

namespace accord::model {

std::atomic<Mutation> active_mutation{Mutation::none};
std::atomic<int> dead_rank{-1};
std::atomic<unsigned> dead_ranks{0};

namespace {

FakeMpi::Options fake_options(int ranks, const RunOptions& options,
                              const ShimOptions& shim_options) {
  Random random(options.seed ^ 0x5ca1ab1e);
  FakeMpi::Options fake;
  fake.ranks = ranks;
  fake.perfect = options.backend == RunOptions::Backend::reference;
  fake.delay_max = std::vector<std::uint64_t>{0, 1, 3, 8}[random.below(4)];
  fake.eager_percent = std::vector<unsigned>{0, 50, 90}[random.below(3)];
  // Without a progress thread an initialisation must be local, as it is in the MPIs there are.
  fake.synchronizing_init = random.percent(50) && shim_options.threads_allowed;
  return fake;
}

}  // namespace

World::World(int ranks, const RunOptions& options, const ShimOptions& shim_options)
    : scheduler_(options.mode, options.seed),
      fails_(options.failure.kind != Failing::Kind::none),
      boards_(static_cast<std::size_t>(ranks)) {
  setenv("ACCORD_TEST_WATCH_MS", "0", 0);  // time does not pass here
  setenv("ACCORD_COPY_KERNEL_BYTES", "0", 0);
  active_mutation = shim_options.mutation;
  dead_rank = -1;
  dead_ranks = 0;
  Knobs wanted = shim_options.exchange.knobs;
  // A trial may read memory that its owner uses anew, which a thread sanitizer would mind.
  wanted.late_trials = wanted.late_trials && options.mode == Scheduler::Mode::baton;
  set_knobs(wanted, &scheduler_);
  for (std::size_t i = 0; i < FakeDevice::kCount; ++i) {
    FakeDevice::get(i).attach(&scheduler_, shim_options.exchange);
    if (options.failure.kind == Failing::Kind::copy)
      FakeDevice::get(i).fail_after(options.failure.after);
    if (options.failure.kind == Failing::Kind::memory)
      FakeDevice::get(i).refuse_memory_after(options.failure.after);
    left_before_.push_back(FakeDevice::get(i).live_allocations());
    host_left_before_.push_back(FakeDevice::get(i).live_host_allocations());
  }
  mpi_ = std::make_unique<FakeMpi>(scheduler_, fake_options(ranks, options, shim_options));
  for (int rank = 0; rank < ranks; ++rank) {
    if (options.backend != RunOptions::Backend::accord) {
      users_.push_back(std::make_unique<NativeMpi>(mpi_->rank(rank)));
      continue;
    }
    auto shim = std::make_unique<ModelShim>(scheduler_, mpi_->rank(rank), shim_options);
    shim->set_failure(options.failure);
    if (options.watches) shim->watch_calls(boards_, *mpi_);
    shims_.push_back(shim.get());
    users_.push_back(std::move(shim));
  }
}

World::~World() {
  users_.clear();
  mpi_.reset();
  device::staging_pool().trim();
  for (std::size_t i = 0; i < FakeDevice::kCount; ++i) FakeDevice::get(i).attach(nullptr);
  set_knobs({}, nullptr);
}

// What such a job leaves goes with it. Who waits in the host MPI for a rank that is gone waits for
// the host MPI to end the job: that is not the library's to do, and any other hang is its fault.
std::string World::verdict_after_failure() {
  if (symptom_of(scheduler_.failure()) != Symptom::hang) return scheduler_.failure();
  for (std::size_t rank = 0; rank < users_.size(); ++rank) {
    FakeRank& host = mpi_->rank(static_cast<int>(rank));
    if (!is_dead(static_cast<int>(rank)) && !host.has_ended() && !host.waits_for_others())
      return "rank " + std::to_string(rank) +
             " hangs outside of the host MPI: " + scheduler_.failure();
  }
  return {};
}

std::string World::verdict() {
  if (fails_ && (dead_ranks != 0 || scheduler_.failed())) return verdict_after_failure();
  if (scheduler_.failed()) return scheduler_.failure();
  mpi_->check_clean();
  for (ModelShim* shim : shims_) {
    if (!shim->engine().idle()) scheduler_.fail("the engine is not idle at the end");
    if (!shim->requests().empty()) scheduler_.fail("requests are still tracked at the end");
  }
  users_.clear();
  shims_.clear();
  // A group whose late trial goes on stays until that has ended.
  for (unsigned poll = 0; poll < FakeDevice::kPollsMax + 2; ++poll) node::Group::bury();
  device::staging_pool().trim();
  for (std::size_t i = 0; i < FakeDevice::kCount; ++i) {
    if (FakeDevice::get(i).live_host_allocations() > host_left_before_[i])
      scheduler_.fail("staging memory was not given back");
    if (FakeDevice::get(i).live_allocations() > left_before_[i])
      scheduler_.fail("an exchange region or its like was not given back");
    if (FakeDevice::get(i).copies_in_flight() != 0) scheduler_.fail("a copy was never awaited");
    if (!FakeDevice::get(i).inbox_servers_idle())
      scheduler_.fail("an inbox exchange was never awaited");
  }
  return scheduler_.failure();
}

}  // namespace accord::model
