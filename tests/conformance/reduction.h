// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// An operation with a type it is legal on, and buffers of values on which it is exact. Used by the
// collective reductions and by Reduce_local.
#pragma once

#include "run.h"
#include "user_operation.h"

namespace accord::conformance {

struct Reduction {
  MPI_Op op = MPI_OP_NULL;
  const TypeModel* type = nullptr;
  Values values = Values::sum;
  const char* name = "";
  bool user = false;
};

// Draws from run.global only.
Reduction random_reduction(Run& run);

// `count` elements holding values of contributor `rank`.
Buffer& reduction_buffer(Run& run, const char* role, const Reduction& reduction, std::int64_t count,
                         int rank);

// No operation defines the padding inside predefined types.
void set_padding_loose(Run& run, Buffer& buffer, const Reduction& reduction, std::int64_t count);

}  // namespace accord::conformance
