// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the user asked for on the command line. Knows neither MPI nor devices; read by everything
// else.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace accord::bench {

enum class Form { blocking, nonblocking, persistent };
enum class Memory { host, pinned, managed, device };  // the values of enum accord_memory
enum class Verify { on, off };
enum class ProgressMode { automatic, on, off };

struct Options {
  std::vector<std::string> operations;
  std::size_t size_bytes_min = 8;
  std::size_t size_bytes_max = std::size_t{1} << 30;
  std::size_t size_factor = 2;
  Memory send_memory = Memory::host;
  Memory recv_memory = Memory::host;
  std::string type = "float32";
  std::string op = "sum";
  Form form = Form::blocking;
  int iterations = 0;  // 0: as many as fit into seconds_per_size
  int warmup = -1;     // -1: by size
  int batch = 0;       // 0: by duration
  double seconds_per_size = 1.0;
  std::size_t window = 64;           // messages in flight of the bandwidth tests, at most
  double gap_us = 0;                 // of other work before each call
  std::size_t memory_bytes_max = 0;  // 0: most of what the machine has free
  Verify verify = Verify::on;
  std::vector<std::string> peers;
  std::vector<std::string> algorithms;  // of Accord, beside the one that it would take
  std::string plan_path;                // single points instead of operations and sizes
  double give_up = 0;  // leave a way that takes so many times as long as the fastest; 0: never
  std::string json_path;
  ProgressMode progress = ProgressMode::automatic;
  std::string library_path;  // libaccord.so
  std::string command;       // the whole command line, for the records
};

struct ParsedOptions {
  Options options;
  int exit_code = -1;   // not -1: say `message` and leave with this code
  std::string message;  // usage, --help or --list
};

// `names` are shown in the help text and checked: every operation, type, reduction and peer there
// is.
struct KnownNames {
  std::vector<std::string> operations, types, ops, peers;
};

ParsedOptions parse_options(const std::vector<std::string>& arguments, const KnownNames& names);

const char* to_text(Form form);
const char* to_text(Memory memory);

// 8, 4K, 1M, 1G: whole binary units where there are any.
std::string size_text(std::size_t size_bytes);

}  // namespace accord::bench
