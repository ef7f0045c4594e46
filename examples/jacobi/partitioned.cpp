// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// By partitioned communication.
#include "../common/partitioned_calls.h"
#include "residuals.h"
#include "ways.h"

namespace jacobi {
namespace {

// A plane has its own requests, since borders of the next sweep may come while the last is read.
// The blocks that read a border mark the row that they make of it afterwards, so once that is sent
// the border may be overwritten: no rank has to wait for its own kernel.
class Partitioned : public Way {
 public:
  explicit Partitioned(const Grid& grid) : grid_(grid), residuals_(grid.blocks(), false, time_) {
    for (int plane = 0; plane < 2; ++plane) {
      float* const points = grid.planes[plane].data();
      const Shape& shape = grid.shape;
      Side& side = sides_[plane];
      send(points + shape.at(0), grid.above, 2, side.requests[0]);
      send(points + shape.at(shape.rows - 1), grid.below, 3, side.requests[1]);
      receive(points + shape.at(-1), grid.above, 3, side.requests[2]);
      receive(points + shape.at(shape.rows), grid.below, 2, side.requests[3]);
      calls_.create(&side.up, side.requests[0]);
      calls_.create(&side.down, side.requests[1]);
    }
  }
  ~Partitioned() override {
    stream_.synchronise();  // no kernel may use the requests any more
    for (Side& side : sides_)
      for (MPI_Request& request : side.requests) MPI_Request_free(&request);
  }

  std::vector<float> run(int sweeps, int every) override {
    for (int sweep = 0; sweep < sweeps; ++sweep) make(sweep, every > 0 && (sweep + 1) % every == 0);
    stream_.synchronise();
    return residuals_.take();
  }

 private:
  struct Side {
    MPI_Request requests[4];
    MPIX_Prequest up = MPIX_PREQUEST_NULL;
    MPIX_Prequest down = MPIX_PREQUEST_NULL;
  };

  void make(int sweep, bool is_checked) {
    Side& side = sides_[(sweep + 1) % 2];
    time_.of([&] {
      MPI_Startall(4, side.requests);
      calls_.prepare_all(4, side.requests);
    });
    Sweep kernel = grid_.kernel(sweep, 0, is_checked ? residuals_.changes() : nullptr);
    kernel.up = side.up;
    kernel.down = side.down;
    app::launch_on(stream_, grid_.blocks(), kernel);
    time_.of([&] { MPI_Waitall(4, side.requests, MPI_STATUSES_IGNORE); });
    residuals_.combine();
    if (is_checked) residuals_.measure(stream_);
  }
  void send(float* row, int to, int tag, MPI_Request& request) const {
    calls_.send_init(row, grid_.pieces(), grid_.width, MPI_FLOAT, to, tag, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &request);
  }
  void receive(float* row, int from, int tag, MPI_Request& request) const {
    calls_.receive_init(row, grid_.pieces(), grid_.width, MPI_FLOAT, from, tag, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &request);
  }

  const Grid& grid_;
  app::PartitionedCalls calls_;
  app::Stream stream_;
  Residuals residuals_;
  Side sides_[2];
};

}  // namespace

std::unique_ptr<Way> partitioned_way(const Grid& grid) {
  return std::make_unique<Partitioned>(grid);
}

}  // namespace jacobi
