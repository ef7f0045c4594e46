// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What programs read: JSON lines, one object for each size and way. README.md lists the keys. Free
// of MPI.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "bench/options.h"
#include "bench/summary.h"

namespace accord::bench {

// What all records of a run share.
struct RunFacts {
  int ranks = 1;
  int local_ranks = 1;  // on the node of rank 0
  std::string mpi_library;
  std::string accord_version;                   // empty: Accord is not in the process
  std::string accord_commit;                    // that it was built from, where it knows
  std::map<std::string, std::string> settings;  // of Accord, by name
  bool intercepted = false;
  std::string runtime;
  int device_count = 0;
  std::string device_name;
  std::optional<bool>
      mps;  // whether NVIDIA's MPS serves the devices; none: they know no such thing
};

class RecordWriter {
 public:
  // Throws std::runtime_error when the file cannot be written. An empty path: nothing is written.
  RecordWriter(const Options& options, const RunFacts& facts);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void write(const SizeSummary& row);

 private:
  std::ofstream file_;
  std::unique_ptr<nlohmann::json> shared_;
};

// The version in what accord_info_json gave; that of accord.h where it gives none.
std::string accord_version(const std::string& info_json);
// The commit in it; empty where the build did not know.
std::string accord_commit(const std::string& info_json);
// Whether it says that the devices of the default runtime are served by NVIDIA's MPS.
std::optional<bool> under_mps(const std::string& info_json);
// The settings in it that are not left at their defaults.
std::map<std::string, std::string> accord_settings(const std::string& info_json);

// Of this machine, for the records and the first lines of the output. In words: "4 x NVIDIA H200,
// 64 cores (a processor)".
std::string machine_name(const RunFacts& facts);
std::string host_name();
// Of NVIDIA's kernel driver, "580.95.05"; empty where there is none.
std::string driver_version(const std::string& path = "/sys/module/nvidia/version");
std::string cpu_name();

}  // namespace accord::bench
