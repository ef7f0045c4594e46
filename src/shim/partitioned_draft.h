// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned collective while it is being described: what is common to all of them. Where an
// argument is wrong, what follows has no effect and the request is not made.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "partitioned/collective.h"
#include "shim/shim.h"

namespace accord::shim {

// One block of a buffer, as one partition has it.
struct Cell {
  MPI_Count count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  MPI_Aint offset_bytes = 0;
};

struct Cells {
  const void* buffer = nullptr;
  std::vector<Cell> cells = {};
};

class PartitionedDraft {
 public:
  struct Frame {
    const char* name;
    int partitions;
    MPI_Comm comm;
    MPI_Info info;
    MPI_Request* request;
  };
  explicit PartitionedDraft(const Frame& frame);

  bool good() const noexcept { return error_ == MPI_SUCCESS && status_.ok(); }
  int rank() const noexcept { return plan_.rank; }
  int size() const noexcept { return static_cast<int>(plan_.processes.size()); }

  // Blocks of whole collectives.
  Cells one(const void* buffer, MPI_Count count, MPI_Datatype datatype) const;
  Cells alike(const void* buffer, int blocks, MPI_Count count, MPI_Datatype datatype) const;
  Cells by_counts(const void* buffer, int blocks, const int counts[], const int displacements[],
                  MPI_Datatype datatype) const;
  // One behind the other.
  Cells consecutive(const void* buffer, const std::vector<MPI_Count>& counts,
                    MPI_Datatype datatype) const;
  template <class Displacement>
  Cells by_types(const void* buffer, int blocks, const int counts[],
                 const Displacement displacements[], const MPI_Datatype datatypes[]) const {
    Cells made{buffer};
    for (int i = 0; i < blocks; ++i)
      made.cells.push_back({counts[i], datatypes[i], static_cast<MPI_Aint>(displacements[i])});
    return made;
  }

  void contributes(const Cells& cells) { fill(plan_.contribution, cells); }
  void results(const Cells& cells) { fill(plan_.result, cells); }
  // This rank does not mark, or does not look.
  void gives_nothing() { plan_.gives = false; }
  void gets_nothing() { plan_.gets = false; }
  void check_root(int root);
  // Equal on all ranks, or the collective is not one.
  void agree(std::uint64_t value);
  void agree_on_bytes(MPI_Count count, MPI_Datatype datatype);

  // A reduction of blocks of `count` elements of a partition; whether it may be made where the
  // result shall be.
  enum class Made { apart, in_result };
  partitioned::ReductionOutline reduces(std::size_t count, MPI_Datatype datatype, MPI_Op op,
                                        Made made);

  // Within a node kernels may do it; `can`: with this rank's buffers.
  void by_kernels(const device::PartitionShape& shape, bool can = true) {
    plan_.by_kernels = shape;
    plan_.kernels_may = can;
  }

  // Makes the request.
  int finish(partitioned::Schedule schedule);
  // Raises what is wrong.
  int fail();

 private:
  void fill(partitioned::PartitionArea& area, const Cells& cells);
  void check_operation(MPI_Datatype datatype, MPI_Op op);
  void begin();
  void refuse(int error_class) {
    if (good()) error_ = error_class;
  }
  void refuse(Status status) {
    if (good()) status_ = std::move(status);
  }

  Frame frame_;
  int error_ = MPI_SUCCESS;  // a class of the host MPI's
  Status status_;
  partitioned::CollectivePlan plan_;
};

}  // namespace accord::shim
