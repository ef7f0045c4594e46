// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Errors inside Accord: a Status is what a fallible function returns. No exception leaves a room's
// public function. Codes of vendor libraries and of the host MPI become a Status in the file that
// called them and nowhere else; the shim turns a Status into an MPI error on the call's own
// communicator.
#pragma once

#include <string>
#include <utility>

namespace accord {

enum class StatusCode {
  ok,
  host_mpi,          // the host MPI returned host_code (and has already called its error handler)
  invalid_argument,  // the caller's mistake
  mismatch,          // ranks of one communicator made different calls
  truncated,         // more was sent than its receiver has room for
  no_memory,
  device_error,  // an accelerator's driver reported an error
  network,       // a transfer between nodes has failed, or its other end is gone
  unsupported,
  out_of_window,  // a one-sided operation beyond what its target has exposed
  no_epoch,       // a one-sided call out of its place
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  // A return code of the host MPI; 0 (MPI_SUCCESS in every implementation) is ok.
  static Status from_host(int host_code) {
    Status status;
    if (host_code != 0) {
      status.code_ = StatusCode::host_mpi;
      status.host_code_ = host_code;
    }
    return status;
  }

  bool ok() const noexcept { return code_ == StatusCode::ok; }
  StatusCode code() const noexcept { return code_; }
  int host_code() const noexcept { return host_code_; }
  const std::string& message() const noexcept { return message_; }

 private:
  StatusCode code_ = StatusCode::ok;
  int host_code_ = 0;
  std::string message_;
};

// Keeps the first error of a sequence whose later steps (releasing, copying the rest) must run all
// the same.
inline void keep_first(Status& kept, Status next) {
  if (kept.ok()) kept = std::move(next);
}

}  // namespace accord

// Returns from the calling function when `expression` (a Status) is an error: the only flow macro.
#define ACCORD_TRY(expression)                                                      \
  do {                                                                              \
    if (::accord::Status accord_try_status = (expression); !accord_try_status.ok()) \
      return accord_try_status;                                                     \
  } while (false)
