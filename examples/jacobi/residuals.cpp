// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "residuals.h"

#include <utility>

#include "grid.h"

namespace jacobi {

Residuals::Residuals(int blocks, bool in_host_memory, app::MpiTime& time)
    : changes_(static_cast<std::size_t>(blocks)),
      results_(2),
      pinned_(2),
      in_host_memory_(in_host_memory),
      time_(time) {}

Residuals::~Residuals() {
  if (request_ != MPI_REQUEST_NULL) MPI_Wait(&request_, MPI_STATUS_IGNORE);
}

void Residuals::measure(app::Stream& stream) {
  float* const result = results_.data() + slot_;
  app::launch_on(stream, 1, Largest{changes_.data(), static_cast<int>(changes_.count()), result});
  if (in_host_memory_) stream.copy(&pinned_[slot_], result, sizeof(float));
  is_measured_.record(stream);
  has_measured_ = true;
}

void Residuals::combine() {
  if (!has_measured_) return;
  wait();
  is_measured_.synchronise();  // has been for long, since a sweep has come after it
  combined_ = slot();
  time_.of([this] {
    MPI_Iallreduce(MPI_IN_PLACE, slot(), 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD, &request_);
  });
  slot_ = 1 - slot_;
  has_measured_ = false;
}

void Residuals::wait() {
  if (combined_ == nullptr) return;
  time_.of([this] { MPI_Wait(&request_, MPI_STATUS_IGNORE); });
  float value = 0;
  app::device_copy(&value, combined_, sizeof value);
  values_.push_back(value);
  combined_ = nullptr;
}

std::vector<float> Residuals::take() {
  combine();
  wait();
  return std::exchange(values_, {});
}

}  // namespace jacobi
