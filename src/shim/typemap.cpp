// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/typemap.h"

#include <climits>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "shim/shim.h"

namespace accord::shim {
namespace {

using TypemapPointer = std::shared_ptr<const core::Typemap>;

struct NamedTypes {
  std::shared_mutex mutex;
  std::unordered_map<std::uint64_t, TypemapPointer> typemaps;
};
NamedTypes& named_types() {
  static NamedTypes& instance = *new NamedTypes;
  return instance;
}

int delete_typemap(MPI_Datatype, int, void* value, void*) {
  delete static_cast<TypemapPointer*>(value);
  return MPI_SUCCESS;
}

int type_keyval() {
  static const int keyval = [] {
    int made = MPI_KEYVAL_INVALID;
    (void)host::Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_typemap, &made, nullptr);
    return made;
  }();
  return keyval;
}

int pack_one(const void* element, MPI_Datatype datatype, std::vector<unsigned char>& packed) {
  if (packed.size() > INT_MAX) {
#ifdef ACCORD_HAS_Pack_c
    MPI_Count position = 0;
    if (host::slot::Pack_c == nullptr) return MPI_ERR_TYPE;
    return host::slot::Pack_c(element, 1, datatype, packed.data(),
                              static_cast<MPI_Count>(packed.size()), &position, private_comm());
#else
    return MPI_ERR_TYPE;
#endif
  }
  int position = 0;
  return host::slot::Pack(element, 1, datatype, packed.data(), static_cast<int>(packed.size()),
                          &position, private_comm());
}

// Where each byte of the packed element lies, relative to `low`: one MPI_Pack for each byte of an
// offset.
bool read_offsets(MPI_Datatype datatype, MPI_Count low, std::size_t span_bytes,
                  std::vector<std::size_t>& offsets) {
  std::vector<unsigned char> element(span_bytes);
  std::vector<unsigned char> packed(offsets.size());
  for (unsigned plane = 0; plane == 0 || (span_bytes - 1) >> (8 * plane) != 0; ++plane) {
    for (std::size_t byte = 0; byte < span_bytes; ++byte) {
      element[byte] = static_cast<unsigned char>(byte >> (8 * plane));
    }
    if (pack_one(element.data() - low, datatype, packed) != MPI_SUCCESS) return false;
    for (std::size_t byte = 0; byte < packed.size(); ++byte) {
      offsets[byte] |= static_cast<std::size_t>(packed[byte]) << (8 * plane);
    }
  }
  return true;
}

TypemapPointer build(MPI_Datatype datatype, bool named) {
  MPI_Count size = 0;
  MPI_Count low = 0;
  MPI_Count span = 0;
  MPI_Count lower_bound = 0;
  MPI_Count extent = 0;
  if (host::Type_size_x(datatype, &size) != MPI_SUCCESS || size < 0) return nullptr;
  if (host::Type_get_true_extent_x(datatype, &low, &span) != MPI_SUCCESS) return nullptr;
  if (host::Type_get_extent_x(datatype, &lower_bound, &extent) != MPI_SUCCESS) return nullptr;
  if (size == 0) return std::make_shared<const core::Typemap>(std::vector<core::Run>{}, extent);
  if (named && size == extent) return core::Typemap::contiguous(static_cast<std::size_t>(size));
  std::vector<std::size_t> offsets(static_cast<std::size_t>(size));
  if (!read_offsets(datatype, low, static_cast<std::size_t>(span), offsets)) return nullptr;
  std::vector<core::Run> runs;
  for (const std::size_t offset : offsets) {
    const auto address = static_cast<std::ptrdiff_t>(offset) + low;
    if (!runs.empty() &&
        runs.back().offset_bytes + static_cast<std::ptrdiff_t>(runs.back().length_bytes) ==
            address) {
      ++runs.back().length_bytes;
    } else {
      runs.push_back({address, 1, 0});
    }
  }
  return std::make_shared<const core::Typemap>(std::move(runs), extent);
}

}  // namespace

bool is_named(MPI_Datatype datatype) noexcept {
  int integers = 0;
  int addresses = 0;
  int datatypes = 0;
  int combiner = 0;
  return host::slot::Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner) ==
             MPI_SUCCESS &&
         combiner == MPI_COMBINER_NAMED;
}

TypemapPointer typemap(MPI_Datatype datatype) noexcept {
  if (datatype == MPI_DATATYPE_NULL) return nullptr;
  NamedTypes& named = named_types();
  {
    const std::shared_lock<std::shared_mutex> locked(named.mutex);
    if (const auto found = named.typemaps.find(to_bits(datatype)); found != named.typemaps.end()) {
      return found->second;
    }
  }
  if (is_named(datatype)) {
    TypemapPointer made = build(datatype, true);
    if (made) {
      const std::unique_lock<std::shared_mutex> locked(named.mutex);
      named.typemaps.emplace(to_bits(datatype), made);
    }
    return made;
  }
  void* value = nullptr;
  int found = 0;
  if (host::Type_get_attr(datatype, type_keyval(), &value, &found) != MPI_SUCCESS) return nullptr;
  if (found != 0) return *static_cast<TypemapPointer*>(value);
  TypemapPointer made = build(datatype, false);
  if (!made) return nullptr;
  auto kept = std::make_unique<TypemapPointer>(made);
  if (host::Type_set_attr(datatype, type_keyval(), kept.get()) == MPI_SUCCESS) (void)kept.release();
  return made;
}

}  // namespace accord::shim
