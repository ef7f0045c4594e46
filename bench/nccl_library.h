// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// NCCL's C interface, declared here as far as it is used and found at run time, so that building
// needs no CUDA. Values and signatures are those of NCCL 2; functions of later releases may be
// null.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "ccl/nccl_abi.h"

namespace accord::bench {

struct NcclUniqueId {
  char internal[128];
};

using ccl::NcclOp;
using ccl::NcclType;

struct NcclLibrary {
  using Comm = void*;
  using Window = void*;
  using Stream = struct CUstream_st*;

  // Null with the reason in `why_not` when there is none. ACCORD_NCCL_LIBRARY names another file.
  static std::unique_ptr<NcclLibrary> open(std::string& why_not);

  // Throws std::runtime_error with NCCL's words when `code` is an error.
  void check(int code, const char* what) const;
  std::string version() const;  // "2.28.3"
  int version_code() const;     // 22803

  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(NcclUniqueId*) = nullptr;
  int (*comm_init_rank)(Comm*, int, NcclUniqueId, int) = nullptr;
  int (*comm_destroy)(Comm) = nullptr;
  const char* (*get_error_string)(int) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, std::size_t, NcclType, int, Comm, Stream) = nullptr;
  int (*recv)(void*, std::size_t, NcclType, int, Comm, Stream) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, NcclType, int, Comm, Stream) = nullptr;
  int (*reduce)(const void*, void*, std::size_t, NcclType, NcclOp, int, Comm, Stream) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, NcclType, NcclOp, Comm, Stream) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, NcclType, NcclOp, Comm, Stream) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, NcclType, Comm, Stream) = nullptr;

  // Since 2.28.
  int (*all_to_all)(const void*, void*, std::size_t, NcclType, Comm, Stream) = nullptr;
  int (*gather)(const void*, void*, std::size_t, NcclType, int, Comm, Stream) = nullptr;
  int (*scatter)(const void*, void*, std::size_t, NcclType, int, Comm, Stream) = nullptr;

  // Since 2.19 and 2.27.
  int (*mem_alloc)(void**, std::size_t) = nullptr;
  int (*mem_free)(void*) = nullptr;
  int (*window_register)(Comm, void*, std::size_t, Window*, int) = nullptr;
  int (*window_deregister)(Comm, Window) = nullptr;
};

}  // namespace accord::bench
