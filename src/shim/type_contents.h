// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a datatype has been made (MPI 4.1, 5.1.13), by int counts or by large ones: MPICH refuses to
// tell of the latter in ints, by the error handler of the program.
#pragma once

#include <mpi.h>

#include <vector>

namespace accord::shim {

// MPI_UNDEFINED where the handle is none.
int combiner_of(MPI_Datatype datatype) noexcept;

// Owns the handles it has been given.
class TypeContents {
 public:
  // Of a type that is not predefined; empty where the host MPI does not tell.
  explicit TypeContents(MPI_Datatype datatype);
  ~TypeContents();
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;

  int combiner() const noexcept { return combiner_; }
  // Integers and then addresses, in the order of the constructor's arguments.
  const std::vector<MPI_Count>& numbers() const noexcept { return numbers_; }
  const std::vector<MPI_Datatype>& types() const noexcept { return types_; }

 private:
  int combiner_ = MPI_UNDEFINED;
  std::vector<MPI_Count> numbers_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace accord::shim
