// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The predefined datatypes and operations of the host MPI: sizes, which operations are legal on
// which types, and values on which every operation is exact in any order of evaluation, so that
// results can be compared bit by bit. Knows nothing of cases, communicators or memory kinds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api.h"
#include "random.h"

namespace accord::conformance {

// The classes of section "Predefined Reduction Operations" of the MPI standard.
enum class ElementClass {
  c_integer,
  fortran_integer,
  address,  // MPI_AINT, MPI_OFFSET, MPI_COUNT
  floating,
  half,  // IEEE binary16
  bfloat,
  complex,
  logical,
  byte,
  pair,          // {value, int index}
  pair_uniform,  // MPI_2REAL and its like: both halves of one type
  moved_only,    // no operation is defined: characters, MPI_PACKED, types of no C twin
};

struct Element {
  const char* name = "";
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  ElementClass element_class = ElementClass::moved_only;
  bool is_signed = false;
  std::size_t size_bytes = 0;  // of its memory, padding included
  std::size_t align_bytes = 1;
  std::size_t index_offset_bytes = 0;                   // pairs: where the index is
  ElementClass value_class = ElementClass::moved_only;  // pairs: class of the value
  std::size_t value_bytes = 0;  // meaningful bytes of the value: 10 of a long double's 16
};

enum class Values { sum, product, ordered, bits, truth, location };

struct Operation {
  const char* name = "";
  MPI_Op handle = MPI_OP_NULL;
  Values values = Values::sum;
};

// All predefined types this host MPI has, in a fixed order. Asks the oracle for sizes.
std::vector<Element> make_elements(const Api& oracle);

std::vector<Operation> make_operations();

// Whether the standard defines the operation on the type. The MPIX half types count as floating.
bool legal(const Operation& operation, const Element& element);

// Writes one value of the type at `target`. `rank` is the contributor's place among at most 8 ranks
// whose values are combined; it keeps products of narrow types in range.
void write_value(const Element& element, Values values, int rank, Rng& rng, std::byte* target);

// Bytes up to the end of the last defined one.
inline std::size_t solid_bytes(const Element& element) {
  return element.element_class == ElementClass::pair ? element.index_offset_bytes + sizeof(int)
                                                     : element.size_bytes;
}

// Calls visit(first, last) for the byte ranges of one element that no operation defines: padding of
// pairs and of long double.
template <class Visit>
void for_each_padding(const Element& element, Visit visit) {
  if (element.element_class == ElementClass::pair) {
    if (element.value_bytes < element.index_offset_bytes)
      visit(element.value_bytes, element.index_offset_bytes);
    if (element.index_offset_bytes + sizeof(int) < element.size_bytes)
      visit(element.index_offset_bytes + sizeof(int), element.size_bytes);
    return;
  }
  if (element.element_class == ElementClass::complex &&
      element.value_bytes * 2 < element.size_bytes) {
    visit(element.value_bytes, element.size_bytes / 2);
    visit(element.size_bytes / 2 + element.value_bytes, element.size_bytes);
    return;
  }
  if (element.value_bytes != 0 && element.value_bytes < element.size_bytes &&
      element.element_class == ElementClass::floating)
    visit(element.value_bytes, element.size_bytes);
}

}  // namespace accord::conformance
