// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_nccl.h"

#include <cstdlib>

#include "engine.h"
#include "stream.h"

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
using namespace accord::fake;

namespace {

constexpr char kName[] = "FAKE_NCCL";
#ifdef FAKE_NCCL_NEW
constexpr int kVersion = 22809;
#else
constexpr int kVersion = 21805;
#endif

ncclResult_t result_of(Outcome outcome) { return static_cast<ncclResult_t>(outcome); }

Communicator* communicator_of(ncclComm_t comm) { return reinterpret_cast<Communicator*>(comm); }

ncclResult_t init(ncclComm_t* comm, const Member& member, const ncclUniqueId& id) {
  if (comm == nullptr) return result_of(fail(Outcome::invalid_argument, "nowhere to put it"));
  Communicator* made = nullptr;
  const Outcome outcome = create(made, member, id.internal, kName);
  *comm = reinterpret_cast<ncclComm_t>(made);
  return result_of(outcome);
}

// A number of a communicator: its size, the own rank, the device.
template <class Number>
ncclResult_t tell(ncclComm_t comm, int* to, Number number) {
  const auto communicator = find(communicator_of(comm));
  if (!communicator || to == nullptr) {
    return result_of(fail(Outcome::invalid_argument, "no such communicator"));
  }
  *to = number(*communicator);
  return ncclSuccess;
}

// What a caller may get wrong before anything is exchanged.
struct Typed {
  ncclDataType_t datatype = ncclUint8;
  ncclRedOp_t op = ncclSum;
};
ncclResult_t run(ncclComm_t comm, cudaStream_t stream, Call call, const Typed& typed) {
  if (stream != nullptr && !has_streams()) return result_of(refuse("streams must be null"));
  if (typed.datatype < 0 || typed.datatype >= kElements) {
    return result_of(refuse("no such data type"));
  }
  if (typed.op < 0 || typed.op >= kReductions) {
    return result_of(refuse("no such operation"));
  }
  call.stream = stream;
  call.element = static_cast<Element>(typed.datatype);
  call.reduction = static_cast<Reduction>(typed.op);
  return result_of(submit(communicator_of(comm), call));
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* told = std::getenv("FAKE_NCCL_VERSION");
  *version = told != nullptr ? std::atoi(told) : kVersion;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  *uniqueId = {};
  return result_of(create_id(uniqueId->internal));
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return init(comm, {.rank = rank, .rank_count = nranks}, commId);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  if (config != nullptr && config->magic != NCCL_CONFIG_MAGIC) {
    return result_of(fail(Outcome::invalid_argument, "a configuration not initialised"));
  }
  const bool waits = config == nullptr || config->blocking != 0;
  return init(
      comm,
      {.rank = rank, .rank_count = nranks, .mode = waits ? Mode::blocking : Mode::nonblocking},
      commId);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const auto communicator = find(communicator_of(comm));
  return communicator ? result_of(communicator->state) : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return result_of(destroy(communicator_of(comm))); }

ncclResult_t ncclCommAbort(ncclComm_t comm) { return result_of(abort(communicator_of(comm))); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  const auto communicator = find(communicator_of(comm));
  if (!communicator) return ncclInvalidArgument;
  *asyncError = result_of(communicator->state);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  return tell(comm, count, [](const Communicator& c) { return c.rank_count; });
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  return tell(comm, device, [](const Communicator& c) { return c.device(); });
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  return tell(comm, rank, [](const Communicator& c) { return c.rank; });
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote error";
    case ncclInProgress:
      return "in progress";
  }
  return "unknown result";
}

const char* ncclGetLastError(ncclComm_t) { return last_error(); }

ncclResult_t ncclGroupStart() { return result_of(group_start()); }
ncclResult_t ncclGroupEnd() { return result_of(group_end()); }

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  const Call call{.kind = Kind::all_reduce, .send = sendbuff, .receive = recvbuff, .count = count};
  return run(comm, stream, call, {datatype, op});
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  Call call{.kind = Kind::reduce, .send = sendbuff, .receive = recvbuff, .count = count};
  call.peer = root;
  return run(comm, stream, call, {datatype, op});
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  Call call{.kind = Kind::broadcast, .send = sendbuff, .receive = recvbuff, .count = count};
  call.peer = root;
  return run(comm, stream, call, {datatype});
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  const Call call{
      .kind = Kind::all_gather, .send = sendbuff, .receive = recvbuff, .count = sendcount};
  return run(comm, stream, call, {datatype});
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  const Call call{
      .kind = Kind::reduce_scatter, .send = sendbuff, .receive = recvbuff, .count = recvcount};
  return run(comm, stream, call, {datatype, op});
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  Call call{.kind = Kind::send, .send = sendbuff, .count = count};
  call.peer = peer;
  return run(comm, stream, call, {datatype});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  Call call{.kind = Kind::receive, .receive = recvbuff, .count = count};
  call.peer = peer;
  return run(comm, stream, call, {datatype});
}

#ifdef FAKE_NCCL_ALLTOALL
ncclResult_t FAKE_NCCL_ALLTOALL(const void* sendbuff, void* recvbuff, size_t count,
                                ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  const Call call{.kind = Kind::all_to_all, .send = sendbuff, .receive = recvbuff, .count = count};
  return run(comm, stream, call, {datatype});
}

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  Call call{.kind = Kind::gather, .send = sendbuff, .receive = recvbuff, .count = count};
  call.peer = root;
  return run(comm, stream, call, {datatype});
}

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  Call call{.kind = Kind::scatter, .send = sendbuff, .receive = recvbuff, .count = count};
  call.peer = root;
  return run(comm, stream, call, {datatype});
}
#endif

#ifdef FAKE_NCCL_NEW
// All ranks register together.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int) {
  if (win == nullptr) return result_of(refuse("nowhere to put the window"));
  *win = nullptr;
  if (buff == nullptr || size == 0) return result_of(refuse("no memory to register"));
  if (std::getenv("FAKE_NCCL_NO_WINDOWS") == nullptr) *win = static_cast<ncclWindow_t>(buff);
  return run(comm, nullptr, {.kind = Kind::barrier}, {});
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  return find(communicator_of(comm)) ? ncclSuccess : ncclInvalidArgument;
}
#endif

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
