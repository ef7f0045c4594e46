// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows on device memory are not supported yet: a clear error through the window's (or the
// communicator's) handler, on every rank of a collective call, and never a crash. File buffers are
// staged.
#pragma once

#include <mpi.h>

#include <utility>

#include "shim/point_to_point.h"

namespace accord::shim {

inline int refuse_device(MPI_Win win, const char* name) noexcept {
  return raise_on_window(win, Status(StatusCode::unsupported,
                                     std::string(name) + " on device memory is not supported"));
}

template <class S, class D>
int Win_create(void* base, S size, D disp_unit, MPI_Info info, MPI_Comm comm,
               MPI_Win* win) noexcept {
  drain(comm);
  const Region region(engine());
  const CommState* state = comm_state(comm);
  if (state != nullptr && !state->inter) {
    // All ranks refuse together: the others would wait for one that returned alone.
    int refused = size > 0 && device::must_stage(base) ? 1 : 0;
    if (const int code = host::Allreduce(MPI_IN_PLACE, &refused, 1, MPI_INT, MPI_MAX, comm))
      return code;
    if (refused != 0) {
      return raise(comm, Status(StatusCode::unsupported,
                                "MPI_Win_create on device memory is not supported"));
    }
  }
  return host::Win_create(base, size, disp_unit, info, comm, win);
}

inline int Win_attach(MPI_Win win, void* base, MPI_Aint size) noexcept {
  if (size > 0 && device::must_stage(base)) return refuse_device(win, "MPI_Win_attach");
  return host::Win_attach(win, base, size);
}

template <class Call>
int file_transfer(MPI_File fh, Description d, MPI_Status* status, Call call) {
  MPI_Status own;
  MPI_Status* told = status == MPI_STATUS_IGNORE ? &own : status;
  Status staged = d.recv.open();
  if (staged.ok()) staged = d.recv.copy_in();
  if (!staged.ok()) return raise_on_file(fh, staged);
  const Region region(engine());
  if (const int code = call(d.recv.host(), told)) return code;
  return raise_on_file(fh, d.recv.copy_out(completion_of(*told).received_bytes));
}

template <class C, class Call>
int file_read(MPI_File fh, void* buf, C count, MPI_Datatype datatype, MPI_Status* status,
              Call call) noexcept {
  Description d = description_of_recv(buf, count, datatype);
  if (d.valid && d.recv.is_staged()) return file_transfer(fh, std::move(d), status, call);
  const Region region(engine());
  return call(buf, status);
}

template <class C, class Call>
int file_write(MPI_File fh, const void* buf, C count, MPI_Datatype datatype, MPI_Status* status,
               Call call) noexcept {
  Description d;
  d.recv = Description::buffer(buf);
  d.reads(d.recv, count, datatype);
  if (d.valid && d.recv.is_staged()) return file_transfer(fh, std::move(d), status, call);
  const Region region(engine());
  return call(buf, status);
}

// A request made by a file call stands for its buffer too.
template <class C, class Call>
int file_start_read(MPI_File, void* buf, C count, MPI_Datatype datatype, MPI_Request* request,
                    Call call) noexcept {
  return make_request("MPI_File_iread", MPI_COMM_SELF, description_of_recv(buf, count, datatype),
                      Handle::receive, request,
                      [&](const void*, void* recv) { return call(recv); });
}
template <class C, class Call>
int file_start_write(MPI_File, const void* buf, C count, MPI_Datatype datatype,
                     MPI_Request* request, Call call) noexcept {
  return make_request("MPI_File_iwrite", MPI_COMM_SELF, description_of_send(buf, count, datatype),
                      Handle::receive, request,
                      [&](const void* send, void*) { return call(send); });
}

inline int refuse_device_in_file(MPI_File fh, const char* name) noexcept {
  return raise_on_file(fh, Status(StatusCode::unsupported,
                                  std::string(name) + " on device memory is not supported"));
}

}  // namespace accord::shim
