// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a datatype has been made (MPI 4.1, 5.1.13), by int counts or by large ones: MPICH refuses to
// tell of the latter in ints, by the error handler of the program.
#pragma once

#include <mpi.h>

#include <vector>

namespace accord::shim {

// Of MPI 4.1; -1 is none of older ones.
#if defined(MPI_VERSION) && (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))
inline constexpr int kCombinerValueIndex = MPI_COMBINER_VALUE_INDEX;
#else
inline constexpr int kCombinerValueIndex = -1;
#endif

// MPI_UNDEFINED where the handle is none.
int combiner_of(MPI_Datatype datatype);

// Of types that the program has not made, nor may free: named ones, Fortran's of a given precision
// and pairs that MPI_Type_get_value_index has found.
bool is_predefined(int combiner);

// Owns the handles it has been given.
class TypeContents {
 public:
  // Of a type that is not predefined; empty where the host MPI does not tell.
  explicit TypeContents(MPI_Datatype datatype);
  ~TypeContents();
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;

  int combiner() const noexcept { return combiner_; }
  // Integers, then addresses, then large counts: but for arrays (subarray, darray) in the order of
  // the constructor's arguments, whichever of the kinds they are.
  const std::vector<MPI_Count>& numbers() const noexcept { return numbers_; }
  const std::vector<MPI_Datatype>& types() const noexcept { return types_; }
  // Whether it has been made with large counts.
  bool is_large() const noexcept { return is_large_; }

 private:
  int combiner_ = MPI_UNDEFINED;
  bool is_large_ = false;
  std::vector<MPI_Count> numbers_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace accord::shim
