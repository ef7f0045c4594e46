// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The program's own way for an MPI that takes no device memory: chunk by chunk to page-locked
// memory, from there by messages, and to the device as they arrive.
#pragma once

#include <vector>

#include "exchange.h"
#include "grows.h"

namespace moe {

class Staged : public Exchange {
 public:
  using Exchange::Exchange;
  void exchange(const Counts& counts) override;
  void exchange(const app::Array<float>& from, const Blocks& sent, const app::Array<float>& to,
                const Blocks& received) override;

 private:
  struct Chunk {
    int peer;
    int start;  // in the arrays
    int count;
  };

  void cut(const Blocks& blocks, bool receives, std::vector<Chunk>& chunks) const;
  void begin_receives(float* pinned);
  void begin_copies(const float* from, float* pinned);
  void send(std::size_t chunk, const float* pinned);
  // Begins the copies of what has arrived. Waits for a chunk if `waits`; false once there is none.
  bool land(float* to, const float* pinned, bool waits);

  app::Stream arrivals_;
  Grows<app::Pinned<float>> outgoing_;
  Grows<app::Pinned<float>> incoming_;
  std::vector<Chunk> sends_;
  std::vector<Chunk> receives_;
  std::vector<app::Event> copied_;  // chunk by chunk of those that are sent
  std::vector<MPI_Request> send_requests_;
  std::vector<MPI_Request> receive_requests_;
  std::vector<int> arrived_;
};

}  // namespace moe
