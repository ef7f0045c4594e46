/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * How the programs of this directory check: they count failures and tell each on stderr. They know
 * nothing of libaccord but the path of the toy shim, given by the test as TOY_SHIM; TOY_COUNT is
 * the number of calls it is to have seen of each function, or -1 where it is not to be loaded.
 */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void expect(const char* what, int found, int expected) {
  if (found == expected) return;
  fprintf(stderr, "FAILED: %s is %d, expected %d\n", what, found, expected);
  ++failures;
}

/* Calls of `function` that the toy shim saw; -1: it is not in this process. */
static inline int toy_shim_count(const char* function) {
  const char* path = getenv("TOY_SHIM");
  void* shim = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (shim == NULL) return -1;
  int (*count)(const char*) = (int (*)(const char*))dlsym(shim, "toy_count");
  return count(function);
}

static inline void expect_toy_counts(void) {
  const char* expected = getenv("TOY_COUNT");
  const int count = expected == NULL ? -1 : atoi(expected);
  expect("calls of MPI_Send in the toy shim", toy_shim_count("MPI_Send"), count);
  expect("calls of MPI_Allreduce in the toy shim", toy_shim_count("MPI_Allreduce"), count);
}
