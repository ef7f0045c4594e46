/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * How long small collectives on device memory take, whichever version of Accord is preloaded: a
 * program that knows nothing of it (compare.py). The memory is the driver's, so no CUDA is needed
 * to build it:  mpicc -O2 small_calls.c -o small_calls -ldl
 * Prints a line a collective and size: name, bytes, and of the slowest rank the median and the mean
 * in microseconds. Each sum is checked. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCalls = 4000, kWarmups = 1500, kBufferBytes = 1 << 22, kSizes = 2 };
static const char* const kNames[] = {"allreduce", "bcast", "allgather", "alltoall"};
static const int kFloats[kSizes] = {2, 256};

typedef unsigned long long DevicePointer;

static void* driver;

static void* symbol(const char* name) {
  void* const found = driver == NULL ? NULL : dlsym(driver, name);
  if (found == NULL) {
    fprintf(stderr, "small_calls: the NVIDIA driver has no %s\n", name);
    exit(2);
  }
  return found;
}

static void expect(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "small_calls: %s: error %d\n", what, result);
  exit(2);
}

static void use_device(int rank) {
  int count = 0;
  int device = 0;
  void* context = NULL;
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  expect(((int (*)(unsigned))symbol("cuInit"))(0), "cuInit");
  expect(((int (*)(int*))symbol("cuDeviceGetCount"))(&count), "cuDeviceGetCount");
  expect(((int (*)(int*, int))symbol("cuDeviceGet"))(&device, rank % count), "cuDeviceGet");
  expect(((int (*)(void**, int))symbol("cuDevicePrimaryCtxRetain"))(&context, device), "context");
  expect(((int (*)(void*))symbol("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
}

static void* device_buffer(float value) {
  union {
    float number;
    unsigned bits;
  } word = {.number = value};
  DevicePointer made = 0;
  expect(((int (*)(DevicePointer*, size_t))symbol("cuMemAlloc_v2"))(&made, kBufferBytes), "memory");
  expect(((int (*)(DevicePointer, unsigned, size_t))symbol("cuMemsetD32_v2"))(made, word.bits,
                                                                              kBufferBytes / 4),
         "cuMemsetD32");
  return (void*)made;
}

static void call(int which, void* a, void* b, int floats) {
  switch (which) {
    case 0:
      MPI_Allreduce(a, b, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case 1:
      MPI_Bcast(a, floats, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    case 2:
      MPI_Allgather(a, floats, MPI_FLOAT, b, floats, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    default:
      MPI_Alltoall(a, floats, MPI_FLOAT, b, floats, MPI_FLOAT, MPI_COMM_WORLD);
      break;
  }
}

static void check(int which, const void* b, int floats, int size) {
  static float got[1 << 10];
  const float expected = which == 0 ? (float)size : 1.0F;
  if (which == 1) return; /* in place */
  expect(((int (*)(void*, DevicePointer, size_t))symbol("cuMemcpyDtoH_v2"))(
             got, (DevicePointer)b, (size_t)floats * sizeof(float)),
         "cuMemcpyDtoH");
  for (int i = 0; i < floats; ++i) expect(got[i] != expected, "wrong result");
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(int which, void* a, void* b, int floats, int rank, int size) {
  static double took_us[kCalls];
  double own[2] = {0, 0};
  double slowest[2] = {0, 0};
  for (int i = -kWarmups; i < kCalls; ++i) {
    if (i <= 0) MPI_Barrier(MPI_COMM_WORLD);
    const double begun = MPI_Wtime();
    call(which, a, b, floats);
    if (i >= 0) own[1] += took_us[i] = (MPI_Wtime() - begun) * 1e6;
  }
  check(which, b, floats, size);
  qsort(took_us, kCalls, sizeof took_us[0], compare_doubles);
  own[0] = took_us[kCalls / 2];
  own[1] /= kCalls;
  MPI_Reduce(own, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s %d %.3f %.3f\n", kNames[which], floats * (int)sizeof(float), slowest[0], slowest[1]);
}

int main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  use_device(rank);
  void* const a = device_buffer(1.0F);
  void* const b = device_buffer(0.0F);
  for (int which = 0; which < 4; ++which)
    for (int k = 0; k < kSizes; ++k) measure(which, a, b, kFloats[k], rank, size);
  MPI_Finalize();
  return 0;
}
