// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Jacobi's method on a grid of rows by columns, cut into a slab of rows a rank: each point becomes
// the mean of its four neighbours, again and again, and before each sweep a rank needs the rows
// that border its slab from the ranks above and below. Ordinarily the host waits for the kernel of
// a sweep and then exchanges these rows; with partitioned communication the blocks that make them
// send them, while others are still at work. Both are compared with each other, and small grids
// with one process that does it all.
//
//   nvcc -x cu -std=c++17 partitioned_jacobi.cpp -o partitioned_jacobi -I ../include
//       -I $MPI/include -L $MPI/lib -lmpi -L ../build/lib -laccord
//   accord run -n 2 ./partitioned_jacobi [sweeps] [256x1024 and more grids]
//
// Rows are a multiple of the ranks, columns of 4 and, beyond 1024, of 1024. Time is that of a sweep
// with its communication, of the slowest rank, the median of some runs; goodput is the bytes of the
// rows that a rank in the middle sends to both sides over that time.
#include <cstdlib>

#include "blocks.h"

namespace {

constexpr int kRuns = 5;
constexpr double kSerialPoints = 6e8;  // that one process makes in a second or so
constexpr int kWidthMax = 1024;        // of what a block makes, and of a partition

// A slab: its rows, one above and one below, and columns that never change on both sides, so wide
// that the rows begin where devices like to load from.
constexpr int kMargin = 4;
struct Shape {
  int rows = 0;
  int columns = 0;

  ON_BOTH int pitch() const { return columns + 2 * kMargin; }
  // Of the first point that changes in row `row`; the border above is -1, that below is `rows`.
  ON_BOTH int at(int row) const { return (row + 1) * pitch() + kMargin; }
  std::size_t points() const {
    return static_cast<std::size_t>(rows + 2) * static_cast<std::size_t>(columns + 2 * kMargin);
  }
};

// A block makes `width` points of a row. Those of the first and last row come first, since other
// ranks wait for them; without requests it is the ordinary kernel.
struct Sweep {
  const float* from;
  float* to;
  Shape shape;
  int width;
  MPIX_Prequest up;
  MPIX_Prequest down;

  ON_DEVICE void operator()(Block block) const {
    const int row = row_of(block.number / (shape.columns / width));
    const int piece = block.number % (shape.columns / width);
    make(block, shape.at(row) + piece * width);
    if (row == 0 && up != MPIX_PREQUEST_NULL) MPIX_Pready_block(piece, up);
    if (row == shape.rows - 1 && down != MPIX_PREQUEST_NULL) MPIX_Pready_block(piece, down);
  }
  ON_DEVICE int row_of(int turn) const {
    return turn == 0 ? 0 : turn == 1 ? shape.rows - 1 : turn - 1;
  }
  ON_DEVICE void make(Block block, int first) const {
    View<const float> above(from + first - shape.pitch(), width);
    View<const float> row(from + first - 1, width + 2);
    View<const float> below(from + first + shape.pitch(), width);
    View<float> made(to + first, width);
    for (int i = block.thread; i < width; i += block.threads)
      made[i] = (above[i] + row[i] + row[i + 2] + below[i]) * 0.25f;
  }
};

// Two of them: a sweep reads one and makes the other.
struct Grid {
  int rank = 0;
  int above = MPI_PROC_NULL;
  int below = MPI_PROC_NULL;
  Shape shape;
  int width = 0;
  DeviceArray<float> planes[2];

