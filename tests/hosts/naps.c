/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright 2026 The Accord authors */
/*
 * To be preloaded where the ranks of several hosts share a few cores: who waits sleeps for a moment instead of giving its
 * turn away, which takes a core all the same, and with it that of a proxy, of a rank that has something to do, and of whoever
 * else uses the machine.
 */
#include <time.h>

int sched_yield(void) {
  const struct timespec nap = {.tv_sec = 0, .tv_nsec = 50000};
  return nanosleep(&nap, 0);
}
