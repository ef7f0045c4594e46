// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <optional>

namespace accord::bench {
namespace {

const std::map<std::string, Memory> kMemories = {{"host", Memory::host},
                                                 {"pinned", Memory::pinned},
                                                 {"managed", Memory::managed},
                                                 {"device", Memory::device}};
const std::map<std::string, Form> kForms = {{"blocking", Form::blocking},
                                            {"nonblocking", Form::nonblocking},
                                            {"persistent", Form::persistent}};
const std::map<std::string, ProgressMode> kProgress = {
    {"auto", ProgressMode::automatic}, {"on", ProgressMode::on}, {"off", ProgressMode::off}};

const std::map<std::string, std::optional<Memory>> kOptionalMemories(kMemories.begin(),
                                                                     kMemories.end());

std::optional<std::size_t> parse_size(const std::string& text) {
  std::size_t end = 0;
  unsigned long long value = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  try {
    value = std::stoull(text, &end);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::string suffix = text.substr(end);
  for (const char* tail : {"iB", "B"}) {
    if (suffix.size() >= 1 && suffix.ends_with(tail)) {
      suffix.resize(suffix.size() - std::string(tail).size());
      break;
    }
  }
  const std::map<std::string, int> shifts = {{"", 0},   {"k", 10}, {"K", 10}, {"m", 20},
                                             {"M", 20}, {"g", 30}, {"G", 30}};
  const auto shift = shifts.find(suffix);
  if (shift == shifts.end() || value > (~0ULL >> shift->second)) return std::nullopt;
  return static_cast<std::size_t>(value << shift->second);
}

// An option whose value is a size in bytes with an optional K, M or G.
void add_size(CLI::App& app, const std::string& name, std::size_t& size_bytes,
              const std::string& text) {
  app.add_option_function<std::string>(
         name,
         [&size_bytes, name](const std::string& value) {
           const auto parsed = parse_size(value);
           if (!parsed) throw CLI::ValidationError(name, "is no size: " + value);
           size_bytes = *parsed;
         },
         text)
      ->type_name("BYTES")
      ->default_str(size_text(size_bytes));
}

std::string joined(const std::vector<std::string>& words, const char* separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

// An option whose value is one of the words of `choices`.
template <class Value>
void add_choice(CLI::App& app, const std::string& name, Value& target,
                const std::map<std::string, Value>& choices, const std::string& text) {
  std::vector<std::string> words;
  for (const auto& choice : choices) words.push_back(choice.first);
  app.add_option_function<std::string>(
         name,
         [&target, choices, words, name](const std::string& word) {
           const auto choice = choices.find(word);
           if (choice == choices.end()) {
             throw CLI::ValidationError(name, word + " is not one of " + joined(words, "|"));
           }
           target = choice->second;
         },
         text)
      ->type_name(joined(words, "|"));
}

// The same for names that stay text.
CLI::Option* named(CLI::Option* option, const std::vector<std::string>& names) {
  return option->type_name("NAME")->check(CLI::IsMember(names).description(""));
}

// Replaces "all" by every operation and drops repetitions.
std::vector<std::string> expand_operations(const std::vector<std::string>& given,
                                           const std::vector<std::string>& known) {
  std::vector<std::string> expanded;
  for (const auto& name : given) {
    const auto names = name == "all" ? known : std::vector<std::string>{name};
    for (const auto& one : names) {
      if (std::find(expanded.begin(), expanded.end(), one) == expanded.end()) {
        expanded.push_back(one);
      }
    }
  }
  return expanded;
}

struct MemoryChoice {
  Memory both = Memory::host;
  std::optional<Memory> send, recv;
};

void add_what(CLI::App& app, Options& options, MemoryChoice& memory, const KnownNames& names) {
  auto operations = names.operations;
  operations.push_back("all");
  named(app.add_option("operation", options.operations, "what to measure; several, or all"),
        operations);
  add_size(app, "--min", options.size_bytes_min,
           "smallest size: per rank; per pair of ranks for the all-to-all forms; of the whole "
           "vector for the reduce-scatter forms");
  add_size(app, "--max", options.size_bytes_max, "largest size");
  app.add_option("--factor", options.size_factor, "each size is this many times the last")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 20).description(""))
      ->capture_default_str();
  add_choice(app, "--memory", memory.both, kMemories, "kind of memory of both buffers");
  add_choice(app, "--send-memory", memory.send, kOptionalMemories, "... of the send buffer only");
  add_choice(app, "--recv-memory", memory.recv, kOptionalMemories,
             "... of the receive buffer only");
  named(app.add_option("--type", options.type, "element type"), names.types)->capture_default_str();
  named(app.add_option("--op", options.op, "reduction of the operations that reduce"), names.ops)
      ->capture_default_str();
  add_choice(app, "--form", options.form, kForms,
             "form of the MPI call; bandwidth is always nonblocking");
  named(app.add_option("--peer", options.peers, "other ways to measure, interleaved with ours"),
        names.peers);
  app.add_option("--algorithm", options.algorithms,
                 "algorithms of Accord to measure beside the one that it would take, by the names "
                 "of ACCORD_ALGORITHM")
      ->type_name("NAME");
  app.add_option("--plan", options.plan_path,
                 "measure the points of this file instead, one a line: operation, size in bytes, "
                 "algorithms");
}

void add_how(CLI::App& app, Options& options) {
  app.add_option("--iterations", options.iterations,
                 "timed calls per size and way (default: as many as --seconds allows)")
      ->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "untimed calls first (default: 20, fewer when large)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch", options.batch,
                 "calls timed together as one sample (default: up to 100 for calls of less than "
                 "30 us that synchronise all ranks, else 1)")
      ->check(CLI::PositiveNumber);
  app.add_option("--window", options.window,
                 "messages in flight of the bandwidth tests, at most; fewer where they are long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", options.seconds_per_size, "time for one size, all ways together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--gap-us", options.gap_us,
                 "microseconds of other work on the CPU before each call, not counted")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--give-up", options.give_up,
                 "after the warm-up, leave a way that takes so many times as long as the fastest "
                 "(0: never)")
      ->check(CLI::NonNegativeNumber);
  add_size(app, "--memory-max", options.memory_bytes_max,
           "main memory a rank may take; larger sizes are left out (0: 70 % of what is free)");
  app.add_flag_callback(
      "--verify", [&options] { options.verify = Verify::on; }, "check the results (default)");
  app.add_flag_callback(
      "--no-verify", [&options] { options.verify = Verify::off; }, "do not check the results");
  app.add_option("--json", options.json_path,
                 "write one JSON record per size and way to this file");
  add_choice(app, "--progress", options.progress, kProgress,
             "progress on stderr; auto: on a terminal");
  app.add_option("--library", options.library_path,
                 "libaccord.so, for memory of the accelerator when Accord is not preloaded")
      ->envname("ACCORD_LIBRARY");
}

}  // namespace

