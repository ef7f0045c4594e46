/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * The public header, used from C99. Returns the number of the line that failed, or 0. */
#include <string.h>

#include "accord/accord.h"

int use_accord_from_c(void);
int misuse_accord_from_c(void);

int use_accord_from_c(void) {
  char text[8] = "";
  void* memory = NULL;
  enum accord_memory kind = ACCORD_MEMORY_HOST;
  if (accord_malloc(&memory, sizeof text, ACCORD_MEMORY_DEVICE) != ACCORD_OK) return __LINE__;
  if (accord_memcpy(memory, "accord!", sizeof text) != ACCORD_OK) return __LINE__;
  if (accord_memcpy(text, memory, sizeof text) != ACCORD_OK) return __LINE__;
  if (strcmp(text, "accord!") != 0) return __LINE__;
  if (accord_memory_kind(memory, &kind) != ACCORD_OK) return __LINE__;
  if (kind != ACCORD_MEMORY_DEVICE) return __LINE__;
  if (accord_free(memory) != ACCORD_OK) return __LINE__;
  return 0;
}

/* What only C can pass: a value outside of the enumeration. */
int misuse_accord_from_c(void) {
  void* memory = NULL;
  return accord_malloc(&memory, 1, (enum accord_memory)9) == ACCORD_ERROR_INVALID ? 0 : __LINE__;
}
