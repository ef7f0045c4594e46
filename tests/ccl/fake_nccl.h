// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// libfake_nccl.so: a library with NCCL's names for tests without GPUs, between the processes of one
// machine. The declarations are what NCCL's documentation says of its C interface.
//
// The contract
// - Buffers are memory that the CPU may read and write. The stream is null: a call, or the
//   ncclGroupEnd of its group, returns when its work is done, and waits for the peers. On a stream
//   of the stand-in for HIP (stream.h) it does so there, with memory of that.
// - A communicator made with `blocking = 0` works in a thread of its own, at initialisation and at
//   every call or group. It answers ncclInProgress, and to another call before
//   ncclCommGetAsyncError says ncclSuccess it answers ncclInvalidArgument, as NCCL does.
// - libfake_nccl.so has what NCCL 2.18 has; libfake_nccl_new.so also ncclAlltoAll, ncclGather,
//   ncclScatter and windows, as NCCL 2.28; libfake_rccl.so spells it ncclAllToAll and has no
//   windows. Windows are only counted: they change nothing.
// - Elements are those of NCCL 2.18, without 16-bit integers and 8-bit floating-point numbers.
//   Reductions go in rank order, 16-bit floating-point numbers in float32, rounded once.
// - A communicator does not end before the work that was captured with it has gone.
// - Ranks that make different calls (kind, size, element, operation, root) get ncclInvalidUsage
//   instead of a hang. An error is for good; the peers get ncclRemoteError.
//
// What goes wrong is read from the environment when a communicator is made
// - FAKE_NCCL_VERSION=21805       what ncclGetVersion says
// - FAKE_NCCL_ONE_DEVICE=1        all ranks use device 0: ncclInvalidUsage, with more than one rank
// - FAKE_NCCL_FAIL_INIT=<rank>    this rank's initialisation ends with ncclSystemError
// - FAKE_NCCL_FAIL_CALL=<n>       the n-th collective of the process ends with ncclInternalError,
// - FAKE_NCCL_FAIL_MESSAGE=<n>    so does the n-th send or receive,
// - FAKE_NCCL_FAIL_LAUNCH=<n>     so does the n-th call or group that goes to a stream, or is
//                                 captured; what it leaves there ends with the communicator only,
// - FAKE_NCCL_FAIL_RANK=<rank>    on this rank of its communicator only,
// - FAKE_NCCL_FAIL_LATE=1         and this and all errors of the exchange only show in
//                                 ncclCommGetAsyncError
// - FAKE_NCCL_NO_WINDOWS=1        ncclCommWindowRegister succeeds and gives a null window, as
// NCCL's
//                                 does where memory cannot be shared that way
// - FAKE_NCCL_PATIENCE_MS=30000   how long a rank waits for others before ncclSystemError; NCCL
//                                 would wait forever
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { NCCL_UNIQUE_ID_BYTES = 128 };
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow* ncclWindow_t;
typedef struct CUstream_st* cudaStream_t;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
} ncclResult_t;

typedef enum {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
} ncclDataType_t;

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;

// As of NCCL 2.18. Newer ones are longer: `size` says how long the caller's is.
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
} ncclConfig_t;
#define NCCL_CONFIG_MAGIC 0xcafebeefU
#define NCCL_CONFIG_UNDEF_INT (-2147483647 - 1)

ncclResult_t ncclGetVersion(int* version);
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t ncclCommCount(ncclComm_t comm, int* count);
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream);
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream);

// Of newer libraries, see above.
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllToAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int winFlags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