ParsedOptions parse_options(const std::vector<std::string>& arguments, const KnownNames& names) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  MemoryChoice memory;
  CLI::App app("MPI benchmark: time of the slowest rank, results verified.", "accord_bench");
  const std::string lists =
      "operations: " + joined(names.operations) + "\ntypes: " + joined(names.types) +
      "\nreductions: " + joined(names.ops) + "\npeers: " + joined(names.peers);
  app.footer(lists);
  bool list = false;
  app.add_flag("--list", list, "print the names of operations, types, reductions and peers");
  add_what(app, options, memory, names);
  add_how(app, options);
  // Records are read elsewhere: where the program lies on this machine is nothing to them.
  std::vector<std::string> words = arguments;
  if (!words.empty()) words[0] = words[0].substr(words[0].rfind('/') + 1);
  options.command = joined(words);

  // CLI11 takes the arguments in reverse order, without the program's name.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  if (!reversed.empty()) reversed.pop_back();
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    parsed.exit_code = 0;
    parsed.message = app.help();
    return parsed;
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = 2;
    parsed.message = fmt::format("accord_bench: {} (--help shows the options)\n", error.what());
    return parsed;
  }
  if (list) {
    parsed.exit_code = 0;
    parsed.message = lists + "\n";
    return parsed;
  }
  if (options.operations.empty() && options.plan_path.empty()) {
    parsed.exit_code = 2;
    parsed.message = "accord_bench: no operation given; --list names them\n";
    return parsed;
  }
  options.operations = expand_operations(options.operations, names.operations);
  options.send_memory = memory.send.value_or(memory.both);
  options.recv_memory = memory.recv.value_or(memory.both);
  if (options.size_bytes_min == 0) options.size_bytes_min = 1;
  if (options.size_bytes_min > options.size_bytes_max) {
    parsed.exit_code = 2;
    parsed.message = "accord_bench: --min is larger than --max\n";
  }
  return parsed;
}

const char* to_text(Form form) {
  switch (form) {
    case Form::blocking:
      return "blocking";
    case Form::nonblocking:
      return "nonblocking";
    case Form::persistent:
      return "persistent";
  }
  return "";
}

const char* to_text(Memory memory) {
  switch (memory) {
    case Memory::host:
      return "host";
    case Memory::pinned:
      return "pinned";
    case Memory::managed:
      return "managed";
    case Memory::device:
      return "device";
  }
  return "";
}

std::string size_text(std::size_t size_bytes) {
  struct Unit {
    int shift;
    char letter;
  };
  for (const Unit unit : {Unit{30, 'G'}, Unit{20, 'M'}, Unit{10, 'K'}}) {
    const std::size_t one = std::size_t{1} << unit.shift;
    if (size_bytes >= one && size_bytes % one == 0) {
      return fmt::format("{}{}", size_bytes >> unit.shift, unit.letter);
    }
  }
  return fmt::format("{}", size_bytes);
}

}  // namespace accord::bench
