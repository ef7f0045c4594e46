// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What goes between ranks: first how many tokens, then the tokens.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "../common/device.h"
#include "../common/event.h"
#include "../common/mpi_time.h"

namespace moe {

// Numbers of tokens by expert: as many for each rank. Both are in device memory; the host has what
// it has read of them in page-locked memory.
struct Counts {
  explicit Counts(std::size_t experts)
      : sent(experts), received(experts), sent_read(experts), received_read(experts) {}

  app::Array<int> sent;
  app::Array<int> received;
  app::Pinned<int> sent_read;
  app::Pinned<int> received_read;
};

// One a rank, in floats of an array.
struct Blocks {
  explicit Blocks(int ranks)
      : counts(static_cast<std::size_t>(ranks)), starts(static_cast<std::size_t>(ranks)) {}

  std::vector<int> counts;
  std::vector<int> starts;
};

class Exchange {
 public:
  Exchange(MPI_Comm comm, app::MpiTime& time);
  virtual ~Exchange() = default;

  // `counts.sent` and `sent_read` are there; returns once the host can read what it receives.
  virtual void exchange(const Counts& counts);
  // Device memory that no kernel works on. Returns once all have arrived.
  virtual void exchange(const app::Array<float>& from, const Blocks& sent,
                        const app::Array<float>& to, const Blocks& received) = 0;

 protected:
  // Peer `turn` of this rank; 0 is the rank itself. No two ranks begin with the same one.
  int peer(int turn) const { return (rank_ + turn) % ranks_; }

  MPI_Comm comm_;
  int rank_ = 0;
  int ranks_ = 0;
  app::MpiTime& time_;
  app::Stream copies_;
};

// `how` is alltoallv, messages or staged.
std::unique_ptr<Exchange> make_exchange(const std::string& how, MPI_Comm comm, app::MpiTime& time);

}  // namespace moe
