// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/canonical.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <span>

#include "shim/shim.h"
#include "shim/type_contents.h"

#ifdef OPEN_MPI
// Of mpi-ext.h, which not every Open MPI has this in: a null handle where the running one has not.
extern "C" ompi_predefined_datatype_t ompi_mpi_short_float __attribute__((weak));
#define MPIX_C_FLOAT16 OMPI_PREDEFINED_GLOBAL(MPI_Datatype, ompi_mpi_short_float)
#endif

namespace accord::shim {
namespace {

using device::Element;
using device::ReduceOp;

// What a datatype holds. Together with its size that is what kernels calculate with, and it says
// which operations the standard defines.
enum class Family {
  other,  // no operation, or one that is left to the host MPI
  signed_integer,
  unsigned_integer,
  fortran_integer,
  address,
  boolean,
  logical,  // of Fortran
  byte,
  floating,
  bfloat,
  complex,
  floating_and_index,
  integer_and_index,
  floating_pair,
};

struct KnownType {
  MPI_Datatype datatype;
  Family family;
};

// Open MPI takes MPI_BYTE and Fortran's characters for unsigned integers of 8 bits, and has logical
// operations on integers that MPI_Type_create_f90_integer finds. The others refuse all that.
constexpr bool kTakesCharacters =
#ifdef OPEN_MPI
    true;
#else
    false;
#endif

// Handles of Open MPI are addresses that the linker finds, so no constant. Frequent ones first.
std::span<const KnownType> known_types() {
  using enum Family;
  static const KnownType list[] = {
      {MPI_FLOAT, floating},
      {MPI_DOUBLE, floating},
      {MPI_INT, signed_integer},
      {MPI_LONG, signed_integer},
      {MPI_BYTE, byte},
      {MPI_UNSIGNED, unsigned_integer},
      {MPI_UNSIGNED_LONG, unsigned_integer},
      {MPI_LONG_LONG, signed_integer},
      {MPI_UNSIGNED_LONG_LONG, unsigned_integer},
      {MPI_SHORT, signed_integer},
      {MPI_UNSIGNED_SHORT, unsigned_integer},
      {MPI_SIGNED_CHAR, signed_integer},
      {MPI_UNSIGNED_CHAR, unsigned_integer},
      {MPI_INT8_T, signed_integer},
      {MPI_UINT8_T, unsigned_integer},
      {MPI_INT16_T, signed_integer},
      {MPI_UINT16_T, unsigned_integer},
      {MPI_INT32_T, signed_integer},
      {MPI_UINT32_T, unsigned_integer},
      {MPI_INT64_T, signed_integer},
      {MPI_UINT64_T, unsigned_integer},
      {MPI_AINT, address},
      {MPI_OFFSET, address},
      {MPI_COUNT, address},
      {MPI_LONG_DOUBLE, floating},
      {MPI_C_FLOAT_COMPLEX, complex},
      {MPI_C_DOUBLE_COMPLEX, complex},
      {MPI_C_LONG_DOUBLE_COMPLEX, complex},
      {MPI_CXX_FLOAT_COMPLEX, complex},
      {MPI_CXX_DOUBLE_COMPLEX, complex},
      {MPI_CXX_LONG_DOUBLE_COMPLEX, complex},
      {MPI_C_BOOL, boolean},
      {MPI_CXX_BOOL, boolean},
#ifdef MPIX_C_FLOAT16
      {MPIX_C_FLOAT16, floating},
#endif
#ifdef MPIX_BFLOAT16
      {MPIX_BFLOAT16, bfloat},
#endif
      {MPI_FLOAT_INT, floating_and_index},
      {MPI_DOUBLE_INT, floating_and_index},
      {MPI_LONG_DOUBLE_INT, floating_and_index},
      {MPI_LONG_INT, integer_and_index},
      {MPI_2INT, integer_and_index},
      {MPI_SHORT_INT, integer_and_index},
      {MPI_INTEGER, fortran_integer},
      {MPI_INTEGER1, fortran_integer},
      {MPI_INTEGER2, fortran_integer},
      {MPI_INTEGER4, fortran_integer},
      {MPI_INTEGER8, fortran_integer},
      {MPI_REAL, floating},
      {MPI_REAL4, floating},
      {MPI_REAL8, floating},
      {MPI_DOUBLE_PRECISION, floating},
      {MPI_COMPLEX, complex},
      {MPI_COMPLEX8, complex},
      {MPI_COMPLEX16, complex},
      {MPI_DOUBLE_COMPLEX, complex},
      {MPI_2INTEGER, integer_and_index},
      {MPI_2REAL, floating_pair},
      {MPI_2DOUBLE_PRECISION, floating_pair},
      {MPI_LOGICAL, logical},
      {MPI_CHAR, signed_integer},  // the standard has no operation on it, but all MPIs do
      {MPI_CHARACTER, kTakesCharacters ? unsigned_integer : other},
      {MPI_WCHAR, other},
      {MPI_PACKED, other},
  };
  return list;
}

Element of_size(std::size_t size_bytes, std::initializer_list<Element> elements) {
  for (const Element element : elements) {
    if (device::element_bytes(element) == size_bytes) return element;
  }
  return Element::none;
}

Element element_of(Family family, std::size_t size_bytes) {
  using enum Element;
  switch (family) {
    case Family::other:
      return none;
    case Family::signed_integer:
    case Family::fortran_integer:
    case Family::address:
    case Family::logical:
      return of_size(size_bytes, {int8, int16, int32, int64});
    case Family::unsigned_integer:
    case Family::boolean:
    case Family::byte:
      return of_size(size_bytes, {uint8, uint16, uint32, uint64});
    case Family::floating:
      return of_size(size_bytes, {float16, float32, float64});
    case Family::bfloat:
      return of_size(size_bytes, {bfloat16});
    case Family::complex:
      return of_size(size_bytes, {complex64, complex128});
    case Family::floating_and_index:
      return of_size(size_bytes, {float32_int32, float64_int32});
    case Family::integer_and_index:
      return of_size(size_bytes, {int16_int32, int32_int32, int64_int32});
    case Family::floating_pair:
      return of_size(size_bytes, {float32_float32, float64_float64});
  }
  return none;
}

// How .TRUE. looks is the Fortran compiler's business, so the host MPI is asked: whether it takes
// all but 0 for true, and writes 1.
bool logical_is_as_in_c() {
  static const bool answer = [] {
    using Logical = int;
    int size = 0;
    if (host::Type_size(MPI_LOGICAL, &size) != MPI_SUCCESS || size != sizeof(Logical)) return false;
    const MPI_Op operations[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
    const Logical values[] = {0, 1, 2, -1, 256};
    for (const MPI_Op op : operations) {
      for (const Logical one : values) {
        for (const Logical two : values) {
          Logical result = two;
          if (host::Reduce_local(&one, &result, 1, MPI_LOGICAL, op) != MPI_SUCCESS) return false;
          const bool expected = op == MPI_LAND  ? one && two
                                : op == MPI_LOR ? one || two
                                                : (one != 0) != (two != 0);
          if (result != static_cast<Logical>(expected)) return false;
        }
      }
    }
    return true;
  }();
  return answer;
}

// Whether the host MPI takes the operation, as far as the element alone does not say.
bool is_legal(ReduceOp op, Family family) {
  const bool logical = op == ReduceOp::land || op == ReduceOp::lor || op == ReduceOp::lxor;
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  switch (family) {
    case Family::fortran_integer:
    case Family::address:
      return !logical;
    case Family::boolean:
      return logical;
    case Family::logical:
      return logical && logical_is_as_in_c();
    case Family::byte:
      return bitwise || kTakesCharacters;
    default:
      return true;
  }
}

// Whether the host MPI's results are those of C. Open MPI adds 8-bit integers with saturation,
// depending on the CPU and on where they lie, and compares MPI_OFFSET as unsigned; of an MPI known
// by its ABI alone nothing is certain.
bool as_in_c([[maybe_unused]] ReduceOp op, [[maybe_unused]] MPI_Datatype datatype,
             [[maybe_unused]] Element element) {
#ifdef MPICH
  return true;
#else
  const bool arithmetic = op == ReduceOp::sum || op == ReduceOp::prod;
  const bool compares = op == ReduceOp::min || op == ReduceOp::max;
  return !(arithmetic && device::element_bytes(element) == 1) &&
         !(compares && datatype == MPI_OFFSET);
#endif
}

struct Canonical {
  std::uint32_t number = 0;
  Family family = Family::other;
};

// Of Fortran's types of a given precision, which have no handles to be found by.
constexpr int kFortranClasses[] = {MPI_TYPECLASS_REAL, MPI_TYPECLASS_COMPLEX,
                                   MPI_TYPECLASS_INTEGER};
constexpr auto kFortranClassCount = static_cast<std::uint32_t>(std::size(kFortranClasses));

// What calls of two such types have in common ends with their size.
Canonical fortran_type(MPI_Datatype datatype, std::uint32_t type_class, Family family) {
  int size_bytes = 0;
  if (host::Type_size(datatype, &size_bytes) != MPI_SUCCESS) return {};
  return {static_cast<std::uint32_t>(known_types().size()) + 1 + type_class +
              kFortranClassCount * static_cast<std::uint32_t>(size_bytes),
          family};
}

Canonical canonical(MPI_Datatype datatype) {
  const auto list = known_types();
  const auto found = std::ranges::find(list, datatype, &KnownType::datatype);
  if (found != list.end())
    return {static_cast<std::uint32_t>(found - list.begin() + 1), found->family};
  switch (combiner_of(datatype)) {
    case MPI_COMBINER_F90_REAL:
      return fortran_type(datatype, 0, Family::floating);
    case MPI_COMBINER_F90_COMPLEX:
      return fortran_type(datatype, 1, Family::complex);
    case MPI_COMBINER_F90_INTEGER:
      return fortran_type(datatype, 2,
                          kTakesCharacters ? Family::signed_integer : Family::fortran_integer);
    default:
      return {};
  }
}

}  // namespace

namespace {

std::span<const MPI_Op> known_ops() {
  static const MPI_Op list[] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_LAND,   MPI_LOR,
                                MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
  return list;
}

}  // namespace

std::uint32_t canonical_op(MPI_Op op) {
  const auto list = known_ops();
  const auto found = std::ranges::find(list, op);
  return found == list.end() ? 0 : static_cast<std::uint32_t>(found - list.begin() + 1);
}

MPI_Op op_of_number(std::uint32_t number) {
  const auto list = known_ops();
  return number == 0 || number > list.size() ? MPI_OP_NULL : list[number - 1];
}

MPI_Datatype type_of_number(std::uint32_t number) {
  const auto list = known_types();
  return number == 0 || number > list.size() ? MPI_DATATYPE_NULL : list[number - 1].datatype;
}

std::uint32_t number_of_element(MPI_Datatype datatype) {
  const std::uint32_t number = canonical_type(datatype);
  const auto named = static_cast<std::uint32_t>(known_types().size());
  if (number <= named) return number;
  const int type_class = kFortranClasses[(number - named - 1) % kFortranClassCount];
  int size_bytes = 0;
  MPI_Datatype same = MPI_DATATYPE_NULL;
  const bool found = host::Type_size(datatype, &size_bytes) == MPI_SUCCESS &&
                     host::Type_match_size(type_class, size_bytes, &same) == MPI_SUCCESS;
  return found ? canonical_type(same) : 0;
}

const char* op_word(MPI_Op op) {
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

std::uint32_t canonical_type(MPI_Datatype datatype) { return canonical(datatype).number; }

bool takes_operation(MPI_Datatype datatype, MPI_Op op) {
  const auto [number, family] = canonical(datatype);
  const ReduceOp wanted = device_op(op);
  if (number == 0 || wanted == ReduceOp::none) return false;
  const bool arithmetic = wanted == ReduceOp::sum || wanted == ReduceOp::prod;
  const bool compares = wanted == ReduceOp::min || wanted == ReduceOp::max;
  const bool locates = wanted == ReduceOp::minloc || wanted == ReduceOp::maxloc;
  switch (family) {
    case Family::other:
      return false;
    case Family::floating:
      return arithmetic || compares;
    case Family::bfloat:  // of which MPICH has sums only
      return wanted == ReduceOp::sum;
    case Family::complex:
      return arithmetic;
    case Family::floating_and_index:
    case Family::integer_and_index:
    case Family::floating_pair:
      return locates;
    default:
      return !locates && is_legal(wanted, family);
  }
}

ReduceOp device_op(MPI_Op op) {
  return static_cast<ReduceOp>(canonical_op(op));  // in the same order
}

Element device_element(ReduceOp op, MPI_Datatype datatype, std::size_t size_bytes) {
  const auto [number, family] = canonical(datatype);
  if (number == 0) return Element::none;
  const Element element = element_of(family, size_bytes);
  const bool taken =
      device::is_defined(op, element) && is_legal(op, family) && as_in_c(op, datatype, element);
  return taken ? element : Element::none;
}

bool may_be_defined(MPI_Op op, MPI_Datatype datatype, std::size_t size_bytes) {
  const auto [number, family] = canonical(datatype);
  const ReduceOp reduce = device_op(op);
  if (number == 0 || reduce == ReduceOp::none) return true;
  const Element element = element_of(family, size_bytes);
  return element == Element::none ||
         (device::is_defined(reduce, element) && is_legal(reduce, family));
}

}  // namespace accord::shim
