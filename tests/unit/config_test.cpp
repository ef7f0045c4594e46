// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "base/config.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support.h"

namespace accord {
namespace {

Settings read(std::initializer_list<const char*> environment) {
  std::vector<const char*> list(environment);
  list.push_back(nullptr);
  return read_settings(list.data());
}

const SettingRow& row(const Settings& settings, std::string_view name) {
  for (const SettingRow& next : settings.rows) {
    if (next.name == name) return next;
  }
  static const SettingRow none;
  return none;
}

TEST(config, defaults) {
  const Settings settings = read({"HOME=/root", "PATH=/bin"});
  EXPECT_OK(settings.status);
  EXPECT_TRUE(settings.warnings.empty());
  EXPECT_TRUE(settings.config.enable);
  EXPECT_FALSE(settings.config.trace);
  EXPECT_EQ("warn", settings.config.log);
  EXPECT_EQ("auto", settings.config.runtime);
  EXPECT_EQ(1, settings.config.host_devices);
  EXPECT_EQ(std::size_t{1} << 30, settings.config.staging_bytes_max);
  EXPECT_EQ(std::size_t{4} << 20, settings.config.chunk_bytes);
}

// A default that its own type or choices refuse would be kept silently as zero or as an empty text.
TEST(config, every_default_is_accepted_when_given) {
  for (const SettingRow& setting : read({}).rows) {
    const std::string assignment = setting.name + "=" + setting.default_value;
    const Settings given = read({assignment.c_str()});
    EXPECT_OK(given.status);
    EXPECT_EQ("environment", row(given, setting.name).origin);
    EXPECT_EQ(read({}).equal_hash, given.equal_hash) << setting.name;
    EXPECT_FALSE(setting.text.empty());
  }
}

TEST(config, names_are_unique) {
  std::set<std::string> names;
  const Settings settings = read({});
  for (const SettingRow& setting : settings.rows) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_EQ(0U, setting.name.find("ACCORD_"));
  }
}

// Users look at the first page only, so it has to stay short.
TEST(config, settings_for_users_are_few) {
  std::map<Audience, int> counts;
  for (const SettingRow& setting : read({}).rows) ++counts[setting.audience];
  EXPECT_LE(counts[Audience::user], 12);
  EXPECT_EQ(16, counts[Audience::threshold]);
  EXPECT_EQ(Audience::user, row(read({}), "ACCORD_LOG").audience);
  EXPECT_EQ(Audience::threshold, row(read({}), "ACCORD_NODE_BYTES").audience);
  EXPECT_EQ(Audience::expert, row(read({}), "ACCORD_REGION_BYTES").audience);
  EXPECT_EQ(Audience::test, row(read({}), "ACCORD_NODE_SPLIT").audience);
  EXPECT_STREQ("threshold", name_of(Audience::threshold));
}

TEST(config, flags) {
  for (const char* yes : {"1", "on", "true", "yes", "YES", "On"}) {
    const std::string text = std::string("ACCORD_TRACE=") + yes;
    const Settings settings = read({text.c_str()});
    EXPECT_OK(settings.status);
    EXPECT_TRUE(settings.config.trace) << yes;
  }
  for (const char* no : {"0", "off", "false", "no", "OFF"}) {
    const std::string text = std::string("ACCORD_ENABLE=") + no;
    const Settings settings = read({text.c_str()});
    EXPECT_OK(settings.status);
    EXPECT_FALSE(settings.config.enable) << no;
  }
}

TEST(config, rows_tell_value_and_origin) {
  const Settings settings = read({"ACCORD_CHUNK_BYTES=64K"});
  const SettingRow& chunk = row(settings, "ACCORD_CHUNK_BYTES");
  EXPECT_EQ("64K", chunk.value);
  EXPECT_EQ("4M", chunk.default_value);
  EXPECT_EQ("environment", chunk.origin);
  EXPECT_EQ("bytes", chunk.type);
  EXPECT_EQ(SettingScope::equal, chunk.scope);
  EXPECT_EQ(std::size_t{65536}, settings.config.chunk_bytes);
  const SettingRow& log = row(settings, "ACCORD_LOG");
  EXPECT_EQ("default", log.origin);
  EXPECT_EQ("choice", log.type);
  EXPECT_EQ("flag", row(settings, "ACCORD_TRACE").type);
  EXPECT_EQ("count", row(settings, "ACCORD_HOST_DEVICES").type);
}

TEST(config, empty_means_unset) {
  const Settings settings = read({"ACCORD_LOG=", "ACCORD_CHUNK_BYTES="});
  EXPECT_OK(settings.status);
  EXPECT_EQ("warn", settings.config.log);
  EXPECT_EQ("default", row(settings, "ACCORD_CHUNK_BYTES").origin);
}

TEST(config, bad_values_keep_the_default_and_are_all_told) {
  const Settings settings = read({"ACCORD_LOG=loud", "ACCORD_CHUNK_BYTES=many", "ACCORD_TRACE=2",
                                  "ACCORD_HOST_DEVICES=-1", "ACCORD_RUNTIME=cuda"});
  EXPECT_CODE(invalid_argument, settings.status);
  EXPECT_EQ(
      "ACCORD_LOG is \"loud\" but must be one of error, warn, info, debug, trace; "
      "ACCORD_TRACE is \"2\" but must be 0, 1, on, off, true, false, yes or no; "
      "ACCORD_HOST_DEVICES is \"-1\" but must be a whole number of at least 0; "
      "ACCORD_CHUNK_BYTES is \"many\" but must be a size such as 65536, 64K, 1.5M or 2G",
      settings.status.message());
  EXPECT_EQ("warn", settings.config.log);
  EXPECT_EQ("warn", row(settings, "ACCORD_LOG").value);
  EXPECT_EQ("default", row(settings, "ACCORD_LOG").origin);
  EXPECT_EQ(std::size_t{4} << 20, settings.config.chunk_bytes);
  EXPECT_EQ("cuda", settings.config.runtime);
}

TEST(config, choices_ignore_case) {
  EXPECT_EQ("debug", read({"ACCORD_LOG=Debug"}).config.log);
  EXPECT_CODE(invalid_argument, read({"ACCORD_LOG=debug|info"}).status);
}

TEST(config, unknown_variables_get_the_nearest_name) {
  const Settings settings =
      read({"ACCORD_CHUNK_BITES=1M", "ACCORD_HOSTDEVICES=2", "ACCORD_ALGORTIHM=inbox"});
  EXPECT_OK(settings.status);
  ASSERT_EQ(3U, settings.warnings.size());
  EXPECT_EQ("ACCORD_CHUNK_BITES is no setting; the nearest is ACCORD_CHUNK_BYTES",
            settings.warnings[0]);
  EXPECT_EQ("ACCORD_HOSTDEVICES is no setting; the nearest is ACCORD_HOST_DEVICES",
            settings.warnings[1]);
  EXPECT_EQ("ACCORD_ALGORTIHM is no setting; the nearest is ACCORD_ALGORITHM",
            settings.warnings[2]);
}

constexpr const char* kRenamedWarning =
    "ACCORD_QUICK_COPY_BYTES is called ACCORD_COPY_KERNEL_BYTES now";

TEST(config, an_old_name_counts_and_is_told_once) {
  const Settings settings = read({"ACCORD_QUICK_COPY_BYTES=1K"});
  EXPECT_OK(settings.status);
  EXPECT_EQ(std::size_t{1024}, settings.config.copy_kernel_bytes);
  const SettingRow& renamed = row(settings, "ACCORD_COPY_KERNEL_BYTES");
  EXPECT_EQ("1K", renamed.value);
  EXPECT_EQ("environment", renamed.origin);
  EXPECT_EQ(std::vector<std::string>{"ACCORD_QUICK_COPY_BYTES"}, renamed.old_names);
  EXPECT_TRUE(row(settings, "ACCORD_LOG").old_names.empty());
  EXPECT_EQ(std::vector<std::string>{kRenamedWarning}, settings.warnings);
  // Twice in one environment, too.
  EXPECT_EQ(1U, read({"ACCORD_QUICK_COPY_BYTES=1K", "ACCORD_QUICK_COPY_BYTES=2K"}).warnings.size());
  EXPECT_TRUE(read({"ACCORD_COPY_KERNEL_BYTES=1K"}).warnings.empty());
}

TEST(config, the_new_name_counts_where_the_old_one_is_set_too) {
  for (const bool new_first : {true, false}) {
    const char* const is_new = "ACCORD_COPY_KERNEL_BYTES=2K";
    const char* const is_old = "ACCORD_QUICK_COPY_BYTES=nonsense";
    const Settings settings = new_first ? read({is_new, is_old}) : read({is_old, is_new});
    EXPECT_OK(settings.status);
    EXPECT_EQ(std::size_t{2048}, settings.config.copy_kernel_bytes);
    EXPECT_EQ(
        std::vector<std::string>{std::string(kRenamedWarning) + ", which is set, too, and counts"},
        settings.warnings);
  }
}

TEST(config, an_empty_name_is_unset_old_or_new) {
  const Settings settings = read({"ACCORD_COPY_KERNEL_BYTES=", "ACCORD_QUICK_COPY_BYTES=1K"});
  EXPECT_EQ(std::size_t{1024}, settings.config.copy_kernel_bytes);
  EXPECT_EQ(std::vector<std::string>{kRenamedWarning}, settings.warnings);
  EXPECT_TRUE(read({"ACCORD_QUICK_COPY_BYTES="}).warnings.empty());
}

TEST(config, a_bad_value_is_told_with_the_name_that_was_written) {
  const Settings settings = read({"ACCORD_QUICK_COPY_BYTES=many"});
  EXPECT_CODE(invalid_argument, settings.status);
  EXPECT_EQ("ACCORD_QUICK_COPY_BYTES is \"many\" but must be a size such as 65536, 64K, 1.5M or 2G",
            settings.status.message());
}

TEST(config, own_variables_are_no_mistakes) {
  EXPECT_TRUE(read({"ACCORD_HOME=/opt/accord", "ACCORD_PYTHON=python3", "ACCORD_TEST_SEED=1",
                    "ACCORDION=1", "ACCORD=1"})
                  .warnings.empty());
  EXPECT_EQ(1U, read({"ACCORD_HOMES=/opt/accord"}).warnings.size());
}

TEST(config, equal_hash_is_of_values_not_of_spelling) {
  const std::uint64_t plain = read({}).equal_hash;
  EXPECT_EQ(plain, read({"ACCORD_CHUNK_BYTES=4096K"}).equal_hash);
  EXPECT_EQ(plain, read({"ACCORD_LOG=debug"}).equal_hash) << "local settings do not count";
  EXPECT_NE(plain, read({"ACCORD_CHUNK_BYTES=2M"}).equal_hash);
  EXPECT_NE(read({"ACCORD_CHUNK_BYTES=1M"}).equal_hash,
            read({"ACCORD_PIPELINE_BYTES=2M", "ACCORD_CHUNK_BYTES=1M"}).equal_hash);
}

TEST(config, process_settings_are_read_once) {
  const Config* first = &config();
  setenv("ACCORD_TRACE", "1", 1);
  EXPECT_EQ(first, &config());
  EXPECT_FALSE(config().trace);
  unsetenv("ACCORD_TRACE");
}

TEST(parse_bytes, accepted) {
  const std::pair<const char*, std::size_t> cases[] = {
      {"0", 0},
      {"64", 64},
      {"64K", 65536},
      {"64k", 65536},
      {"64KB", 65536},
      {"64KiB", 65536},
      {"1M", 1048576},
      {"1.5M", 1572864},
      {"0.25K", 256},
      {"2G", std::size_t{2} << 30},
      {"1T", std::size_t{1} << 40},
      {"18446744073709551615", std::numeric_limits<std::size_t>::max()},
  };
  for (const auto& [text, expected] : cases) {
    std::size_t value = 7;
    EXPECT_OK(parse_bytes(text, value));
    EXPECT_EQ(expected, value) << text;
  }
}

TEST(parse_bytes, refused) {
  for (const char* text :
       {"", "K", "-1", "1.5", "1.K", ".5K", "1X", "1KK", "1 K", " 1", "1e3", "0x10", "64B",
        "18446744073709551616", "16777216T", "1.1234567M", "1MiBs"}) {
    std::size_t value = 7;
    EXPECT_CODE(invalid_argument, parse_bytes(text, value));
    EXPECT_EQ(7U, value) << text;
  }
}

}  // namespace
}  // namespace accord
