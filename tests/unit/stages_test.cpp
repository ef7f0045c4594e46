// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "base/stages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support.h"

namespace accord::stages {
namespace {

using Json = nlohmann::json;

Recorder::Options options_of_file(std::size_t events_max) {
  return {.lines = false, .table = true, .file_prefix = "x", .events_max = events_max};
}

Record described(const char* what) {
  Record record;
  record.name = "allreduce";
  record.what = what;
  record.path = "node";
  record.why = "voted";
  return record;
}

// A call of one microsecond in each of `stages`, as if it had run.
Record record_of(Recorder& recorder, const std::vector<Stage>& stages) {
  Record record = described("8 B");
  record.lane = recorder.take_lane();
  record.start_ns = 5'000'000'123;
  for (const Stage stage : stages) {
    record.spans.push_back({stage, record.start_ns + record.duration_ns, 1000});
    record.stage_ns[static_cast<std::size_t>(stage)] += 1000;
    record.duration_ns += 1000;
  }
  return record;
}

Json events_of(const std::string& trace) { return Json::parse(trace).at("traceEvents"); }

void sleep_ms(long milliseconds) {
  const timespec time{.tv_sec = 0, .tv_nsec = milliseconds * 1'000'000};
  nanosleep(&time, nullptr);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> words_of_line(const std::string& text, std::size_t line) {
  std::istringstream lines(text);
  std::string found;
  for (std::size_t i = 0; i <= line; ++i) std::getline(lines, found);
  std::istringstream words(found);
  return {std::istream_iterator<std::string>(words), {}};
}

class stages_file : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "accord-stages-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(name.data()));
    path_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return path_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

TEST(stages, every_stage_has_a_name) {
  for (std::size_t stage = 0; stage < kStages; ++stage)
    EXPECT_FALSE(std::string(name(static_cast<Stage>(stage))).empty());
  EXPECT_EQ(kStages, static_cast<std::size_t>(Stage::finish) + 1);
}

TEST(stages, a_line_says_what_which_way_why_and_how_long) {
  Record record = described("8 B float sum");
  record.duration_ns = 14'249;
  EXPECT_EQ("allreduce 8 B float sum -> node (voted) 14.2 us", line(record));
  record.what = record.why = "";
  EXPECT_EQ("allreduce -> node 14.2 us", line(record));
}

TEST(stages, the_stages_of_a_call_add_up_to_it) {
  Recorder recorder(options_of_file(100));
  {
    Call call(recorder, "bcast");
    sleep_ms(2);
    call.enter(Stage::wait);
    sleep_ms(4);
    call.enter(Stage::wait);  // goes on
    call.enter(Stage::move);
    call.enter(Stage::wait);
    sleep_ms(2);
    call.stop();
    sleep_ms(20);
    call.enter(Stage::finish);  // too late
    call.took("node", "voted");
  }
  std::vector<std::string> order;
  double stages_us = 0;
  double wait_us = 0;
  double all_us = 0;
  for (const Json& event : events_of(recorder.json(0, "rank 0"))) {
    if (event["ph"] != "X") continue;
    const double duration_us = event["dur"];
    if (event["cat"] == "call") {
      all_us = duration_us;
      continue;
    }
    order.push_back(event["name"]);
    stages_us += duration_us;
    if (event["name"] == "wait") wait_us += duration_us;
  }
  EXPECT_EQ((std::vector<std::string>{"classify", "wait", "move", "wait"}), order);
  EXPECT_NEAR(all_us, stages_us, 0.01);
  EXPECT_GE(wait_us, 6000);
  EXPECT_LE(wait_us, all_us - 2000);
}

TEST(stages, the_table_has_means_by_name_and_path) {
  Recorder recorder(options_of_file(100));
  EXPECT_EQ("", recorder.table());
  recorder.add(record_of(recorder, {Stage::move, Stage::wait}));
  recorder.add(record_of(recorder, {Stage::move, Stage::move, Stage::move, Stage::wait}));
  Record staged = record_of(recorder, {Stage::copy_in});
  staged.path = "staged";
  recorder.add(staged);
  using Words = std::vector<std::string>;
  const std::string table = recorder.table();
  // In the order of the stages, and only those that some call was in.
  EXPECT_EQ((Words{"call", "path", "calls", "all", "wait", "copy", "in", "move"}),
            words_of_line(table, 0));
  EXPECT_EQ((Words{"allreduce", "node", "2", "3.0", "1.0", "0.0", "2.0"}), words_of_line(table, 1));
  EXPECT_EQ((Words{"allreduce", "staged", "1", "1.0", "0.0", "1.0", "0.0"}),
            words_of_line(table, 2));
  recorder.clear_table();
  EXPECT_EQ("", recorder.table());
}

TEST(stages, calls_that_overlap_have_lanes_of_their_own) {
  Recorder recorder(options_of_file(100));
  auto first = std::make_unique<Call>(recorder, "first");
  auto second = std::make_unique<Call>(recorder, "second");
  first.reset();
  auto third = std::make_unique<Call>(recorder, "third");
  third.reset();
  second.reset();
  std::map<std::string, int> lanes;
  for (const Json& event : events_of(recorder.json(0, "rank 0"))) {
    if (event.value("cat", "") == "call") lanes[event["name"]] = event["tid"];
  }
  EXPECT_EQ((std::map<std::string, int>{{"first", 0}, {"second", 1}, {"third", 0}}), lanes);
}

TEST(stages, the_trace_is_what_perfetto_reads) {
  Recorder recorder(options_of_file(100));
  Record record = record_of(recorder, {Stage::move, Stage::wait});
  record.what = "a \"quoted\" name, \xff no UTF-8";
  recorder.add(record);
  const Json trace = Json::parse(recorder.json(3, "rank 3"));
  ASSERT_TRUE(trace["traceEvents"].is_array());
  EXPECT_EQ(0, trace["otherData"]["dropped_events"]);
  int complete = 0;
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_EQ(3, event["pid"]);
    EXPECT_TRUE(event["tid"].is_number() && event["name"].is_string());
    if (event["ph"] == "M" && event["name"] == "process_name") {
      EXPECT_EQ("rank 3", event["args"]["name"]);
    }
    if (event["ph"] != "X") continue;
    ++complete;
    if (event["cat"] != "call") continue;
    // Microseconds of CLOCK_MONOTONIC, to the nanosecond.
    EXPECT_DOUBLE_EQ(5000000.123, event["ts"].get<double>());
    EXPECT_DOUBLE_EQ(2, event["dur"].get<double>());
    EXPECT_EQ("node", event["args"]["path"]);
    EXPECT_EQ("voted", event["args"]["why"]);
  }
  EXPECT_EQ(3, complete);
}

TEST(stages, events_beyond_the_bound_are_counted_not_kept) {
  Recorder recorder(options_of_file(7));
  for (int i = 0; i < 4; ++i) recorder.add(record_of(recorder, {Stage::move, Stage::wait}));
  const Json trace = Json::parse(recorder.json(0, "rank 0"));
  int complete = 0;
  for (const Json& event : trace["traceEvents"]) complete += event["ph"] == "X" ? 1 : 0;
  EXPECT_EQ(6, complete);  // two whole calls
  EXPECT_EQ(6, trace["otherData"]["dropped_events"]);
  EXPECT_EQ("4", words_of_line(recorder.table(), 1)[2]);  // the table has all
}

TEST(stages, a_call_of_many_stages_keeps_no_more_than_the_bound) {
  Recorder recorder(options_of_file(10));
  {
    Call call(recorder, "bcast");
    for (int i = 0; i < 1000; ++i) call.enter(i % 2 == 0 ? Stage::wait : Stage::move);
  }
  const Json trace = Json::parse(recorder.json(0, "rank 0"));
  EXPECT_EQ(11, trace["otherData"]["dropped_events"]);
}

TEST_F(stages_file, nobody_else_can_read_it) {
  Recorder recorder(options_of_file(100));
  recorder.add(record_of(recorder, {Stage::move}));
  const std::string path = file("trace.0.json");
  // Neither what lies there already nor what it points to decides.
  const std::string other = file("other");
  std::ofstream(other) << "untouched";
  ASSERT_EQ(0, symlink(other.c_str(), path.c_str()));
  umask(0);
  ASSERT_OK(recorder.write_file(path, 0, "rank 0"));
  struct stat status {};
  ASSERT_EQ(0, lstat(path.c_str(), &status));
  EXPECT_TRUE(S_ISREG(status.st_mode));
  EXPECT_EQ(0600U, status.st_mode & 07777U);
  EXPECT_EQ(Json::parse(recorder.json(0, "rank 0")), Json::parse(content_of(path)));
  EXPECT_EQ("untouched", content_of(other));
  EXPECT_EQ(2U, files());
}

TEST_F(stages_file, a_folder_that_is_not_there_is_an_error_with_its_name) {
  const Recorder recorder(options_of_file(100));
  const Status status = recorder.write_file(file("none/trace"), 0, "rank 0");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string::npos, status.message().find("none/trace")) << status.message();
  EXPECT_EQ(0U, files());
}

TEST(stages, nobody_listens_unless_asked) {
  EXPECT_EQ(0, test::in_child([] {
              for (const char* name : {"ACCORD_TRACE", "ACCORD_STAGES", "ACCORD_TRACE_FILE"})
                unsetenv(name);
              start();
              return listening || begin("bcast") != nullptr ? 1 : 0;
            }));
}

TEST_F(stages_file, the_settings_switch_it_on) {
  const std::string out = file("stderr");
  const std::string prefix = file("trace");
  ASSERT_EQ(0, test::in_child([&] {
              setenv("ACCORD_TRACE", "1", 1);
              setenv("ACCORD_STAGES", "1", 1);
              setenv("ACCORD_TRACE_FILE", prefix.c_str(), 1);
              const int descriptor = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
              if (descriptor < 0 || dup2(descriptor, STDERR_FILENO) < 0) return 1;
              start();
              {
                const Story outer = begin("outer");
                const Active active(outer);
                {
                  const Story inner = begin("inner");
                  const Active within(inner);
                  enter(Stage::move);  // of the inner one only
                  const Active nobody(nullptr);
                  enter(Stage::reduce);
                }
                enter(Stage::copy_in);
              }
              enter(Stage::host_mpi);  // no call
              finish(0);
              return 0;
            }));
  const std::string text = content_of(out);
  EXPECT_NE(std::string::npos, text.find("accord: info: inner -> host ")) << text;
  EXPECT_NE(std::string::npos, text.find("where the time went")) << text;
  std::vector<std::string> stages;
  for (const Json& event : events_of(content_of(file("trace.0.json")))) {
    if (event.value("cat", "") == "stage") stages.push_back(event["name"]);
  }
  EXPECT_EQ((std::vector<std::string>{"classify", "move", "classify", "copy in"}), stages);
}

// The other ranks are silent, and a process without a rank writes under its own number.
TEST_F(stages_file, only_rank_0_writes_the_table) {
  for (const int rank : {1, -1}) {
    const std::string out = file(rank == 1 ? "stderr1" : "stderr");
    ASSERT_EQ(0, test::in_child([&] {
                setenv("ACCORD_STAGES", "1", 1);
                setenv("ACCORD_TRACE_FILE", file("trace").c_str(), 1);
                const int descriptor = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
                if (descriptor < 0 || dup2(descriptor, STDERR_FILENO) < 0) return 1;
                start();
                begin("bcast");
                finish(rank);
                const std::string number = std::to_string(rank < 0 ? getpid() : rank);
                return access(file(("trace." + number + ".json").c_str()).c_str(), R_OK);
              }));
    EXPECT_EQ(rank == 1, content_of(out).empty());
  }
}

}  // namespace
}  // namespace accord::stages
