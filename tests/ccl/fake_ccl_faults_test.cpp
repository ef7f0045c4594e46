// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The stand-ins for collective libraries fail as they are told to, and as the libraries do: what a
// caller gets wrong, peers that fail or never come, and communicators that do not block.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "library.h"
#include "ranks.h"

namespace accord::test {
namespace {

ncclUniqueId shared_id(const Nccl& library, const Rank& rank) {
  ncclUniqueId id{};
  if (rank.rank == 0) {
    EXPECT_EQ(ncclSuccess, library.get_id(id));
  }
  return rank.tell(id);
}

int sum(const Nccl& library, ncclComm_t comm, float& value) {
  return library.all_reduce(&value, &value, 1, ncclFloat32, ncclSum, comm);
}

ncclResult_t async_error(const Nccl& library, ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  EXPECT_EQ(ncclSuccess, ACCORD_OF(library, ncclCommGetAsyncError)(comm, &error));
  return error;
}

// The state that it comes to, once it is no longer in progress.
ncclResult_t settled(const Nccl& library, ncclComm_t comm) {
  ncclResult_t error = ncclInProgress;
  while ((error = async_error(library, comm)) == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return error;
}

ncclConfig_t not_blocking() {
  return {.size = sizeof(ncclConfig_t),
          .magic = NCCL_CONFIG_MAGIC,
          .version = 21805,
          .blocking = 0,
          .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,
          .minCTAs = NCCL_CONFIG_UNDEF_INT,
          .maxCTAs = NCCL_CONFIG_UNDEF_INT,
          .netName = nullptr,
          .splitShare = NCCL_CONFIG_UNDEF_INT};
}

TEST(fake_ccl_faults, ranks_that_share_a_device) {
  setenv("FAKE_NCCL_ONE_DEVICE", "1", 1);
  on_ranks(2, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclInvalidUsage, library.init(comm, 2, shared_id(library, rank), rank.rank));
    EXPECT_STREQ("two ranks use one device", ACCORD_OF(library, ncclGetLastError)(comm));
  });
  on_ranks(1, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    EXPECT_EQ(ncclSuccess, library.destroy(connect(library, rank)));
  });
  unsetenv("FAKE_NCCL_ONE_DEVICE");
}

TEST(fake_ccl_faults, initialisation_of_one_rank) {
  setenv("FAKE_NCCL_FAIL_INIT", "1", 1);
  on_ranks(3, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    ncclComm_t comm = nullptr;
    EXPECT_EQ(rank.rank == 1 ? ncclSystemError : ncclRemoteError,
              library.init(comm, 3, shared_id(library, rank), rank.rank));
    EXPECT_EQ(nullptr, comm);
  });
  unsetenv("FAKE_NCCL_FAIL_INIT");
}

TEST(fake_ccl_faults, initialisation_of_hccl) {
  setenv("FAKE_HCCL_FAIL_INIT", "0", 1);
  on_ranks(2, [](const Rank& rank) {
    const Hccl library("fake_hccl");
    hcclUniqueId id{};
    if (rank.rank == 0) {
      EXPECT_EQ(hcclSuccess, library.get_id(id));
    }
    hcclComm_t comm = nullptr;
    EXPECT_EQ(rank.rank == 0 ? hcclSystemError : hcclInternalError,
              library.init(comm, 2, rank.tell(id), rank.rank));
  });
  unsetenv("FAKE_HCCL_FAIL_INIT");
}

TEST(fake_ccl_faults, the_second_collective) {
  setenv("FAKE_NCCL_FAIL_CALL", "2", 1);
  on_ranks(2, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclComm_t comm = connect(library, rank);
    float value = 1;
    EXPECT_EQ(ncclSuccess, sum(library, comm, value));
    EXPECT_EQ(ncclInternalError, sum(library, comm, value));
    EXPECT_EQ(ncclInternalError, async_error(library, comm));
    EXPECT_EQ(ncclInternalError, sum(library, comm, value));  // for good
    EXPECT_EQ(2, value);
    EXPECT_EQ(ncclSuccess, ACCORD_OF(library, ncclCommAbort)(comm));
  });
  unsetenv("FAKE_NCCL_FAIL_CALL");
}

TEST(fake_ccl_faults, a_call_of_one_rank_that_shows_late) {
  setenv("FAKE_NCCL_FAIL_CALL", "1", 1);
  setenv("FAKE_NCCL_FAIL_RANK", "1", 1);
  setenv("FAKE_NCCL_FAIL_LATE", "1", 1);
  on_ranks(3, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclComm_t comm = connect(library, rank);
    float value = 1;
    EXPECT_EQ(ncclSuccess, sum(library, comm, value));
    EXPECT_EQ(1, value);
    EXPECT_EQ(rank.rank == 1 ? ncclInternalError : ncclRemoteError, async_error(library, comm));
    EXPECT_EQ(ncclSuccess, ACCORD_OF(library, ncclCommAbort)(comm));
  });
  unsetenv("FAKE_NCCL_FAIL_CALL");
  unsetenv("FAKE_NCCL_FAIL_RANK");
  unsetenv("FAKE_NCCL_FAIL_LATE");
}

