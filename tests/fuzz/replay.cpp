// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The main() of a fuzz target in an ordinary build: gives it every file of the folders named, once.
// So a target keeps compiling, and what was found once stays mended, without clang.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes);

int main(int count, char** folders) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < count; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(folders[i]))
      files.push_back(entry.path());
  std::ranges::sort(files);
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    std::printf("%s\n", path.filename().c_str());  // the last one is it, where the target aborts
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs replayed\n", files.size());
  return files.empty() ? 1 : 0;
}
