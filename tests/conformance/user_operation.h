// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// User-defined reduction operations, commutative and not, on predefined and on gapped derived
// types. Each is associative and exact, so that any order of evaluation the MPI may choose gives
// the same bits.
#pragma once

#include "run.h"

namespace accord::conformance {

struct UserReduction {
  MPI_Op op = MPI_OP_NULL;
  const TypeModel* type = nullptr;
  const char* name = "";
};

// Draws from run.global only: operation and type must be the same on all ranks.
UserReduction make_user_reduction(Run& run);

// What a user-defined operation complained about since the last call (a type it was not made for,
// memory in no state to be reduced); empty: nothing.
std::string take_user_operation_error();

}  // namespace accord::conformance
