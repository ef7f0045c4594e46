// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Finished calls as Chrome's trace events: one complete event ("X") a call and one a stage within
// it, times in microseconds.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/stages.h"

namespace accord::stages {
namespace {

using Json = nlohmann::json;

Json event(const std::string& name, const char* category, std::int64_t start_ns,
           std::int64_t duration_ns, int process, std::size_t lane) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", static_cast<double>(start_ns) / kNsPerUs},
          {"dur", static_cast<double>(duration_ns) / kNsPerUs},
          {"pid", process},
          {"tid", lane}};
}

Json metadata(const char* name, int process, std::size_t lane, Json args) {
  return {{"name", name}, {"ph", "M"}, {"pid", process}, {"tid", lane}, {"args", std::move(args)}};
}

// One after the other, since a tree of all events would take many times the room of their text.
void append(std::string& text, const Json& value) {
  if (text.back() != '[') text += ",\n";
  text += value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status from_errno(const std::string& what) {
  return {StatusCode::invalid_argument,
          fmt::format("trace file {}: {}", what, std::strerror(errno))};
}

Status write_all(int descriptor, const std::string& text, const std::string& path) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return from_errno(path);
    done += static_cast<std::size_t>(written);
  }
  return {};
}

}  // namespace

std::string Recorder::json(int process, const std::string& process_name) const {
  const std::lock_guard locked(mutex_);
  std::string text = "{\"traceEvents\":[";
  append(text, metadata("process_name", process, 0, {{"name", process_name}}));
  append(text, metadata("process_sort_index", process, 0, {{"sort_index", process}}));
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    append(text, metadata("thread_name", process, lane, {{"name", "calls"}}));
  for (const Record& record : kept_) {
    Json call =
        event(record.name, "call", record.start_ns, record.duration_ns, process, record.lane);
    call["args"] = {{"what", record.what}, {"path", record.path}, {"why", record.why}};
    append(text, call);
    for (const Span& span : record.spans)
      append(text, event(stages::name(span.stage), "stage", span.start_ns, span.duration_ns,
                         process, record.lane));
  }
  const Json other = {{"dropped_events", dropped_}};
  return text + "],\n\"displayTimeUnit\":\"ns\",\"otherData\":" + other.dump() + "}\n";
}

Status Recorder::write_file(const std::string& path, int process,
                            const std::string& process_name) const {
  const std::string text = json(process, process_name);
  // mkstemp makes a file of mode 0600 under a name that nobody could have prepared.
  std::string draft = path + ".XXXXXX";
  const int descriptor = ::mkstemp(draft.data());
  if (descriptor < 0) return from_errno(path);
  Status status = write_all(descriptor, text, path);
  if (::close(descriptor) != 0) keep_first(status, from_errno(path));
  if (status.ok() && ::rename(draft.c_str(), path.c_str()) != 0) status = from_errno(path);
  if (!status.ok()) ::unlink(draft.c_str());
  return status;
}

}  // namespace accord::stages
