// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/nvshmem_library.h"

#include <fmt/format.h>

#include <cstdlib>

#include "bench/shared_object.h"

namespace accord::bench {
namespace {

// NVSHMEM's word for a type of the benchmark; empty when it has none.
std::string_view word_of(std::string_view type) {
  struct Row {
    std::string_view type;
    std::string_view word;
  };
  constexpr Row kRows[] = {{"float16", "half"},   {"bfloat16", "bfloat16"}, {"float32", "float"},
                           {"float64", "double"}, {"int8", "int8"},         {"uint8", "uint8"},
                           {"int16", "int16"},    {"uint16", "uint16"},     {"int32", "int32"},
                           {"uint32", "uint32"},  {"int64", "int64"},       {"uint64", "uint64"}};
  for (const Row& row : kRows) {
    if (row.type == type) return row.word;
  }
  return "";
}

}  // namespace

std::unique_ptr<NvshmemLibrary> NvshmemLibrary::open(std::string& why_not) {
  const char* chosen = std::getenv("ACCORD_NVSHMEM_LIBRARY");
  void* handle = chosen != nullptr && *chosen != '\0'
                     ? open_first({chosen}, why_not)
                     : open_first({"libnvshmem_host.so.3"}, why_not);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<NvshmemLibrary>();
  library->handle_ = handle;
  const bool complete =
      find_function(handle, "nvshmemx_vendor_get_version_info", library->get_version) &&
      find_function(handle, "nvshmemx_get_uniqueid", library->get_unique_id) &&
      find_function(handle, "nvshmemx_set_attr_uniqueid_args", library->set_unique_id) &&
      find_function(handle, "nvshmemx_hostlib_init_attr", library->init) &&
      find_function(handle, "nvshmemx_init_status", library->init_status) &&
      find_function(handle, "nvshmemx_hostlib_finalize", library->finalize) &&
      find_function(handle, "nvshmem_malloc", library->allocate) &&
      find_function(handle, "nvshmem_free", library->free) &&
      find_function(handle, "nvshmemx_barrier_all_on_stream", library->barrier_all);
  if (complete) return library;
  why_not = fmt::format("the NVSHMEM library is incomplete: {}", dlerror());
  return nullptr;
}

std::string NvshmemLibrary::version() const {
  int major = 0;
  int minor = 0;
  int patch = 0;
  get_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void* NvshmemLibrary::find(std::string_view what, std::string_view type) const {
  const std::string_view word = word_of(type);
  if (word.empty()) return nullptr;
  return dlsym(handle_, fmt::format("nvshmemx_{}_{}_on_stream", word, what).c_str());
}

NvshmemLibrary::Collective NvshmemLibrary::collective(std::string_view what,
                                                      std::string_view type) const {
  return reinterpret_cast<Collective>(find(what, type));
}

NvshmemLibrary::RootedCollective NvshmemLibrary::rooted_collective(std::string_view what,
                                                                   std::string_view type) const {
  return reinterpret_cast<RootedCollective>(find(what, type));
}

}  // namespace accord::bench
