// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The communicators cases run on: every shape MPI has, made once through the oracle's functions and
// once through the tested ones, so that messages of the two never meet. Knows no cases.
#pragma once

#include <deque>
#include <vector>

#include "api.h"

namespace accord::conformance {

struct Comm {
  const char* name = "";
  MPI_Comm handle = MPI_COMM_NULL;
  bool member = false;  // whether this process belongs to it
  int rank = 0;
  int size = 1;  // of the local group
  bool inter = false;
  int remote_size = 0;
  int group = 0;  // which of an inter-communicator's two groups this process is in
  bool topology = false;
  bool distinct_edges = false;  // no pair of neighbours has two edges: counts may differ by edge
  bool doubled_sides = false;   // of a grid: one rank is on both sides of another, or of itself
  std::vector<int> sources;
  std::vector<int> destinations;

  int peers() const { return inter ? remote_size : size; }
};

class Communicators {
 public:
  // Collective over `world`, which must return errors.
  Communicators(const Api& api, MPI_Comm world, MPI_Comm self, std::uint64_t seed);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // In the same order on all processes; a process that is no member of one has member false.
  const std::deque<Comm>& all() const { return comms_; }
  const Comm& world() const { return comms_.front(); }

  // Indices into all(): what collectives without, and with, neighbours may use.
  const std::vector<int>& plain() const { return plain_; }
  const std::vector<int>& intra() const { return intra_; }
  const std::vector<int>& topologies() const { return topologies_; }

 private:
  Comm& add(const char* name, MPI_Comm handle);
  void add_splits();
  void add_inter(const char* name, int color);
  void add_cart(const char* name, std::vector<int> dims, std::vector<int> periods);
  void add_graphs(std::uint64_t seed);

  const Api& api_;
  std::deque<Comm> comms_;
  std::vector<int> plain_;
  std::vector<int> intra_;
  std::vector<int> topologies_;
  std::vector<MPI_Comm> owned_;
};

// Rank, size and the rest of a handle.
Comm describe_comm(const Api& api, const char* name, MPI_Comm handle);

}  // namespace accord::conformance
