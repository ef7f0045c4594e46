// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a 3-D stencil exchanges between two sweeps: the ranks form a grid of up to three dimensions,
// as close to a cube as their number allows, and each sends a face to and gets one from its (up to
// six) neighbours, all at once. A face is of the nominal size.
#include <array>

#include "bench/operation.h"

namespace accord::bench {
namespace {

constexpr int kFaceTag = 3;

// Directions are in pairs: 2d is down along dimension d, and 2d + 1 up.
struct Neighbour {
  int rank = 0;
  int direction = 0;
};
constexpr int opposite(int direction) { return direction ^ 1; }

// The product is `ranks`; of all such, the one of the least sum.
std::array<int, 3> grid_of(int ranks) {
  std::array<int, 3> best{ranks, 1, 1};
  for (int x = 1; x <= ranks; ++x) {
    for (int y = 1; y <= x; ++y) {
      const int z = ranks / (x * y);
      if (z < 1 || z > y || x * y * z != ranks) continue;
      if (x + y + z < best[0] + best[1] + best[2]) best = {x, y, z};
    }
  }
  return best;
}

std::vector<Neighbour> neighbours_of(int rank, int ranks) {
  std::vector<Neighbour> neighbours;
  int stride = 1;
  int dimension = 0;
  for (const int extent : grid_of(ranks)) {
    const int at = rank / stride % extent;
    if (at > 0) neighbours.push_back({rank - stride, 2 * dimension});
    if (at + 1 < extent) neighbours.push_back({rank + stride, 2 * dimension + 1});
    stride *= extent;
    ++dimension;
  }
  return neighbours;
}

// Where in `rank`'s buffers the face is that goes to, and comes from, the neighbour there.
std::size_t face_at(const Shape& shape, int rank, int direction) {
  std::size_t slot = 0;
  for (const Neighbour& neighbour : neighbours_of(rank, shape.ranks)) {
    if (neighbour.direction == direction) break;
    ++slot;
  }
  return slot * shape.count();
}

class Faces : public Invocation {
 public:
  Faces(const MpiTable& mpi, const Call& call)
      : mpi_(mpi),
        call_(call),
        neighbours_(neighbours_of(call.shape.rank, call.shape.ranks)),
        requests_(2 * neighbours_.size()) {}

  int run() override {
    std::size_t used = 0;
    for (std::size_t slot = 0; slot < neighbours_.size(); ++slot) {
      if (const int code = mpi_.Irecv(
              face(call_.recv, slot), call_.shape.counts[0], call_.type, neighbours_[slot].rank,
              kFaceTag + opposite(neighbours_[slot].direction), call_.comm, &requests_[used++]))
        return code;
    }
    for (std::size_t slot = 0; slot < neighbours_.size(); ++slot) {
      if (const int code = mpi_.Isend(
              face(call_.send, slot), call_.shape.counts[0], call_.type, neighbours_[slot].rank,
              kFaceTag + neighbours_[slot].direction, call_.comm, &requests_[used++]))
        return code;
    }
    return mpi_.Waitall(static_cast<int>(used), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  void* face(void* buffer, std::size_t slot) const {
    return static_cast<char*>(buffer) + slot * call_.shape.count() * call_.element_bytes;
  }

  const MpiTable& mpi_;
  const Call& call_;
  const std::vector<Neighbour> neighbours_;
  std::vector<MPI_Request> requests_;
};

Extent stencil_extent(const Shape& shape) {
  const std::size_t all = neighbours_of(shape.rank, shape.ranks).size() * shape.count();
  return {all, all};
}

std::vector<Segment> stencil_expected(const Shape& shape) {
  std::vector<Segment> segments;
  for (const Neighbour& neighbour : neighbours_of(shape.rank, shape.ranks)) {
    segments.push_back({face_at(shape, shape.rank, neighbour.direction), shape.count(),
                        neighbour.rank, neighbour.rank + 1,
                        face_at(shape, neighbour.rank, opposite(neighbour.direction))});
  }
  return segments;
}

std::optional<Steps> bind_stencil(const MpiTable& mpi, Form, const Call& call) {
  Steps steps;
  steps.push_back({.invocation = std::make_unique<Faces>(mpi, call)});
  return steps;
}

}  // namespace

std::vector<Operation> stencil_operations() {
  return {{.name = "stencil",
           .has_form = false,
           .ranks_min = 2,
           .extent = stencil_extent,
           .expected = stencil_expected,
           .bind = bind_stencil}};
}

}  // namespace accord::bench
