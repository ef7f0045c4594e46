// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A grid of points in three dimensions, spread over a grid of ranks. A rank keeps its points with a
// layer of ghosts around them, which are copies of its neighbours' points.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

namespace app {

// Along x, y and z. Points along z lie beside each other in memory.
using Triple = std::array<int, 3>;

inline std::size_t product(const Triple& values) {
  std::size_t all = 1;
  for (const int value : values) all *= static_cast<std::size_t>(value);
  return all;
}

inline std::string text(const Triple& values) {
  return std::to_string(values[0]) + "x" + std::to_string(values[1]) + "x" +
         std::to_string(values[2]);
}

// Where the points of a rank lie in memory: 1 to n along each axis. 0 and n + 1 are ghosts.
struct Layout {
  int n[3];

  ON_BOTH int stride_x() const { return (n[1] + 2) * (n[2] + 2); }
  ON_BOTH int stride_y() const { return n[2] + 2; }
  ON_BOTH int at(int x, int y, int z) const { return x * stride_x() + y * stride_y() + z; }
  std::size_t count() const { return product({n[0] + 2, n[1] + 2, n[2] + 2}); }
};

// Some boxes of points. The points of all boxes are numbered through.
struct Boxes {
  static constexpr int kMost = 26;
  int boxes = 0;
  int start[kMost + 1] = {};  // the number of the first point of each box; at last, of all points
  int first[kMost][3] = {};
  int size[kMost][3] = {};

  void add(const Triple& from, const Triple& points) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      first[boxes][axis] = from[axis];
      size[boxes][axis] = points[axis];
    }
    start[boxes + 1] = start[boxes] + static_cast<int>(product(points));
    ++boxes;
  }
  int count() const { return start[boxes]; }
  int count(int box) const { return start[box + 1] - start[box]; }

  // Where a point lies in memory.
  ON_BOTH int place(const Layout& layout, int number) const {
    int box = 0;
    while (number >= start[box + 1]) ++box;
    const int in_box = number - start[box];
    const int row = in_box / size[box][2];
    return layout.at(first[box][0] + row / size[box][1], first[box][1] + row % size[box][1],
                     first[box][2] + in_box % size[box][2]);
  }
};

class Grid {
 public:
  // The ranks along x, y and z.
  static Triple ranks_for(int ranks) {
    Triple dims{};
    MPI_Dims_create(ranks, 3, dims.data());
    return dims;
  }

  // Throws std::runtime_error if a rank would have no point.
  static void refuse_less_than_a_point(const Triple& size, int ranks) {
    const Triple dims = ranks_for(ranks);
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (size[axis] < dims[axis])
        throw std::runtime_error("--size " + text(size) + " gives no point to some of " +
                                 text(dims) + " ranks");
  }

  // If it is periodic, the first point along an axis is the neighbour of the last one. Each rank
  // must have a point. Collective over `comm`.
  Grid(MPI_Comm comm, const Triple& size, bool periodic)
      : plain_comm_(comm), size_(size), periodic_(periodic) {
    int ranks = 0;
    int rank = 0;
    MPI_Comm_size(comm, &ranks);
    ranks_ = ranks_for(ranks);
    const Triple periods{periodic, periodic, periodic};
    MPI_Cart_create(comm, 3, ranks_.data(), periods.data(), 0, &comm_);
    MPI_Comm_rank(comm_, &rank);
    MPI_Cart_coords(comm_, rank, 3, place_.data());
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto begin = [&](int part) {
        return static_cast<int>(static_cast<long long>(size[axis]) * part / ranks_[axis]);
      };
      first_[axis] = begin(place_[axis]);
      mine_[axis] = begin(place_[axis] + 1) - first_[axis];
    }
    if (product({mine_[0] + 2, mine_[1] + 2, mine_[2] + 2}) > kMostPoints)
      throw std::runtime_error("more points in a rank than an int counts: take more ranks");
  }
  ~Grid() { MPI_Comm_free(&comm_); }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  MPI_Comm comm() const { return comm_; }
  // The same ranks without a topology.
  MPI_Comm plain_comm() const { return plain_comm_; }
  const Triple& size() const { return size_; }
  const Triple& ranks() const { return ranks_; }
  // The points of this rank: the first, and how many there are along each axis.
  const Triple& first() const { return first_; }
  const Triple& mine() const { return mine_; }
  Layout layout() const { return {{mine_[0], mine_[1], mine_[2]}}; }

  // The rank in a direction such as {-1, 0, 1}, or MPI_PROC_NULL beyond the end of the grid.
  int neighbour(const Triple& direction) const {
    Triple place = place_;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      place[axis] += direction[axis];
      const bool is_inside = place[axis] >= 0 && place[axis] < ranks_[axis];
      if (!is_inside && !periodic_) return MPI_PROC_NULL;
    }
    int rank = 0;
    MPI_Cart_rank(comm_, place.data(), &rank);
    return rank;
  }

  // Calls body(place in memory, x, y, z) for the points of this rank, where x, y and z say which
  // point of the whole grid it is.
  template <class Body>
  void for_points(const Body& body) const {
    for (int x = 0; x < mine_[0]; ++x)
      for (int y = 0; y < mine_[1]; ++y)
        for (int z = 0; z < mine_[2]; ++z)
          body(static_cast<std::size_t>(layout().at(x + 1, y + 1, z + 1)), first_[0] + x,
               first_[1] + y, first_[2] + z);
  }

 private:
  static constexpr std::size_t kMostPoints = 0x7fffffff;

  MPI_Comm plain_comm_;
  Triple size_;
  bool periodic_;
  Triple ranks_{};
  Triple place_{};
  Triple first_{};
  Triple mine_{};
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// The 26 directions to a neighbour: 6 through faces, then 12 through edges, then 8 through corners.
inline std::vector<Triple> directions(bool only_faces) {
  std::vector<Triple> all;
  for (int axes = 1; axes <= (only_faces ? 1 : 3); ++axes)
    for (int x = -1; x <= 1; ++x)
      for (int y = -1; y <= 1; ++y)
        for (int z = -1; z <= 1; ++z)
          if (std::abs(x) + std::abs(y) + std::abs(z) == axes) all.push_back({x, y, z});
  return all;
}

// The points of a rank that have all their neighbours there.
inline Boxes interior(const Triple& n) {
  Boxes boxes;
  if (n[0] > 2 && n[1] > 2 && n[2] > 2) boxes.add({2, 2, 2}, {n[0] - 2, n[1] - 2, n[2] - 2});
  return boxes;
}

// All others: two layers along each axis, without those of the axes before.
inline Boxes shell(const Triple& n) {
  Boxes boxes;
  Triple first{1, 1, 1};
  Triple size = n;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Triple layer = size;
    layer[axis] = 1;
    boxes.add(first, layer);
    Triple last = first;
    last[axis] = n[axis];
    if (size[axis] > 1) boxes.add(last, layer);
    first[axis] = 2;
    size[axis] = n[axis] > 2 ? n[axis] - 2 : 0;
  }
  return boxes;
}

}  // namespace app
