// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The ways to fill the ghosts of a grid in device memory with the points of neighbours:
//   types     a message to each neighbour, of a subarray type: MPI finds the points
//   neighbor  the same by one MPI_Ineighbor_alltoallw
//   packed    a kernel packs the points, and MPI gets contiguous device memory
//   staged    a kernel packs the points, and MPI gets pinned memory of the CPU: what a program
//             does for an MPI that knows no device memory
#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"
#include "grid.h"
#include "mpi_time.h"

namespace app {

// Pinned memory of the CPU for `count` elements of a type.
template <class T>
class Pinned {
 public:
  explicit Pinned(std::size_t count)
      : data_(static_cast<T*>(pinned_allocate((count > 0 ? count : 1) * sizeof(T)))) {}
  ~Pinned() { pinned_release(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* data() const { return data_; }

 private:
  T* data_;
};

// Once a step: start, send and finish, of the same field. A kernel that needs no ghosts is best
// begun after start, on another stream: it runs while messages are under way.
class Halo {
 public:
  virtual ~Halo() = default;
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;

  // The field is complete once `stream` is synchronised.
  virtual void start(const Array<double>& field) = 0;
  virtual void send() {}
  // What is begun on `stream` afterwards finds the ghosts filled.
  virtual void finish(const Array<double>& field) = 0;

 protected:
  struct Neighbour {
    Triple direction;
    int rank;
  };

  Halo(const Grid& grid, bool only_faces, Stream& stream, MpiTime& time)
      : comm_(grid.comm()), layout_(grid.layout()), stream_(stream), time_(time) {
    for (const Triple& direction : directions(only_faces)) {
      const int rank = grid.neighbour(direction);
      if (rank == MPI_PROC_NULL) continue;
      neighbours_.push_back({direction, rank});
      add_boxes(direction, grid.mine());
    }
    sends_.resize(neighbours_.size(), MPI_REQUEST_NULL);
    receives_.resize(neighbours_.size(), MPI_REQUEST_NULL);
  }

  // The tag is the direction in which a message goes, since two neighbours may be the same rank.
  void begin_send(int i, const void* from, int count, MPI_Datatype type) {
    const Neighbour& to = neighbours_[index(i)];
    MPI_Isend(from, count, type, to.rank, tag(to.direction), comm_, &sends_[index(i)]);
  }
  void begin_receive(int i, void* to, int count, MPI_Datatype type) {
    const Neighbour& from = neighbours_[index(i)];
    MPI_Irecv(to, count, type, from.rank, kOpposite - tag(from.direction), comm_,
              &receives_[index(i)]);
  }
  void wait_for_all(std::vector<MPI_Request>& requests) {
    time_.of([&] {
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    });
  }
  int count() const { return borders_.boxes; }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  MPI_Comm comm_;
  Layout layout_;
  Stream& stream_;
  MpiTime& time_;
  std::vector<Neighbour> neighbours_;
  Boxes borders_;  // what each neighbour gets
  Boxes ghosts_;   // what it fills, as many points
  std::vector<MPI_Request> sends_, receives_;

 private:
  static constexpr int kOpposite = 26;
  static int tag(const Triple& direction) {
    return 9 * (direction[0] + 1) + 3 * (direction[1] + 1) + direction[2] + 1;
  }

  void add_boxes(const Triple& direction, const Triple& n) {
    Triple border{1, 1, 1};
    Triple ghost{1, 1, 1};
    Triple size = n;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (direction[axis] == 0) continue;
      border[axis] = direction[axis] < 0 ? 1 : n[axis];
      ghost[axis] = border[axis] + direction[axis];
      size[axis] = 1;
    }
    borders_.add(border, size);
    ghosts_.add(ghost, size);
  }
};

// Boxes of a field as types of MPI.
class BoxTypes {
 public:
  BoxTypes() = default;
  ~BoxTypes() {
    for (MPI_Datatype& type : types_) MPI_Type_free(&type);
  }
  BoxTypes(const BoxTypes&) = delete;
  BoxTypes& operator=(const BoxTypes&) = delete;