TEST(fake_ccl_faults, ranks_that_make_different_calls) {
  on_ranks(2, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclComm_t comm = connect(library, rank);
    std::vector<float> values(8);
    const std::size_t count = rank.rank == 0 ? 2 : 3;
    const int failed = library.broadcast(values.data(), values.data(), count, ncclFloat32, 0, comm);
    EXPECT_TRUE(failed == ncclInvalidUsage || failed == ncclRemoteError ||
                (rank.rank == 0 && failed == ncclSuccess))
        << failed;
    if (rank.rank == 1) {
      EXPECT_NE(ncclSuccess, failed);
    }
    EXPECT_EQ(ncclSuccess, library.destroy(comm));
  });
}

TEST(fake_ccl_faults, a_peer_that_makes_no_call) {
  setenv("FAKE_NCCL_PATIENCE_MS", "200", 1);
  on_ranks(2, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclComm_t comm = connect(library, rank);
    float value = 1;
    if (rank.rank == 0) {
      EXPECT_EQ(ncclSystemError, sum(library, comm, value));
    }
    EXPECT_EQ(ncclSuccess, library.destroy(comm));
  });
  unsetenv("FAKE_NCCL_PATIENCE_MS");
}

TEST(fake_ccl_faults, what_a_caller_gets_wrong) {
  on_ranks(1, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclComm_t comm = connect(library, rank);
    float value = 1;
    const auto one = [&](ncclDataType_t type, ncclRedOp_t op, cudaStream_t stream) {
      return ACCORD_OF(library, ncclAllReduce)(&value, &value, 1, type, op, comm, stream);
    };
    EXPECT_EQ(ncclSuccess, one(ncclFloat32, ncclSum, nullptr));
    EXPECT_EQ(ncclInvalidArgument, one(static_cast<ncclDataType_t>(10), ncclSum, nullptr));
    EXPECT_EQ(ncclInvalidArgument, one(ncclFloat32, static_cast<ncclRedOp_t>(5), nullptr));
    EXPECT_EQ(ncclInvalidArgument,
              one(ncclFloat32, ncclSum, reinterpret_cast<cudaStream_t>(&value)));
    EXPECT_EQ(ncclInvalidArgument, library.broadcast(&value, &value, 1, ncclFloat32, 1, comm));
    EXPECT_EQ(ncclInvalidArgument, library.send(nullptr, 1, ncclFloat32, 0, comm));
    EXPECT_EQ(ncclInvalidArgument,
              library.all_reduce(&value, nullptr, 1, ncclFloat32, ncclSum, comm));
    EXPECT_EQ(ncclInvalidUsage, library.group_end());
    // A group fails with its first call that does, and does nothing.
    EXPECT_EQ(ncclSuccess, library.group_start());
    EXPECT_EQ(ncclInvalidArgument, library.broadcast(&value, &value, 1, ncclFloat32, 1, comm));
    EXPECT_EQ(ncclSuccess, library.send(&value, 1, ncclFloat32, 0, comm));
    EXPECT_EQ(ncclInvalidArgument, library.group_end());
    EXPECT_EQ(ncclSuccess, sum(library, comm, value));
    EXPECT_EQ(ncclSuccess, library.destroy(comm));
    EXPECT_EQ(ncclInvalidArgument, sum(library, comm, value));
  });
}

TEST(fake_ccl_faults, what_hccl_does_not_take) {
  on_ranks(1, [](const Rank& rank) {
    const Hccl library("fake_hccl");
    const hcclComm_t comm = connect(library, rank);
    double value = 1;
    const auto one = [&](hcclDataType_t type, hcclRedOp_t op) {
      return ACCORD_OF(library, hcclAllReduce)(&value, &value, 1, type, op, comm, nullptr);
    };
    EXPECT_EQ(hcclSuccess, one(hcclFloat32, hcclMax));
    EXPECT_EQ(hcclUnsupported, one(hcclFloat32, hcclProd));
    EXPECT_EQ(hcclUnsupported, one(hcclFloat64, hcclSum));
    EXPECT_EQ(hcclUnsupported, one(hcclInt32, hcclSum));
    EXPECT_STREQ("neither float32 nor bfloat16", ACCORD_OF(library, hcclGetLastErrorMessage)());
    EXPECT_EQ(hcclSuccess, library.destroy(comm));
  });
}

