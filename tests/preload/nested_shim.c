/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A shim that calls MPI while it is being loaded, as a library below a shim may: that call must
 * reach the host MPI, and later ones the shim.
 */
#include "preload/shim_abi.h"

int MPI_Barrier(void);

static int host_answer;

__attribute__((constructor)) static void call_early(void) { host_answer = MPI_Barrier(); }

static int nested_barrier(void) { return 1000 + host_answer; }

int accord_shim_open(void* libmpi_handle) { return libmpi_handle == NULL; }

const AccordShimEntry* accord_shim_entries(size_t* count) {
  static const AccordShimEntry entries[] = {{"MPI_Barrier", (void*)nested_barrier}};
  *count = 1;
  return entries;
}
