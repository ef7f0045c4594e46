// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// NCCL's ABI, which RCCL, MSCCL and MSCCL++ have too, and its relatives, HCCL's and oneCCL's: our
// own declarations of what their documentation says, so that building needs none of them.
// Communicators are blocking ones: any other takes a thread for each call.
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sched.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "ccl/nccl_abi.h"
#include "ccl/plugins.h"

namespace accord::ccl {
namespace {

using Type = NcclType;
using Op = NcclOp;
enum class Result : int { success = 0 };
using Comm = struct CommHandle*;

struct Functions {
#define NCCL_FUNCTION(member, symbol, presence, returned, parameters) \
  returned(*member) parameters = nullptr;
#include "ccl/nccl.def"
#undef NCCL_FUNCTION
};

// Whether a library without the function is one of another ABI.
enum class Presence { sometimes, always };

// What tells a family of libraries from NCCL.
struct Family {
  const char* prefix;  // of all functions
  Result in_progress;
  Op prod, max, min;
  // What it takes is only float32 and bfloat16, and no products.
  bool floats_only;
  // Of CUDA's and HIP's streams, which can be captured.
  bool can_be_recorded;
  // CommInitRank, which takes the name of the communicator by value.
  Result (*init_rank)(void (*function)(), Comm* comm, int size, const accord_ccl_id& id, int rank);
};

template <std::size_t kBytes>
Result init_rank(void (*function)(), Comm* comm, int size, const accord_ccl_id& id, int rank) {
  struct UniqueId {
    char bytes[kBytes];
  } name;
  static_assert(sizeof name <= sizeof id.bytes);
  std::memcpy(&name, id.bytes, sizeof name);
  return reinterpret_cast<Result (*)(Comm*, int, UniqueId, int)>(function)(comm, size, name, rank);
}

constexpr Family kNccl{.prefix = "nccl",
                       .in_progress = Result{7},
                       .prod = Op::prod,
                       .max = Op::max,
                       .min = Op::min,
                       .floats_only = false,
                       .can_be_recorded = true,
                       .init_rank = init_rank<128>};
// Its name is 1,024 bytes and their length. Nothing of it is ever in progress.
constexpr Family kHccl{.prefix = "hccl",
                       .in_progress = Result{-1},
                       .prod = Op{1},
                       .max = Op{3},
                       .min = Op{2},
                       .floats_only = true,
                       .can_be_recorded = false,
                       .init_rank = init_rank<1024 + sizeof(std::size_t)>};
constexpr Family kOneccl{.prefix = "oneccl",
                         .in_progress = Result{6},
                         .prod = Op::prod,
                         .max = Op::max,
                         .min = Op::min,
                         .floats_only = false,
                         .can_be_recorded = false,
                         .init_rank = init_rank<4096>};

struct Library {
  const Family& family;
  void* handle = nullptr;
  Functions nccl = {};
  int version = 0;
};

struct Communicator {
  const Library* library;
  Comm comm = nullptr;
};

const Library& library_of(const void* library) { return *static_cast<const Library*>(library); }
const Communicator& communicator_of(const void* communicator) {
  return *static_cast<const Communicator*>(communicator);
}

int fail(const Library& library, const char* call, Result result, Comm comm,
         accord_ccl_error& error) {
  const Functions& nccl = library.nccl;
  const char* more = nullptr;
  if (nccl.get_last_error != nullptr) more = nccl.get_last_error(comm);
  if (nccl.get_last_message != nullptr) more = nccl.get_last_message();
  const bool says_more = more != nullptr && *more != '\0';
  return ccl::fail(
      error, fmt::format("{}{}: {}{}{}", library.family.prefix, call, nccl.get_error_string(result),
                         says_more ? ": " : "", says_more ? more : ""));
}

Type type_of(accord_ccl_type type) {
  switch (type) {
    case ACCORD_CCL_INT8:
      return Type::int8;
    case ACCORD_CCL_UINT8:
      return Type::uint8;
    case ACCORD_CCL_INT16:
    case ACCORD_CCL_UINT16:
      return Type::none;
    case ACCORD_CCL_INT32:
      return Type::int32;
    case ACCORD_CCL_UINT32:
      return Type::uint32;
    case ACCORD_CCL_INT64:
      return Type::int64;
    case ACCORD_CCL_UINT64:
      return Type::uint64;
    case ACCORD_CCL_FLOAT16:
      return Type::float16;
    case ACCORD_CCL_BFLOAT16:
      return Type::bfloat16;
    case ACCORD_CCL_FLOAT32:
      return Type::float32;
    case ACCORD_CCL_FLOAT64:
      return Type::float64;
  }
  return Type::none;
}

Op op_of(const Family& family, accord_ccl_op op) {
  switch (op) {
    case ACCORD_CCL_PROD:
      return family.prod;
    case ACCORD_CCL_MIN:
      return family.min;
    case ACCORD_CCL_MAX:
      return family.max;
    default:
      return Op{0};  // the sum is everybody's first
  }
}

void* find(const Library& library, const char* name) {
  return ::dlsym(library.handle, (std::string(library.family.prefix) + name).c_str());
}

// The name of a function that it must have and has not; null: it has them all.
const char* resolve(Library& library) {
  Functions& nccl = library.nccl;
  const char* missing = nullptr;
#define NCCL_FUNCTION(member, name, presence, returned, parameters)            \
  nccl.member = reinterpret_cast<decltype(nccl.member)>(find(library, #name)); \
  if (nccl.member == nullptr && Presence::presence == Presence::always) missing = #name;
#include "ccl/nccl.def"
#undef NCCL_FUNCTION
  if (nccl.all_to_all == nullptr) nccl.all_to_all = nccl.all_to_all_otherwise;
  return missing;
}

// It stays loaded from here on, as it would in the program: some do not bear to be unloaded.
template <const Family& kFamily>
int open(const char* path, void** opened, accord_ccl_error* error) {
  auto library = std::make_unique<Library>(Library{kFamily});
  library->handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return ccl::fail(*error, ::dlerror());
  if (const char* missing = resolve(*library); missing != nullptr)
    return ccl::fail(*error, fmt::format("{}: no function {}{}", path, kFamily.prefix, missing));
  const Result result = library->nccl.get_version(&library->version);
  if (result != Result::success) return fail(*library, "GetVersion", result, nullptr, *error);
  *opened = library.release();
  return 0;
}

void describe(void* opened, accord_ccl_description* description) {
  const Library& library = library_of(opened);
  description->version = library.version;
  link_map* loaded = nullptr;
  if (::dlinfo(library.handle, RTLD_DI_LINKMAP, &loaded) == 0)
    std::snprintf(description->path, sizeof description->path, "%s", loaded->l_name);
  std::string found;
#define NCCL_FUNCTION(member, name, presence, returned, parameters)                 \
  if (Presence::presence == Presence::sometimes && find(library, #name) != nullptr) \
    found += fmt::format("{}{}{}", found.empty() ? "" : " ", library.family.prefix, #name);
#include "ccl/nccl.def"
#undef NCCL_FUNCTION
  std::snprintf(description->found, sizeof description->found, "%s", found.c_str());
}

int supports(void* opened, accord_ccl_call call, accord_ccl_type type, accord_ccl_op op) {
  const auto& [family, handle, nccl, version] = library_of(opened);
  if (type_of(type) == Type::none) return 0;
  if (family.floats_only &&
      ((type != ACCORD_CCL_FLOAT32 && type != ACCORD_CCL_BFLOAT16) || op == ACCORD_CCL_PROD))
    return 0;
  switch (call) {
    case ACCORD_CCL_ALLREDUCE:
    case ACCORD_CCL_REDUCE:
    case ACCORD_CCL_REDUCE_SCATTER:
      return op != ACCORD_CCL_NONE ? 1 : 0;
    case ACCORD_CCL_BCAST:
    case ACCORD_CCL_ALLGATHER:
    case ACCORD_CCL_SEND:
    case ACCORD_CCL_RECV:
      return 1;
    case ACCORD_CCL_ALLTOALL:
      return nccl.all_to_all != nullptr ? 1 : 0;
    case ACCORD_CCL_GATHER:
      return nccl.gather != nullptr ? 1 : 0;
    case ACCORD_CCL_SCATTER:
      return nccl.scatter != nullptr ? 1 : 0;
  }
  return 0;
}

int make_id(void* opened, accord_ccl_id* id, accord_ccl_error* error) {
  const Library& library = library_of(opened);
  const Result result = library.nccl.get_unique_id(id->bytes);
  return result == Result::success ? 0 : fail(library, "GetUniqueId", result, nullptr, *error);
}

// The environment can make any communicator one whose calls return too early.
Result settled(const Library& library, Comm comm, Result result) {
  while (result == library.family.in_progress && library.nccl.get_async_error != nullptr) {
    ::sched_yield();
    if (const Result asked = library.nccl.get_async_error(comm, &result); asked != Result::success)
      return asked;
  }
  return result;
}

int join(void* opened, const accord_ccl_id* id, int rank, int size, void** joined,
         accord_ccl_error* error) {
  const Library& library = library_of(opened);
  auto communicator = std::make_unique<Communicator>(Communicator{&library});
  Comm& comm = communicator->comm;
  const Result result = settled(
      library, comm, library.family.init_rank(library.nccl.init_rank, &comm, size, *id, rank));
  if (result != Result::success) return fail(library, "CommInitRank", result, nullptr, *error);
  *joined = communicator.release();
  return 0;
}

void leave(void* communicator) {
  const std::unique_ptr<Communicator> owned(static_cast<Communicator*>(communicator));
  (void)owned->library->nccl.destroy(owned->comm);
}

void abort(void* communicator) {
  const std::unique_ptr<Communicator> owned(static_cast<Communicator*>(communicator));
  if (owned->library->nccl.abort != nullptr) (void)owned->library->nccl.abort(owned->comm);
}

int check(void* communicator, accord_ccl_error* error) {
  const auto& [library, comm] = communicator_of(communicator);
  if (library->nccl.get_async_error == nullptr) return 0;
  Result asynchronous = Result::success;
  const Result result = library->nccl.get_async_error(comm, &asynchronous);
  if (result != Result::success) return fail(*library, "CommGetAsyncError", result, comm, *error);
  if (asynchronous == Result::success || asynchronous == library->family.in_progress) return 0;
  return fail(*library, " under way", asynchronous, comm, *error);
}

struct Called {
  const char* name;
  Result result;
};

Called call(const Library& library, const accord_ccl_work& work, Comm comm, void* stream) {
  const Functions& nccl = library.nccl;
  const Type type = type_of(work.type);
  const Op op = op_of(library.family, work.op);
  const auto& [kind, element, operation, send, recv, count, peer] = work;
  switch (kind) {
    case ACCORD_CCL_ALLREDUCE:
      return {"AllReduce", nccl.all_reduce(send, recv, count, type, op, comm, stream)};
    case ACCORD_CCL_REDUCE:
      return {"Reduce", nccl.reduce(send, recv, count, type, op, peer, comm, stream)};
    case ACCORD_CCL_BCAST:
      return {"Broadcast", nccl.broadcast(send, recv, count, type, peer, comm, stream)};
    case ACCORD_CCL_ALLGATHER:
      return {"AllGather", nccl.all_gather(send, recv, count, type, comm, stream)};
    case ACCORD_CCL_REDUCE_SCATTER:
      return {"ReduceScatter", nccl.reduce_scatter(send, recv, count, type, op, comm, stream)};
    case ACCORD_CCL_SEND:
      return {"Send", nccl.send(send, count, type, peer, comm, stream)};
    case ACCORD_CCL_RECV:
      return {"Recv", nccl.recv(recv, count, type, peer, comm, stream)};
    case ACCORD_CCL_ALLTOALL:
      return {"AlltoAll", nccl.all_to_all(send, recv, count, type, comm, stream)};
    case ACCORD_CCL_GATHER:
      return {"Gather", nccl.gather(send, recv, count, type, peer, comm, stream)};
    case ACCORD_CCL_SCATTER:
      return {"Scatter", nccl.scatter(send, recv, count, type, peer, comm, stream)};
  }
  return {" of a call without name", Result::success};
}

int enqueue(void* communicator, const accord_ccl_work* works, std::size_t count, void* stream,
            accord_ccl_error* error) {
  const auto& [library, comm] = communicator_of(communicator);
  const Functions& nccl = library->nccl;
  const bool grouped = count > 1;
  Called called{"GroupStart", grouped ? nccl.group_start() : Result::success};
  for (std::size_t i = 0; i < count && called.result == Result::success; ++i)
    called = call(*library, works[i], comm, stream);
  if (grouped) {  // in any case: a group that is begun has to end
    const Result ended = nccl.group_end();
    if (called.result == Result::success) called = {"GroupEnd", ended};
  }
  called.result = settled(*library, comm, called.result);
  return called.result == Result::success
             ? 0
             : fail(*library, called.name, called.result, comm, *error);
}

int can_be_recorded(void* opened) { return library_of(opened).family.can_be_recorded ? 1 : 0; }

template <const Family& kFamily>
accord_ccl_plugin plugin_of(const BuiltIn& line) {
  return {.abi = ACCORD_CCL_ABI,
          .size_bytes = sizeof(accord_ccl_plugin),
          .name = line.name,
          .runtime = line.runtime,
          .open = open<kFamily>,
          .describe = describe,
          .supports = supports,
          .make_id = make_id,
          .join = join,
          .leave = leave,
          .abort = abort,
          .check = check,
          .enqueue = enqueue,
          .can_be_recorded = can_be_recorded};
}

}  // namespace

accord_ccl_plugin nccl_plugin(const BuiltIn& line) { return plugin_of<kNccl>(line); }
accord_ccl_plugin hccl_plugin(const BuiltIn& line) { return plugin_of<kHccl>(line); }
accord_ccl_plugin oneccl_plugin(const BuiltIn& line) { return plugin_of<kOneccl>(line); }

}  // namespace accord::ccl
