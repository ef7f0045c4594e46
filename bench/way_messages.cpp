// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective that moves data, as a program would write it by hand: one message for each block
// that a rank needs of another, all at once, through Accord where that intercepts. It shows the
// ways that messages go, also between nodes, which collectives do not take.
#include <stdexcept>

#include "bench/way.h"

namespace accord::bench {
namespace {

// Of one of the two ranks that it concerns: where a block lies, and whose it is or becomes.
struct Block {
  std::size_t first = 0;
  int count = 0;
  int peer = 0;
};

class MessagesWay final : public Way {
 public:
  explicit MessagesWay(const Session& session) : session_(session) {}

  std::string name() const override { return "messages"; }

  std::string why_not(const Operation& operation) override {
    if (!is_accord()) return "Accord does not intercept MPI here";
    if (operation.reduces || !operation.has_data) return "messages do not reduce";
    return operation.ranks_min > 1 ? "it is messages already" : "";
  }

  std::string prepare(const Trial& trial) override {
    buffers_ = trial.buffers;
    for (const Segment& segment : trial.operation->expected(trial.shape))
      receives_.push_back(
          {segment.recv_first, static_cast<int>(segment.count), segment.rank_first});
    Shape there = trial.shape;
    for (there.rank = 0; there.rank < there.ranks; ++there.rank) {
      for (const Segment& segment : trial.operation->expected(there)) {
        if (segment.rank_first == trial.shape.rank)
          sends_.push_back({segment.source_first, static_cast<int>(segment.count), there.rank});
      }
    }
    requests_.resize(receives_.size() + sends_.size());
    return "";
  }

  void run() override {
    constexpr int kBlockTag = 4;
    const MpiTable& mpi = session_.program;
    MPI_Request* next = requests_.data();
    bool is_right = true;
    for (const Block& block : receives_)
      is_right &= mpi.Irecv(at(buffers_.recv, block), block.count, session_.mpi_type, block.peer,
                            kBlockTag, session_.comm, next++) == MPI_SUCCESS;
    for (const Block& block : sends_)
      is_right &= mpi.Isend(at(buffers_.send, block), block.count, session_.mpi_type, block.peer,
                            kBlockTag, session_.comm, next++) == MPI_SUCCESS;
    is_right &= mpi.Waitall(static_cast<int>(requests_.size()), requests_.data(),
                            MPI_STATUSES_IGNORE) == MPI_SUCCESS;
    if (!is_right) throw std::runtime_error("an MPI call failed");
  }

  void release() override {
    receives_.clear();
    sends_.clear();
  }

  bool is_accord() const override { return session_.intercepted(); }

 private:
  void* at(void* buffer, const Block& block) const {
    return static_cast<char*>(buffer) + block.first * session_.element->size_bytes;
  }

  const Session& session_;
  Buffers buffers_;
  std::vector<Block> receives_;
  std::vector<Block> sends_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Way> make_messages(const Session& session) {
  return std::make_unique<MessagesWay>(session);
}

}  // namespace accord::bench
