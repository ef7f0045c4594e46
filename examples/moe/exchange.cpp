// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "exchange.h"

#include "staged.h"

namespace moe {

Exchange::Exchange(MPI_Comm comm, app::MpiTime& time) : comm_(comm), time_(time) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
}

void Exchange::exchange(const Counts& counts) {
  const int each = static_cast<int>(counts.sent.count()) / ranks_;
  time_.of([&] {
    MPI_Alltoall(counts.sent.data(), each, MPI_INT, counts.received.data(), each, MPI_INT, comm_);
  });
  copies_.copy(counts.received_read.data(), counts.received.data(),
               counts.received.count() * sizeof(int));
  copies_.synchronise();
}

namespace {

class Alltoallv : public Exchange {
 public:
  using Exchange::Exchange;
  using Exchange::exchange;
  void exchange(const app::Array<float>& from, const Blocks& sent, const app::Array<float>& to,
                const Blocks& received) override {
    time_.of([&] {
      MPI_Alltoallv(from.data(), sent.counts.data(), sent.starts.data(), MPI_FLOAT, to.data(),
                    received.counts.data(), received.starts.data(), MPI_FLOAT, comm_);
    });
  }
};

// Each pair that has something to say to each other. What stays here is copied meanwhile.
class Messages : public Exchange {
 public:
  using Exchange::Exchange;
  using Exchange::exchange;
  void exchange(const app::Array<float>& from, const Blocks& sent, const app::Array<float>& to,
                const Blocks& received) override {
    const auto here = static_cast<std::size_t>(rank_);
    copies_.copy(to.data() + received.starts[here], from.data() + sent.starts[here],
                 static_cast<std::size_t>(sent.counts[here]) * sizeof(float));
    time_.of([&] {
      requests_.clear();
      for (int turn = 1; turn < ranks_; ++turn) {
        const int source = peer(ranks_ - turn);
        const auto at = static_cast<std::size_t>(source);
        if (received.counts[at] > 0)
          MPI_Irecv(to.data() + received.starts[at], received.counts[at], MPI_FLOAT, source, 0,
                    comm_, &requests_.emplace_back());
      }
      for (int turn = 1; turn < ranks_; ++turn) {
        const auto at = static_cast<std::size_t>(peer(turn));
        if (sent.counts[at] > 0)
          MPI_Isend(from.data() + sent.starts[at], sent.counts[at], MPI_FLOAT, peer(turn), 0, comm_,
                    &requests_.emplace_back());
      }
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    });
    copies_.synchronise();
  }

 private:
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(const std::string& how, MPI_Comm comm, app::MpiTime& time) {
  if (how == "staged") return std::make_unique<Staged>(comm, time);
  if (how == "messages") return std::make_unique<Messages>(comm, time);
  return std::make_unique<Alltoallv>(comm, time);
}

}  // namespace moe
