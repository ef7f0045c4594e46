// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The residual of a sweep: by how much a point of the whole grid changes at most. Ranks learn it
// one check late, so that no sweep waits for it.
#pragma once

#include <mpi.h>

#include <vector>

#include "../common/device.h"
#include "../common/event.h"
#include "../common/mpi_time.h"

namespace jacobi {

class Residuals {
 public:
  // `blocks` of a sweep. In host memory: for an MPI that takes no device memory.
  Residuals(int blocks, bool in_host_memory, app::MpiTime& time);
  ~Residuals();
  Residuals(const Residuals&) = delete;
  Residuals& operator=(const Residuals&) = delete;

  // Where the kernels of a sweep tell what changes.
  float* changes() const { return changes_.data(); }
  // Begins to look at what they have told, in the order of `stream`.
  void measure(app::Stream& stream);
  // Begins to combine what was measured before, if there is such, with the other ranks.
  void combine();
  // Waits for all, and returns the residuals in the order of the checks.
  std::vector<float> take();

 private:
  float* slot() const { return in_host_memory_ ? &pinned_[slot_] : results_.data() + slot_; }
  void wait();

  app::Array<float> changes_;
  // The last check is still being combined while the next one is measured.
  app::Array<float> results_;
  app::Pinned<float> pinned_;
  bool in_host_memory_;
  app::Event is_measured_;
  app::MpiTime& time_;
  std::size_t slot_ = 0;
  bool has_measured_ = false;
  const float* combined_ = nullptr;  // where the request leaves its result
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<float> values_;
};

}  // namespace jacobi
