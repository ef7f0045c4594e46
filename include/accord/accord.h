/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * Public C API of Accord (C99). A program needs none of it to use Accord: MPI calls on device
 * memory just work. It is for tests, examples and tools that want device memory without naming a
 * vendor. On a machine without accelerators the embedded host runtime provides memory that the CPU
 * cannot touch directly, as on a GPU. All functions are thread-safe and local. Functions that
 * return int return 0 or one of ACCORD_ERROR_*.
 */
#ifndef ACCORD_ACCORD_H
#define ACCORD_ACCORD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACCORD_VERSION "0.1.0"

#define ACCORD_OK 0
#define ACCORD_ERROR_INVALID 1 /* a bad argument */
#define ACCORD_ERROR_NO_MEMORY 2
#define ACCORD_ERROR_DEVICE 3 /* the driver reported an error */
#define ACCORD_ERROR_UNSUPPORTED 4

enum accord_memory {
  ACCORD_MEMORY_HOST = 0,    /* malloc; never needs Accord */
  ACCORD_MEMORY_PINNED = 1,  /* page-locked host memory */
  ACCORD_MEMORY_MANAGED = 2, /* migrates between host and device */
  ACCORD_MEMORY_DEVICE = 3   /* the CPU must not touch it */
};

/* Allocates size_bytes of the given kind on the calling thread's Accord device (see
 * accord_set_device) and stores its address in *pointer; the caller frees it with accord_free.
 * size_bytes 0 gives a null pointer. Errors: INVALID, NO_MEMORY, DEVICE. */
int accord_malloc(void** pointer, size_t size_bytes, enum accord_memory kind);

/* Frees memory from accord_malloc; null is allowed. No MPI call may still use it. Errors: INVALID.
 */
int accord_free(void* pointer);

/* Copies size_bytes between any two kinds of memory and returns when they have arrived. Errors:
 * DEVICE. */
int accord_memcpy(void* dst, const void* src, size_t size_bytes);

/* Tells the kind of memory `pointer` is in: ACCORD_MEMORY_HOST for everything no runtime knows. */
int accord_memory_kind(const void* pointer, enum accord_memory* kind);

/* Device of this thread's later accord_malloc calls, 0 <= device < accord_device_count(). Errors:
 * INVALID. */
int accord_set_device(int device);
int accord_device_count(void);

/* Name of the runtime behind accord_malloc: "cuda", "host", ... Static storage. */
const char* accord_runtime_name(void);

/* Text of the calling thread's last error of this API. Valid until its next call. */
const char* accord_last_error(void);

/* The way the calling thread's last MPI call on device memory took: "staged", "staged-pipelined",
 * "node" (from device to device within a node), "node-direct" (straight between the ranks' own
 * buffers), "node-pairs" (each pair of ranks as it can), "queued" (a non-blocking call that waits
 * for others), "device" (packed or unpacked where the data is), the name of a collective library
 * ("nccl"), or "-" before the first. Static storage. */
const char* accord_last_path(void);

/* Writes a JSON object (settings, runtimes, devices, host MPI) of at most capacity bytes, NUL
 * included, and returns the bytes needed; call with capacity 0 to learn them. What `accord info`
 * shows. */
size_t accord_info_json(char* buffer, size_t capacity);

/* The same way, the names that ACCORD_ALGORITHM, ACCORD_TABLE and the info key "accord_algorithm"
 * know:
 * {"algorithms": [{"name", "path"}], "collectives": [name], "descriptions": [...]}, where `path` is
 * what accord_last_path says of a call that went so, and a description is an object {"name",
 * "names", "by_host", "what", "steps", "bytes", "where", "collectives"} of each algorithm, in the
 * order in which a call tries them. What docs/algorithms.md is made from. */
size_t accord_algorithms_json(char* buffer, size_t capacity);

/* The same way, which algorithm a collective takes where all its `ranks` have device buffers on one
 * node, and who chose it (setting, info, table or rule), with the settings of this process.
 * `collective` is one of the names above, `size_bytes` that of the block between two ranks, as
 * ACCORD_NODE_BYTES counts, `info` the value of the info key "accord_algorithm" of the
 * communicator, or null. Where a collective library is chosen, `otherwise` is what goes without it,
 * since what it can do is known only of a call. What `accord explain` shows. */
size_t accord_explain_json(const char* collective, int ranks, size_t size_bytes, const char* info,
                           char* buffer, size_t capacity);

/* The same of the collective libraries (NCCL and its like): a JSON array. Loads those that it
 * finds. */
size_t accord_ccl_json(char* buffer, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
