// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "accord/accord.h"
#include "support.h"

extern "C" int use_accord_from_c(void);
extern "C" int misuse_accord_from_c(void);

namespace accord {
namespace {

constexpr accord_memory kKinds[] = {ACCORD_MEMORY_HOST, ACCORD_MEMORY_PINNED, ACCORD_MEMORY_MANAGED,
                                    ACCORD_MEMORY_DEVICE};

void* allocate(std::size_t size_bytes, accord_memory kind) {
  void* pointer = nullptr;
  EXPECT_EQ(ACCORD_OK, accord_malloc(&pointer, size_bytes, kind)) << accord_last_error();
  return pointer;
}

accord_memory kind_of(const void* pointer) {
  accord_memory kind{};
  EXPECT_EQ(ACCORD_OK, accord_memory_kind(pointer, &kind));
  return kind;
}

TEST(c_api, compiles_and_works_in_c) { EXPECT_EQ(0, use_accord_from_c()); }

TEST(c_api, kinds) {
  for (accord_memory kind : kKinds) {
    void* pointer = allocate(100, kind);
    ASSERT_NE(nullptr, pointer);
    EXPECT_EQ(kind, kind_of(pointer));
    EXPECT_EQ(kind == ACCORD_MEMORY_DEVICE, test::faults(pointer, test::Touch::write));
    EXPECT_EQ(ACCORD_OK, accord_free(pointer));
  }
  int local = 0;
  EXPECT_EQ(ACCORD_MEMORY_HOST, kind_of(&local));
  EXPECT_EQ(ACCORD_MEMORY_HOST, kind_of(nullptr));
}

TEST(c_api, copies_between_all_kinds) {
  const auto data = test::pattern(10000, 1);
  for (accord_memory from : kKinds) {
    for (accord_memory to : kKinds) {
      void* src = allocate(data.size(), from);
      void* dst = allocate(data.size(), to);
      EXPECT_EQ(ACCORD_OK, accord_memcpy(src, data.data(), data.size()));
      EXPECT_EQ(ACCORD_OK, accord_memcpy(dst, src, data.size()));
      std::vector<unsigned char> seen(data.size());
      EXPECT_EQ(ACCORD_OK, accord_memcpy(seen.data(), dst, data.size()));
      EXPECT_EQ(data, seen) << from << " to " << to;
      EXPECT_EQ(ACCORD_OK, accord_free(src));
      EXPECT_EQ(ACCORD_OK, accord_free(dst));
    }
  }
}

TEST(c_api, empty_allocations) {
  for (accord_memory kind : kKinds) EXPECT_EQ(nullptr, allocate(0, kind));
  EXPECT_EQ(ACCORD_OK, accord_free(nullptr));
  EXPECT_EQ(ACCORD_OK, accord_memcpy(nullptr, nullptr, 0));
}

TEST(c_api, errors_have_a_text) {
  void* pointer = nullptr;
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_malloc(nullptr, 1, ACCORD_MEMORY_DEVICE));
  EXPECT_STREQ("accord_malloc: pointer is null", accord_last_error());
  EXPECT_EQ(0, misuse_accord_from_c());
  EXPECT_STREQ("memory kind 9", accord_last_error());
  EXPECT_EQ(ACCORD_ERROR_NO_MEMORY,
            accord_malloc(&pointer, std::size_t{1} << 60, ACCORD_MEMORY_DEVICE));
  EXPECT_NE(nullptr, std::strstr(accord_last_error(), "1152921504606846976"));
  EXPECT_EQ(nullptr, pointer);
  int local = 0;
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_free(&local));
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_memcpy(&local, nullptr, 1));
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_memory_kind(&local, nullptr));

  pointer = allocate(10, ACCORD_MEMORY_DEVICE);
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_memcpy(pointer, &local, 11));
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_free(static_cast<char*>(pointer) + 1));
  EXPECT_EQ(ACCORD_OK, accord_free(pointer));
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_free(pointer)) << "twice";
}

TEST(c_api, the_last_error_belongs_to_the_thread) {
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_set_device(-1));
  const std::string mine = accord_last_error();
  EXPECT_FALSE(mine.empty());
  std::thread([] {
    EXPECT_STREQ("", accord_last_error());
    EXPECT_EQ(ACCORD_ERROR_INVALID, accord_malloc(nullptr, 1, ACCORD_MEMORY_HOST));
  }).join();
  EXPECT_EQ(mine, accord_last_error());
}

TEST(c_api, devices) {
  EXPECT_STREQ("host", accord_runtime_name());
  ASSERT_EQ(2, accord_device_count());
  EXPECT_EQ(ACCORD_ERROR_INVALID, accord_set_device(2));
  EXPECT_EQ(ACCORD_OK, accord_set_device(1));
  EXPECT_EQ(ACCORD_OK, accord_set_device(0));
}

TEST(c_api, info) {
  const std::size_t needed = accord_info_json(nullptr, 0);
  ASSERT_GT(needed, 100U);
  std::vector<char> text(needed, 'x');
  EXPECT_EQ(needed, accord_info_json(text.data(), text.size()));
  EXPECT_EQ(needed - 1, std::strlen(text.data()));
  const auto info = nlohmann::json::parse(text.data());
  EXPECT_EQ(ACCORD_VERSION, info.at("version"));
  EXPECT_TRUE(info.at("commit").is_string());
  EXPECT_EQ("host", info.at("default_runtime"));
  EXPECT_EQ("", info.at("problems"));
  EXPECT_EQ("ACCORD_CHUNK_BITES is no setting; the nearest is ACCORD_CHUNK_BYTES",
            info.at("warnings").at(0));
  ASSERT_EQ(1U, info.at("runtimes").size());
  const auto& runtime = info.at("runtimes")[0];
  EXPECT_EQ("host", runtime.at("name"));
  EXPECT_EQ(2U, runtime.at("devices").size());
  EXPECT_GT(runtime.at("devices")[1].at("memory_bytes"), 0);
  bool found = false;
  for (const auto& setting : info.at("settings")) {
    if (setting.at("name") != "ACCORD_HOST_DEVICES") continue;
    found = true;
    EXPECT_EQ("2", setting.at("value"));
    EXPECT_EQ("environment", setting.at("origin"));
    EXPECT_EQ("local", setting.at("scope"));
    EXPECT_EQ("test", setting.at("audience"));
    EXPECT_TRUE(setting.at("old_names").empty());
  }
  EXPECT_TRUE(found);

  std::vector<char> part(10, 'x');
  EXPECT_EQ(needed, accord_info_json(part.data(), 5));
  EXPECT_EQ(4U, std::strlen(part.data()));
  EXPECT_EQ('x', part[5]) << "nothing is written past the capacity";
}

}  // namespace
}  // namespace accord

int main(int argc, char** argv) {
  setenv("ACCORD_RUNTIME", "host", 1);
  setenv("ACCORD_HOST_DEVICES", "2", 1);
  setenv("ACCORD_CHUNK_BITES", "1M", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
