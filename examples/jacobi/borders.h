// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The rows that border a slab: by messages of the device memory itself, or staged, or by MPI_Put.
#pragma once

#include <mpi.h>

#include "../common/event.h"
#include "../common/mpi_time.h"
#include "grid.h"

namespace jacobi {

// For each sweep all functions are called, in this order.
class Borders {
 public:
  Borders(const Grid& grid, app::MpiTime& time) : grid_(grid), time_(time) {}
  virtual ~Borders() = default;

  // Before its kernels begin.
  virtual void receive(int sweep) = 0;
  // Once the kernel that makes the first and last row has begun on `stream`.
  virtual void begin(int sweep, app::Stream& stream) = 0;
  // Once all that has been begun on that stream is done.
  virtual void send(int sweep) = 0;
  // Returns once kernels that are begun on `stream` find the borders.
  virtual void wait(int sweep, app::Stream& stream) = 0;

 protected:
  const Grid& grid_;
  app::MpiTime& time_;
};

class DeviceBorders : public Borders {
 public:
  using Borders::Borders;
  void receive(int sweep) override;
  void begin(int, app::Stream&) override {}
  void send(int sweep) override;
  void wait(int sweep, app::Stream& stream) override;

 private:
  MPI_Request requests_[4];  // receive from above, from below; send up, down
};

// Copies of a border to the device are over only with the next kernel of its stream. Until then the
// other of two buffers receives.
class StagedBorders : public Borders {
 public:
  StagedBorders(const Grid& grid, app::MpiTime& time);
  void receive(int sweep) override;
  void begin(int sweep, app::Stream& stream) override;
  void send(int sweep) override;
  void wait(int sweep, app::Stream& stream) override;

 private:
  std::size_t bytes() const {
    return static_cast<std::size_t>(grid_.shape.columns) * sizeof(float);
  }
  float* outgoing(int side) const { return outgoing_.data() + side * grid_.shape.columns; }
  float* incoming(int sweep, int side) const {
    return incoming_.data() + (sweep % 2 * 2 + side) * grid_.shape.columns;
  }

  app::Pinned<float> outgoing_;
  app::Pinned<float> incoming_;
  MPI_Request receives_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};  // from above, from below
  MPI_Request sends_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

// A rank writes its rows into the planes of its neighbours, which are windows. A kernel makes the
// inner rows of a plane meanwhile, as the unified model allows.
class PutBorders : public Borders {
 public:
  PutBorders(const Grid& grid, app::MpiTime& time);
  ~PutBorders() override;
  PutBorders(const PutBorders&) = delete;
  PutBorders& operator=(const PutBorders&) = delete;
  void receive(int sweep) override;
  void begin(int, app::Stream&) override {}
  void send(int sweep) override;
  void wait(int sweep, app::Stream& stream) override;

 private:
  MPI_Win window(int sweep) const { return windows_[(sweep + 1) % 2]; }

  MPI_Win windows_[2];  // of the planes
  MPI_Group neighbours_ = MPI_GROUP_NULL;
  int place_above_ = 0;  // of this rank's first row there: slabs differ
};

}  // namespace jacobi
