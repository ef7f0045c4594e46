/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * Calls a fake MPI (fake_mpi.c) through libaccord. Usage: fake_program
 * arguments|variadic|missing|which NUMBER|threads NUMBER|loading NUMBER PLUGIN
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "expectations.h"

double MPI_Sendrecv(int, double, long, double, int, double, long, double, int, double, long, double,
                    int, double, long, double, int, double);
double PMPI_Sendrecv(int, double, long, double, int, double, long, double, int, double, long,
                     double, int, double, long, double, int, double);
double MPI_Bcast(int count, ...);
int MPI_Barrier(void);
int MPI_Gather(void);

/* The first call goes through the binding stub, the second does not: both must see the same
 * arguments. */
static void check_arguments(void) {
  const double stub = MPI_Sendrecv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18);
  const double bound = MPI_Sendrecv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18);
  const double profiling =
      PMPI_Sendrecv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18);
  expect("the first call", stub == 2109.0, 1);
  expect("the second call", bound == 2109.0, 1);
  expect("the profiling name", profiling == 2109.0, 1);
}

static void check_variadic(void) {
  const double stub = MPI_Bcast(9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0);
  const double bound = MPI_Bcast(9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0);
  expect("the first variadic call", stub == 14757.0, 1);
  expect("the second variadic call", bound == stub, 1);
}

enum { kThreads = 8 };
static pthread_barrier_t start;

static void* first_call(void* answer) {
  pthread_barrier_wait(&start);
  *(int*)answer = MPI_Barrier();
  return NULL;
}

/* All threads make the first call at once; each must wait until the binding is complete. */
static void check_threads(int expected) {
  pthread_t threads[kThreads];
  int answers[kThreads] = {0};
  pthread_barrier_init(&start, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, first_call, &answers[i]);
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    expect("the answer to a thread", answers[i], expected);
  }
}

/* The plug-in of loading_plugin.c. */
static void check_loading(int expected, const char* path) {
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    expect(dlerror(), 0, 1);
    return;
  }
  void (*answers)(int*, int*) = (void (*)(int*, int*))dlsym(plugin, "loading_plugin_answers");
  int own = 0;
  int first = 0;
  answers(&own, &first);
  expect("the answer to the constructor", own, expected);
  expect("the answer to the thread", first, expected);
}

int main(int argc, char** argv) {
  const char* action = argc > 1 ? argv[1] : "";
  if (strcmp(action, "arguments") == 0) {
    check_arguments();
  } else if (strcmp(action, "variadic") == 0) {
    check_variadic();
  } else if (strcmp(action, "missing") == 0) {
    expect("the code of a missing function", MPI_Gather(), 16);
    expect("the code the second time", MPI_Gather(), 16);
  } else if (strcmp(action, "which") == 0 && argc > 2) {
    expect("the answer", MPI_Barrier(), atoi(argv[2]));
  } else if (strcmp(action, "threads") == 0 && argc > 2) {
    check_threads(atoi(argv[2]));
  } else if (strcmp(action, "loading") == 0 && argc > 3) {
    check_loading(atoi(argv[2]), argv[3]);
  } else {
    return 2;
  }
  return failures == 0 ? 0 : 1;
}