TEST(fake_ccl_faults, a_communicator_that_does_not_block) {
  on_ranks(2, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclUniqueId id = shared_id(library, rank);
    ncclConfig_t config = not_blocking();
    if (rank.rank == 1) rank.tell(0);  // once rank 0 has seen that it must wait
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclInProgress,
              ACCORD_OF(library, ncclCommInitRankConfig)(&comm, 2, id, rank.rank, &config));
    float value = 1;
    if (rank.rank == 0) {
      EXPECT_EQ(ncclInProgress, async_error(library, comm));
      EXPECT_EQ(ncclInvalidArgument, sum(library, comm, value));  // too early
      rank.tell(0);
    }
    EXPECT_EQ(ncclSuccess, settled(library, comm));
    EXPECT_EQ(ncclInProgress, sum(library, comm, value));
    EXPECT_EQ(ncclSuccess, settled(library, comm));
    EXPECT_EQ(2, value);
    int device = -1;
    EXPECT_EQ(ncclSuccess, ACCORD_OF(library, ncclCommCuDevice)(comm, &device));
    EXPECT_EQ(rank.rank, device);
    EXPECT_EQ(ncclSuccess, library.destroy(comm));
  });
}

TEST(fake_ccl_faults, a_group_of_some_that_block_and_some_that_do_not) {
  on_ranks(1, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclComm_t waits = connect(library, rank);
    ncclConfig_t config = not_blocking();
    ncclComm_t returns = nullptr;
    EXPECT_EQ(ncclInProgress, ACCORD_OF(library, ncclCommInitRankConfig)(
                                  &returns, 1, shared_id(library, rank), 0, &config));
    EXPECT_EQ(ncclSuccess, settled(library, returns));
    float value = 1;
    EXPECT_EQ(ncclSuccess, library.group_start());
    EXPECT_EQ(ncclSuccess, sum(library, waits, value));
    EXPECT_EQ(ncclSuccess, sum(library, returns, value));
    EXPECT_EQ(ncclInvalidArgument, library.group_end());
    EXPECT_EQ(ncclSuccess, library.destroy(waits));
    EXPECT_EQ(ncclSuccess, library.destroy(returns));
  });
}

TEST(fake_ccl_faults, abort_while_a_peer_is_missing) {
  on_ranks(1, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    ncclConfig_t config = not_blocking();
    ncclComm_t comm = nullptr;
    const ncclUniqueId id = shared_id(library, rank);
    EXPECT_EQ(ncclInProgress, ACCORD_OF(library, ncclCommInitRankConfig)(&comm, 2, id, 0, &config));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(ncclSuccess, ACCORD_OF(library, ncclCommAbort)(comm));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    config.magic = 0;
    EXPECT_EQ(ncclInvalidArgument,
              ACCORD_OF(library, ncclCommInitRankConfig)(&comm, 1, id, 0, &config));
  });
}

// Two communicators in one group, which no order of single calls would get through.
TEST(fake_ccl_faults, a_group_of_two_communicators) {
  on_ranks(2, [](const Rank& rank) {
    const Nccl library("fake_nccl");
    const ncclComm_t first = connect(library, rank);
    const ncclComm_t second = connect(library, rank);
    float one = 1;
    float two = 2;
    EXPECT_EQ(ncclSuccess, library.group_start());
    for (int at = 0; at < 2; ++at) {
      const bool is_first = at == rank.rank;
      EXPECT_EQ(ncclSuccess, sum(library, is_first ? first : second, is_first ? one : two));
    }
    EXPECT_EQ(ncclSuccess, library.group_end());
    EXPECT_EQ(2, one);
    EXPECT_EQ(4, two);
    EXPECT_EQ(ncclSuccess, library.destroy(first));
    EXPECT_EQ(ncclSuccess, library.destroy(second));
  });
}

// The window that two ranks get.
void check_window(bool given) {
  on_ranks(2, [given](const Rank& rank) {
    const Nccl library("fake_nccl_new");
    const ncclComm_t comm = connect(library, rank);
    std::vector<float> buffer(16);
    ncclWindow_t window = nullptr;
    EXPECT_EQ(ncclSuccess,
              ACCORD_OF(library, ncclCommWindowRegister)(comm, buffer.data(), 64, &window, 1));
    EXPECT_EQ(given, window != nullptr);
    EXPECT_EQ(ncclSuccess, ACCORD_OF(library, ncclCommWindowDeregister)(comm, window));
    EXPECT_EQ(ncclInvalidArgument,
              ACCORD_OF(library, ncclCommWindowRegister)(comm, nullptr, 64, &window, 1));
    EXPECT_EQ(ncclSuccess, library.destroy(comm));
  });
}

TEST(fake_ccl_faults, windows) { check_window(true); }
TEST(fake_ccl_faults, windows_that_are_none) {
  setenv("FAKE_NCCL_NO_WINDOWS", "1", 1);
  check_window(false);
  unsetenv("FAKE_NCCL_NO_WINDOWS");
}

}  // namespace
}  // namespace accord::test