  int pieces() const { return shape.columns / width; }
  void sweep(int number, MPIX_Prequest up, MPIX_Prequest down) const {
    const Sweep kernel{
        planes[number % 2].data(), planes[(number + 1) % 2].data(), shape, width, up, down};
    launch(shape.rows * pieces(), kernel);
  }
};

// Uneven, so that a border of another sweep, or from another place, shows in the result.
float initial(int row, int column) {
  return static_cast<float>(((row + 3) * 37 + (column + 5) * 101) % 257);
}
std::vector<float> initial_plane(const Shape& shape, int first_row) {
  std::vector<float> plane(shape.points());
  for (int row = -1; row <= shape.rows; ++row)
    for (int column = -kMargin; column < shape.columns + kMargin; ++column)
      plane[static_cast<std::size_t>((row + 1) * shape.pitch() + kMargin + column)] =
          initial(first_row + row, column);
  return plane;
}

class Ordinary {
 public:
  explicit Ordinary(const Grid& grid) : grid_(grid) {}
  void run(int sweeps) {
    const int n = grid_.shape.columns;
    const int last = grid_.shape.rows - 1;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      grid_.sweep(sweep, MPIX_PREQUEST_NULL, MPIX_PREQUEST_NULL);
      synchronise();
      float* const made = grid_.planes[(sweep + 1) % 2].data();
      MPI_Sendrecv(made + grid_.shape.at(0), n, MPI_FLOAT, grid_.above, 0,
                   made + grid_.shape.at(last + 1), n, MPI_FLOAT, grid_.below, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      MPI_Sendrecv(made + grid_.shape.at(last), n, MPI_FLOAT, grid_.below, 1,
                   made + grid_.shape.at(-1), n, MPI_FLOAT, grid_.above, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    }
  }

 private:
  const Grid& grid_;
};

// A plane has its own requests, since borders of the next sweep may come while the last is read.
// The blocks that read a border mark the row that they make of it afterwards, so once that is sent
// the border may be overwritten: no rank has to wait for its own kernel.
class Partitioned {
 public:
  explicit Partitioned(const Grid& grid) : grid_(grid) {
    for (int plane = 0; plane < 2; ++plane) {
      float* const points = grid.planes[plane].data();
      const int last = grid.shape.rows - 1;
      Borders& borders = borders_[plane];
      send(points + grid.shape.at(0), grid.above, 2, borders.requests[0]);
      send(points + grid.shape.at(last), grid.below, 3, borders.requests[1]);
      receive(points + grid.shape.at(-1), grid.above, 3, borders.requests[2]);
      receive(points + grid.shape.at(last + 1), grid.below, 2, borders.requests[3]);
      MPIX_Prequest_create(&borders.up, borders.requests[0]);
      MPIX_Prequest_create(&borders.down, borders.requests[1]);
    }
  }
  ~Partitioned() {
    synchronise();  // no kernel may use the requests any more
    for (Borders& borders : borders_)
      for (MPI_Request& request : borders.requests) MPI_Request_free(&request);
  }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  void run(int sweeps) {
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      Borders& borders = borders_[(sweep + 1) % 2];
      MPI_Startall(4, borders.requests);
      MPIX_Pbuf_prepare_all(4, borders.requests);
      grid_.sweep(sweep, borders.up, borders.down);
      MPI_Waitall(4, borders.requests, MPI_STATUSES_IGNORE);
    }
  }

 private:
  struct Borders {
    MPI_Request requests[4];
    MPIX_Prequest up = MPIX_PREQUEST_NULL;
    MPIX_Prequest down = MPIX_PREQUEST_NULL;
  };

