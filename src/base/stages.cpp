// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "base/stages.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/config.h"
#include "base/log.h"

namespace accord::stages {
namespace {

constexpr std::array<const char*, kStages> kNames = {"classify", "queue",    "vote",  "join",
                                                     "wait",     "copy in",  "move",  "reduce",
                                                     "host MPI", "copy out", "finish"};

Recorder* process_recorder = nullptr;
thread_local Call* active_call = nullptr;

}  // namespace

bool listening = false;

const char* name(Stage stage) noexcept { return kNames[static_cast<std::size_t>(stage)]; }

std::int64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::string line(const Record& record) {
  return fmt::format("{}{}{} -> {}{}{}{} {:.1f} us", record.name, record.what.empty() ? "" : " ",
                     record.what, record.path, record.why.empty() ? "" : " (", record.why,
                     record.why.empty() ? "" : ")",
                     static_cast<double>(record.duration_ns) / kNsPerUs);
}

std::size_t Recorder::take_lane() {
  const std::lock_guard locked(mutex_);
  const auto lane =
      static_cast<std::size_t>(std::find(lanes_.begin(), lanes_.end(), false) - lanes_.begin());
  if (lane == lanes_.size()) lanes_.push_back(false);
  lanes_[lane] = true;
  return lane;
}

void Recorder::add(Record record) {
  if (options_.lines) log::write(log::Level::info, line(record));
  const std::lock_guard locked(mutex_);
  lanes_[record.lane] = false;
  if (options_.table) {
    Totals& totals = totals_[{record.name, record.path}];
    ++totals.calls;
    totals.duration_ns += record.duration_ns;
    for (std::size_t stage = 0; stage < kStages; ++stage)
      totals.stage_ns[stage] += record.stage_ns[stage];
  }
  if (options_.file_prefix.empty()) return;
  const std::size_t events = 1 + record.spans.size();
  if (events_ + events > options_.events_max) {
    dropped_ += events;
    return;
  }
  events_ += events;
  kept_.push_back(std::move(record));
}

std::string Recorder::table() const {
  const std::lock_guard locked(mutex_);
  if (totals_.empty()) return {};
  std::array<bool, kStages> used{};
  for (const auto& [key, totals] : totals_) {
    for (std::size_t stage = 0; stage < kStages; ++stage)
      used[stage] = used[stage] || totals.stage_ns[stage] != 0;
  }
  std::string text = fmt::format("{:<24} {:<16} {:>8} {:>10}", "call", "path", "calls", "all");
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    if (used[stage]) text += fmt::format(" {:>10}", kNames[stage]);
  }
  for (const auto& [key, totals] : totals_) {
    const auto mean_us = [calls = totals.calls](std::int64_t total_ns) {
      return static_cast<double>(total_ns) / static_cast<double>(calls) / kNsPerUs;
    };
    text += fmt::format("\n{:<24} {:<16} {:>8} {:>10.1f}", key.first, key.second, totals.calls,
                        mean_us(totals.duration_ns));
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      if (used[stage]) text += fmt::format(" {:>10.1f}", mean_us(totals.stage_ns[stage]));
    }
  }
  return text;
}

void Recorder::clear_table() {
  const std::lock_guard locked(mutex_);
  totals_.clear();
}

Call::Call(Recorder& recorder, std::string name) : recorder_(recorder) {
  record_.name = std::move(name);
  record_.lane = recorder_.take_lane();
  record_.start_ns = stage_start_ns_ = now_ns();
}

Call::~Call() {
  stop();
  recorder_.add(std::move(record_));
}

void Call::enter(Stage stage) {
  if (stopped_ || stage == stage_) return;
  close_span(now_ns());
  stage_ = stage;
}

void Call::stop() {
  if (stopped_) return;
  stopped_ = true;
  const std::int64_t now = now_ns();
  close_span(now);
  record_.duration_ns = now - record_.start_ns;
}

void Call::close_span(std::int64_t now) {
  const std::int64_t duration_ns = now - stage_start_ns_;
  record_.stage_ns[static_cast<std::size_t>(stage_)] += duration_ns;
  const Recorder::Options& options = recorder_.options();
  // One span more than fits already means that the call is dropped.
  if (!options.file_prefix.empty() && record_.spans.size() < options.events_max)
    record_.spans.push_back({stage_, stage_start_ns_, duration_ns});
  stage_start_ns_ = now;
}

Story begin_listened(const char* name) {
  return std::make_shared<Call>(*process_recorder, std::string(name));
}

void Active::set(const Story& story) {
  story_ = story;
  before_ = std::exchange(active_call, story.get());
  is_set_ = true;
}

void Active::leave() noexcept { active_call = before_; }

void enter_listened(Stage stage) {
  if (active_call != nullptr) active_call->enter(stage);
}

namespace {

bool start_once() {
  const Config& settings = config();
  const std::string prefix = settings.trace_file == "none" ? "" : settings.trace_file;
  if (!settings.trace && !settings.stages && prefix.empty()) return false;
  // Never destroyed: calls may end while the process does.
  process_recorder =
      new Recorder({.lines = settings.trace, .table = settings.stages, .file_prefix = prefix});
  return true;
}

}  // namespace

void start() {
  // Sessions may begin on several threads at once.
  static const bool started = listening = start_once();
  (void)started;
}

void finish(int rank) {
  if (!listening) return;
  if (const std::string table = process_recorder->table(); !table.empty() && rank <= 0) {
    log::write(log::Level::info, "where the time went, in us a call\n" + table);
    process_recorder->clear_table();
  }
  const std::string& prefix = process_recorder->options().file_prefix;
  if (prefix.empty()) return;
  const int process = rank < 0 ? ::getpid() : rank;
  const Status written =
      process_recorder->write_file(fmt::format("{}.{}.json", prefix, process), process,
                                   fmt::format("{} {}", rank < 0 ? "process" : "rank", process));
  if (!written.ok()) log::warn("{}", written.message());
}

}  // namespace accord::stages
