// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The options of an application, each of the form `--name value`, and how its main program ends.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace app {

using Words = std::vector<std::string>;

// What is asked for cannot be done. All ranks throw it alike.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Options {
 public:
  // `values` has all names with their defaults. All members throw Refusal, which says which word is
  // wrong.
  Options(int argc, char** argv, std::map<std::string, std::string> values)
      : values_(std::move(values)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (values_.count(name) == 0) throw Refusal("no option " + name);
      if (i + 1 == argc) throw Refusal(name + " needs a value");
      values_[name] = argv[i + 1];
    }
  }

  // One of `words`.
  std::string word(const std::string& name, const Words& words) const {
    return checked(name, words, values_.at(name));
  }
  // Some of `words`, with commas between them.
  Words several(const std::string& name, const Words& words) const {
    Words given = list(name);
    for (const std::string& one : given) checked(name, words, one);
    return given;
  }
  int number(const std::string& name, int least = 1, int most = INT_MAX) const {
    return checked_number(name, values_.at(name), least, most);
  }
  std::vector<int> numbers(const std::string& name, int least = 1, int most = INT_MAX) const {
    std::vector<int> all;
    for (const std::string& one : list(name)) all.push_back(checked_number(name, one, least, most));
    return all;
  }
  // Sizes such as 64x64x32, with commas between them.
  std::vector<std::array<int, 3>> sizes(const std::string& name) const {
    std::vector<std::array<int, 3>> all;
    for (const std::string& given : list(name)) {
      std::array<int, 3> size{};
      char rest = 0;
      if (std::sscanf(given.c_str(), "%dx%dx%d%c", &size[0], &size[1], &size[2], &rest) != 3 ||
          *std::min_element(size.begin(), size.end()) < 1)
        refuse(name, "NXxNYxNZ", given);
      all.push_back(size);
    }
    return all;
  }
  // All that stands between commas, at least one word.
  Words list(const std::string& name) const {
    Words words;
    std::istringstream stream(values_.at(name));
    for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
    if (words.empty()) throw Refusal(name + " needs a value");
    return words;
  }
  [[noreturn]] static void refuse(const std::string& name, const std::string& takes,
                                  const std::string& given) {
    throw Refusal(name + " takes " + takes + ", not " + given);
  }

 private:
  static const std::string& checked(const std::string& name, const Words& words,
                                    const std::string& given) {
    if (std::find(words.begin(), words.end(), given) != words.end()) return given;
    std::string all;
    for (const std::string& one : words) all += (all.empty() ? "" : ", ") + one;
    refuse(name, all, given);
  }
  static int checked_number(const std::string& name, const std::string& given, int least,
                            int most) {
    int value = 0;
    char rest = 0;
    if (std::sscanf(given.c_str(), "%d%c", &value, &rest) == 1 && value >= least && value <= most)
      return value;
    const std::string end = most == INT_MAX ? " on" : " to " + std::to_string(most);
    refuse(name, "a number from " + std::to_string(least) + end, given);
  }

  std::map<std::string, std::string> values_;
};

// The main program: `read(argc, argv, ranks)` returns what is to be solved, and `solve(that, rank)`
// whether all results are right. Exit status: 1 for a wrong result, 2 for a Refusal, or any error
// of `read`, which all ranks have alike. Another error of one rank ends the job, since the others
// would wait for it.
template <class Read, class Solve>
int run_program(int argc, char** argv, const char* name, const char* help, const Read& read,
                const Solve& solve) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto refuse = [&](const std::exception& error) {
    if (rank == 0) std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  };
  const auto run = [&] {
    if (argc > 1 && std::strcmp(argv[1], "--help") == 0) {
      if (rank == 0) std::fputs(help, stdout);
      return 0;
    }
    decltype(read(argc, argv, ranks)) problems;
    try {
      problems = read(argc, argv, ranks);
    } catch (const std::exception& error) {
      return refuse(error);
    }
    try {
      return solve(problems, rank) ? 0 : 1;
    } catch (const Refusal& error) {
      return refuse(error);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: rank %d: %s\n", name, rank, error.what());
      MPI_Abort(MPI_COMM_WORLD, 3);
      return 3;
    }
  };
  const int code = run();
  MPI_Finalize();
  return code;
}

}  // namespace app
