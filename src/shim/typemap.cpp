// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/typemap.h"

#include <mutex>
#include <new>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "shim/shim.h"
#include "shim/type_block.h"
#include "shim/type_contents.h"

namespace accord::shim {
namespace {

using TypemapPointer = std::shared_ptr<const core::Typemap>;

struct NamedTypes {
  using Typemaps = std::unordered_map<std::uint64_t, TypemapPointer>;
  using Entry = Typemaps::value_type;
  std::shared_mutex mutex;
  Typemaps typemaps;
};
NamedTypes& named_types() {
  static NamedTypes& instance = *new NamedTypes;
  return instance;
}

int delete_typemap(MPI_Datatype, int, void* value, void*) {
  delete static_cast<TypemapPointer*>(value);
  return MPI_SUCCESS;
}

int typemap_keyval = MPI_KEYVAL_INVALID;

// The host MPI refuses others, by an error that its user shall get: MPICH where there is something
// to send. Nothing of it is read.
bool is_committed(MPI_Datatype datatype) {
  const MPI_Comm self = private_comm();
  return self != MPI_COMM_NULL &&
         host::Send(&datatype, 1, datatype, MPI_PROC_NULL, kSubstituteTag, self) == MPI_SUCCESS;
}

// Null where there is no memory for it, too.
TypemapPointer build(MPI_Datatype datatype) try {
  Extent extent;
  if (!has_extent(datatype, extent)) return nullptr;
  auto block = block_of(datatype, extent);
  return block ? std::make_shared<const core::Typemap>(*std::move(block),
                                                       static_cast<std::ptrdiff_t>(extent.bytes))
               : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace

bool is_named(MPI_Datatype datatype) { return is_predefined(combiner_of(datatype)); }

TypemapPointer known_typemap(MPI_Datatype datatype) {
  if (datatype == MPI_DATATYPE_NULL) return nullptr;
  // Most calls of a thread have one type, and each asks for it several times. What is there stays.
  static thread_local const NamedTypes::Entry* last = nullptr;
  if (last != nullptr && last->first == to_bits(datatype)) return last->second;
  NamedTypes& named = named_types();
  {
    const std::shared_lock<std::shared_mutex> locked(named.mutex);
    if (const auto found = named.typemaps.find(to_bits(datatype)); found != named.typemaps.end()) {
      last = &*found;
      return found->second;
    }
  }
  const int combiner = combiner_of(datatype);
  if (is_predefined(combiner)) {
    TypemapPointer made = build(datatype);
    // The others' handles end with MPI, and it may begin anew.
    if (made && combiner == MPI_COMBINER_NAMED) {
      const std::unique_lock<std::shared_mutex> locked(named.mutex);
      named.typemaps.emplace(to_bits(datatype), made);
    }
    return made;
  }
  void* value = nullptr;
  int found = 0;
  if (host::Type_get_attr(datatype, typemap_keyval, &value, &found) != MPI_SUCCESS || found == 0)
    return nullptr;
  return *static_cast<TypemapPointer*>(value);
}

TypemapPointer typemap(MPI_Datatype datatype) {
  TypemapPointer known = known_typemap(datatype);
  if (known || datatype == MPI_DATATYPE_NULL || is_named(datatype)) return known;
  TypemapPointer made = is_committed(datatype) ? build(datatype) : nullptr;
  if (!made) return nullptr;
  // Two threads may come with a type for the first time at once. What is set stays for as long as
  // the type: others may read it.
  static std::mutex& setting = *new std::mutex;
  const std::lock_guard<std::mutex> locked(setting);
  if (known = known_typemap(datatype); known) return known;
  auto kept = std::make_unique<TypemapPointer>(made);
  if (host::Type_set_attr(datatype, typemap_keyval, kept.get()) == MPI_SUCCESS)
    (void)kept.release();
  return made;
}

void make_type_keyval() {
  if (typemap_keyval == MPI_KEYVAL_INVALID)
    (void)host::Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_typemap, &typemap_keyval, nullptr);
}
void free_type_keyval() {
  if (typemap_keyval != MPI_KEYVAL_INVALID) (void)host::Type_free_keyval(&typemap_keyval);
}

}  // namespace accord::shim
