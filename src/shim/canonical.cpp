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

const char* op_word(MPI_Op op) noexcept {
  // In the order of canonical_op.
  constexpr const char* kWords[] = {"user-defined operation",
                                    "sum",
                                    "prod",
                                    "min",
                                    "max",
                                    "land",
                                    "lor",
                                    "lxor",
                                    "band",
                                    "bor",
                                    "bxor",
                                    "minloc",
                                    "maxloc"};
  return kWords[canonical_op(op)];
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

device::ReduceOp device_op(MPI_Op op) noexcept {
  // The first ten of canonical_op, in the same order.
  const std::uint32_t number = canonical_op(op);
  return number <= static_cast<std::uint32_t>(device::ReduceOp::bxor)
             ? static_cast<device::ReduceOp>(number)
             : device::ReduceOp::none;
}

namespace {

device::Element integer(std::size_t size_bytes, bool is_signed) {
  using device::Element;
  switch (size_bytes) {
    case 1:
      return is_signed ? Element::int8 : Element::uint8;
    case 2:
      return is_signed ? Element::int16 : Element::uint16;
    case 4:
      return is_signed ? Element::int32 : Element::uint32;
    case 8:
      return is_signed ? Element::int64 : Element::uint64;
    default:
      return Element::none;
  }
}

// C types by their C type, so that sizes are this machine's.
device::Element element_of(MPI_Datatype datatype) {
  using device::Element;
  struct Known {
    MPI_Datatype datatype;
    Element element;
  };
  const Known list[] = {
      {MPI_FLOAT, Element::float32},
      {MPI_DOUBLE, Element::float64},
      {MPI_INT, integer(sizeof(int), true)},
      {MPI_LONG, integer(sizeof(long), true)},
      {MPI_UNSIGNED, integer(sizeof(unsigned), false)},
      {MPI_UNSIGNED_LONG, integer(sizeof(unsigned long), false)},
      {MPI_LONG_LONG, integer(sizeof(long long), true)},
      {MPI_UNSIGNED_LONG_LONG, integer(sizeof(unsigned long long), false)},
      {MPI_SHORT, integer(sizeof(short), true)},
      {MPI_UNSIGNED_SHORT, integer(sizeof(unsigned short), false)},
      {MPI_SIGNED_CHAR, Element::int8},
      {MPI_UNSIGNED_CHAR, Element::uint8},
      {MPI_INT8_T, Element::int8},
      {MPI_UINT8_T, Element::uint8},
      {MPI_INT16_T, Element::int16},
      {MPI_UINT16_T, Element::uint16},
      {MPI_INT32_T, Element::int32},
      {MPI_UINT32_T, Element::uint32},
      {MPI_INT64_T, Element::int64},
      {MPI_UINT64_T, Element::uint64},
      {MPI_AINT, integer(sizeof(MPI_Aint), true)},
      {MPI_OFFSET, integer(sizeof(MPI_Offset), true)},
      {MPI_COUNT, integer(sizeof(MPI_Count), true)},
      {MPI_C_FLOAT_COMPLEX, Element::complex64},
      {MPI_C_DOUBLE_COMPLEX, Element::complex128},
  };
  for (const Known& known : list) {
    if (known.datatype == datatype) return known.element;
  }
  return Element::none;
}

}  // namespace

device::Element device_element(device::ReduceOp op, MPI_Datatype datatype) noexcept {
  using device::Element;
  using device::ReduceOp;
  const Element element = element_of(datatype);
  if (!device::is_defined(op, element)) return Element::none;
  const bool arithmetic = op == ReduceOp::sum || op == ReduceOp::prod;
  // Logical operations on addresses are not legal, and Open MPI compares them as unsigned numbers.
  const bool of_addresses = datatype == MPI_AINT || datatype == MPI_OFFSET || datatype == MPI_COUNT;
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  if (of_addresses && !arithmetic && !bitwise) return Element::none;
  return arithmetic && device::element_bytes(element) == 1 ? Element::none : element;
}

}  // namespace accord::shim
