/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * What Accord asks of a plug-in for a collective communication library (C99). A plug-in is a shared
 * object, named by ACCORD_CCL_PLUGIN, that exports accord_ccl_plugin_get(); those built into Accord
 * give the same structure. It speaks of devices' memory and streams and knows nothing of MPI.
 * Accord lets one operation a process run at a time, each only once all ranks of its communicator
 * are about to start it, and agrees with them on everything before it does. Functions that return
 * int return 0, or something else with a text in `error`, which is never null.
 */
#ifndef ACCORD_CCL_H
#define ACCORD_CCL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when the structures below change other than by new members at the end of struct
 * accord_ccl_plugin. */
#define ACCORD_CCL_ABI 1

enum accord_ccl_type {
  ACCORD_CCL_INT8 = 1,
  ACCORD_CCL_UINT8 = 2,
  ACCORD_CCL_INT16 = 3,
  ACCORD_CCL_UINT16 = 4,
  ACCORD_CCL_INT32 = 5,
  ACCORD_CCL_UINT32 = 6,
  ACCORD_CCL_INT64 = 7,
  ACCORD_CCL_UINT64 = 8,
  ACCORD_CCL_FLOAT16 = 9,   /* IEEE binary16 */
  ACCORD_CCL_BFLOAT16 = 10, /* the upper half of a float32 */
  ACCORD_CCL_FLOAT32 = 11,
  ACCORD_CCL_FLOAT64 = 12
};

enum accord_ccl_op {
  ACCORD_CCL_NONE = 0, /* nothing is reduced; Accord then moves ACCORD_CCL_UINT8 */
  ACCORD_CCL_SUM = 1,
  ACCORD_CCL_PROD = 2,
  ACCORD_CCL_MIN = 3,
  ACCORD_CCL_MAX = 4
};

/* With what `send`, `recv`, `count` and `peer` of struct accord_ccl_work are. Buffers overlap only
 * where that is said.
 */
enum accord_ccl_call {
  /* [count] elements of each rank; `send` may be `recv`. */
  ACCORD_CCL_ALLREDUCE = 1,
  /* The same, to rank `peer`; `recv` means nothing elsewhere. */
  ACCORD_CCL_REDUCE = 2,
  /* [count] elements from `send` of rank `peer`, to `recv` of all others. Both are one address on
     each rank. */
  ACCORD_CCL_BCAST = 3,
  /* [count] elements of each rank to [ranks * count] of each; `send` may be its own block of
     `recv`. */
  ACCORD_CCL_ALLGATHER = 4,
  /* [ranks * count] elements of each rank, block i to [count] of rank i; `recv` may be its own
     block of `send`. */
  ACCORD_CCL_REDUCE_SCATTER = 5,
  /* [count] elements to rank `peer`, or from there, which may be the rank itself. */
  ACCORD_CCL_SEND = 6,
  ACCORD_CCL_RECV = 7,
  /* Not every library has these; Accord composes them of the two above where supports() says no. */
  ACCORD_CCL_ALLTOALL = 8, /* [ranks * count] elements each way */
  /* [count] elements of each rank to [ranks * count] of rank `peer`, whose `send` may be its own
     block of `recv`. */
  ACCORD_CCL_GATHER = 9,
  ACCORD_CCL_SCATTER = 10 /* the other way round */
};

struct accord_ccl_work {
  enum accord_ccl_call call;
  enum accord_ccl_type type;
  enum accord_ccl_op op;
  const void* send; /* null where this rank sends nothing */
  void* recv;       /* null where it receives nothing */
  size_t count;
  int peer;
};

/* As long as the longest that any library has; what is not used is zero. */
struct accord_ccl_id {
  char bytes[4096];
};

struct accord_ccl_error {
  char text[256];
};

/* What `accord info` shows. */
struct accord_ccl_description {
  int version;      /* as the library counts; ranks whose versions differ do not use it together */
  char path[1024];  /* of the file */
  char found[1024]; /* functions that are not in every version and that this one has, with blanks
                       between */
};

struct accord_ccl_plugin {
  uint32_t abi;        /* ACCORD_CCL_ABI */
  uint32_t size_bytes; /* sizeof(struct accord_ccl_plugin) where the plug-in was compiled */
  const char* name;    /* as ACCORD_ALGORITHM has it: a word in lower case */
  const char* runtime; /* whose memory and streams it takes: "cuda"; "host": what the CPU can touch,
                          and no streams */

  /* Loads the library. `path` is null where the user names none. `library` goes to the functions
   * below. */
  int (*open)(const char* path, void** library, struct accord_ccl_error* error);
  void (*describe)(void* library, struct accord_ccl_description* description);
  /* Whether it can do such a call. Equal in all processes that have the same version of the
   * library. */
  int (*supports)(void* library, enum accord_ccl_call call, enum accord_ccl_type type,
                  enum accord_ccl_op op);

  /* A new name for a communicator, made by one rank and carried to the others. */
  int (*make_id)(void* library, struct accord_ccl_id* id, struct accord_ccl_error* error);
  /* Makes the communicator that has this name. Blocks until all ranks have called it. In a thread
   * of its own, with the device of the rank current. */
  int (*join)(void* library, const struct accord_ccl_id* id, int rank, int size,
              void** communicator, struct accord_ccl_error* error);
  /* With nothing under way: frees the communicator. */
  void (*leave)(void* communicator);
  /* Ends what is under way, wherever it is stuck, and frees the communicator. */
  void (*abort)(void* communicator);
  /* Whether something under way has failed meanwhile. Called again and again. */
  int (*check)(void* communicator, struct accord_ccl_error* error);

  /* Puts `count` works on `stream`, as one step: none of them waits for an earlier one. Does not
   * wait for peers longer than it takes them to call the same. `stream` is the vendor's; null for
   * runtime "host": then the works are done when the function returns. */
  int (*enqueue)(void* communicator, const struct accord_ccl_work* works, size_t count,
                 void* stream, struct accord_ccl_error* error);

  /* Whether enqueue() may be called on a stream that captures, all ranks in one call, and what was
   * captured launched again and again instead of later calls with the same works, again by all
   * ranks. Launches and calls may follow one another in any order. All that was captured goes
   * before leave(). Null: no. (Not in the first version of this structure.) */
  int (*can_be_recorded)(void* library);
};

/* What a plug-in exports; the structure stays for good. */
typedef const struct accord_ccl_plugin* accord_ccl_plugin_function(void);
#define ACCORD_CCL_PLUGIN_SYMBOL "accord_ccl_plugin_get"

#ifdef __cplusplus
}
#endif
#endif
