// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "options.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "memory.h"

namespace accord::conformance {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

// "64", "64K", "1M", "1G".
bool parse_size(const std::string& text, std::size_t& size_bytes) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str()) return false;
  const std::string_view unit = end;
  int shift = 0;
  if (unit == "K")
    shift = 10;
  else if (unit == "M")
    shift = 20;
  else if (unit == "G")
    shift = 30;
  else if (!unit.empty())
    return false;
  size_bytes = static_cast<std::size_t>(number) << shift;
  return true;
}

void read_size_setting(const char* name, std::size_t& size_bytes) {
  const char* text = std::getenv(name);
  if (text != nullptr) parse_size(text, size_bytes);
}

bool parse_memory(const std::string& text, std::vector<accord_memory>& kinds) {
  for (const std::string& word : split(text)) {
    bool found = false;
    for (int kind = 0; kind < kMemoryKinds; ++kind) {
      if (word != memory_name(static_cast<accord_memory>(kind))) continue;
      kinds.push_back(static_cast<accord_memory>(kind));
      found = true;
    }
    if (!found) return false;
  }
  return !kinds.empty();
}

bool parse_corruption(Corruption& corruption) {
  const char* text = std::getenv("ACCORD_TEST_CONFORMANCE_CORRUPT");
  if (text == nullptr || std::strcmp(text, "0") == 0) return true;
  static constexpr std::pair<std::string_view, Corruption> kWords[] = {
      {"1", Corruption::data},      {"data", Corruption::data},   {"gap", Corruption::gap},
      {"guard", Corruption::guard}, {"input", Corruption::input}, {"hang", Corruption::hang},
      {"crash", Corruption::crash},
  };
  for (const auto& [word, value] : kWords) {
    if (word != text) continue;
    corruption = value;
    return true;
  }
  return false;
}

// One option with its value; false where the value is no good.
bool set_option(const std::string& name, const std::string& value, Options& options) {
  const char* text = value.c_str();
  if (name == "--seed")
    options.seed = std::strtoull(text, nullptr, 10);
  else if (name == "--first")
    options.first = std::strtoll(text, nullptr, 10);
  else if (name == "--count")
    options.count = std::strtoll(text, nullptr, 10);
  else if (name == "--case")
    options.single_case = std::strtoll(text, nullptr, 10);
  else if (name == "--only")
    options.only = split(value);
  else if (name == "--seconds")
    options.seconds = std::strtod(text, nullptr);
  else if (name == "--case-timeout")
    options.case_timeout_s = std::strtod(text, nullptr);
  else if (name == "--max-bytes")
    return parse_size(value, options.bytes_max);
  else if (name == "--max-failures")
    options.failures_max = std::atoi(text);
  else if (name == "--ranks")
    options.ranks = std::atoi(text);
  else if (name == "--memory")
    return parse_memory(value, options.memory);
  else
    return false;
  return !value.empty();
}

}  // namespace

const char* const kUsage =
    "accord_conformance: random legal MPI programs on device memory, checked against the host MPI\n"
    "  --seed N            seed of all cases (1)\n"
    "  --first N --count N cases to run (0, 1000); with --only, N cases of these categories\n"
    "  --case N            run one case\n"
    "  --only A,B          categories: see the list that a wrong one prints; without: all but "
    "partitioned\n"
    "  --memory A,B        kinds of memory used: host, pinned, managed, device (all there are)\n"
    "  --require-device    fail where there is no device memory\n"
    "  --max-bytes SIZE    largest message (1M)\n"
    "  --seconds T         stop after T seconds\n"
    "  --case-timeout T    a case that takes longer is a hang (60)\n"
    "  --max-failures N    stop after N failed cases (20)\n"
    "  --ranks N           refuse to run on another number of ranks\n"
    "  --threads           MPI_THREAD_MULTIPLE, and several threads that call MPI\n"
    "  --verbose           one line a case\n";

std::string parse_options(int argc, char** argv, Options& options) {
  options.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--require-device") {
      options.device_required = true;
      continue;
    }
    if (name == "--threads") {
      options.threads = true;
      continue;
    }
    if (name == "--verbose") {
      options.verbose = true;
      continue;
    }
    std::string value;
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (i + 1 < argc) {
      value = argv[++i];
    }
    if (!set_option(name, value, options))
      return "cannot make sense of '" + name + " " + value + "'";
  }
  read_size_setting("ACCORD_CHUNK_BYTES", options.chunk_bytes);
  read_size_setting("ACCORD_PIPELINE_BYTES", options.pipeline_bytes);
  if (!parse_corruption(options.corruption))
    return "ACCORD_TEST_CONFORMANCE_CORRUPT must be 0, 1, data, gap, guard, input, hang or crash";
  return {};
}

std::string rerun_line(const Options& options, int ranks, std::int64_t case_number) {
  std::string settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("ACCORD_") || text.starts_with("LD_PRELOAD=") ||
        text.starts_with("CUDA_VISIBLE_DEVICES="))
      settings += " " + std::string(text);
  }
  std::string line = "mpiexec -n " + std::to_string(ranks);
  if (!settings.empty()) line += " env" + settings;
  line += " " + options.program + " --seed " + std::to_string(options.seed) + " --case " +
          std::to_string(case_number) + " --ranks " + std::to_string(ranks) + " --max-bytes " +
          std::to_string(options.bytes_max);
  if (options.threads) line += " --threads";
  for (std::size_t i = 0; i < options.memory.size(); ++i)
    line += (i == 0 ? " --memory " : ",") + std::string(memory_name(options.memory[i]));
  return line;
}

}  // namespace accord::conformance
