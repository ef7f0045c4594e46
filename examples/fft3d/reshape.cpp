// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "reshape.h"

#include <algorithm>
#include <array>
#include <climits>
#include <stdexcept>

namespace fft3d {

std::size_t Blocks::in_waves() const {
  return static_cast<std::size_t>(outer.total) * static_cast<std::size_t>(middle) *
         static_cast<std::size_t>(inner.size(rank));
}

Reshape::Reshape(Device& device, MPI_Comm comm, const Blocks& blocks)
    : device_(device), comm_(comm), ranks_(blocks.inner.parts), blocks_(blocks) {
  if (blocks.in_waves() > INT_MAX || blocks.in_points() > INT_MAX)
    throw std::runtime_error("more elements in a rank than an int counts: take more ranks");
  const int mine = blocks.inner.size(blocks.rank);
  const int rows = static_cast<int>(blocks.rows());
  for (int peer = 0; peer < ranks_; ++peer) {
    wave_counts_.push_back(blocks.outer.size(peer) * blocks.middle * mine);
    wave_starts_.push_back(blocks.outer.first(peer) * blocks.middle * mine);
    point_counts_.push_back(rows * blocks.inner.size(peer));
    point_starts_.push_back(rows * blocks.inner.first(peer));
  }
}

void Reshape::pack(int peer, const Complex* array, Complex* block) {
  const auto width = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.size(peer));
  const auto pitch = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.total);
  const Complex* const rows = array + blocks_.inner.first(peer);
  if (point_counts_[index(peer)] > 0)
    device_.copy_rows(block, width, rows, pitch, width, blocks_.rows());
}

void Reshape::unpack(int peer, const Complex* block, Complex* array) {
  const auto width = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.size(peer));
  const auto pitch = sizeof(Complex) * static_cast<std::size_t>(blocks_.inner.total);
  Complex* const rows = array + blocks_.inner.first(peer);
  if (point_counts_[index(peer)] > 0)
    device_.copy_rows(rows, pitch, block, width, width, blocks_.rows());
}

namespace {

// One MPI_Alltoallv between what lies contiguous already, and a packed copy of the rows.
class ByAlltoallv : public Reshape {
 public:
  ByAlltoallv(Device& device, MPI_Comm comm, const Blocks& blocks)
      : Reshape(device, comm, blocks), packed_(device, blocks.in_points()) {}

  void to_points(const Complex* from, Complex* to) override {
    timed([&] {
      MPI_Alltoallv(from, wave_counts_.data(), wave_starts_.data(), MPI_C_DOUBLE_COMPLEX,
                    packed_.data(), point_counts_.data(), point_starts_.data(),
                    MPI_C_DOUBLE_COMPLEX, comm_);
    });
    for (int peer = 0; peer < ranks_; ++peer)
      unpack(peer, packed_.data() + point_starts_[index(peer)], to);
  }
  void to_waves(const Complex* from, Complex* to) override {
    for (int peer = 0; peer < ranks_; ++peer)
      pack(peer, from, packed_.data() + point_starts_[index(peer)]);
    device_.synchronise();
    timed([&] {
      MPI_Alltoallv(packed_.data(), point_counts_.data(), point_starts_.data(),
                    MPI_C_DOUBLE_COMPLEX, to, wave_counts_.data(), wave_starts_.data(),
                    MPI_C_DOUBLE_COMPLEX, comm_);
    });
  }

 private:
  Array<Complex> packed_;
};

// One MPI_Alltoallw, which packs rows by itself: no memory is needed besides.
class ByAlltoallw : public Reshape {
 public:
  ByAlltoallw(Device& device, MPI_Comm comm, const Blocks& blocks)
      : Reshape(device, comm, blocks), starts_(index(ranks_), 0) {
    const Split& outer = blocks.outer;
    const Split& inner = blocks.inner;
    const int outer_mine = outer.size(blocks.rank);
    const int inner_mine = inner.size(blocks.rank);
    for (int peer = 0; peer < ranks_; ++peer) {
      waves_.add({outer.total, blocks.middle, inner_mine},
                 {outer.size(peer), blocks.middle, inner_mine}, {outer.first(peer), 0, 0});
      points_.add({outer_mine, blocks.middle, inner.total},
                  {outer_mine, blocks.middle, inner.size(peer)}, {0, 0, inner.first(peer)});
    }
  }