  void add(const Layout& layout, const Boxes& boxes, int box) {
    const int field[3] = {layout.n[0] + 2, layout.n[1] + 2, layout.n[2] + 2};
    types_.push_back(MPI_DATATYPE_NULL);
    MPI_Type_create_subarray(3, field, boxes.size[box], boxes.first[box], MPI_ORDER_C, MPI_DOUBLE,
                             &types_.back());
    MPI_Type_commit(&types_.back());
  }
  MPI_Datatype operator[](int box) const { return types_[static_cast<std::size_t>(box)]; }
  const MPI_Datatype* data() const { return types_.data(); }

 private:
  std::vector<MPI_Datatype> types_;
};

class HaloByTypes : public Halo {
 public:
  HaloByTypes(const Grid& grid, bool only_faces, Stream& stream, MpiTime& time)
      : Halo(grid, only_faces, stream, time) {
    for (int i = 0; i < count(); ++i) {
      sent_.add(layout_, borders_, i);
      received_.add(layout_, ghosts_, i);
    }
  }

  void start(const Array<double>& field) override {
    stream_.synchronise();
    time_.of([&] {
      for (int i = 0; i < count(); ++i) begin_receive(i, field.data(), 1, received_[i]);
      for (int i = 0; i < count(); ++i) begin_send(i, field.data(), 1, sent_[i]);
    });
  }
  void finish(const Array<double>&) override {
    wait_for_all(receives_);
    wait_for_all(sends_);
  }

