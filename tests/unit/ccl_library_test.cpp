// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which collective libraries are found, what they can do, and what is said where one cannot be
// used. The settings are those of CMakeLists.txt: stand-ins for NCCL and RCCL, a library that is
// none, one that is not there, and a plug-in of our own.
#include <accord/accord.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ccl/library.h"
#include "support.h"

namespace accord::test {
namespace {

using ccl::Library;

Library& library(std::string_view name) {
  Library* const found = ccl::find(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

TEST(ccl_library, what_nccl_can_do) {
  Library& nccl = library("nccl");
  ASSERT_OK(nccl.open());
  EXPECT_EQ(nccl.description().version, 21805);
  EXPECT_NE(std::string_view(nccl.description().path).find("libfake_nccl.so"),
            std::string_view::npos);
  EXPECT_TRUE(nccl.supports(ACCORD_CCL_ALLREDUCE, ACCORD_CCL_BFLOAT16, ACCORD_CCL_SUM));
  EXPECT_TRUE(nccl.supports(ACCORD_CCL_REDUCE_SCATTER, ACCORD_CCL_FLOAT64, ACCORD_CCL_MAX));
  EXPECT_TRUE(nccl.supports(ACCORD_CCL_SEND, ACCORD_CCL_UINT8, ACCORD_CCL_NONE));
  EXPECT_FALSE(nccl.supports(ACCORD_CCL_ALLREDUCE, ACCORD_CCL_INT16, ACCORD_CCL_SUM));
  EXPECT_FALSE(nccl.supports(ACCORD_CCL_REDUCE, ACCORD_CCL_UINT16, ACCORD_CCL_MIN));
  EXPECT_FALSE(nccl.supports(ACCORD_CCL_ALLREDUCE, ACCORD_CCL_FLOAT32, ACCORD_CCL_NONE));
}

TEST(ccl_library, newer_functions_where_the_library_has_them_however_they_are_spelled) {
  Library& older = library("nccl");
  ASSERT_OK(older.open());
  EXPECT_FALSE(older.supports(ACCORD_CCL_ALLTOALL, ACCORD_CCL_UINT8, ACCORD_CCL_NONE));
  EXPECT_FALSE(older.supports(ACCORD_CCL_GATHER, ACCORD_CCL_UINT8, ACCORD_CCL_NONE));
  for (const char* name : {"rccl", "msccl"}) {
    Library& newer = library(name);
    ASSERT_OK(newer.open());
    EXPECT_TRUE(newer.supports(ACCORD_CCL_ALLTOALL, ACCORD_CCL_UINT8, ACCORD_CCL_NONE)) << name;
    EXPECT_TRUE(newer.supports(ACCORD_CCL_SCATTER, ACCORD_CCL_UINT8, ACCORD_CCL_NONE)) << name;
  }
  for (const char* function : {"ncclAllToAll", "ncclGather", "ncclScatter"})
    EXPECT_NE(std::string_view(library("rccl").description().found).find(function),
              std::string_view::npos)
        << function;
}

TEST(ccl_library, hccl_does_floats_only) {
  Library& hccl = library("hccl");
  ASSERT_OK(hccl.open());
  EXPECT_TRUE(hccl.supports(ACCORD_CCL_ALLREDUCE, ACCORD_CCL_FLOAT32, ACCORD_CCL_MAX));
  EXPECT_TRUE(hccl.supports(ACCORD_CCL_SEND, ACCORD_CCL_BFLOAT16, ACCORD_CCL_NONE));
  EXPECT_TRUE(hccl.supports(ACCORD_CCL_ALLTOALL, ACCORD_CCL_FLOAT32, ACCORD_CCL_NONE));
  EXPECT_FALSE(hccl.supports(ACCORD_CCL_ALLREDUCE, ACCORD_CCL_FLOAT64, ACCORD_CCL_SUM));
  EXPECT_FALSE(hccl.supports(ACCORD_CCL_ALLREDUCE, ACCORD_CCL_FLOAT32, ACCORD_CCL_PROD));
  EXPECT_FALSE(hccl.supports(ACCORD_CCL_BCAST, ACCORD_CCL_UINT8, ACCORD_CCL_NONE));
}

// The host runtime takes what the user has named; others what they are for.
TEST(ccl_library, memory_of_which_runtime) {
  EXPECT_TRUE(library("nccl").takes("cuda"));
  EXPECT_TRUE(library("nccl").takes("host"));
  EXPECT_FALSE(library("nccl").takes("hip"));
  EXPECT_TRUE(library("rccl").takes("hip"));
  EXPECT_FALSE(library("rccl").takes("cuda"));
}

TEST(ccl_library, one_that_is_none_says_so) {
  const Status status = library("mscclpp").open();
  EXPECT_EQ(status.code(), StatusCode::unsupported);
  EXPECT_NE(status.message().find("mscclpp: "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("no function nccl"), std::string::npos) << status.message();
  EXPECT_EQ(library("mscclpp").open().message(), status.message());
}

TEST(ccl_library, a_plug_in_of_the_user) {
  Library& plugin = library("example");
  ASSERT_OK(plugin.open());
  EXPECT_TRUE(plugin.takes("host"));
  EXPECT_TRUE(plugin.supports(ACCORD_CCL_ALLREDUCE, ACCORD_CCL_FLOAT32, ACCORD_CCL_SUM));
  EXPECT_FALSE(plugin.supports(ACCORD_CCL_BCAST, ACCORD_CCL_UINT8, ACCORD_CCL_NONE));
}

// NCCL's streams can be captured; those of others, and of plug-ins that say nothing of it, cannot.
TEST(ccl_library, what_can_be_recorded) {
  EXPECT_FALSE(library("mscclpp").can_be_recorded());
  for (const char* name : {"nccl", "rccl", "hccl", "example"}) ASSERT_OK(library(name).open());
  EXPECT_TRUE(library("nccl").can_be_recorded());
  EXPECT_TRUE(library("rccl").can_be_recorded());
  EXPECT_FALSE(library("hccl").can_be_recorded());
  EXPECT_FALSE(library("example").can_be_recorded());
}

TEST(ccl_library, names_and_settings) {
  EXPECT_EQ(ccl::find("ncc"), nullptr);
  EXPECT_EQ(ccl::find(""), nullptr);
  EXPECT_NE(ccl::problem().find("no plug-in \"nvccl\""), std::string::npos) << ccl::problem();
  EXPECT_NE(ccl::problem().find("\"twaddle\" is no name:path"), std::string::npos)
      << ccl::problem();
}

TEST(ccl_library, one_rank_alone) {
  Library& nccl = library("nccl");
  ASSERT_OK(nccl.open());
  ccl::Id id{};
  ASSERT_OK(nccl.make_id(id));
  std::unique_ptr<ccl::Communicator> alone;
  ASSERT_OK(nccl.join(id, 0, 1, alone));
  std::array<float, 3> numbers{1, 2, 3};
  std::array<float, 3> sum{};
  const ccl::Work work{ACCORD_CCL_ALLREDUCE,
                       ACCORD_CCL_FLOAT32,
                       ACCORD_CCL_SUM,
                       numbers.data(),
                       sum.data(),
                       numbers.size(),
                       0};
  EXPECT_OK(alone->enqueue({&work, 1}, nullptr));
  EXPECT_EQ(sum, numbers);
  EXPECT_OK(alone->check());
  // Whoever else has it sees that it is no more, before it has come to its end.
  EXPECT_TRUE(alone->give_up());
  EXPECT_FALSE(alone->give_up());
  EXPECT_FALSE(alone->enqueue({&work, 1}, nullptr).ok());
  EXPECT_FALSE(alone->check().ok());
  alone->abort();
  EXPECT_FALSE(alone->enqueue({&work, 1}, nullptr).ok());
}

TEST(ccl_library, what_accord_info_shows) {
  std::string text(accord_ccl_json(nullptr, 0), '\0');
  EXPECT_EQ(accord_ccl_json(text.data(), text.size()), text.size());
  const auto rows = nlohmann::json::parse(text.c_str());
  ASSERT_EQ(rows.size(), ccl::libraries().size());
  EXPECT_EQ(rows[0]["name"], "nccl");
  EXPECT_EQ(rows[0]["version"], 21805);
  EXPECT_EQ(rows[0]["usable"], true);
  EXPECT_EQ(rows[3]["usable"], false);
  EXPECT_FALSE(rows[3]["why"].get<std::string>().empty());
}

}  // namespace
}  // namespace accord::test
