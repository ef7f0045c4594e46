// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/canonical.h"

#include <algorithm>
#include <iterator>

namespace accord::shim {
namespace {

// 1 + the place of `value` in `list`, or 0.
template <class Handle, std::size_t kCount>
std::uint32_t place(const Handle (&list)[kCount], Handle value) {
  const auto found = std::find(std::begin(list), std::end(list), value);
  return found == std::end(list) ? 0 : static_cast<std::uint32_t>(found - std::begin(list) + 1);
}

}  // namespace

std::uint32_t canonical_op(MPI_Op op) noexcept {
  const MPI_Op list[] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_LAND,   MPI_LOR,
                         MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
  return place(list, op);
}

std::uint32_t canonical_type(MPI_Datatype datatype) noexcept {
  const MPI_Datatype list[] = {MPI_CHAR,
                               MPI_SIGNED_CHAR,
                               MPI_UNSIGNED_CHAR,
                               MPI_BYTE,
                               MPI_WCHAR,
                               MPI_SHORT,
                               MPI_UNSIGNED_SHORT,
                               MPI_INT,
                               MPI_UNSIGNED,
                               MPI_LONG,
                               MPI_UNSIGNED_LONG,
                               MPI_LONG_LONG,
                               MPI_UNSIGNED_LONG_LONG,
                               MPI_FLOAT,
                               MPI_DOUBLE,
                               MPI_LONG_DOUBLE,
                               MPI_INT8_T,
                               MPI_UINT8_T,
                               MPI_INT16_T,
                               MPI_UINT16_T,
                               MPI_INT32_T,
                               MPI_UINT32_T,
                               MPI_INT64_T,
                               MPI_UINT64_T,
                               MPI_C_BOOL,
                               MPI_C_FLOAT_COMPLEX,
                               MPI_C_DOUBLE_COMPLEX,
                               MPI_C_LONG_DOUBLE_COMPLEX,
                               MPI_AINT,
                               MPI_OFFSET,
                               MPI_COUNT,
                               MPI_PACKED};
  return place(list, datatype);
}

}  // namespace accord::shim
