// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One view of the stand-ins for collective libraries, loaded as a plug-in would load them: types
// and operations with NCCL's numbers, results with the library's own.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "fake_hccl.h"
#include "fake_nccl.h"
#include "ranks.h"

namespace accord::test {

class Loaded {
 public:
  // The name of a stand-in, or a path.
  explicit Loaded(const std::string& name)
      : library_(dlopen(name.find('/') == std::string::npos
                            ? (ACCORD_FAKE_CCL_DIRECTORY "/lib" + name + ".so").c_str()
                            : name.c_str(),
                        RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(nullptr, library_) << dlerror();
  }

  // The function that `model` declares, of this library; null where it has none.
  template <class Function>
  Function* find(Function*, const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

 private:
  void* library_;
};

// Calls a function of a loaded library as its header declares it.
#define ACCORD_OF(loaded, function) (*(loaded).find(&function, #function))

class Nccl : public Loaded {
 public:
  using Comm = ncclComm_t;
  using Id = ncclUniqueId;
  using Loaded::Loaded;

  int get_id(Id& id) const { return ACCORD_OF(*this, ncclGetUniqueId)(&id); }
  int init(Comm& comm, int count, const Id& id, int rank) const {
    return ACCORD_OF(*this, ncclCommInitRank)(&comm, count, id, rank);
  }
  int destroy(Comm comm) const { return ACCORD_OF(*this, ncclCommDestroy)(comm); }
  int all_reduce(const void* from, void* to, std::size_t count, int type, int op, Comm comm) const {
    return ACCORD_OF(*this, ncclAllReduce)(from, to, count, type_of(type), op_of(op), comm, {});
  }
  int reduce(const void* from, void* to, std::size_t count, int type, int op, int root,
             Comm comm) const {
    return ACCORD_OF(*this, ncclReduce)(from, to, count, type_of(type), op_of(op), root, comm, {});
  }
  int reduce_scatter(const void* from, void* to, std::size_t count, int type, int op,
                     Comm comm) const {
    return ACCORD_OF(*this, ncclReduceScatter)(from, to, count, type_of(type), op_of(op), comm, {});
  }
  int broadcast(const void* from, void* to, std::size_t count, int type, int root,
                Comm comm) const {
    return ACCORD_OF(*this, ncclBroadcast)(from, to, count, type_of(type), root, comm, {});
  }
  int all_gather(const void* from, void* to, std::size_t count, int type, Comm comm) const {
    return ACCORD_OF(*this, ncclAllGather)(from, to, count, type_of(type), comm, {});
  }
  int send(const void* from, std::size_t count, int type, int peer, Comm comm) const {
    return ACCORD_OF(*this, ncclSend)(from, count, type_of(type), peer, comm, {});
  }
  int receive(void* to, std::size_t count, int type, int peer, Comm comm) const {
    return ACCORD_OF(*this, ncclRecv)(to, count, type_of(type), peer, comm, {});
  }
  int group_start() const { return ACCORD_OF(*this, ncclGroupStart)(); }
  int group_end() const { return ACCORD_OF(*this, ncclGroupEnd)(); }

  bool takes(int, int) const { return true; }

 private:
  static ncclDataType_t type_of(int type) { return static_cast<ncclDataType_t>(type); }
  static ncclRedOp_t op_of(int op) { return static_cast<ncclRedOp_t>(op); }
};

class Hccl : public Loaded {
 public:
  using Comm = hcclComm_t;
  using Id = hcclUniqueId;
  using Loaded::Loaded;

  int get_id(Id& id) const { return ACCORD_OF(*this, hcclGetUniqueId)(&id); }
  int init(Comm& comm, int count, const Id& id, int rank) const {
    return ACCORD_OF(*this, hcclCommInitRank)(&comm, count, id, rank);
  }
  int destroy(Comm comm) const { return ACCORD_OF(*this, hcclCommDestroy)(comm); }
  int all_reduce(const void* from, void* to, std::size_t count, int type, int op, Comm comm) const {
    return ACCORD_OF(*this, hcclAllReduce)(from, to, count, type_of(type), op_of(op), comm, {});
  }
  int reduce(const void* from, void* to, std::size_t count, int type, int op, int root,
             Comm comm) const {
    return ACCORD_OF(*this, hcclReduce)(from, to, count, type_of(type), op_of(op), root, comm, {});
  }
  int reduce_scatter(const void* from, void* to, std::size_t count, int type, int op,
                     Comm comm) const {
    return ACCORD_OF(*this, hcclReduceScatter)(from, to, count, type_of(type), op_of(op), comm, {});
  }
  int broadcast(const void* from, void* to, std::size_t count, int type, int root,
                Comm comm) const {
    return ACCORD_OF(*this, hcclBroadcast)(from, to, count, type_of(type), root, comm, {});
  }
  int all_gather(const void* from, void* to, std::size_t count, int type, Comm comm) const {
    return ACCORD_OF(*this, hcclAllGather)(from, to, count, type_of(type), comm, {});
  }
  int all_to_all(const void* from, void* to, std::size_t count, int type, Comm comm) const {
    return ACCORD_OF(*this, hcclAlltoAll)(from, to, count, type_of(type), comm, {});
  }
  int send(const void* from, std::size_t count, int type, int peer, Comm comm) const {
    return ACCORD_OF(*this, hcclSend)(from, count, type_of(type), peer, comm, {});
  }
  int receive(void* to, std::size_t count, int type, int peer, Comm comm) const {
    return ACCORD_OF(*this, hcclRecv)(to, count, type_of(type), peer, comm, {});
  }
  int group_start() const { return ACCORD_OF(*this, hcclGroupStart)(); }
  int group_end() const { return ACCORD_OF(*this, hcclGroupEnd)(); }

  // Of the types and operations of NCCL.
  bool takes(int type, int op) const {
    return (type == ncclFloat32 || type == ncclBfloat16) && op != ncclProd && op != ncclAvg;
  }

 private:
  static hcclDataType_t type_of(int type) { return static_cast<hcclDataType_t>(type); }
  static hcclRedOp_t op_of(int op) {
    if (op == ncclMax) return hcclMax;
    if (op == ncclMin) return hcclMin;
    return static_cast<hcclRedOp_t>(op);
  }
};

// A communicator of all ranks.
template <class Library>
typename Library::Comm connect(const Library& library, const Rank& rank) {
  typename Library::Id id{};
  if (rank.rank == 0) {
    EXPECT_EQ(0, library.get_id(id));
  }
  id = rank.tell(id);
  typename Library::Comm comm{};
  EXPECT_EQ(0, library.init(comm, rank.count, id, rank.rank));
  return comm;
}

}  // namespace accord::test
