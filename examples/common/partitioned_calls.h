// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned communication in applications. They are not linked with Accord, so they look for the
// functions that an MPI alone may lack.
#pragma once

#include <accord/partitioned.h>
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "device.h"
#include "options.h"

namespace app {

struct PartitionedCalls {
  using SendInit = int (*)(const void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info,
                           MPI_Request*);
  using ReceiveInit = int (*)(void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info,
                              MPI_Request*);

  SendInit send_init = find<SendInit>("MPI_Psend_init");
  ReceiveInit receive_init = find<ReceiveInit>("MPI_Precv_init");
  decltype(&MPIX_Pallreduce_init) allreduce_init =
      find<decltype(&MPIX_Pallreduce_init)>("MPIX_Pallreduce_init");
  decltype(&MPIX_Prequest_create) create =
      find<decltype(&MPIX_Prequest_create)>("MPIX_Prequest_create");
  decltype(&MPIX_Pbuf_prepare) prepare = find<decltype(&MPIX_Pbuf_prepare)>("MPIX_Pbuf_prepare");
  decltype(&MPIX_Pbuf_prepare_all) prepare_all =
      find<decltype(&MPIX_Pbuf_prepare_all)>("MPIX_Pbuf_prepare_all");

  bool are_there() const {
    return send_init != nullptr && receive_init != nullptr && allreduce_init != nullptr &&
           create != nullptr && prepare != nullptr && prepare_all != nullptr;
  }

 private:
  template <class Function>
  static Function find(const char* symbol) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, symbol));
  }
};

// The functions may be there and carry no device memory, as where there is no accelerator.
inline bool carries_partitions() {
  const PartitionedCalls calls;
  if (device_name() == "host" || !calls.are_there()) return false;
  const Array<float> memory(1);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = calls.send_init(memory.data(), 1, 1, MPI_FLOAT, MPI_PROC_NULL, 0, comm,
                                   MPI_INFO_NULL, &request);
  if (code == MPI_SUCCESS) MPI_Request_free(&request);
  MPI_Comm_free(&comm);
  return code == MPI_SUCCESS;
}

// `ways` without "partitioned" where that cannot be, which rank 0 tells. Throws Refusal if none is
// left.
inline Words possible_ways(const char* app, Words ways, int rank) {
  const std::string partitioned = "partitioned";
  if (std::count(ways.begin(), ways.end(), partitioned) == 0 || carries_partitions()) return ways;
  const char* const why = "--way partitioned takes Accord, and device memory that it carries";
  ways.erase(std::remove(ways.begin(), ways.end(), partitioned), ways.end());
  if (ways.empty()) throw Refusal(why);
  if (rank == 0) std::fprintf(stderr, "%s: %s\n", app, why);
  return ways;
}

}  // namespace app
