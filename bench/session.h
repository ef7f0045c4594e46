// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What is the same for the whole run: MPI, ranks, devices, element type, and the few things all
// ranks do together outside the timed calls. Those use the MPI library directly, on a communicator
// of their own, so that nothing measured is disturbed by them.
#pragma once

#include <mpi.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/accord_library.h"
#include "bench/cuda_library.h"
#include "bench/element.h"
#include "bench/mpi_table.h"
#include "bench/options.h"

namespace accord::bench {

// What the user asked for cannot be done here; thrown on all ranks alike.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Session {
 public:
  // After MPI_Init. Collective. Throws UsageError, and std::runtime_error where one rank alone
  // fails.
  explicit Session(Options options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Options options;
  MpiTable program;                       // intercepted where Accord is loaded
  HostMpi host;                           // never intercepted
  std::unique_ptr<AccordLibrary> accord;  // null: memory is malloc's
  std::unique_ptr<CudaLibrary> cuda;      // null unless Accord's runtime is CUDA
  MPI_Comm comm = MPI_COMM_WORLD;         // of the measured calls
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;
  int local_ranks = 1;
  int device = -1;
  const Element* element = nullptr;
  MPI_Datatype mpi_type = MPI_DATATYPE_NULL;
  ReduceOp op = ReduceOp::sum;
  MPI_Op mpi_op = MPI_OP_NULL;

  bool intercepted() const { return accord != nullptr && accord->intercepts(); }

  // Collective, not timed.
  void barrier() const;
  // `text` of the lowest rank whose text is not empty; empty when all are.
  std::string first_text(const std::string& text) const;
  double max(double value) const;
  double min(double value) const;
  // "ranks 0 and 1 share a GPU"; empty when none do. Needs CUDA.
  std::string shared_gpu() const;
  // Elementwise maximum over the ranks; only rank 0's result counts.
  void max_to_root(double* values, int count) const;
  double sum(double value) const;
  // From rank 0.
  void broadcast(void* bytes, std::size_t size_bytes) const;
  // What every rank gave, in rank order.
  std::vector<std::vector<unsigned char>> gather_bytes(const void* bytes,
                                                       std::size_t size_bytes) const;

 private:
  void choose_element();
  void choose_devices();

  MPI_Comm control_ = MPI_COMM_NULL;
};

}  // namespace accord::bench
