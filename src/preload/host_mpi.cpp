// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "preload/host_mpi.h"

#include <algorithm>
#include <cstddef>

#include "preload/trampolines.h"

namespace accord::preload {

namespace {

const ElfObject* object_named(const std::vector<ElfObject>& objects, std::string_view name) {
  const auto found = std::find_if(objects.begin(), objects.end(), [&](const ElfObject& object) {
    const std::string_view path(object.path);
    return name == object.soname || path == name ||
           (path.size() > name.size() && path.ends_with(name) &&
            path[path.size() - name.size() - 1] == '/');
  });
  return found == objects.end() ? nullptr : &*found;
}

// Whether `test` holds for `start` or one of its direct and indirect dependencies.
template <class Test>
bool any_dependency(const ElfObject& start, const std::vector<ElfObject>& objects, Test test) {
  std::vector<ElfObject> reached{start};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (test(reached[i])) return true;
    for (std::size_t n = 0; const char* name = reached[i].needed(n); ++n) {
      const ElfObject* next = object_named(objects, name);
      const auto same = [&](const ElfObject& object) { return object.dynamic == next->dynamic; };
      if (next != nullptr && std::none_of(reached.begin(), reached.end(), same)) {
        reached.push_back(*next);
      }
    }
  }
  return false;
}

}  // namespace

const char* abi_name(Abi abi) noexcept {
  switch (abi) {
    case Abi::mpich:
      return "mpich";
    case Abi::openmpi:
      return "openmpi";
    case Abi::standard:
      break;
  }
  return "abi";
}

int abi_error_other(Abi abi) noexcept { return abi == Abi::mpich ? 15 : 16; }

bool is_host_mpi(const ElfObject& object) noexcept {
  // A copy of libaccord, this one or another, exports PMPI_Init as well; its C API tells it from an
  // MPI.
  return object.defines("PMPI_Init") && !object.defines("accord_malloc");
}

Abi abi_of(const ElfObject& host, const std::vector<ElfObject>& objects) {
  if (std::string_view(host.soname).starts_with("libmpi_abi.")) return Abi::standard;
  // Handles of Open MPI are addresses of such variables; a build may keep them in a library below
  // libmpi.
  const auto has_handles = [](const ElfObject& object) {
    return object.defines("ompi_mpi_comm_world");
  };
  if (any_dependency(host, objects, has_handles)) return Abi::openmpi;
  // Both MPICH libraries answer MPI_Abi_get_version; only the one with MPICH's own interface has
  // this variable of mpi.h, which the standard interface replaced by functions.
  if (host.defines("MPI_Abi_get_version") && !host.defines("MPI_F_STATUS_IGNORE")) {
    return Abi::standard;
  }
  return Abi::mpich;
}

bool choose_host_mpi(const std::vector<ElfObject>& objects, const void* caller,
                     HostMpiChoice& choice) {
  std::vector<ElfObject> hosts;
  std::copy_if(objects.begin(), objects.end(), std::back_inserter(hosts), is_host_mpi);
  if (hosts.empty()) return false;

  std::size_t chosen = 0;
  ElfObject caller_object;
  if (hosts.size() > 1 && find_object(caller, caller_object)) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const auto same = [&](const ElfObject& object) { return object.dynamic == hosts[i].dynamic; };
      if (any_dependency(caller_object, objects, same)) {
        chosen = i;
        break;
      }
    }
  }
  choice.library = hosts[chosen];
  hosts.erase(hosts.begin() + static_cast<std::ptrdiff_t>(chosen));
  choice.others = std::move(hosts);
  return true;
}

}  // namespace accord::preload
