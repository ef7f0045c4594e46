// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "options.h"

#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>

namespace jacobi {

const char* const kHelp =
    "jacobi: Jacobi's method on a grid in device memory, cut into slabs of rows, and checks it\n"
    "  --grid RxC         rows and columns (64Nx256, 256Nx1024 and 1024Nx4096 of N ranks)\n"
    "  --way WAY          ordinary, staged, or partitioned, which takes Accord (all that there "
    "are)\n"
    "  --sweeps N         sweeps of a run (500)\n"
    "  --residual K       sweeps from one residual to the next, 0 is none (10)\n"
    "  --repeats N        runs that are measured (5)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "There may be several grids and ways, with commas between them.\n";

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

Words split(const std::string& list) {
  Words words;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

int read_number(const std::string& name, const std::string& word, int least) {
  int number = 0;
  char rest = 0;
  if (std::sscanf(word.c_str(), "%d%c", &number, &rest) != 1 || number < least)
    refuse(name, "a number from " + std::to_string(least) + " on", word);
  return number;
}

Shape read_grid(const std::string& word, int ranks) {
  Shape grid;
  char rest = 0;
  if (std::sscanf(word.c_str(), "%dx%d%c", &grid.rows, &grid.columns, &rest) != 2)
    refuse("--grid", "RxC", word);
  if (!is_possible(grid, ranks))
    refuse("--grid", "a row for each rank, and a multiple of 4 columns, of 1024 beyond", word);
  return grid;
}

}  // namespace

Options read_options(int argc, char** argv, int ranks) {
  std::map<std::string, std::string> given = {{"--grid", ""},      {"--way", ""},
                                              {"--sweeps", "500"}, {"--residual", "10"},
                                              {"--repeats", "5"},  {"--memory", "auto"}};
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (given.count(name) == 0) throw std::runtime_error("no option " + name);
    if (i + 1 == argc) throw std::runtime_error(name + " needs a value");
    given[name] = argv[i + 1];
  }
  Options options;
  options.memory = one_of({"auto", "cuda", "accord", "host"}, "--memory", given["--memory"]);
  options.sweeps = read_number("--sweeps", given["--sweeps"], 1);
  options.residual = read_number("--residual", given["--residual"], 0);
  options.repeats = read_number("--repeats", given["--repeats"], 1);
  for (const std::string& way : split(given["--way"]))
    options.ways.push_back(one_of({"ordinary", "staged", "partitioned"}, "--way", way));
  for (const std::string& grid : split(given["--grid"]))
    options.grids.push_back(read_grid(grid, ranks));
  if (options.grids.empty())
    options.grids = {{64 * ranks, 256}, {256 * ranks, 1024}, {1024 * ranks, 4096}};
  return options;
}

}  // namespace jacobi
