/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * The example's plug-in as one that was compiled with the first version of accord/ccl.h: what lies
 * behind its structure is anything, and not Accord's to read.
 */
#define accord_ccl_plugin_get example_plugin_get
#include "../../examples/ccl_plugin.c"
#undef accord_ccl_plugin_get

static int anything(void* library) {
  (void)library;
  return 1;
}

const struct accord_ccl_plugin* accord_ccl_plugin_get(void) {
  static struct accord_ccl_plugin early;
  early = *example_plugin_get();
  early.size_bytes = offsetof(struct accord_ccl_plugin, can_be_recorded);
  early.can_be_recorded = anything;
  return &early;
}
