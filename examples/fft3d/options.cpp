// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

namespace fft3d {

const char* const kHelp =
    "fft3d: transforms an array in device memory forward and backward, and checks it\n"
    "  --size NXxNYxNZ    points (128x128x128)\n"
    "  --grid PxQ         ranks along x and y; slab is Rx1, pencil is near a square (slab)\n"
    "  --type TYPE        c2c, or r2c, with real points (c2c)\n"
    "  --reshape HOW      alltoallv, alltoallw (with subarray types), messages, or staged: "
    "messages\n"
    "                     of copies in memory of the CPU (alltoallv)\n"
    "  --repeats N        pairs of transforms that are measured (20)\n"
    "  --memory MEMORY    cuda, accord (accord_malloc), host, or auto, the first that there is\n"
    "Of size, grid, type and reshape there may be several, with commas between them.\n";

namespace {

using Words = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& name, const std::string& takes,
                         const std::string& word) {
  throw std::runtime_error(name + " takes " + takes + ", not " + word);
}

std::array<int, 2> read_grid(const std::string& word, int ranks) {
  std::array<int, 2> grid{ranks, 1};
  char rest = 0;
  if (word == "pencil") {
    grid = {0, 0};
    MPI_Dims_create(ranks, 2, grid.data());
  } else if (word != "slab" &&
             std::sscanf(word.c_str(), "%dx%d%c", &grid[0], &grid[1], &rest) != 2) {
    refuse("--grid", "PxQ, slab or pencil", word);
  }
  if (grid[0] < 1 || grid[1] < 1 || static_cast<long long>(grid[0]) * grid[1] != ranks)
    refuse("--grid", "a grid of " + std::to_string(ranks) + " ranks", word);
  return grid;
}

std::array<int, 3> read_size(const std::string& word) {
  std::array<int, 3> size{};
  char rest = 0;
  if (std::sscanf(word.c_str(), "%dx%dx%d%c", &size[0], &size[1], &size[2], &rest) != 3 ||
      *std::min_element(size.begin(), size.end()) < 1)
    refuse("--size", "NXxNYxNZ", word);
  return size;
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

}  // namespace

Options read_options(int argc, char** argv, int ranks) {
  std::map<std::string, std::string> given = {{"--size", "128x128x128"}, {"--grid", "slab"},
                                              {"--type", "c2c"},         {"--reshape", "alltoallv"},
                                              {"--repeats", "20"},       {"--memory", "auto"}};
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (given.count(name) == 0) throw std::runtime_error("no option " + name);
    if (i + 1 == argc) throw std::runtime_error(name + " needs a value");
    given[name] = argv[i + 1];
  }
  Options options;
  options.memory = one_of({"auto", "cuda", "accord", "host"}, "--memory", given["--memory"]);
  options.repeats = std::atoi(given["--repeats"].c_str());
  if (options.repeats < 1) refuse("--repeats", "a number", given["--repeats"]);
  for (const std::string& size : split(given["--size"]))
    for (const std::string& grid : split(given["--grid"]))
      for (const std::string& type : split(given["--type"]))
        for (const std::string& how : split(given["--reshape"]))
          options.problems.push_back(
              {read_size(size), read_grid(grid, ranks),
               one_of({"c2c", "r2c"}, "--type", type) == "r2c",
               one_of({"alltoallv", "alltoallw", "messages", "staged"}, "--reshape", how)});
  return options;
}

}  // namespace fft3d
