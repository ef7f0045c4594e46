// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What programs that compare partitioned collectives on GPUs use of NCCL 2, as its header has it.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <cstdlib>

struct Nccl {
  struct UniqueId {
    char bytes[128];
  };
  static constexpr int kFloat = 7;
  static constexpr int kSum = 0;
  using Reduce = int (*)(const void*, void*, std::size_t, int, int, void*, cudaStream_t);
  int (*get_unique_id)(UniqueId*) = nullptr;
  int (*comm_init_rank)(void**, int, UniqueId, int) = nullptr;
  int (*comm_destroy)(void*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*receive)(void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  Reduce all_reduce = nullptr;
  Reduce reduce_scatter = nullptr;
  int (*reduce)(const void*, void*, std::size_t, int, int, int, void*, cudaStream_t) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, void*, cudaStream_t) = nullptr;
  void* comm = nullptr;

  // Everywhere or nowhere. ACCORD_NCCL_LIBRARY names the library.
  bool open(int rank, int size) {
    const char* const named = std::getenv("ACCORD_NCCL_LIBRARY");
    void* const library = dlopen(named != nullptr ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int found = library != nullptr && load(library, "ncclGetUniqueId", get_unique_id) &&
                load(library, "ncclCommInitRank", comm_init_rank) &&
                load(library, "ncclCommDestroy", comm_destroy) &&
                load(library, "ncclGroupStart", group_start) &&
                load(library, "ncclGroupEnd", group_end) && load(library, "ncclSend", send) &&
                load(library, "ncclRecv", receive) && load(library, "ncclAllReduce", all_reduce) &&
                load(library, "ncclReduceScatter", reduce_scatter) &&
                load(library, "ncclReduce", reduce) && load(library, "ncclBroadcast", broadcast) &&
                load(library, "ncclAllGather", all_gather);
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (found == 0) return false;
    UniqueId id{};
    if (rank == 0) get_unique_id(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    int made = comm_init_rank(&comm, size, id, rank) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return made != 0;
  }

 private:
  template <class Function>
  static bool load(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
};
