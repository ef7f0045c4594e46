// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "borders.h"

#include <stdexcept>

namespace jacobi {
namespace {

constexpr int kUp = 0;  // tags
constexpr int kDown = 1;

}  // namespace

void DeviceBorders::receive(int sweep) {
  float* const plane = grid_.made_by(sweep);
  const Shape& shape = grid_.shape;
  time_.of([&] {
    MPI_Irecv(plane + shape.at(-1), shape.columns, MPI_FLOAT, grid_.above, kDown, MPI_COMM_WORLD,
              &requests_[0]);
    MPI_Irecv(plane + shape.at(shape.rows), shape.columns, MPI_FLOAT, grid_.below, kUp,
              MPI_COMM_WORLD, &requests_[1]);
  });
}

void DeviceBorders::send(int sweep) {
  const float* const plane = grid_.made_by(sweep);
  const Shape& shape = grid_.shape;
  time_.of([&] {
    MPI_Isend(plane + shape.at(0), shape.columns, MPI_FLOAT, grid_.above, kUp, MPI_COMM_WORLD,
              &requests_[2]);
    MPI_Isend(plane + shape.at(shape.rows - 1), shape.columns, MPI_FLOAT, grid_.below, kDown,
              MPI_COMM_WORLD, &requests_[3]);
  });
}

void DeviceBorders::wait(int, app::Stream&) {
  time_.of([this] { MPI_Waitall(4, requests_, MPI_STATUSES_IGNORE); });
}

StagedBorders::StagedBorders(const Grid& grid, app::MpiTime& time)
    : Borders(grid, time),
      outgoing_(static_cast<std::size_t>(grid.shape.columns) * 2),
      incoming_(static_cast<std::size_t>(grid.shape.columns) * 4) {}

// Nothing from no rank, or it would be copied over the rim of the grid.
void StagedBorders::receive(int sweep) {
  const int n = grid_.shape.columns;
  time_.of([&] {
    if (grid_.above != MPI_PROC_NULL)
      MPI_Irecv(incoming(sweep, 0), n, MPI_FLOAT, grid_.above, kDown, MPI_COMM_WORLD,
                &receives_[0]);
    if (grid_.below != MPI_PROC_NULL)
      MPI_Irecv(incoming(sweep, 1), n, MPI_FLOAT, grid_.below, kUp, MPI_COMM_WORLD, &receives_[1]);
  });
}

void StagedBorders::begin(int sweep, app::Stream& stream) {
  const float* const plane = grid_.made_by(sweep);
  const Shape& shape = grid_.shape;
  if (grid_.above != MPI_PROC_NULL) stream.copy(outgoing(0), plane + shape.at(0), bytes());
  if (grid_.below != MPI_PROC_NULL)
    stream.copy(outgoing(1), plane + shape.at(shape.rows - 1), bytes());
}

void StagedBorders::send(int) {
  const int n = grid_.shape.columns;
  time_.of([&] {
    MPI_Isend(outgoing(0), n, MPI_FLOAT, grid_.above, kUp, MPI_COMM_WORLD, &sends_[0]);
    MPI_Isend(outgoing(1), n, MPI_FLOAT, grid_.below, kDown, MPI_COMM_WORLD, &sends_[1]);
  });
}

void StagedBorders::wait(int sweep, app::Stream& stream) {
  float* const plane = grid_.made_by(sweep);
  const Shape& shape = grid_.shape;
  for (;;) {
    int side = MPI_UNDEFINED;
    time_.of([&] { MPI_Waitany(2, receives_, &side, MPI_STATUS_IGNORE); });
    if (side == MPI_UNDEFINED) break;
    stream.copy(plane + shape.at(side == 0 ? -1 : shape.rows), incoming(sweep, side), bytes());
  }
  time_.of([this] { MPI_Waitall(2, sends_, MPI_STATUSES_IGNORE); });
}

namespace {

bool is_unified(MPI_Win window) {
  int* model = nullptr;
  int is_there = 0;
  MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &is_there);
  return is_there != 0 && *model == MPI_WIN_UNIFIED;
}

}  // namespace

PutBorders::PutBorders(const Grid& grid, app::MpiTime& time) : Borders(grid, time) {
  const auto bytes = static_cast<MPI_Aint>(grid.shape.points() * sizeof(float));
  for (int i = 0; i < 2; ++i)
    MPI_Win_create(grid.planes[i].data(), bytes, sizeof(float), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &windows_[i]);
  if (!is_unified(windows_[0])) throw std::runtime_error("put takes windows of the unified model");
  const int below_is_at = grid.shape.at(grid.shape.rows);
  MPI_Sendrecv(&below_is_at, 1, MPI_INT, grid.below, 0, &place_above_, 1, MPI_INT, grid.above, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int ranks[2];
  int count = 0;
  for (const int rank : {grid.above, grid.below})
    if (rank != MPI_PROC_NULL) ranks[count++] = rank;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, count, ranks, &neighbours_);
  MPI_Group_free(&all);
}

PutBorders::~PutBorders() {
  if (neighbours_ != MPI_GROUP_EMPTY) MPI_Group_free(&neighbours_);
  for (MPI_Win& window : windows_) MPI_Win_free(&window);
}

void PutBorders::receive(int sweep) {
  time_.of([&] { MPI_Win_post(neighbours_, 0, window(sweep)); });
}

void PutBorders::send(int sweep) {
  const float* const plane = grid_.made_by(sweep);
  const Shape& shape = grid_.shape;
  const int n = shape.columns;
  const MPI_Win to = window(sweep);
  time_.of([&] {
    MPI_Win_start(neighbours_, 0, to);
    MPI_Put(plane + shape.at(0), n, MPI_FLOAT, grid_.above, place_above_, n, MPI_FLOAT, to);
    MPI_Put(plane + shape.at(shape.rows - 1), n, MPI_FLOAT, grid_.below, shape.at(-1), n, MPI_FLOAT,
            to);
    MPI_Win_complete(to);
  });
}

void PutBorders::wait(int sweep, app::Stream&) {
  time_.of([&] { MPI_Win_wait(window(sweep)); });
}

}  // namespace jacobi
