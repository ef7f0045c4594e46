// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a rank makes sweeps and gets the rows that border its slab.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../common/mpi_time.h"
#include "grid.h"

namespace jacobi {

class Way {
 public:
  virtual ~Way() = default;
  // Makes sweeps from number 0 on and waits for them. Returns the residual of every `every`-th; 0
  // is never.
  virtual std::vector<float> run(int sweeps, int every) = 0;
  double seconds_in_mpi() const { return time_.seconds(); }

 protected:
  app::MpiTime time_;
};

// Borders go while the inner rows are made: by non-blocking messages of device memory, by MPI_Put
// from device memory to device memory, or by messages of page-locked memory and the program's own
// copies.
std::unique_ptr<Way> ordinary_way(const Grid& grid);
std::unique_ptr<Way> put_way(const Grid& grid);
std::unique_ptr<Way> staged_way(const Grid& grid);

// The blocks that make a border send it. This takes Accord and device memory.
std::unique_ptr<Way> partitioned_way(const Grid& grid);

inline std::unique_ptr<Way> make_way(const std::string& name, const Grid& grid) {
  if (name == "partitioned") return partitioned_way(grid);
  if (name == "put") return put_way(grid);
  return name == "staged" ? staged_way(grid) : ordinary_way(grid);
}

}  // namespace jacobi
