// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One modelled job: scheduler, fake MPI, and each rank's MPI as its program sees it. Checks at the
// end that nothing is left over: requests, operations, staging memory, copies in flight.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner.h"
#include "user_mpi.h"

namespace accord::model {

class World final : public RunHost {
 public:
  World(int ranks, const RunOptions& options, const ShimOptions& shim_options);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Scheduler& scheduler() noexcept { return scheduler_; }
  UserMpi& user(int rank) override { return *users_[static_cast<std::size_t>(rank)]; }
  ModelShim* shim(int rank) {
    return shims_.empty() ? nullptr : shims_[static_cast<std::size_t>(rank)];
  }

  void yield() override { scheduler_.yield(); }
  void event() noexcept override { scheduler_.event(); }
  std::uint64_t random(std::uint64_t bound) override { return scheduler_.random(bound); }
  void fail(const std::string& message) override { scheduler_.fail(message); }

  // After Scheduler::run: the failure of the run, or of the final checks; empty when all is well.
  std::string verdict();

 private:
  std::string verdict_after_failure();

  Scheduler scheduler_;
  const bool fails_;  // something is to fail
  std::vector<node::CallBoard> boards_;
  std::unique_ptr<FakeMpi> mpi_;
  std::vector<std::unique_ptr<UserMpi>> users_;
  std::vector<ModelShim*> shims_;
  // What failed runs have left on the devices: no fault of this one.
  std::vector<std::size_t> left_before_;
  std::vector<std::size_t> host_left_before_;
};

}  // namespace accord::model
