// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/nccl_library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "bench/shared_object.h"

namespace accord::bench {

std::unique_ptr<NcclLibrary> NcclLibrary::open(std::string& why_not) {
  const char* chosen = std::getenv("ACCORD_NCCL_LIBRARY");
  void* handle = chosen != nullptr && *chosen != '\0' ? open_first({chosen}, why_not)
                                                      : open_first({"libnccl.so.2"}, why_not);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<NcclLibrary>();
  const bool complete = find_function(handle, "ncclGetVersion", library->get_version) &&
                        find_function(handle, "ncclGetUniqueId", library->get_unique_id) &&
                        find_function(handle, "ncclCommInitRank", library->comm_init_rank) &&
                        find_function(handle, "ncclCommDestroy", library->comm_destroy) &&
                        find_function(handle, "ncclGetErrorString", library->get_error_string) &&
                        find_function(handle, "ncclGroupStart", library->group_start) &&
                        find_function(handle, "ncclGroupEnd", library->group_end) &&
                        find_function(handle, "ncclSend", library->send) &&
                        find_function(handle, "ncclRecv", library->recv) &&
                        find_function(handle, "ncclBroadcast", library->broadcast) &&
                        find_function(handle, "ncclReduce", library->reduce) &&
                        find_function(handle, "ncclAllReduce", library->all_reduce) &&
                        find_function(handle, "ncclReduceScatter", library->reduce_scatter) &&
                        find_function(handle, "ncclAllGather", library->all_gather);
  if (!complete) {
    why_not = fmt::format("the NCCL library is incomplete: {}", dlerror());
    return nullptr;
  }
  find_function(handle, "ncclAlltoAll", library->all_to_all);
  find_function(handle, "ncclGather", library->gather);
  find_function(handle, "ncclScatter", library->scatter);
  find_function(handle, "ncclMemAlloc", library->mem_alloc);
  find_function(handle, "ncclMemFree", library->mem_free);
  find_function(handle, "ncclCommWindowRegister", library->window_register);
  find_function(handle, "ncclCommWindowDeregister", library->window_deregister);
  return library;
}

void NcclLibrary::check(int code, const char* what) const {
  if (code != 0) throw std::runtime_error(fmt::format("{}: {}", what, get_error_string(code)));
}

int NcclLibrary::version_code() const {
  int code = 0;
  check(get_version(&code), "ncclGetVersion");
  return code;
}

std::string NcclLibrary::version() const {
  const int code = version_code();
  // Releases up to 2.8 counted in steps of 1,000, later ones in steps of 10,000.
  const int major_step = code < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", code / major_step, code % major_step / 100, code % 100);
}

}  // namespace accord::bench
