// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/world_ranks.h"

#include <algorithm>
#include <numeric>

#include "shim/shim.h"

namespace accord::shim {

std::vector<int> ranks_in_world(MPI_Comm comm, int size, Side side) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> found(ranks.size(), MPI_UNDEFINED);
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  if (host::Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return found;
  const int code =
      side == Side::local ? host::Comm_group(comm, &group) : host::Comm_remote_group(comm, &group);
  if (code == MPI_SUCCESS) {
    std::iota(ranks.begin(), ranks.end(), 0);
    if (host::Group_translate_ranks(group, size, ranks.data(), world, found.data()) != MPI_SUCCESS)
      std::ranges::fill(found, MPI_UNDEFINED);
    (void)host::Group_free(&group);
  }
  (void)host::Group_free(&world);
  return found;
}

}  // namespace accord::shim
