// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What plug-ins may rely on in oneCCL, Intel's collective library, whose CPU form needs neither an
// accelerator nor an MPI: its C interface does to the memory of two processes what the stand-ins
// do. Skipped where it is not installed; scripts/oneccl gets it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "check.h"
#include "library.h"
#include "ranks.h"

// NOLINTBEGIN(readability-identifier-naming): oneCCL's names. Types and operations have NCCL's
// numbers, results have not.
extern "C" {
struct onecclUniqueId {
  char data[4096];
};
using onecclComm_t = struct onecclComm*;

int onecclGetVersion(int* version);
int onecclGetUniqueId(onecclUniqueId* id);
int onecclCommInitRank(onecclComm_t* comm, int count, onecclUniqueId id, int rank);
int onecclCommDestroy(onecclComm_t comm);
int onecclAllReduce(void* from, void* to, std::size_t count, int type, int op, onecclComm_t comm,
                    void* stream);
int onecclReduce(const void* from, void* to, std::size_t count, int type, int op, int root,
                 onecclComm_t comm, void* stream);
int onecclReduceScatter(const void* from, void* to, std::size_t count, int type, int op,
                        onecclComm_t comm, void* stream);
int onecclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                    onecclComm_t comm, void* stream);
int onecclAllGather(const void* from, void* to, std::size_t count, int type, onecclComm_t comm,
                    void* stream);
int onecclAllToAll(const void* from, void* to, std::size_t count, int type, onecclComm_t comm,
                   void* stream);
int onecclSend(const void* from, std::size_t count, int type, int peer, onecclComm_t comm,
               void* stream);
int onecclRecv(void* to, std::size_t count, int type, int peer, onecclComm_t comm, void* stream);
int onecclGroupStart();
int onecclGroupEnd();
}
// NOLINTEND(readability-identifier-naming)

namespace accord::test {
namespace {

class Oneccl : public Loaded {
 public:
  using Comm = onecclComm_t;
  using Id = onecclUniqueId;
  using Loaded::Loaded;

  int get_id(Id& id) const { return ACCORD_OF(*this, onecclGetUniqueId)(&id); }
  int init(Comm& comm, int count, const Id& id, int rank) const {
    return ACCORD_OF(*this, onecclCommInitRank)(&comm, count, id, rank);
  }
  int destroy(Comm comm) const { return ACCORD_OF(*this, onecclCommDestroy)(comm); }
  int all_reduce(const void* from, void* to, std::size_t count, int type, int op, Comm comm) const {
    return ACCORD_OF(*this, onecclAllReduce)(const_cast<void*>(from), to, count, type, op, comm,
                                             nullptr);
  }
  int reduce(const void* from, void* to, std::size_t count, int type, int op, int root,
             Comm comm) const {
    return ACCORD_OF(*this, onecclReduce)(from, to, count, type, op, root, comm, nullptr);
  }
  int reduce_scatter(const void* from, void* to, std::size_t count, int type, int op,
                     Comm comm) const {
    return ACCORD_OF(*this, onecclReduceScatter)(from, to, count, type, op, comm, nullptr);
  }
  int broadcast(const void* from, void* to, std::size_t count, int type, int root,
                Comm comm) const {
    return ACCORD_OF(*this, onecclBroadcast)(from, to, count, type, root, comm, nullptr);
  }
  int all_gather(const void* from, void* to, std::size_t count, int type, Comm comm) const {
    return ACCORD_OF(*this, onecclAllGather)(from, to, count, type, comm, nullptr);
  }
  int all_to_all(const void* from, void* to, std::size_t count, int type, Comm comm) const {
    return ACCORD_OF(*this, onecclAllToAll)(from, to, count, type, comm, nullptr);
  }
  int send(const void* from, std::size_t count, int type, int peer, Comm comm) const {
    return ACCORD_OF(*this, onecclSend)(from, count, type, peer, comm, nullptr);
  }
  int receive(void* to, std::size_t count, int type, int peer, Comm comm) const {
    return ACCORD_OF(*this, onecclRecv)(to, count, type, peer, comm, nullptr);
  }
  int group_start() const { return ACCORD_OF(*this, onecclGroupStart)(); }
  int group_end() const { return ACCORD_OF(*this, onecclGroupEnd)(); }

  // Where the CPU knows no bfloat16 it cuts that off instead of rounding.
  bool takes(int type, int op) const {
    const bool rounds = type != ncclBfloat16 || __builtin_cpu_supports("avx512bf16");
    return op != ncclAvg && (rounds || op == ncclMax || op == ncclMin);
  }
};

const char* path() {
  const char* named = std::getenv("ACCORD_TEST_ONECCL");
  return named != nullptr ? named : ACCORD_ONECCL_LIBRARY;
}

// Two ranks: a result of three depends on the order, which is oneCCL's own.
void on_two(void (*body)(const Oneccl& library, onecclComm_t comm, const Rank& rank)) {
  // Its worker threads would keep a core from the other ranks.
  setenv("CCL_YIELD", "sched_yield", 0);
  setenv("CCL_LOG_LEVEL", "error", 0);
  on_ranks(2, [body](const Rank& rank) {
    const Oneccl library(path());
    const onecclComm_t comm = connect(library, rank);
    if (!::testing::Test::HasFailure()) body(library, comm, rank);
    EXPECT_EQ(0, library.destroy(comm));
  });
}

TEST(oneccl, collectives) {
  on_two([](const Oneccl& library, onecclComm_t comm, const Rank& rank) {
    check_reductions_and_movements(library, comm, rank);
    check_all_to_all(rank, [&](const float* from, float* to, std::size_t count) {
      return library.all_to_all(from, to, count, ncclFloat32, comm);
    });
  });
}

TEST(oneccl, groups_of_sends_and_receives) {
  on_two([](const Oneccl& library, onecclComm_t comm, const Rank& rank) {
    check_pairs(library, comm, rank);
  });
}

TEST(oneccl, averages_are_refused_and_do_no_harm) {
  on_two([](const Oneccl& library, onecclComm_t comm, const Rank&) {
    float value = 1;
    EXPECT_EQ(11, library.all_reduce(&value, &value, 1, ncclFloat32, ncclAvg, comm));
    EXPECT_EQ(0, library.all_reduce(&value, &value, 1, ncclFloat32, ncclSum, comm));
    EXPECT_EQ(2, value);
  });
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!std::filesystem::exists(accord::test::path())) {
    std::printf("skipped: oneCCL is not there: scripts/oneccl gets it\n");
    return 77;
  }
  return RUN_ALL_TESTS();
}
