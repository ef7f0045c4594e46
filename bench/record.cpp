// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "accord/accord.h"

namespace accord::bench {
namespace {

using nlohmann::json;

json shared_keys(const Options& options, const RunFacts& facts) {
  const char* const table = std::getenv("ACCORD_TABLE");
  json keys = {
      {"ranks", facts.ranks},
      {"type", options.type},
      {"op", options.op},
      {"form", to_text(options.form)},
      {"send_memory", to_text(options.send_memory)},
      {"recv_memory", to_text(options.recv_memory)},
      {"machine",
       {{"name", machine_name(facts)},
        {"host", host_name()},
        {"cpu", cpu_name()},
        {"cores", std::thread::hardware_concurrency()},
        {"local_ranks", facts.local_ranks},
        {"runtime", facts.runtime},
        {"driver", facts.device_name.empty() ? "" : driver_version()},
        {"device", facts.device_name}}},
      {"mpi_library", facts.mpi_library},
      {"accord",
       {{"version", facts.accord_version},
        {"commit", facts.accord_commit},
        {"intercepts", facts.intercepted}}},
      {"settings", facts.settings},
      {"table", table == nullptr ? "off" : table},
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"command", options.command},
  };
  if (facts.mps) keys["machine"]["mps"] = *facts.mps;
  return keys;
}

json estimate(const Estimate& value) { return {{"value", value.value}, {"error", value.error}}; }

void add_measurement(json& record, const WaySummary& way) {
  record["median_us"] = way.time_us.median;
  record["p5_us"] = way.time_us.p5;
  record["p95_us"] = way.time_us.p95;
  record["min_us"] = way.time_us.min;
  record["max_us"] = way.time_us.max;
  record["bandwidth_gb_s"] = way.bandwidth;
  record["bus_bandwidth_gb_s"] = way.bus_bandwidth;
  record["iterations"] = way.samples * static_cast<std::size_t>(way.calls_per_sample);
  record["calls_per_sample"] = way.calls_per_sample;
  record["blocks"] = way.blocks;
  record["verified"] = way.verified;
  record["correct"] = way.fault.empty();
  if (!way.fault.empty()) record["fault"] = way.fault;
  if (!way.path.empty()) record["path"] = way.path;
  if (!way.detail.empty()) record["detail"] = way.detail;
}

}  // namespace

RecordWriter::RecordWriter(const Options& options, const RunFacts& facts) {
  if (options.json_path.empty()) return;
  file_.open(options.json_path);
  if (!file_) throw std::runtime_error(fmt::format("cannot write {}", options.json_path));
  shared_ = std::make_unique<json>(shared_keys(options, facts));
}

RecordWriter::~RecordWriter() = default;

void RecordWriter::write(const SizeSummary& row) {
  if (shared_ == nullptr) return;
  for (std::size_t i = 0; i < row.ways.size(); ++i) {
    const WaySummary& way = row.ways[i];
    json record = *shared_;
    record["operation"] = row.operation;
    record["size_bytes"] = row.size_bytes;
    record["way"] = way.way;
    record["ours"] = i == 0;
    if (row.window > 0) record["window"] = row.window;
    if (!way.algorithm.empty()) record["algorithm"] = way.algorithm;
    if (way.why_not.empty()) {
      add_measurement(record, way);
    } else {
      record["not_available"] = way.why_not;
    }
    if (i > 0 && way.against_ours.ratio.value > 0) {
      record["ratio"] = estimate(way.against_ours.ratio);
      record["ours_minus_this_us"] = estimate(way.against_ours.difference);
    }
    if (const WaySummary* best = best_peer(row); i == 0 && best != nullptr) {
      record["best_peer"] = best->way;
      record["best_ratio"] = estimate(best->against_ours.ratio);
    }
    file_ << record.dump() << '\n' << std::flush;
  }
  if (!file_) throw std::runtime_error("the file of --json cannot be written any more");
}

std::string accord_version(const std::string& info_json) {
  const json info = json::parse(info_json, nullptr, false);
  if (info.is_object() && info.contains("version") && info["version"].is_string()) {
    return info["version"];
  }
  return ACCORD_VERSION;
}

std::string accord_commit(const std::string& info_json) {
  const json info = json::parse(info_json, nullptr, false);
  return info.is_object() ? info.value("commit", "") : "";
}

std::optional<bool> under_mps(const std::string& info_json) {
  const json info = json::parse(info_json, nullptr, false);
  if (!info.is_object()) return std::nullopt;
  for (const json& runtime : info.value("runtimes", json::array())) {
    if (runtime.value("name", "") != info.value("default_runtime", "")) continue;
    for (const json& device : runtime.value("devices", json::array()))
      if (device.contains("mps")) return device["mps"].get<bool>();
  }
  return std::nullopt;
}

std::map<std::string, std::string> accord_settings(const std::string& info_json) {
  std::map<std::string, std::string> settings;
  const json info = json::parse(info_json, nullptr, false);
  if (!info.is_object()) return settings;
  for (const json& row : info.value("settings", json::array())) {
    if (row.value("origin", "default") != "default") settings[row["name"]] = row["value"];
  }
  return settings;
}

std::string machine_name(const RunFacts& facts) {
  const std::string processor =
      fmt::format("{} cores ({})", std::thread::hardware_concurrency(), cpu_name());
  if (facts.device_name.empty()) return processor;
  const std::string count = facts.device_count > 0 ? fmt::format("{} x ", facts.device_count) : "";
  return fmt::format("{}{}, {}", count, facts.device_name, processor);
}

std::string driver_version(const std::string& path) {
  std::ifstream file(path);
  std::string version;
  std::getline(file, version);
  return version;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      return line.substr(line.find(": ") + 2);
    }
  }
  return "";
}

}  // namespace accord::bench
