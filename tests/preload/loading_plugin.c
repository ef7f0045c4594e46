/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A library whose constructor calls MPI while another thread makes the first call of the process.
 * That one has to wait for the dynamic linker, which is this thread's until the constructor ends.
 */
#include <pthread.h>
#include <unistd.h>

int MPI_Barrier(void);

static pthread_t thread;
static int own_answer;
static int first_answer;

static void* call_first(void* unused) {
  first_answer = MPI_Barrier();
  return unused;
}

__attribute__((constructor)) static void load(void) {
  pthread_create(&thread, NULL, call_first, NULL);
  usleep(300000); /* it is in its call by then */
  own_answer = MPI_Barrier();
}

void loading_plugin_answers(int* own, int* first) {
  pthread_join(thread, NULL);
  *own = own_answer;
  *first = first_answer;
}
