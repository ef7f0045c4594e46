// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "options.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>

namespace moe {

const char* const kHelp =
    "moe: takes tokens to the experts of other ranks and back, and checks what they become\n"
    "  --tokens N         tokens of a rank (4096)\n"
    "  --hidden N         floats of a token (1024)\n"
    "  --experts N        experts of all ranks together (8)\n"
    "  --top K            experts of a token, 1 or 2 (2)\n"
    "  --skew PERCENT     tokens that ask for the same expert, another one in each step (0)\n"
    "  --exchange HOW     alltoallv, messages, or staged, by the program's own copies (alltoallv)\n"
    "  --repeats N        steps that are measured (20)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "Of all but repeats and memory there may be several, with commas between them.\n";

namespace {

using Words = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& name, const std::string& takes,
                         const std::string& word) {
  throw std::runtime_error(name + " takes " + takes + ", not " + word);
}

const std::string& one_of(const Words& words, const std::string& name, const std::string& word) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  std::string all;
  for (const std::string& one : words) all += (all.empty() ? "" : ", ") + one;
  refuse(name, all, word);
}

int read_number(const std::string& name, const std::string& word, int least, int most) {
  int number = 0;
  char rest = 0;
  if (std::sscanf(word.c_str(), "%d%c", &number, &rest) != 1 || number < least || number > most)
    refuse(name, "a number from " + std::to_string(least) + " to " + std::to_string(most), word);
  return number;
}

class Given {
 public:
  Given(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (values_.count(name) == 0) throw std::runtime_error("no option " + name);
      if (i + 1 == argc) throw std::runtime_error(name + " needs a value");
      values_[name] = argv[i + 1];
    }
  }
  const std::string& value(const std::string& name) const { return values_.at(name); }
  Words words(const std::string& name) const {
    Words words;
    std::istringstream stream(value(name));
    for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
    if (words.empty()) throw std::runtime_error(name + " needs a value");
    return words;
  }
  std::vector<int> numbers(const std::string& name, int least, int most) const {
    std::vector<int> numbers;
    for (const std::string& word : words(name))
      numbers.push_back(read_number(name, word, least, most));
    return numbers;
  }

 private:
  std::map<std::string, std::string> values_ = {
      {"--tokens", "4096"}, {"--hidden", "1024"},        {"--experts", "8"},  {"--top", "2"},
      {"--skew", "0"},      {"--exchange", "alltoallv"}, {"--repeats", "20"}, {"--memory", "auto"}};
};

// MPI counts in int, and all tokens may go to one rank.
void check(const Problem& problem, int ranks) {
  if (problem.experts < problem.top)
    refuse("--experts", "as many as --top at least", std::to_string(problem.experts));
  const long long rows = static_cast<long long>(problem.tokens) * problem.top * ranks;
  if (rows > INT_MAX / problem.hidden)
    refuse("--tokens", "less than 2^31 floats of all ranks", std::to_string(problem.tokens));
}

}  // namespace

Options read_options(int argc, char** argv, int ranks) {
  constexpr int kExpertsMax = 4096;  // or numbers would be rounded
  const Given given(argc, argv);
  Options options;
  options.memory = one_of({"auto", "cuda", "accord", "host"}, "--memory", given.value("--memory"));
  options.repeats = read_number("--repeats", given.value("--repeats"), 1, INT_MAX);
  for (const int tokens : given.numbers("--tokens", 1, INT_MAX))
    for (const int hidden : given.numbers("--hidden", 1, INT_MAX))
      for (const int experts : given.numbers("--experts", 1, kExpertsMax))
        for (const int top : given.numbers("--top", 1, kTopMax))
          for (const int skew : given.numbers("--skew", 0, 100))
            for (const std::string& how : given.words("--exchange")) {
              one_of({"alltoallv", "messages", "staged"}, "--exchange", how);
              options.problems.push_back({tokens, hidden, experts, top, skew, how});
              check(options.problems.back(), ranks);
            }
  return options;
}

}  // namespace moe
