// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "elements.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>  // some have MPIX_C_FLOAT16 there
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>

namespace accord::conformance {
namespace {

constexpr std::size_t kLongDoubleBytes = 10;  // x87: the rest of its 16 bytes is padding

template <class T>
std::size_t meaningful_bytes() {
  if constexpr (std::is_same_v<T, long double>)
    return std::min(kLongDoubleBytes, sizeof(T));
  else
    return sizeof(T);
}

template <class T>
Element of_integer(const char* name, MPI_Datatype handle,
                   ElementClass c = ElementClass::c_integer) {
  return {name, handle, c, std::is_signed_v<T>, sizeof(T), alignof(T), 0, c, sizeof(T)};
}

template <class T>
Element of_value(const char* name, MPI_Datatype handle, ElementClass c) {
  return {name, handle, c, true, sizeof(T), alignof(T), 0, c, meaningful_bytes<T>()};
}

template <class T>
Element of_complex(const char* name, MPI_Datatype handle) {
  return {name,
          handle,
          ElementClass::complex,
          true,
          2 * sizeof(T),
          alignof(T),
          0,
          ElementClass::floating,
          meaningful_bytes<T>()};
}

template <class T>
Element of_pair(const char* name, MPI_Datatype handle) {
  struct Pair {
    T value;
    int index;
  };
  const ElementClass c =
      std::is_floating_point_v<T> ? ElementClass::floating : ElementClass::c_integer;
  return {name,
          handle,
          ElementClass::pair,
          true,
          sizeof(Pair),
          alignof(Pair),
          offsetof(Pair, index),
          c,
          meaningful_bytes<T>()};
}

// A Fortran type: C knows its size only by asking.
Element fortran(const char* name, MPI_Datatype handle, ElementClass c) {
  return {name, handle, c, true, 0, 0, 0, c, 0};
}

Element fortran_pair(const char* name, MPI_Datatype handle, ElementClass value) {
  return {name, handle, ElementClass::pair_uniform, true, 0, 0, 0, value, 0};
}

// What the header may or may not have.
void add_extensions(std::vector<Element>& list) {
// MPICH 4.0 has the name and aborts where it is used.
#if defined(MPIX_C_FLOAT16) && (!defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40100000)
  list.push_back(of_value<std::uint16_t>("MPIX_C_FLOAT16", MPIX_C_FLOAT16, ElementClass::half));
#endif
#ifdef MPIX_BFLOAT16
  list.push_back(of_value<std::uint16_t>("MPIX_BFLOAT16", MPIX_BFLOAT16, ElementClass::bfloat));
#endif
#ifdef MPI_CXX_BOOL
  list.push_back(of_value<bool>("MPI_CXX_BOOL", MPI_CXX_BOOL, ElementClass::logical));
#endif
#ifdef MPI_CXX_FLOAT_COMPLEX
  list.push_back(of_complex<float>("MPI_CXX_FLOAT_COMPLEX", MPI_CXX_FLOAT_COMPLEX));
  list.push_back(of_complex<double>("MPI_CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX));
  list.push_back(
      of_complex<long double>("MPI_CXX_LONG_DOUBLE_COMPLEX", MPI_CXX_LONG_DOUBLE_COMPLEX));
#endif
}

void add_fortran(std::vector<Element>& list) {
  using enum ElementClass;
  list.push_back(fortran("MPI_INTEGER", MPI_INTEGER, fortran_integer));
  list.push_back(fortran("MPI_INTEGER1", MPI_INTEGER1, fortran_integer));
  list.push_back(fortran("MPI_INTEGER2", MPI_INTEGER2, fortran_integer));
  list.push_back(fortran("MPI_INTEGER4", MPI_INTEGER4, fortran_integer));
  list.push_back(fortran("MPI_INTEGER8", MPI_INTEGER8, fortran_integer));
  list.push_back(fortran("MPI_REAL", MPI_REAL, floating));
  list.push_back(fortran("MPI_REAL4", MPI_REAL4, floating));
  list.push_back(fortran("MPI_REAL8", MPI_REAL8, floating));
  list.push_back(fortran("MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, floating));
  list.push_back(fortran("MPI_COMPLEX", MPI_COMPLEX, ElementClass::complex));
  list.push_back(fortran("MPI_COMPLEX8", MPI_COMPLEX8, ElementClass::complex));
  list.push_back(fortran("MPI_COMPLEX16", MPI_COMPLEX16, ElementClass::complex));
  list.push_back(fortran("MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX, ElementClass::complex));
  list.push_back(fortran("MPI_LOGICAL", MPI_LOGICAL, logical));
  list.push_back(fortran("MPI_CHARACTER", MPI_CHARACTER, moved_only));
  list.push_back(fortran_pair("MPI_2INTEGER", MPI_2INTEGER, c_integer));
  list.push_back(fortran_pair("MPI_2REAL", MPI_2REAL, floating));
  list.push_back(fortran_pair("MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, floating));
}

// Completes a Fortran type from what the host MPI says; false where the host MPI has not got it.
bool measure(const Api& oracle, Element& element) {
  int size = 0;
  if (element.handle == MPI_DATATYPE_NULL) return false;
  if (oracle.Type_size(element.handle, &size) != MPI_SUCCESS || size <= 0) return false;
  if (element.size_bytes != 0) return true;
  element.size_bytes = static_cast<std::size_t>(size);
  const bool two = element.element_class == ElementClass::complex ||
                   element.element_class == ElementClass::pair_uniform;
  const std::size_t half = element.size_bytes / 2;
  element.align_bytes = two ? half : element.size_bytes;
  element.value_bytes = two ? half : element.size_bytes;
  if (element.element_class == ElementClass::pair_uniform) element.index_offset_bytes = half;
  if (element.element_class == ElementClass::complex) element.value_class = ElementClass::floating;
  return true;
}

template <class T>
void store(std::byte* target, T value) {
  std::memcpy(target, &value, meaningful_bytes<T>());
}

void store_integer(std::byte* target, std::size_t size_bytes, std::uint64_t value) {
  std::memcpy(target, &value, std::min<std::size_t>(size_bytes, 8));  // little-endian
}

// Exact for the small integers used here.
std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) == 0) return 0;
  const std::uint32_t exponent = ((bits >> 23) & 0xffU) - 127 + 15;
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | (exponent << 10) |
                                    ((bits >> 13) & 0x3ffU));
}

std::uint16_t to_bfloat(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

void store_real(std::byte* target, ElementClass c, std::size_t size_bytes, int value) {
  if (c == ElementClass::half)
    store(target, to_half(static_cast<float>(value)));
  else if (c == ElementClass::bfloat)
    store(target, to_bfloat(static_cast<float>(value)));
  else if (size_bytes == sizeof(float))
    store(target, static_cast<float>(value));
  else if (size_bytes == sizeof(double))
    store(target, static_cast<double>(value));
  else
    store(target, static_cast<long double>(value));
}

bool is_real(ElementClass c) {
  return c == ElementClass::floating || c == ElementClass::half || c == ElementClass::bfloat;
}

// A small number that no combination of eight ranks takes out of the type's exact range.
int small_number(Values values, std::size_t size_bytes, bool is_signed, int rank, Rng& rng) {
  if (values == Values::product) {
    // Open MPI saturates the narrowest types, which is not associative: at most two ranks may
    // double.
    const bool may_double = size_bytes > 1 || rank % 4 == 0;
    const int magnitude = may_double ? rng.between(1, 2) : 1;
    return is_signed && rng.chance(40) ? -magnitude : magnitude;
  }
  const int value = rng.below(16);
  return is_signed && rng.chance(50) ? -value : value;
}

void write_integer(const Element& element, Values values, int rank, Rng& rng, std::byte* target) {
  const bool wraps =
      values == Values::bits || values == Values::ordered || element.value_bytes >= 4;
  std::uint64_t value = rng.next();
  if (values == Values::truth)
    value = rng.chance(30) ? 0 : value % 100 + 1;
  else if (!wraps || rng.chance(50))
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(
        small_number(values, element.value_bytes, element.is_signed, rank, rng)));
  store_integer(target, element.value_bytes, value);
}

// Products of these two Gaussian primes never have a zero component, whose sign would depend on the
// order.
void write_complex(const Element& element, Values values, Rng& rng, std::byte* target) {
  const std::size_t half = element.size_bytes / 2;
  int real = rng.between(-15, 15);
  int imaginary = rng.between(-15, 15);
  if (values == Values::product) {
    const bool first = rng.chance(50);
    real = first ? 2 : 3;
    imaginary = first ? 1 : 2;
  }
  store_real(target, ElementClass::floating, half, real);
  store_real(target + half, ElementClass::floating, half, imaginary);
}

// Few distinct values, so that ties happen and the index decides.
void write_pair(const Element& element, int rank, Rng& rng, std::byte* target) {
  const int value = rng.between(-3, 3);
  const int index = rank * 3 + rng.below(3);
  if (is_real(element.value_class))
    store_real(target, element.value_class,
               element.value_bytes == kLongDoubleBytes ? sizeof(long double) : element.value_bytes,
               value);
  else
    store_integer(target, element.value_bytes,
                  static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  std::byte* place = target + element.index_offset_bytes;
  if (element.element_class == ElementClass::pair_uniform && is_real(element.value_class))
    store_real(place, element.value_class, element.value_bytes, index);
  else
    store_integer(place, sizeof(int), static_cast<std::uint64_t>(index));
}

}  // namespace

std::vector<Element> make_elements(const Api& oracle) {
  using enum ElementClass;
  std::vector<Element> list = {
      of_integer<int>("MPI_INT", MPI_INT),
      of_integer<signed char>("MPI_SIGNED_CHAR", MPI_SIGNED_CHAR),
      of_integer<unsigned char>("MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR),
      of_integer<short>("MPI_SHORT", MPI_SHORT),
      of_integer<unsigned short>("MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT),
      of_integer<unsigned>("MPI_UNSIGNED", MPI_UNSIGNED),
      of_integer<long>("MPI_LONG", MPI_LONG),
      of_integer<unsigned long>("MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG),
      of_integer<long long>("MPI_LONG_LONG", MPI_LONG_LONG),
      of_integer<unsigned long long>("MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG),
      of_integer<std::int8_t>("MPI_INT8_T", MPI_INT8_T),
      of_integer<std::int16_t>("MPI_INT16_T", MPI_INT16_T),
      of_integer<std::int32_t>("MPI_INT32_T", MPI_INT32_T),
      of_integer<std::int64_t>("MPI_INT64_T", MPI_INT64_T),
      of_integer<std::uint8_t>("MPI_UINT8_T", MPI_UINT8_T),
      of_integer<std::uint16_t>("MPI_UINT16_T", MPI_UINT16_T),
      of_integer<std::uint32_t>("MPI_UINT32_T", MPI_UINT32_T),
      of_integer<std::uint64_t>("MPI_UINT64_T", MPI_UINT64_T),
      of_integer<MPI_Aint>("MPI_AINT", MPI_AINT, address),
      of_integer<MPI_Offset>("MPI_OFFSET", MPI_OFFSET, address),
      of_integer<MPI_Count>("MPI_COUNT", MPI_COUNT, address),
      of_value<float>("MPI_FLOAT", MPI_FLOAT, floating),
      of_value<double>("MPI_DOUBLE", MPI_DOUBLE, floating),
      of_value<long double>("MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, floating),
      of_complex<float>("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX),
      of_complex<double>("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX),
      of_complex<long double>("MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX),
      of_value<bool>("MPI_C_BOOL", MPI_C_BOOL, logical),
      of_value<std::byte>("MPI_BYTE", MPI_BYTE, byte),
      of_value<char>("MPI_CHAR", MPI_CHAR, moved_only),
      of_value<wchar_t>("MPI_WCHAR", MPI_WCHAR, moved_only),
      of_value<std::byte>("MPI_PACKED", MPI_PACKED, moved_only),
      of_pair<float>("MPI_FLOAT_INT", MPI_FLOAT_INT),
      of_pair<double>("MPI_DOUBLE_INT", MPI_DOUBLE_INT),
      of_pair<long>("MPI_LONG_INT", MPI_LONG_INT),
      of_pair<int>("MPI_2INT", MPI_2INT),
      of_pair<short>("MPI_SHORT_INT", MPI_SHORT_INT),
      of_pair<long double>("MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT),
  };
  add_fortran(list);
  add_extensions(list);
  std::erase_if(list, [&](Element& element) { return !measure(oracle, element); });
  return list;
}

std::vector<Operation> make_operations() {
  return {{"MPI_SUM", MPI_SUM, Values::sum},
          {"MPI_PROD", MPI_PROD, Values::product},
          {"MPI_MAX", MPI_MAX, Values::ordered},
          {"MPI_MIN", MPI_MIN, Values::ordered},
          {"MPI_LAND", MPI_LAND, Values::truth},
          {"MPI_LOR", MPI_LOR, Values::truth},
          {"MPI_LXOR", MPI_LXOR, Values::truth},
          {"MPI_BAND", MPI_BAND, Values::bits},
          {"MPI_BOR", MPI_BOR, Values::bits},
          {"MPI_BXOR", MPI_BXOR, Values::bits},
          {"MPI_MINLOC", MPI_MINLOC, Values::location},
          {"MPI_MAXLOC", MPI_MAXLOC, Values::location}};
}

bool legal(const Operation& operation, const Element& element) {
  using enum ElementClass;
  const ElementClass c = element.element_class;
  const bool whole = c == c_integer || c == fortran_integer || c == address;
  switch (operation.values) {
    case Values::ordered:
      return whole || is_real(c);
    case Values::sum:
    case Values::product:
      return whole || is_real(c) || c == ElementClass::complex;
    case Values::truth:
      return c == c_integer || c == logical;
    case Values::bits:
      return whole || c == byte;
    default:
      return c == ElementClass::pair || c == pair_uniform;
  }
}

void write_value(const Element& element, Values values, int rank, Rng& rng, std::byte* target) {
  using enum ElementClass;
  switch (element.element_class) {
    case floating:
    case half:
    case bfloat:
      // Narrow formats hold few exact integers: count them as one byte wide for products, too.
      store_real(target, element.element_class, element.size_bytes,
                 small_number(values, 2, true, rank, rng));
      return;
    case ElementClass::complex:
      write_complex(element, values, rng, target);
      return;
    case logical:
      store_integer(target, element.size_bytes, rng.chance(60) ? 1 : 0);
      return;
    case ElementClass::pair:
    case pair_uniform:
      write_pair(element, rank, rng, target);
      return;
    case moved_only:
      return;
    default:
      write_integer(element, values, rank, rng, target);
  }
}

}  // namespace accord::conformance
