/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A program without MPI that opens plugin.c in local scope. Usage: loader PLUGIN
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (dlsym(RTLD_DEFAULT, "MPI_Send") != NULL) {
    fprintf(stderr, "FAILED: a process without MPI shows MPI_Send\n");
    return 1;
  }
  void* plugin = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "FAILED: %s\n", dlerror());
    return 1;
  }
  int (*run)(void) = (int (*)(void))dlsym(plugin, "plugin_run");
  return run() == 0 ? 0 : 1;
}