  void send(float* row, int to, int tag, MPI_Request& request) const {
    MPI_Psend_init(row, grid_.pieces(), grid_.width, MPI_FLOAT, to, tag, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
  }
  void receive(float* row, int from, int tag, MPI_Request& request) const {
    MPI_Precv_init(row, grid_.pieces(), grid_.width, MPI_FLOAT, from, tag, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
  }

  const Grid& grid_;
  Borders borders_[2];
};

struct Outcome {
  double us = 0;             // a sweep
  std::vector<float> plane;  // the last
};

template <class Way>
Outcome measure(Grid& grid, int sweeps) {
  Way way(grid);
  const std::vector<float> first = initial_plane(grid.shape, grid.rank * grid.shape.rows);
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    for (DeviceArray<float>& plane : grid.planes) plane.write(first);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    way.run(sweeps);
    synchronise();
    times.push_back((MPI_Wtime() - start) / sweeps * 1e6);
  }
  return {largest(median(times)), grid.planes[sweeps % 2].read()};
}

// By this process alone, all of the grid; the rows of this rank.
std::vector<float> serial(const Shape& whole, const Shape& slab, int first_row, int sweeps) {
  std::vector<float> from = initial_plane(whole, 0);
  std::vector<float> to = from;
  const auto pitch = static_cast<std::size_t>(whole.columns + 2 * kMargin);
  for (int sweep = 0; sweep < sweeps; ++sweep, std::swap(from, to)) {
    for (int row = 0; row < whole.rows; ++row) {
      const auto first = static_cast<std::size_t>(row + 1) * pitch + kMargin;
      for (std::size_t i = first; i < first + static_cast<std::size_t>(whole.columns); ++i)
        to[i] = (from[i - pitch] + from[i - 1] + from[i + 1] + from[i + pitch]) * 0.25f;
    }
  }
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(pitch) * first_row;
  return {begin, begin + static_cast<std::ptrdiff_t>(slab.points())};
}

int differences(const std::vector<float>& got, const std::vector<float>& wanted) {
  int found = 0;
  for (std::size_t i = 0; i < got.size(); ++i) found += got[i] != wanted[i];
  return found;
}

// Returns how many points are wrong.
int solve(int rank, int ranks, const Shape& whole, int sweeps) {
  const Shape slab{whole.rows / ranks, whole.columns};
  const int width = std::min(whole.columns, kWidthMax);
  require(sweeps > 0 && slab.rows > 0 && slab.rows * ranks == whole.rows,
          "sweeps, and as many rows for each rank");
  require(width > 0 && width % 4 == 0 && whole.columns % width == 0,
          "a multiple of 4 columns, of 1024 beyond");
  Grid grid{rank,
            rank > 0 ? rank - 1 : MPI_PROC_NULL,
            rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL,
            slab,
            width,
            {DeviceArray<float>(slab.points()), DeviceArray<float>(slab.points())}};
  const Outcome ordinary = measure<Ordinary>(grid, sweeps);
  const Outcome partitioned = measure<Partitioned>(grid, sweeps);
  int wrong = differences(partitioned.plane, ordinary.plane);
  const bool small = static_cast<double>(whole.points()) * sweeps <= kSerialPoints;
  if (small) wrong += differences(ordinary.plane, serial(whole, slab, rank * slab.rows, sweeps));

  const double bytes = 2.0 * whole.columns * sizeof(float);
  if (rank == 0)
    std::printf("%6dx%-6d %12.1f %14.1f %14.1f %14.1f %6.2fx  %s\n", whole.rows, whole.columns,
                ordinary.us, partitioned.us, bytes / ordinary.us, bytes / partitioned.us,
                ordinary.us / partitioned.us, small ? "serial, too" : "each other");
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  use_device_of(rank);
  const int sweeps = argc > 1 ? std::atoi(argv[1]) : 500;
  std::vector<Shape> grids = {{64 * ranks, 256}, {256 * ranks, 1024}, {1024 * ranks, 4096}};
  if (argc > 2) grids.clear();
  for (int i = 2; i < argc; ++i) {
    Shape grid;
    require(std::sscanf(argv[i], "%dx%d", &grid.rows, &grid.columns) == 2, "grids as 256x1024");
    grids.push_back(grid);
  }

  if (rank == 0)
    std::printf("%13s %12s %14s %14s %14s %7s  %s\n", "grid", "ordinary us", "partitioned us",
                "ordinary MB/s", "partit. MB/s", "ratio", "compared with");
  int wrong = 0;
  for (const Shape& grid : grids) wrong += solve(rank, ranks, grid, sweeps);
  wrong = largest(wrong);
  if (rank == 0)
    std::printf("%d sweeps in %s memory of %d ranks: %s\n", sweeps, accord_runtime_name(), ranks,
                wrong == 0 ? "correct" : "WRONG");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
