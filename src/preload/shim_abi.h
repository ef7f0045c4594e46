/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * What libaccord.so asks of a shim, libaccord_<abi>.so: two C functions; and what it offers one.
 * libaccord opens the shim that fits the MPI of the process (mpich, openmpi or abi) from its own
 * directory and jumps to the functions it lists. C99, knows no MPI and no C++, so that a shim can
 * be replaced by a test's.
 */
#ifndef ACCORD_PRELOAD_SHIM_ABI_H
#define ACCORD_PRELOAD_SHIM_ABI_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One function that the shim takes over. */
typedef struct AccordShimEntry {
  const char* name; /* as in `generate.py names`: MPI_Send, MPIX_Query_cuda_support, ... */
  void*
      function; /* with the prototype of `name` in this shim's ABI; serves MPI_X and PMPI_X alike */
} AccordShimEntry;

/* Called once, before any function of the shim. `libmpi_handle` is the host MPI, open for good:
 * dlsym on it gives the real PMPI_ functions. Makes no MPI call. Returns 0, or another number when
 * this shim cannot serve that library; every call then goes to the host MPI untouched. */
int accord_shim_open(void* libmpi_handle);

/* The functions of this shim, in any order; *count receives their number. Static storage. Called
 * after accord_shim_open, which may therefore leave out what the host MPI lacks. */
const AccordShimEntry* accord_shim_entries(size_t* count);

#ifdef __cplusplus
}

namespace accord::preload {

// For the shim's MPI_Init, which is called where ACCORD_ENABLE is 0, too, so that all ranks of the
// job learn of it: from now on every call goes to the host MPI.
void forward_all() noexcept;

// Whether the program, or a library that was loaded with it, is linked with libaccord.so: it uses
// accord.h. Others have Accord preloaded.
bool is_linked() noexcept;

// Called once Fortran has been told an attribute of a window, with that handle and keyval of
// Fortran's: puts `value` right where the window is Accord's.
using WindowAttribute = void (*)(int window, int keyval, void* value);
void put_window_attributes_right(WindowAttribute right) noexcept;

}  // namespace accord::preload
#endif
#endif
