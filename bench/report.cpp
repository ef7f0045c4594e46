// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/report.h"

#include <fmt/format.h>

#include <cstdio>

namespace accord::bench {
namespace {

std::string first_line(const std::string& text) {
  constexpr std::size_t kLineMax = 90;
  std::string line;
  for (const char character : text.substr(0, text.find('\n'))) {
    const bool blank = character == ' ' || character == '\t';
    if (!blank) line += character;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line.size() <= kLineMax ? line : line.substr(0, kLineMax) + "...";
}

// What follows says how it was built.
std::string mpi_library_version() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  return first_line(text.c_str());  // the length may count what ends it
}

RunFacts facts_of(const Session& session) {
  RunFacts facts;
  facts.ranks = session.ranks;
  facts.local_ranks = session.local_ranks;
  facts.mpi_library = mpi_library_version();
  facts.intercepted = session.intercepted();
  if (session.accord != nullptr) {
    const std::string info = session.accord->info_json();
    facts.accord_version = accord_version(info);
    facts.accord_commit = accord_commit(info);
    facts.settings = accord_settings(info);
    facts.runtime = session.accord->runtime_name();
    facts.mps = under_mps(info);
    facts.device_count = session.accord->device_count();
  }
  if (session.cuda != nullptr) facts.device_name = session.cuda->device_name();
  return facts;
}

std::string memory_text(const Options& options) {
  if (options.send_memory == options.recv_memory) return to_text(options.send_memory);
  return fmt::format("{} to {}", to_text(options.send_memory), to_text(options.recv_memory));
}

WaySummary summary_of(const WayResult& way, const SizeResult& size, const Session& session,
                      const Operation& operation) {
  constexpr double kBytesPerMicrosecondToGb = 1e-3;
  WaySummary summary;
  summary.way = way.way;
  summary.why_not = way.why_not;
  summary.fault = way.fault;
  summary.path = way.path;
  summary.algorithm = way.algorithm;
  summary.detail = way.detail;
  if (!way.why_not.empty()) return summary;
  const std::size_t element_bytes = session.element->size_bytes;
  summary.time_us = summarize(way.samples_us);
  if (summary.time_us.median > 0 && operation.has_data) {
    summary.bandwidth = static_cast<double>(size.shape.elements * element_bytes) /
                        summary.time_us.median * kBytesPerMicrosecondToGb;
    summary.bus_bandwidth = bandwidth_bytes(operation, size.shape, element_bytes) /
                            summary.time_us.median * kBytesPerMicrosecondToGb;
  }
  summary.samples = way.samples_us.size();
  summary.calls_per_sample = way.calls_per_sample;
  summary.blocks = way.block_medians_us.size();
  summary.verified = way.verified;
  return summary;
}

SizeSummary summary_of(const SizeResult& result, const Session& session,
                       const Operation& operation) {
  SizeSummary row;
  row.operation = operation.name;
  row.size_bytes = operation.has_data ? result.shape.elements * session.element->size_bytes : 0;
  row.window = operation.has_form ? 0 : result.shape.window;
  const WayResult& ours = result.ways.front();
  for (const WayResult& way : result.ways) {
    row.ways.push_back(summary_of(way, result, session, operation));
    row.ways.back().against_ours = compare(ours.block_medians_us, way.block_medians_us);
  }
  return row;
}

}  // namespace

Report::Report(const Session& session) : session_(session), speaks_(session.rank == 0) {
  if (!speaks_) return;
  const RunFacts facts = facts_of(session);
  print_facts(facts);
  records_ = std::make_unique<RecordWriter>(session.options, facts);
}

void Report::print_facts(const RunFacts& facts) {
  const Options& options = session_.options;
  fmt::print("# {} ranks ({} on this node), {} memory, {}, {}\n", facts.ranks, facts.local_ranks,
             memory_text(options), options.type, to_text(options.form));
  fmt::print("# {}: {}\n", host_name(), machine_name(facts));
  fmt::print("# MPI: {}\n", facts.mpi_library);
  if (facts.intercepted) {
    fmt::print("# Accord {}{}, runtime {}\n", facts.accord_version,
               facts.accord_commit.empty() ? "" : " of commit " + facts.accord_commit,
               facts.runtime);
    if (facts.runtime == "host" && memory_text(options) != "host")
      fmt::print("# no accelerator here: the CPU stands in for one. Results count, times do not\n");
  } else {
    fmt::print("# Accord does not intercept MPI here: the first column is the MPI library alone\n");
  }
  fmt::print("# time of the slowest rank, median; from 64K on bus bandwidth; ratio: peer / ours\n");
  std::fflush(stdout);
}

void Report::begin_operation(const Operation& operation) {
  std::string title = operation.name;
  if (operation.reduces) title += fmt::format(", {}", session_.options.op);
  table_ = std::make_unique<Table>(title, notes_);
}

void Report::add(const Operation& operation, const SizeResult& result) {
  if (!speaks_) return;
  if (result.ways.empty()) return;
  const SizeSummary row = summary_of(result, session_, operation);
  table_->print(row);
  records_->write(row);
  for (const WaySummary& way : row.ways) {
    if (way.fault.empty()) continue;
    found_fault_ = true;
    fmt::print(stderr, "accord_bench: wrong result: {}, {} bytes, {}{}, way {}: {}\n",
               operation.name, row.size_bytes, session_.options.type,
               operation.reduces ? " " + session_.options.op : "", way.way, way.fault);
  }
}

void Report::leave_out(const Operation& operation, const SizeResult& result,
                       const std::string& text) {
  note(text);
  if (speaks_) records_->write(summary_of(result, session_, operation));
}

void Report::note(const std::string& text) {
  if (!speaks_ || !notes_.insert(text).second) return;
  fmt::print("# {}\n", text);
  std::fflush(stdout);
}

}  // namespace accord::bench
