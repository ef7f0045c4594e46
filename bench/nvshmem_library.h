// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// NVSHMEM's C interface for the host, declared here as far as it is used and found at run time, so
// that building needs neither CUDA nor NVSHMEM. Layouts and signatures are those of NVSHMEM 3 on
// 64-bit machines.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace accord::bench {

// Every structure begins with its version: the number of its layout, and its size.
template <class Structure>
constexpr int nvshmem_version_of() {
  return (1 << 16) + static_cast<int>(sizeof(Structure));
}

struct NvshmemUniqueId {
  int version = nvshmem_version_of<NvshmemUniqueId>();
  char internal[124] = {};
};
struct NvshmemUniqueIdArgs {
  int version = nvshmem_version_of<NvshmemUniqueIdArgs>();
  NvshmemUniqueId* id = nullptr;
  int rank = -1;
  int ranks = -1;
};
struct NvshmemInitArgs {
  int version = nvshmem_version_of<NvshmemInitArgs>();
  NvshmemUniqueIdArgs unique_id;
  char rest[96] = {};
};
struct NvshmemInitAttributes {
  int version = nvshmem_version_of<NvshmemInitAttributes>();
  void* mpi_comm = nullptr;
  NvshmemInitArgs args;
};
static_assert(sizeof(NvshmemUniqueId) == 128);
static_assert(sizeof(NvshmemUniqueIdArgs) == 24 && offsetof(NvshmemUniqueIdArgs, id) == 8);
static_assert(sizeof(NvshmemInitArgs) == 128 && offsetof(NvshmemInitArgs, unique_id) == 8);
static_assert(sizeof(NvshmemInitAttributes) == 144 && offsetof(NvshmemInitAttributes, args) == 16);

class NvshmemLibrary {
 public:
  using Stream = struct CUstream_st*;
  using Team = int;
  // Counts are elements of one block: what one rank sends another, or gets of a reduction.
  using Collective = int (*)(Team, void* dst, const void* src, std::size_t count, Stream);
  using RootedCollective = int (*)(Team, void* dst, const void* src, std::size_t count, int root,
                                   Stream);
  static constexpr Team kWorld = 0;
  static constexpr unsigned kInitWithUniqueId = 1U << 3;
  static constexpr int kIsInitialized = 2;  // and more: with several processes on a GPU

  // Null with the reason in `why_not` when there is none. ACCORD_NVSHMEM_LIBRARY names another
  // file.
  static std::unique_ptr<NvshmemLibrary> open(std::string& why_not);

  std::string version() const;  // "3.4.5"

  // The function that does `what` ("alltoall", "sum_reduce") on elements of a type as the benchmark
  // names it; null when there is none.
  Collective collective(std::string_view what, std::string_view type) const;
  RootedCollective rooted_collective(std::string_view what, std::string_view type) const;

  int (*get_unique_id)(NvshmemUniqueId*) = nullptr;
  int (*set_unique_id)(int rank, int ranks, const NvshmemUniqueId*,
                       NvshmemInitAttributes*) = nullptr;
  int (*init)(unsigned flags, NvshmemInitAttributes*) = nullptr;
  int (*init_status)() = nullptr;
  void (*finalize)() = nullptr;
  void* (*allocate)(std::size_t) = nullptr;  // collective, as is free
  void (*free)(void*) = nullptr;
  void (*barrier_all)(Stream) = nullptr;

 private:
  void* find(std::string_view what, std::string_view type) const;

  void* handle_ = nullptr;
  void (*get_version)(int*, int*, int*) = nullptr;
};

}  // namespace accord::bench
