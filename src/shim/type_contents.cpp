// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/type_contents.h"

#include <cstddef>
#include <utility>

#include "shim/shim.h"

namespace accord::shim {
namespace {

struct Envelope {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count large_counts = 0;
  MPI_Count types = 0;
  int combiner = MPI_UNDEFINED;
};

// The older form, of MPIs without large counts.
Envelope envelope_in_ints(MPI_Datatype datatype) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_UNDEFINED;
  if (host::slot::Type_get_envelope(datatype, &integers, &addresses, &types, &combiner) !=
      MPI_SUCCESS)
    return {};
  return {integers, addresses, 0, types, combiner};
}

#ifdef ACCORD_HAS_Type_get_envelope_c
bool tells_large_counts() {
  return host::slot::Type_get_envelope_c != nullptr && host::slot::Type_get_contents_c != nullptr;
}

Envelope envelope(MPI_Datatype datatype) {
  if (!tells_large_counts()) return envelope_in_ints(datatype);
  Envelope told;
  if (host::slot::Type_get_envelope_c(datatype, &told.integers, &told.addresses, &told.large_counts,
                                      &told.types, &told.combiner) != MPI_SUCCESS)
    return {};
  return told;
}
#else
Envelope envelope(MPI_Datatype datatype) { return envelope_in_ints(datatype); }
#endif

int contents(MPI_Datatype datatype, const Envelope& sizes, std::vector<int>& integers,
             std::vector<MPI_Aint>& addresses, [[maybe_unused]] std::vector<MPI_Count>& large,
             std::vector<MPI_Datatype>& types) {
#ifdef ACCORD_HAS_Type_get_envelope_c
  if (tells_large_counts())
    return host::slot::Type_get_contents_c(datatype, sizes.integers, sizes.addresses,
                                           sizes.large_counts, sizes.types, integers.data(),
                                           addresses.data(), large.data(), types.data());
#endif
  return host::slot::Type_get_contents(
      datatype, static_cast<int>(sizes.integers), static_cast<int>(sizes.addresses),
      static_cast<int>(sizes.types), integers.data(), addresses.data(), types.data());
}

}  // namespace

int combiner_of(MPI_Datatype datatype) {
  return datatype == MPI_DATATYPE_NULL ? MPI_UNDEFINED : envelope(datatype).combiner;
}

bool is_predefined(int combiner) {
  switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
      return true;
    default:
      return combiner == kCombinerValueIndex;
  }
}

TypeContents::TypeContents(MPI_Datatype datatype) {
  const Envelope sizes = envelope(datatype);
  std::vector<int> integers(static_cast<std::size_t>(sizes.integers));
  std::vector<MPI_Aint> addresses(static_cast<std::size_t>(sizes.addresses));
  std::vector<MPI_Count> large(static_cast<std::size_t>(sizes.large_counts));
  std::vector<MPI_Datatype> types(static_cast<std::size_t>(sizes.types), MPI_DATATYPE_NULL);
  if (types.empty() || contents(datatype, sizes, integers, addresses, large, types) != MPI_SUCCESS)
    return;
  combiner_ = sizes.combiner;
  is_large_ = sizes.large_counts != 0;
  numbers_.assign(integers.begin(), integers.end());
  numbers_.insert(numbers_.end(), addresses.begin(), addresses.end());
  numbers_.insert(numbers_.end(), large.begin(), large.end());
  types_ = std::move(types);
}

TypeContents::~TypeContents() {
  for (MPI_Datatype& type : types_)
    if (!is_predefined(combiner_of(type))) (void)host::Type_free(&type);
}

}  // namespace accord::shim