  void to_points(const Complex* from, Complex* to) override { exchange(from, waves_, to, points_); }
  void to_waves(const Complex* from, Complex* to) override { exchange(from, points_, to, waves_); }

 private:
  // A peer's block of an array, as a type.
  struct Types {
    std::vector<int> counts;
    std::vector<MPI_Datatype> types;

    Types() = default;
    ~Types() {
      for (std::size_t i = 0; i < types.size(); ++i)
        if (counts[i] > 0) MPI_Type_free(&types[i]);
    }
    Types(const Types&) = delete;
    Types& operator=(const Types&) = delete;

    void add(const std::array<int, 3>& array, const std::array<int, 3>& block,
             const std::array<int, 3>& first) {
      // A subarray must not be empty.
      counts.push_back(block[0] > 0 && block[1] > 0 && block[2] > 0 ? 1 : 0);
      types.push_back(MPI_C_DOUBLE_COMPLEX);
      if (counts.back() == 0) return;
      MPI_Type_create_subarray(3, array.data(), block.data(), first.data(), MPI_ORDER_C,
                               MPI_C_DOUBLE_COMPLEX, &types.back());
      MPI_Type_commit(&types.back());
    }
  };

  void exchange(const Complex* from, const Types& sent, Complex* to, const Types& received) {
    timed([&] {
      MPI_Alltoallw(from, sent.counts.data(), starts_.data(), sent.types.data(), to,
                    received.counts.data(), starts_.data(), received.types.data(), comm_);
    });
  }

  std::vector<int> starts_;  // all 0: the types say where
  Types waves_;
  Types points_;
};

// A message to each peer. What a rank keeps is copied, and a block is unpacked while others are on
// their way.
class ByMessages : public Reshape {
 public:
  ByMessages(Device& device, MPI_Comm comm, const Blocks& blocks)
      : Reshape(device, comm, blocks),
        packed_(device, blocks.in_points()),
        receives_(index(ranks_), MPI_REQUEST_NULL),
        sends_(index(ranks_), MPI_REQUEST_NULL) {}

  void to_points(const Complex* from, Complex* to) override {
    timed([&] {
      for_peers([&](int peer) { receive(peer, packed_block(peer), point_counts_); });
      for_peers([&](int peer) { send(peer, from + wave_starts_[index(peer)], wave_counts_); });
    });
    unpack(blocks_.rank, from + wave_starts_[index(blocks_.rank)], to);
    for_arriving([&](int peer) { unpack(peer, packed_block(peer), to); });
    wait_for_sends();
  }

  void to_waves(const Complex* from, Complex* to) override {
    timed([&] {
      for_peers([&](int peer) { receive(peer, to + wave_starts_[index(peer)], wave_counts_); });
    });
    for_peers([&](int peer) { pack(peer, from, packed_block(peer)); });
    device_.synchronise();
    timed([&] { for_peers([&](int peer) { send(peer, packed_block(peer), point_counts_); }); });
    pack(blocks_.rank, from, to + wave_starts_[index(blocks_.rank)]);
    timed([&] { MPI_Waitall(ranks_, receives_.data(), MPI_STATUSES_IGNORE); });
    wait_for_sends();
  }

 protected:
  Complex* packed_block(int peer) { return packed_.data() + point_starts_[index(peer)]; }

  // The next one first, so that not all ranks begin with the same peer.
  template <class Body>
  void for_peers(const Body& body) const {
    for (int i = 1; i < ranks_; ++i) body((blocks_.rank + i) % ranks_);
  }
  // Calls body(peer) as blocks arrive.
  template <class Body>
  void for_arriving(const Body& body) {
    for (;;) {
      int peer = MPI_UNDEFINED;
      timed([&] { MPI_Waitany(ranks_, receives_.data(), &peer, MPI_STATUS_IGNORE); });
      if (peer == MPI_UNDEFINED) break;
      body(peer);
    }
  }
  void receive(int peer, Complex* block, const std::vector<int>& counts) {
    MPI_Irecv(block, counts[index(peer)], MPI_C_DOUBLE_COMPLEX, peer, 0, comm_,
              &receives_[index(peer)]);
  }
  void send(int peer, const Complex* block, const std::vector<int>& counts) {
    MPI_Isend(block, counts[index(peer)], MPI_C_DOUBLE_COMPLEX, peer, 0, comm_,
              &sends_[index(peer)]);
  }
  void wait_for_sends() {
    timed([&] { MPI_Waitall(ranks_, sends_.data(), MPI_STATUSES_IGNORE); });
  }

