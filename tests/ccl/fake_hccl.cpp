// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_hccl.h"

#include <cstdlib>
#include <cstring>

#include "engine.h"
#include "stream.h"

// NOLINTBEGIN(readability-identifier-naming): HCCL's names
using namespace accord::fake;

namespace {

constexpr char kName[] = "FAKE_HCCL";
constexpr int kVersion = 2604;

hcclResult_t result_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::success:
      return hcclSuccess;
    case Outcome::invalid_argument:
      return hcclInvalidArgument;
    case Outcome::invalid_usage:
      return hcclInvalidUsage;
    case Outcome::system_error:
      return hcclSystemError;
    default:  // HCCL knows neither failed peers nor calls in progress
      return hcclInternalError;
  }
}

Communicator* communicator_of(hcclComm_t comm) { return static_cast<Communicator*>(comm); }

// A number of a communicator: its size, the own rank, the device.
template <class Number>
hcclResult_t tell(hcclComm_t comm, int* to, Number number) {
  const auto communicator = find(communicator_of(comm));
  if (!communicator || to == nullptr) {
    return result_of(fail(Outcome::invalid_argument, "no such communicator"));
  }
  *to = number(*communicator);
  return hcclSuccess;
}

struct Typed {
  hcclDataType_t datatype;
  hcclRedOp_t op = hcclSum;
};
hcclResult_t run(hcclComm_t comm, void* stream, Call call, const Typed& typed) {
  if (stream != nullptr && !has_streams()) return result_of(refuse("streams must be null"));
  if (typed.datatype != hcclFloat32 && typed.datatype != hcclBfloat16) {
    refuse("neither float32 nor bfloat16");
    return hcclUnsupported;
  }
  if (typed.op != hcclSum && typed.op != hcclMin && typed.op != hcclMax) {
    refuse("neither sum nor min nor max");
    return hcclUnsupported;
  }
  call.stream = stream;
  call.element = static_cast<Element>(typed.datatype);
  if (typed.op == hcclMin) call.reduction = Reduction::min;
  if (typed.op == hcclMax) call.reduction = Reduction::max;
  return result_of(submit(communicator_of(comm), call));
}

}  // namespace

extern "C" {

hcclResult_t hcclGetVersion(int* version) {
  const char* told = std::getenv("FAKE_HCCL_VERSION");
  *version = told != nullptr ? std::atoi(told) : kVersion;
  return hcclSuccess;
}

hcclResult_t hcclGetUniqueId(hcclUniqueId* uniqueId) {
  *uniqueId = {};
  char* text = reinterpret_cast<char*>(uniqueId->internal);
  const Outcome outcome = create_id({text, HCCL_UNIQUE_ID_MAX_BYTES});
  uniqueId->length = std::strlen(text) + 1;
  return result_of(outcome);
}

hcclResult_t hcclCommInitRank(hcclComm_t* comm, int nranks, hcclUniqueId commId, int rank) {
  if (comm == nullptr) return result_of(fail(Outcome::invalid_argument, "nowhere to put it"));
  // An id that lost its length on the way is no id.
  const char* text = reinterpret_cast<const char*>(commId.internal);
  Communicator* made = nullptr;
  const Outcome outcome =
      create(made, {.rank = rank, .rank_count = nranks}, {text, commId.length}, kName);
  *comm = made;
  return result_of(outcome);
}

hcclResult_t hcclCommFinalize(hcclComm_t comm) {
  const auto communicator = find(communicator_of(comm));
  return communicator ? result_of(communicator->state) : hcclInvalidArgument;
}

hcclResult_t hcclCommDestroy(hcclComm_t comm) { return result_of(destroy(communicator_of(comm))); }

hcclResult_t hcclCommAbort(hcclComm_t comm) { return result_of(abort(communicator_of(comm))); }

hcclResult_t hcclCommGetAsyncError(hcclComm_t comm, hcclResult_t* asyncError) {
  const auto communicator = find(communicator_of(comm));
  if (!communicator) return hcclInvalidArgument;
  *asyncError = result_of(communicator->state);
  return hcclSuccess;
}

hcclResult_t hcclCommCount(hcclComm_t comm, int* count) {
  return tell(comm, count, [](const Communicator& c) { return c.rank_count; });
}

hcclResult_t hcclCommSynDevice(hcclComm_t comm, int* device) {
  return tell(comm, device, [](const Communicator& c) { return c.device(); });
}

hcclResult_t hcclCommUserRank(hcclComm_t comm, int* rank) {
  return tell(comm, rank, [](const Communicator& c) { return c.rank; });
}

const char* hcclGetErrorString(hcclResult_t result) {
  switch (result) {
    case hcclSuccess:
      return "no error";
    case hcclUnsupported:
      return "unsupported";
    case hcclSystemError:
      return "system error";
    case hcclInternalError:
      return "internal error";
    case hcclInvalidArgument:
      return "invalid argument";
    case hcclInvalidUsage:
      return "invalid usage";
    default:
      return "another error";
  }
}

const char* hcclGetLastErrorMessage() { return last_error(); }

hcclResult_t hcclGroupStart() { return result_of(group_start()); }
hcclResult_t hcclGroupEnd() { return result_of(group_end()); }

hcclResult_t hcclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                           void* stream_handle) {
  const Call call{.kind = Kind::all_reduce, .send = sendbuff, .receive = recvbuff, .count = count};
  return run(comm, stream_handle, call, {datatype, reduceOp});
}

hcclResult_t hcclReduce(const void* sendbuff, void* recvbuff, size_t count, hcclDataType_t datatype,
                        hcclRedOp_t reduceOp, int root, hcclComm_t comm, void* stream_handle) {
  Call call{.kind = Kind::reduce, .send = sendbuff, .receive = recvbuff, .count = count};
  call.peer = root;
  return run(comm, stream_handle, call, {datatype, reduceOp});
}

hcclResult_t hcclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           hcclDataType_t datatype, int root, hcclComm_t comm,
                           void* stream_handle) {
  Call call{.kind = Kind::broadcast, .send = sendbuff, .receive = recvbuff, .count = count};
  call.peer = root;
  return run(comm, stream_handle, call, {datatype});
}

hcclResult_t hcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           hcclDataType_t datatype, hcclComm_t comm, void* stream_handle) {
  const Call call{
      .kind = Kind::all_gather, .send = sendbuff, .receive = recvbuff, .count = sendcount};
  return run(comm, stream_handle, call, {datatype});
}

hcclResult_t hcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               hcclDataType_t datatype, hcclRedOp_t reduceOp, hcclComm_t comm,
                               void* stream_handle) {
  const Call call{
      .kind = Kind::reduce_scatter, .send = sendbuff, .receive = recvbuff, .count = recvcount};
  return run(comm, stream_handle, call, {datatype, reduceOp});
}

hcclResult_t hcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          hcclDataType_t datatype, hcclComm_t comm, void* stream_handle) {
  const Call call{.kind = Kind::all_to_all, .send = sendbuff, .receive = recvbuff, .count = count};
  return run(comm, stream_handle, call, {datatype});
}

hcclResult_t hcclSend(const void* sendbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream) {
  Call call{.kind = Kind::send, .send = sendbuff, .count = count};
  call.peer = peer;
  return run(comm, stream, call, {datatype});
}

hcclResult_t hcclRecv(void* recvbuff, size_t count, hcclDataType_t datatype, int peer,
                      hcclComm_t comm, void* stream) {
  Call call{.kind = Kind::receive, .receive = recvbuff, .count = count};
  call.peer = peer;
  return run(comm, stream, call, {datatype});
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
