/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A collective library of one function, as a plug-in: sums of floats over all ranks of a node,
 * through shared memory. It works on the embedded host runtime, so it runs on any machine;
 * docs/plugins.md walks through it.
 *
 *   cc -std=c11 -O2 -shared -fPIC ccl_plugin.c -o libccl_example.so -I ../include
 *   ACCORD_RUNTIME=host ACCORD_CCL_PLUGIN=$PWD/libccl_example.so ACCORD_ALGORITHM=example \
 *         accord run --trace -n 4 ./allreduce_device
 */
#include <accord/ccl.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kRanksMax = 16, kChunk = 16 * 1024 };

/* What the ranks share. A file of zeros is one that nobody has used yet. */
struct shared {
  atomic_uint joined;
  atomic_uint given_up;
  atomic_uint arrived; /* at all barriers so far */
  float slots[kRanksMax][kChunk];
};

struct communicator {
  struct shared* shared;
  int rank;
  int size;
  unsigned barriers; /* passed */
};

static int fail(struct accord_ccl_error* error, const char* text) {
  snprintf(error->text, sizeof error->text, "%s", text);
  return 1;
}

/* There is nothing to load. A plug-in for a library would dlopen `path` and look its functions up.
 */
static int open_library(const char* path, void** library, struct accord_ccl_error* error) {
  static int nothing;
  (void)path;
  (void)error;
  *library = &nothing;
  return 0;
}

static void describe(void* library, struct accord_ccl_description* description) {
  (void)library;
  description->version = 1;
  snprintf(description->path, sizeof description->path, "%s", "built in");
}

/* All else goes the way that it would go without this plug-in. */
static int supports(void* library, enum accord_ccl_call call, enum accord_ccl_type type,
                    enum accord_ccl_op op) {
  (void)library;
  return call == ACCORD_CCL_ALLREDUCE && type == ACCORD_CCL_FLOAT32 && op == ACCORD_CCL_SUM;
}

static int make_id(void* library, struct accord_ccl_id* id, struct accord_ccl_error* error) {
  static atomic_uint made;
  struct timespec now;
  (void)library;
  (void)error;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(id->bytes, sizeof id->bytes, "/accord-example-%d-%u-%ld", (int)getpid(),
           atomic_fetch_add(&made, 1), now.tv_nsec);
  return 0;
}

static int wait_for(struct shared* shared, atomic_uint* count, unsigned wanted) {
  while ((int)(atomic_load(count) - wanted) < 0) {
    if (atomic_load(&shared->given_up) != 0) return 1;
    sched_yield();
  }
  return 0;
}

/* Blocks until all ranks are here; Accord calls it in a thread of its own. */
static int join(void* library, const struct accord_ccl_id* id, int rank, int size,
                void** communicator, struct accord_ccl_error* error) {
  (void)library;
  if (size > kRanksMax) return fail(error, "too many ranks");
  const int file = shm_open(id->bytes, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(struct shared)) != 0) return fail(error, "no memory");
  struct shared* shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  struct communicator* made = malloc(sizeof *made);
  if (shared == MAP_FAILED || made == NULL) return fail(error, "no memory");
  *made = (struct communicator){shared, rank, size, 0};
  atomic_fetch_add(&shared->joined, 1);
  if (wait_for(shared, &shared->joined, (unsigned)size) != 0) return fail(error, "a rank gave up");
  shm_unlink(id->bytes); /* all have it: the name is no longer needed, whoever is first */
  *communicator = made;
  return 0;
}

static void leave(void* communicator) {
  struct communicator* comm = communicator;
  munmap(comm->shared, sizeof *comm->shared);
  free(comm);
}

/* The others must not wait for this rank. */
static void abort_all(void* communicator) {
  struct communicator* comm = communicator;
  atomic_store(&comm->shared->given_up, 1);
  leave(comm);
}

static int check(void* communicator, struct accord_ccl_error* error) {
  struct communicator* comm = communicator;
  return atomic_load(&comm->shared->given_up) != 0 ? fail(error, "a rank gave up") : 0;
}

static int barrier(struct communicator* comm) {
  atomic_fetch_add(&comm->shared->arrived, 1);
  return wait_for(comm->shared, &comm->shared->arrived, ++comm->barriers * (unsigned)comm->size);
}

/* In rank order, so that all ranks get the same bits. */
static int allreduce(struct communicator* comm, const struct accord_ccl_work* work) {
  const float* send = work->send;
  float* recv = work->recv;
  for (size_t first = 0; first < work->count; first += kChunk) {
    const size_t count = work->count - first < kChunk ? work->count - first : kChunk;
    memcpy(comm->shared->slots[comm->rank], send + first, count * sizeof(float));
    if (barrier(comm) != 0) return 1;
    for (size_t i = 0; i < count; ++i) {
      float sum = comm->shared->slots[0][i];
      for (int rank = 1; rank < comm->size; ++rank) sum += comm->shared->slots[rank][i];
      recv[first + i] = sum;
    }
    if (barrier(comm) != 0) return 1;
  }
  return 0;
}

/* The works are all of the kind that supports() knows. There is no stream for runtime "host". */
static int enqueue(void* communicator, const struct accord_ccl_work* works, size_t count,
                   void* stream, struct accord_ccl_error* error) {
  (void)stream;
  for (size_t i = 0; i < count; ++i) {
    if (allreduce(communicator, &works[i]) != 0) return fail(error, "a rank gave up");
  }
  return 0;
}

static const struct accord_ccl_plugin plugin = {
    .abi = ACCORD_CCL_ABI,
    .size_bytes = sizeof(struct accord_ccl_plugin),
    .name = "example",
    .runtime = "host",
    .open = open_library,
    .describe = describe,
    .supports = supports,
    .make_id = make_id,
    .join = join,
    .leave = leave,
    .abort = abort_all,
    .check = check,
    .enqueue = enqueue,
};

const struct accord_ccl_plugin* accord_ccl_plugin_get(void) { return &plugin; }
