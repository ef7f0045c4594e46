// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// libfake_hccl.so: a library with the names of HCCL, the collective library of Gaudi accelerators,
// for tests without hardware. The contract is that of libfake_nccl.so (fake_nccl.h), the variables
// begin with FAKE_HCCL_. What HCCL does differently
// - a unique id is longer and says its own length; min and max are numbered the other way round;
//   results are numbered differently, and a reason can be asked for without a communicator;
// - its limits, the narrowest that its documentation has had: float32 and bfloat16 only, in every
//   call, and sum, min and max only;
// - no initialisation that does not block; hcclAlltoAll, but neither gather nor scatter.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { HCCL_UNIQUE_ID_MAX_BYTES = 1024 };
typedef struct {
  uint8_t internal[HCCL_UNIQUE_ID_MAX_BYTES];
  size_t length;
} hcclUniqueId;

typedef void* hcclComm_t;

typedef enum {
  hcclSuccess = 0,
  hcclNoDeviceFound = 1,
  hcclUnsupported = 2,
  hcclOutOfMemory = 3,
  hcclUnhandledSynapseError = 4,
  hcclSystemError = 5,
  hcclInternalError = 6,
  hcclInvalidArgument = 7,
  hcclInvalidUsage = 8,
} hcclResult_t;

typedef enum {
  hcclInt8 = 0,
  hcclUint8 = 1,
  hcclInt32 = 2,
  hcclUint32 = 3,
  hcclInt64 = 4,
  hcclUint64 = 5,
  hcclFloat16 = 6,
  hcclFloat32 = 7,
  hcclFloat64 = 8,
  hcclBfloat16 = 9,
} hcclDataType_t;

typedef enum { hcclSum = 0, hcclProd = 1, hcclMin = 2, hcclMax = 3, hcclAvg = 4 } hcclRedOp_t;

hcclResult_t hcclGetVersion(int* version);
hcclResult_t hcclGetUniqueId(hcclUniqueId* uniqueId);
hcclResult_t hcclCommInitRank(hcclComm_t* comm, int nranks, hcclUniqueId commId, int rank);
hcclResult_t hcclCommFinalize(hcclComm_t comm);
hcclResult_t hcclCommDestroy(hcclComm_t comm);
hcclResult_t hcclCommAbort(hcclComm_t comm);
hcclResult_t hcclCommGetAsyncError(hcclComm_t comm, hcclResult_t* asyncError);
hcclResult_t hcclCommCount(hcclComm_t comm, int* count);
hcclResult_t hcclCommSynDevice(hcclComm_t comm, int* device);
hcclResult_t hcclCommUserRank(hcclComm_t comm, int* rank);
const char* hcclGetErrorString(hcclResult_t result);
const char* hcclGetLastErrorMessage(void);
hcclResult_t hcclGroupStart(void);
hcclResult_t hcclGroupEnd(void);

hcclResult_t hcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                           void* stream_handle);
hcclResult_t hcclReduce(const void* sendbuff, void* recvbuff, size_t count, hcclDataType_t datatype,
                        hcclRedOp_t reduceOp, int root, hcclComm_t comm, void* stream_handle);
hcclResult_t hcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, int root, hcclComm_t comm, void* stream_handle);
hcclResult_t hcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           hcclDataType_t datatype, hcclComm_t comm, void* stream_handle);
hcclResult_t hcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                               void* stream_handle);
hcclResult_t hcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          hcclDataType_t datatype, hcclComm_t comm, void* stream_handle);
hcclResult_t hcclSend(const void* sendbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream);
hcclResult_t hcclRecv(void* recvbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
