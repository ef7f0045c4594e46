// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/mpi_table.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cctype>
#include <string_view>
#include <vector>

#include "bench/shared_object.h"

namespace accord::bench {
namespace {

// "Allreduce" -> "Iallreduce".
std::string nonblocking_name(std::string name) {
  name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  return "I" + name;
}

// Fills the table from `handle`; `prefix` is "MPI_" or "PMPI_". Returns the first single function
// missing.
std::string fill(MpiTable& table, void* handle, const std::string& prefix) {
  std::string missing;
#define COLLECTIVE(name)                                                            \
  if (!find_function(handle, prefix + #name, table.name.blocking)) missing = #name; \
  find_function(handle, prefix + nonblocking_name(#name), table.name.nonblocking);  \
  find_function(handle, prefix + #name "_init", table.name.persistent);
#define FUNCTION(name) \
  if (!find_function(handle, prefix + #name, table.name)) missing = #name;
#include "bench/mpi_functions.def"
#undef COLLECTIVE
#undef FUNCTION
  return missing;
}

std::vector<std::string> loaded_mpi_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        const std::string_view path = info->dlpi_name;
        const std::string_view file = path.substr(path.rfind('/') + 1);
        if (file.starts_with("libmpi")) {
          static_cast<std::vector<std::string>*>(data)->emplace_back(path);
        }
        return 0;
      },
      &paths);
  return paths;
}

// Libraries of MPI's other languages are called libmpi… too: the one meant defines PMPI_Init
// itself.
bool defines_mpi(void* handle, const std::string& path) {
  Dl_info info{};
  void* symbol = dlsym(handle, "PMPI_Init");
  return symbol != nullptr && dladdr(symbol, &info) != 0 && info.dli_fname != nullptr &&
         path == info.dli_fname;
}

}  // namespace

MpiTable program_mpi() {
  MpiTable table;
  fill(table, RTLD_DEFAULT, "MPI_");
  return table;
}

bool find_host_mpi(HostMpi& host, std::string& why_not) {
  for (const std::string& path : loaded_mpi_libraries()) {
    void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr || !defines_mpi(handle, path)) continue;
    const std::string missing = fill(host.table, handle, "PMPI_");
    if (!missing.empty()) {
      why_not = fmt::format("{} lacks PMPI_{}", path, missing);
      return false;
    }
    host.path = path;
    int (*query)() = nullptr;
    host.cuda_support = find_function(handle, "MPIX_Query_cuda_support", query) && query() != 0;
    return true;
  }
  why_not = "no loaded library called libmpi… defines PMPI_Init";
  return false;
}

}  // namespace accord::bench
