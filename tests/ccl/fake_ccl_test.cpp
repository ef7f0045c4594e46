// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The stand-ins for collective libraries do what the libraries would, on one to four processes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "check.h"
#include "library.h"
#include "ranks.h"

namespace accord::test {
namespace {

template <class Library>
void check_all(const char* name, int count) {
  on_ranks(count, [name](const Rank& rank) {
    const Library library(name);
    const typename Library::Comm comm = connect(library, rank);
    check_reductions_and_movements(library, comm, rank);
    check_pairs(library, comm, rank);
    EXPECT_EQ(0, library.destroy(comm));
    EXPECT_NE(0, library.destroy(comm));
  });
}

TEST(fake_ccl, nccl_alone) { check_all<Nccl>("fake_nccl", 1); }
TEST(fake_ccl, nccl_of_two) { check_all<Nccl>("fake_nccl", 2); }
TEST(fake_ccl, nccl_of_three) { check_all<Nccl>("fake_nccl", 3); }
TEST(fake_ccl, nccl_of_four) { check_all<Nccl>("fake_nccl", 4); }
TEST(fake_ccl, hccl_of_two) { check_all<Hccl>("fake_hccl", 2); }
TEST(fake_ccl, hccl_of_four) { check_all<Hccl>("fake_hccl", 4); }

// The collectives of newer libraries, all-to-all in the spelling of this one.
void check_newer(const char* name, const char* spelling) {
  on_ranks(3, [name, spelling](const Rank& rank) {
    const Nccl library(name);
    const ncclComm_t comm = connect(library, rank);
    const auto all_to_all = library.find(&ncclAlltoAll, spelling);
    ASSERT_NE(nullptr, all_to_all);
    check_all_to_all(rank, [&](const float* from, float* to, std::size_t count) {
      return all_to_all(from, to, count, ncclFloat32, comm, nullptr);
    });
    const std::size_t count = 11;
    const auto first = [&](int peer) { return block_of(peer, 0, count); };
    const auto own = [&](int peer) { return block_of(1, peer, count); };
    const std::vector<float> send = block_of(rank.rank, 0, count);
    std::vector<float> gathered(rank.rank == 1 ? 3 * count : 0);
    EXPECT_EQ(0, ACCORD_OF(library, ncclGather)(send.data(), gathered.data(), count, ncclFloat32, 1,
                                                comm, nullptr));
    if (rank.rank == 1) {
      EXPECT_TRUE(same(blocks(3, first), gathered));
    }
    const std::vector<float> all = blocks(3, own);
    std::vector<float> part(count);
    EXPECT_EQ(0, ACCORD_OF(library, ncclScatter)(rank.rank == 1 ? all.data() : nullptr, part.data(),
                                                 count, ncclFloat32, 1, comm, nullptr));
    EXPECT_TRUE(same(block_of(1, rank.rank, count), part));
    EXPECT_EQ(0, library.destroy(comm));
  });
}

TEST(fake_ccl, newer_collectives_of_nccl) { check_newer("fake_nccl_new", "ncclAlltoAll"); }
TEST(fake_ccl, newer_collectives_of_rccl) { check_newer("fake_rccl", "ncclAllToAll"); }

TEST(fake_ccl, all_to_all_of_hccl) {
  on_ranks(3, [](const Rank& rank) {
    const Hccl library("fake_hccl");
    const hcclComm_t comm = connect(library, rank);
    check_all_to_all(rank, [&](const float* from, float* to, std::size_t count) {
      return library.all_to_all(from, to, count, hcclFloat32, comm);
    });
    EXPECT_EQ(0, library.destroy(comm));
  });
}

TEST(fake_ccl, versions_and_what_they_lack) {
  const Nccl old("fake_nccl");
  const Nccl newer("fake_nccl_new");
  int version = 0;
  EXPECT_EQ(0, ACCORD_OF(old, ncclGetVersion)(&version));
  EXPECT_EQ(21805, version);
  EXPECT_EQ(0, ACCORD_OF(newer, ncclGetVersion)(&version));
  EXPECT_EQ(22809, version);
  setenv("FAKE_NCCL_VERSION", "21903", 1);
  EXPECT_EQ(0, ACCORD_OF(old, ncclGetVersion)(&version));
  EXPECT_EQ(21903, version);
  unsetenv("FAKE_NCCL_VERSION");
  for (const char* name : {"ncclAlltoAll", "ncclAllToAll"}) {
    EXPECT_EQ(nullptr, old.find(&ncclAlltoAll, name));
  }
  EXPECT_EQ(nullptr, old.find(&ncclGather, "ncclGather"));
  EXPECT_EQ(nullptr, old.find(&ncclCommWindowRegister, "ncclCommWindowRegister"));
  EXPECT_EQ(nullptr, Nccl("fake_rccl").find(&ncclAlltoAll, "ncclAlltoAll"));
}

}  // namespace
}  // namespace accord::test
