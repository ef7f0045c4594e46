// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <mpi.h>

namespace app {

// The time that a rank spends in MPI calls.
class MpiTime {
 public:
  template <class Calls>
  void of(const Calls& calls) {
    const double start = MPI_Wtime();
    calls();
    seconds_ += MPI_Wtime() - start;
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
};

}  // namespace app
