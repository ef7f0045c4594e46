// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a call did and where its time went. A Call stands for one MPI call while it runs; the code
// that carries it out marks the stage it enters, and the time up to the next mark is that stage's.
// Finished calls go to the Recorder: a line each on stderr (ACCORD_TRACE), a table of the stages
// (ACCORD_STAGES), a trace file (ACCORD_TRACE_FILE). While nobody listens there are no Calls, and a
// mark is one branch. Knows neither MPI nor devices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace accord::stages {

inline constexpr double kNsPerUs = 1000.0;

// In the order of a call's life. Where several go on at once, the time counts as host_mpi before
// copies and as move before reduce before wait: copies and waiting that nothing hides.
enum class Stage {
  classify,  // what the buffers are and how the call may go
  queue,     // behind earlier calls of the communicator
  vote,      // all ranks agree on the way
  join,      // all ranks open each other's regions, once a communicator
  wait,      // for peers that have not come so far
  copy_in,   // device to host
  move,      // device to device
  reduce,    // on the device
  host_mpi,  // the host MPI's own call
  copy_out,  // host to device
  finish,    // what is left once the data is there
};
inline constexpr std::size_t kStages = 11;

const char* name(Stage stage) noexcept;

// CLOCK_MONOTONIC, so that the ranks of a node line up.
std::int64_t now_ns() noexcept;

// A stretch of one stage.
struct Span {
  Stage stage = Stage::classify;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
};

// A call that is over.
struct Record {
  std::string name;           // allreduce
  std::string what;           // 262144 B float sum device, comm of 4, rank 0
  std::string path = "host";  // node
  std::string why;            // voted
  std::size_t lane = 0;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::array<std::int64_t, kStages> stage_ns{};
  std::vector<Span> spans;  // only where there is a trace file
};

std::string line(const Record& record);

// Takes finished calls; thread-safe.
class Recorder {
 public:
  struct Options {
    bool lines = false;
    bool table = false;
    std::string file_prefix;           // empty: no trace file
    std::size_t events_max = 100'000;  // of the trace file; calls beyond are counted, not kept
  };

  explicit Recorder(Options options) : options_(std::move(options)) {}

  // Calls that overlap get lanes of their own, since the events of a lane must nest.
  std::size_t take_lane();
  void add(Record record);

  // Means by name and path of all calls since the last clear_table; empty where there was none.
  std::string table() const;
  void clear_table();

  // Chrome's trace-event format, as Perfetto reads it. `process`: a number of this rank's own.
  std::string json(int process, const std::string& process_name) const;
  // The same to a file that others cannot read, and that appears when it is complete.
  Status write_file(const std::string& path, int process, const std::string& process_name) const;

  const Options& options() const noexcept { return options_; }

 private:
  struct Totals {
    std::int64_t calls = 0;
    std::int64_t duration_ns = 0;
    std::array<std::int64_t, kStages> stage_ns{};
  };

  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Totals> totals_;  // by name and path
  std::vector<Record> kept_;
  std::size_t events_ = 0;  // of kept_
  std::size_t dropped_ = 0;
  std::vector<bool> lanes_;  // in use
};

// A call while it runs. Used by one thread at a time; the last owner hands it to the recorder.
class Call {
 public:
  Call(Recorder& recorder, std::string name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void describe(std::string what) { record_.what = std::move(what); }
  void took(std::string path, std::string why) {
    record_.path = std::move(path);
    record_.why = std::move(why);
  }
  void enter(Stage stage);
  // Nothing after this counts. The last owner may let go much later.
  void stop();

 private:
  void close_span(std::int64_t now);

  Recorder& recorder_;
  Record record_;
  Stage stage_ = Stage::classify;
  std::int64_t stage_start_ns_;
  bool stopped_ = false;
};

using Story = std::shared_ptr<Call>;

// Whether anybody listens. Set by start(), before any call that could be told of.
extern bool listening;

Story begin_listened(const char* name);
// Null while nobody listens.
inline Story begin(const char* name) { return listening ? begin_listened(name) : nullptr; }

// The call that this thread works on now: what marks are for. Null: none.
class Active {
 public:
  explicit Active(const Story& story) {
    if (listening) set(story);
  }
  ~Active() {
    if (is_set_) leave();
  }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  void set(const Story& story);
  void leave() noexcept;

  Story story_;  // kept until marks can no longer be for it
  Call* before_ = nullptr;
  bool is_set_ = false;
};

void enter_listened(Stage stage);
// Marks: from now on the active call is in this stage.
inline void enter(Stage stage) {
  if (listening) enter_listened(stage);
}

// Reads the settings; more than once is as good as once.
void start();
// Writes the table (rank 0 only) and the trace file of this rank. -1: a process without a rank.
void finish(int rank);

}  // namespace accord::stages