 private:
  Array<Complex> packed_;
  std::vector<MPI_Request> receives_;  // by peer; null for those that are complete, and this rank
  std::vector<MPI_Request> sends_;
};

// The same for an MPI that knows no device memory: blocks are copied to pinned memory and back. A
// block is copied while others are on their way.
class ByStaging : public ByMessages {
 public:
  ByStaging(Device& device, MPI_Comm comm, const Blocks& blocks)
      : ByMessages(device, comm, blocks),
        sent_(device, std::max(blocks.in_points(), blocks.in_waves())),
        received_(device, std::max(blocks.in_points(), blocks.in_waves())) {
    for (int peer = 0; peer < ranks_; ++peer) copied_.push_back(device.event());
  }

  void to_points(const Complex* from, Complex* to) override {
    begin_receives(point_counts_, point_starts_);
    for_peers([&](int peer) {
      begin_copy(sent_.data(), from, wave_counts_, wave_starts_, peer);
      copied_[index(peer)]->record();
    });
    unpack(blocks_.rank, from + wave_starts_[index(blocks_.rank)], to);
    send_copied(wave_counts_, wave_starts_);
    for_arriving([&](int peer) {
      begin_copy(packed_block(0), received_.data(), point_counts_, point_starts_, peer);
      unpack(peer, packed_block(peer), to);
    });
    wait_for_sends();
  }

  void to_waves(const Complex* from, Complex* to) override {
    begin_receives(wave_counts_, wave_starts_);
    for_peers([&](int peer) {
      pack(peer, from, packed_block(peer));
      begin_copy(sent_.data(), packed_block(0), point_counts_, point_starts_, peer);
      copied_[index(peer)]->record();
    });
    pack(blocks_.rank, from, to + wave_starts_[index(blocks_.rank)]);
    send_copied(point_counts_, point_starts_);
    for_arriving(
        [&](int peer) { begin_copy(to, received_.data(), wave_counts_, wave_starts_, peer); });
    wait_for_sends();
  }

 private:
  using Ints = std::vector<int>;

  // A peer's block, which lies at the same place in `to` and `from`.
  void begin_copy(Complex* to, const Complex* from, const Ints& counts, const Ints& starts,
                  int peer) {
    const int start = starts[index(peer)];
    device_.begin_copy(to + start, from + start, sizeof(Complex) * index(counts[index(peer)]));
  }
  void begin_receives(const Ints& counts, const Ints& starts) {
    timed([&] {
      for_peers([&](int peer) { receive(peer, received_.data() + starts[index(peer)], counts); });
    });
  }
  void send_copied(const Ints& counts, const Ints& starts) {
    for_peers([&](int peer) {
      copied_[index(peer)]->wait();
      timed([&] { send(peer, sent_.data() + starts[index(peer)], counts); });
    });
  }

  Pinned<Complex> sent_, received_;
  std::vector<std::unique_ptr<Event>> copied_;  // of each peer
};

}  // namespace

std::unique_ptr<Reshape> make_reshape(const std::string& how, Device& device, MPI_Comm comm,
                                      const Split& outer, int middle, const Split& inner) {
  Blocks blocks{outer, middle, inner, 0};
  MPI_Comm_rank(comm, &blocks.rank);
  if (how == "alltoallv") return std::make_unique<ByAlltoallv>(device, comm, blocks);
  if (how == "alltoallw") return std::make_unique<ByAlltoallw>(device, comm, blocks);
  if (how == "messages") return std::make_unique<ByMessages>(device, comm, blocks);
  if (how == "staged") return std::make_unique<ByStaging>(device, comm, blocks);
  throw std::runtime_error("no reshape by " + how);
}

}  // namespace fft3d
