// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Dot products of fields that are spread over the ranks, in device memory.
#pragma once

#include <mpi.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "../common/halo.h"
#include "kernels.h"

namespace cg {

// A number in device memory, and what the sum needs around it.
class Scalar {
 public:
  Scalar() : array_(app::kSumBlocks + 1) {}
  const app::Array<double>& array() const { return array_; }
  double read() const {
    double value = 0;
    app::device_copy(&value, array_.data(), sizeof value);
    return value;
  }

 private:
  app::Array<double> array_;
};

class Dots {
 public:
  Dots(const app::Grid& grid, app::Stream& stream, app::MpiTime& time)
      : comm_(grid.comm()), layout_(grid.layout()), stream_(stream), time_(time) {
    all_.add({1, 1, 1}, grid.mine());
  }
  virtual ~Dots() = default;
  Dots(const Dots&) = delete;
  Dots& operator=(const Dots&) = delete;

  // What is begun on the stream afterwards finds a . b in `result`.
  void dot(const app::Array<double>& a, const app::Array<double>& b, const Scalar& result) {
    app::Kernel kernel(stream_);
    kernel.sum(all_.count(), Dot{kernel.reads(a), kernel.reads(b), all_, layout_}, result.array());
    add_ranks(result.array().data());
  }

 protected:
  virtual void add_ranks(double* value) = 0;

  void allreduce(double* value) {
    time_.of([&] { MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_SUM, comm_); });
  }

  MPI_Comm comm_;
  app::Layout layout_;
  app::Stream& stream_;
  app::MpiTime& time_;
  app::Boxes all_;
};

// MPI adds in device memory.
class DotsOnDevice : public Dots {
 public:
  using Dots::Dots;

 private:
  void add_ranks(double* value) override {
    stream_.synchronise();
    allreduce(value);
  }
};

// MPI adds in memory of the CPU: what a program does for an MPI that knows no device memory.
class DotsStaged : public Dots {
 public:
  using Dots::Dots;

 private:
  void add_ranks(double* value) override {
    stream_.copy(host_.data(), value, sizeof *value);
    stream_.synchronise();
    allreduce(host_.data());
    stream_.copy(value, host_.data(), sizeof *value);
  }

  app::Pinned<double> host_{1};
};

inline std::unique_ptr<Dots> make_dots(const std::string& how, const app::Grid& grid,
                                       app::Stream& stream, app::MpiTime& time) {
  if (how == "device") return std::make_unique<DotsOnDevice>(grid, stream, time);
  if (how == "staged") return std::make_unique<DotsStaged>(grid, stream, time);
  throw std::runtime_error("no dot products by " + how);
}

}  // namespace cg
