// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What this machine's libstdc++.a uses that glibc 2.28 lacks, for our libraries alone.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/single_threaded.h>

// There may always be other threads.
char __libc_single_threaded = 0;

// For std::random_device.
__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t number = 0;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}
