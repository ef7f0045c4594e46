// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Looks like NVSHMEM's host library and reads what it is given by the offsets that NVSHMEM 3
// documents in its headers, written down here once more. Every rank gives what this one gives.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kIdBytes = 128, kAttributesBytes = 144, kInitWithUniqueId = 8 };
enum { kMpiComm = 8, kArgs = 16, kIdArgs = 24, kIdPointer = 32, kRank = 40, kRanks = 44 };

static int status;
static int ranks;

static int int_at(const void* structure, size_t offset) {
  int value;
  memcpy(&value, (const char*)structure + offset, sizeof value);
  return value;
}
static const char* pointer_at(const void* structure, size_t offset) {
  const char* value;
  memcpy(&value, (const char*)structure + offset, sizeof value);
  return value;
}

void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = 3;
  *minor = 9;
  *patch = 1;
}

int nvshmemx_get_uniqueid(void* id) {
  if (int_at(id, 0) != (1 << 16) + kIdBytes) return 1;
  memset((char*)id + sizeof(int), 'u', kIdBytes - sizeof(int));
  return 0;
}

int nvshmemx_set_attr_uniqueid_args(int rank, int count, const void* id, void* attributes) {
  memcpy((char*)attributes + kIdPointer, &id, sizeof id);
  memcpy((char*)attributes + kRank, &rank, sizeof rank);
  memcpy((char*)attributes + kRanks, &count, sizeof count);
  return 0;
}

int nvshmemx_hostlib_init_attr(unsigned flags, void* attributes) {
  if (flags != kInitWithUniqueId) return 2;
  if (int_at(attributes, 0) != (1 << 16) + kAttributesBytes) return 3;
  if (pointer_at(attributes, kMpiComm) != NULL) return 4;
  if (int_at(attributes, kArgs) != (1 << 16) + 128) return 5;
  if (int_at(attributes, kIdArgs) != (1 << 16) + 24) return 6;
  if (pointer_at(attributes, kIdPointer)[kIdBytes - 1] != 'u') return 7;
  ranks = int_at(attributes, kRanks);
  if (int_at(attributes, kRank) < 0 || int_at(attributes, kRank) >= ranks) return 8;
  status = 2;
  return 0;
}

int nvshmemx_init_status(void) { return status; }
void nvshmemx_hostlib_finalize(void) { status = 0; }
void* nvshmem_malloc(size_t size_bytes) { return malloc(size_bytes); }
void nvshmem_free(void* memory) { free(memory); }
void nvshmemx_barrier_all_on_stream(void* stream) { (void)stream; }

int nvshmemx_float_sum_reduce_on_stream(int32_t team, float* dst, const float* src, size_t count,
                                        void* stream) {
  if (team != 0 || stream != NULL) return 1;
  for (size_t i = 0; i < count; ++i) dst[i] = src[i] * (float)ranks;
  return 0;
}

int nvshmemx_uint8_broadcast_on_stream(int32_t team, uint8_t* dst, const uint8_t* src, size_t count,
                                       int root, void* stream) {
  if (team != 0 || root < 0 || stream != NULL) return 1;
  memcpy(dst, src, count);
  return 0;
}
