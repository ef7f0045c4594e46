// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Buffers of files are staged.
#pragma once

#include <mpi.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "shim/point_to_point.h"

namespace accord::shim {

// What a status says of a read is for the user alone: at the end of a file Open MPI and MPICH tell
// of more than there was, Open MPI's requests leave parts of it unset, and a read that has failed
// may have none (has_error_function). So its shadow gets the old content first, and all of it is
// copied out.
template <class C>
Description description_of_read(void* buf, C count, MPI_Datatype datatype) {
  Description d;
  d.recv = Description::buffer(buf);
  d.writes(d.recv, count, datatype);
  d.recv.preserve();
  return d;
}
template <class C>
Description description_of_write(const void* buf, C count, MPI_Datatype datatype) {
  Description d;
  d.recv = Description::buffer(buf);
  d.reads(d.recv, count, datatype);
  return d;
}

inline Status open_transfer(Description& d) {
  ACCORD_TRY(d.recv.open());
  return d.recv.copy_in();
}

template <class Call>
int file_transfer(MPI_File fh, Description d, MPI_Status* status, Call call) {
  if (const Status opened = open_transfer(d); !opened.ok()) return raise_on_file(fh, opened);
  const Region region(engine());
  if (const int code = call(d.recv.host(), status)) return code;
  return raise_on_file(fh, d.recv.copy_out());
}

template <class C, class Call>
int file_read(MPI_File fh, void* buf, C count, MPI_Datatype datatype, MPI_Status* status,
              Call call) {
  Description d = description_of_read(buf, count, datatype);
  if (d.valid && d.recv.is_staged()) return file_transfer(fh, std::move(d), status, call);
  const Region region(engine());
  return call(buf, status);
}

template <class C, class Call>
int file_write(MPI_File fh, const void* buf, C count, MPI_Datatype datatype, MPI_Status* status,
               Call call) {
  Description d = description_of_write(buf, count, datatype);
  if (d.valid && d.recv.is_staged()) return file_transfer(fh, std::move(d), status, call);
  const Region region(engine());
  return call(buf, status);
}

// A transfer that the user holds as a request.
class TrackedTransfer final : public core::Tracked {
 public:
  TrackedTransfer(MPI_File file, Description d) : description_(std::move(d)), file_(file) {
    context = to_bits(MPI_COMM_SELF);
  }
  Status finish(const core::Completion&) override {
    return Status::from_host(raise_on_file(file_, description_.recv.copy_out(), site));
  }
  bool keeps_order() const noexcept override { return true; }

 private:
  Description description_;
  MPI_File file_;
};

template <class Call>
int start_transfer(MPI_File fh, Description d, MPI_Request* request, Call call) {
  // One of host memory keeps the order with the others, where these may be of devices.
  if (!d.valid || request == nullptr || (!d.recv.is_staged() && !job.has_devices)) {
    if (!engine().idle()) engine().progress();
    return call(d.recv.user());
  }
  if (d.recv.is_staged()) coll::set_last_path("staged");
  if (const Status opened = open_transfer(d); !opened.ok()) return raise_on_file(fh, opened);
  const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
  const int code = call(d.recv.host());
  if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
    *request = before;  // no request: the call has failed, and see has_error_function
    return code;
  }
  return hand_over(Handle::receive, *request, std::make_shared<TrackedTransfer>(fh, std::move(d)));
}

template <class C, class Call>
int file_start_read(MPI_File fh, void* buf, C count, MPI_Datatype datatype, MPI_Request* request,
                    Call call) {
  return start_transfer(fh, description_of_read(buf, count, datatype), request, call);
}
template <class C, class Call>
int file_start_write(MPI_File fh, const void* buf, C count, MPI_Datatype datatype,
                     MPI_Request* request, Call call) {
  return start_transfer(fh, description_of_write(buf, count, datatype), request, call);
}

// The buffers of split collectives, of which a file has one at a time. Thread-safe.
class SplitTransfers {
 public:
  void begin(MPI_File file, Description d);
  // That of the call which ends now, if it is one of ours.
  std::optional<Description> end(MPI_File file);

 private:
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::map<std::uint64_t, Description> by_file_;
};
SplitTransfers& split_transfers();

template <class Call>
int split_begin(MPI_File fh, Description d, Call call) {
  if (!d.valid || !d.recv.is_staged()) {
    const Region region(engine());
    return call(d.recv.user());
  }
  if (const Status opened = open_transfer(d); !opened.ok()) return raise_on_file(fh, opened);
  const Region region(engine());
  const int code = call(d.recv.host());
  if (code == MPI_SUCCESS) split_transfers().begin(fh, std::move(d));
  return code;
}

template <class C, class Call>
int file_split_read(MPI_File fh, void* buf, C count, MPI_Datatype datatype, Call call) {
  return split_begin(fh, description_of_read(buf, count, datatype), call);
}
template <class C, class Call>
int file_split_write(MPI_File fh, const void* buf, C count, MPI_Datatype datatype, Call call) {
  return split_begin(fh, description_of_write(buf, count, datatype), call);
}

template <class Buffer, class Call>
int file_split_end(MPI_File fh, Buffer* buf, Call call) {
  std::optional<Description> d = split_transfers().end(fh);
  const Region region(engine());
  const int code = call(d ? static_cast<Buffer*>(d->recv.host()) : buf);
  if (!d || code != MPI_SUCCESS) return code;
  return raise_on_file(fh, d->recv.copy_out());
}

}  // namespace accord::shim