 private:
  BoxTypes sent_, received_;
};

class HaloByNeighbor : public Halo {
 public:
  HaloByNeighbor(const Grid& grid, bool only_faces, Stream& stream, MpiTime& time)
      : Halo(grid, only_faces, stream, time) {
    // If two neighbours are the same rank, their messages match in order. So the receives are in
    // the order of the directions in which messages go: opposite to where the sender is.
    std::vector<int> to, from;
    for (int i = 0; i < count(); ++i) {
      to.push_back(neighbours_[index(i)].rank);
      sent_.add(layout_, borders_, i);
    }
    for (const Triple& direction : directions(only_faces))
      for (int i = 0; i < count(); ++i)
        if (neighbours_[index(i)].direction ==
            Triple{-direction[0], -direction[1], -direction[2]}) {
          from.push_back(neighbours_[index(i)].rank);
          received_.add(layout_, ghosts_, i);
        }
    // From a communicator without a topology: Open MPI 5 takes a graph of a grid for a grid.
    MPI_Dist_graph_create_adjacent(grid.plain_comm(), count(), from.data(), MPI_UNWEIGHTED, count(),
                                   to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
    ones_.assign(to.size(), 1);
    starts_.assign(to.size(), 0);
  }
  ~HaloByNeighbor() override { MPI_Comm_free(&graph_); }

  void start(const Array<double>& field) override {
    stream_.synchronise();
    time_.of([&] {
      MPI_Ineighbor_alltoallw(field.data(), ones_.data(), starts_.data(), sent_.data(),
                              field.data(), ones_.data(), starts_.data(), received_.data(), graph_,
                              &request_);
    });
  }
  void finish(const Array<double>&) override {
    time_.of([&] { MPI_Wait(&request_, MPI_STATUS_IGNORE); });
  }

 private:
  BoxTypes sent_, received_;
  std::vector<int> ones_;
  std::vector<MPI_Aint> starts_;  // all 0: the types say where
  MPI_Comm graph_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// Kernels that copy between the points of boxes and contiguous memory.
struct PackBoxes {
  const double* field;
  double* packed;
  Boxes boxes;
  Layout layout;
  ON_DEVICE void operator()(int i) const { packed[i] = field[boxes.place(layout, i)]; }
};
struct UnpackBoxes {
  const double* packed;
  double* field;
  Boxes boxes;
  Layout layout;
  ON_DEVICE void operator()(int i) const { field[boxes.place(layout, i)] = packed[i]; }
};

class HaloByPacking : public Halo {
 public:
  HaloByPacking(const Grid& grid, bool only_faces, Stream& stream, MpiTime& time)
      : Halo(grid, only_faces, stream, time),
        sent_(index(borders_.count())),
        received_(index(ghosts_.count())) {}

  void start(const Array<double>& field) override {
    receive_into(received_.data());
    pack(field);
  }
  void send() override {
    stream_.synchronise();
    send_from(sent_.data(), 0, count());
  }
  void finish(const Array<double>& field) override {
    wait_for_all(receives_);
    unpack(field);
    wait_for_all(sends_);
  }

 protected:
  void pack(const Array<double>& field) {
    Kernel kernel(stream_);
    kernel.run(borders_.count(),
               PackBoxes{kernel.reads(field), kernel.writes(sent_), borders_, layout_});
  }
  void unpack(const Array<double>& field) {
    Kernel kernel(stream_);
    kernel.run(ghosts_.count(),
               UnpackBoxes{kernel.reads(received_), kernel.writes(field), ghosts_, layout_});
  }
  void receive_into(double* packed) {
    time_.of([&] {
      for (int i = 0; i < count(); ++i)
        begin_receive(i, packed + ghosts_.start[i], ghosts_.count(i), MPI_DOUBLE);
    });
  }
  void send_from(const double* packed, int begin, int end) {
    time_.of([&] {
      for (int i = begin; i < end; ++i)
        begin_send(i, packed + borders_.start[i], borders_.count(i), MPI_DOUBLE);
    });
  }

  Array<double> sent_, received_;
};

// Large blocks are copied each by itself, so that one is copied while others are under way. Copies
// of small blocks would take longer than what they gain: they go together.
class HaloByStaging : public HaloByPacking {
 public:
  HaloByStaging(const Grid& grid, bool only_faces, Stream& stream, MpiTime& time)
      : HaloByPacking(grid, only_faces, stream, time),
        host_sent_(sent_.count()),
        host_received_(received_.count()) {
    bool joins = false;
    for (int i = 0; i < count(); ++i) {
      const bool is_small = borders_.count(i) < kLarge;
      if (!joins || !is_small) {
        chunks_.push_back({i, i});
        streams_.emplace_back();
      }
      chunks_.back().end = i + 1;
      chunk_of_.push_back(chunks_.size() - 1);
      joins = is_small;
    }
  }

  void start(const Array<double>& field) override {
    receive_into(host_received_.data());
    pack(field);
  }
  void send() override {
    stream_.synchronise();
    for (std::size_t c = 0; c < chunks_.size(); ++c) copy(c, host_sent_.data(), sent_.data());
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      streams_[c].synchronise();
      send_from(host_sent_.data(), chunks_[c].begin, chunks_[c].end);
      chunks_[c].missing = chunks_[c].end - chunks_[c].begin;
    }
  }
  void finish(const Array<double>& field) override {
    for (;;) {
      int i = MPI_UNDEFINED;
      time_.of([&] { MPI_Waitany(count(), receives_.data(), &i, MPI_STATUS_IGNORE); });
      if (i == MPI_UNDEFINED) break;
      const std::size_t c = chunk_of_[index(i)];
      if (--chunks_[c].missing == 0) copy(c, received_.data(), host_received_.data());
    }
    for (Stream& stream : streams_) stream.synchronise();
    unpack(field);
    wait_for_all(sends_);
  }

 private:
  static constexpr int kLarge = 64 * 1024 / sizeof(double);  // points

  // Blocks that are copied together.
  struct Chunk {
    int begin;
    int end;
    int missing = 0;
  };

  void copy(std::size_t c, double* to, const double* from) {
    const int begin = borders_.start[chunks_[c].begin];
    const int end = borders_.start[chunks_[c].end];
    streams_[c].copy(to + begin, from + begin, index(end - begin) * sizeof(double));
  }

  Pinned<double> host_sent_, host_received_;
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> chunk_of_;  // of a block
  std::deque<Stream> streams_;         // of a chunk
};

// `how` is types, neighbor, packed or staged. Ghosts at edges and corners are left alone if only
// faces count. Collective.
inline std::unique_ptr<Halo> make_halo(const std::string& how, const Grid& grid, bool only_faces,
                                       Stream& stream, MpiTime& time) {
  if (how == "types") return std::make_unique<HaloByTypes>(grid, only_faces, stream, time);
  if (how == "neighbor") return std::make_unique<HaloByNeighbor>(grid, only_faces, stream, time);
  if (how == "packed") return std::make_unique<HaloByPacking>(grid, only_faces, stream, time);
  if (how == "staged") return std::make_unique<HaloByStaging>(grid, only_faces, stream, time);
  throw std::runtime_error("no exchange by " + how);
}

}  // namespace app
