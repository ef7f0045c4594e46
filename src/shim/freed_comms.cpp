// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/freed_comms.h"

#include <map>
#include <mutex>

#include "shim/shim.h"

namespace accord::shim {
namespace {

// One for each error handler, which it keeps, so that no other one gets its handle.
struct Heirs {
  std::mutex mutex;
  std::map<std::uint64_t, MPI_Comm> of_handler;
};

Heirs& heirs() {
  static Heirs& instance = *new Heirs;
  return instance;
}

MPI_Comm heir_of(MPI_Comm comm) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (private_comm() == MPI_COMM_NULL || host::Comm_get_errhandler(comm, &handler) != MPI_SUCCESS)
    return MPI_COMM_NULL;
  const std::lock_guard<std::mutex> locked(heirs().mutex);
  const auto [found, is_new] = heirs().of_handler.try_emplace(to_bits(handler), MPI_COMM_NULL);
  MPI_Comm& heir = found->second;
  if (is_new && host::Comm_dup(private_comm(), &heir) == MPI_SUCCESS)
    (void)host::Comm_set_errhandler(heir, handler);
  (void)host::Errhandler_free(&handler);
  return heir;
}

}  // namespace

void inherit_requests(MPI_Comm comm) {
  const std::uint64_t gone = to_bits(comm);
  if (!requests().empty() && requests().any_in(gone))
    requests().change_context(gone, to_bits(heir_of(comm)));
}

void free_heirs() {
  const std::lock_guard<std::mutex> locked(heirs().mutex);
  for (auto& [handler, heir] : heirs().of_handler)
    if (heir != MPI_COMM_NULL) (void)host::Comm_free(&heir);
  heirs().of_handler.clear();
}

}  // namespace accord::shim
