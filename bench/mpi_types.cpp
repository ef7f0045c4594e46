// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/mpi_types.h"

namespace accord::bench {

MPI_Datatype mpi_type_of(std::string_view element_name) {
  struct Row {
    const char* name;
    MPI_Datatype type;
  };
  const Row rows[] = {
      {"int8", MPI_INT8_T},
      {"int16", MPI_INT16_T},
      {"int32", MPI_INT32_T},
      {"int64", MPI_INT64_T},
      {"uint8", MPI_UINT8_T},
      {"uint16", MPI_UINT16_T},
      {"uint32", MPI_UINT32_T},
      {"uint64", MPI_UINT64_T},
      {"float32", MPI_FLOAT},
      {"float64", MPI_DOUBLE},
      {"complex64", MPI_C_FLOAT_COMPLEX},
      {"complex128", MPI_C_DOUBLE_COMPLEX},
      {"byte", MPI_BYTE},
#ifdef MPIX_C_FLOAT16
      {"float16", MPIX_C_FLOAT16},
#endif
#ifdef MPIX_BFLOAT16
      {"bfloat16", MPIX_BFLOAT16},
#endif
  };
  for (const Row& row : rows) {
    if (element_name == row.name) return row.type;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::prod:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::land:
      return MPI_LAND;
    case ReduceOp::lor:
      return MPI_LOR;
    case ReduceOp::lxor:
      return MPI_LXOR;
    case ReduceOp::band:
      return MPI_BAND;
    case ReduceOp::bor:
      return MPI_BOR;
    case ReduceOp::bxor:
      return MPI_BXOR;
  }
  return MPI_OP_NULL;
}

}  // namespace accord::bench
