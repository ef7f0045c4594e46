// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/open_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "base/log.h"

namespace accord::device {
namespace {

// Whether all that the headers want to be mapped is in the file. No headers: the linker says so.
bool is_whole(const std::string& path) {
  std::error_code error;
  const auto size_bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  ElfW(Ehdr) header{};
  if (error || !file.read(reinterpret_cast<char*>(&header), sizeof header)) return true;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return true;
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > size_bytes) return false;
  }
  return true;
}

// The first file of that name on the linker's search path; empty: there is none.
std::string find_file(const char* name) {
  void* const program = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo counted{};
  if (program == nullptr || dlinfo(program, RTLD_DI_SERINFOSIZE, &counted) != 0) return {};
  const auto memory =
      std::make_unique<std::max_align_t[]>(counted.dls_size / sizeof(std::max_align_t) + 1);
  auto* const paths = reinterpret_cast<Dl_serinfo*>(memory.get());
  if (dlinfo(program, RTLD_DI_SERINFOSIZE, paths) != 0 ||
      dlinfo(program, RTLD_DI_SERINFO, paths) != 0)
    return {};
  for (unsigned i = 0; i < paths->dls_cnt; ++i) {
    std::string path = fmt::format("{}/{}", paths->dls_serpath[i].dls_name, name);
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path;
  }
  return {};
}

}  // namespace

void* open_library(const char* name, int flags) noexcept {
  if ((flags & RTLD_NOLOAD) == 0) {
    const std::string path = find_file(name);
    if (!path.empty() && !is_whole(path)) {
      log::warn("{} is cut short, and not loaded", path);
      return nullptr;
    }
  }
  return dlopen(name, flags);
}

}  // namespace accord::device
