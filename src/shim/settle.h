// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What is done when the host MPI has completed requests of ours: their work is finished, and the
// status tells what the host MPI does not know.
#pragma once

#include <mpi.h>

#include <exception>
#include <vector>

#include "shim/completion.h"
#include "shim/kept_handles.h"
#include "shim/shim.h"
#include "shim/tracked_message.h"
#include "shim/watch.h"

namespace accord::shim {

// Whether a request whose completion has been told is the user's to complete once more.
using Ended = core::Requests::Ended;

// Finishes one request the host MPI has completed; `code` is what it returned for this request.
inline int settle(const Watched& one, MPI_Status& status, int code,
                  Ended ended = Ended::completed) {
  core::MessageInfo info;
  int ours = MPI_SUCCESS;
  // What has nothing to bring into place waits for the call that completes it, with its error.
  if (ended == Ended::completed || !one.work->message(info)) {
    core::Completion completion;
    if (code == MPI_SUCCESS) {
      completion = completion_of(status);
    } else {
      completion.failed = true;
    }
    const auto comm = from_bits<MPI_Comm>(one.work->context);
    const Status finished = requests().finish(one.bits, one.work, completion, ended);
    free_kept_handles();
    ours = raise(comm, finished, one.work->site);
  }
  // MPICH 5.0.2 forgets the status of a persistent request when it has told it.
  if (auto& facts = one.work->facts; facts && !facts->has_origin) {
    facts->source = status.MPI_SOURCE;
    facts->tag = status.MPI_TAG;
    facts->has_origin = true;
  }
  if (one.work->message(info)) correct(status, info);
  one.work->is_told = ended == Ended::kept && one.work->persistent;
  return code != MPI_SUCCESS ? code : ours;
}

// The same for one that is through without the host MPI, as one of an array.
inline int settle_early(const Watched& one, int& index, MPI_Status& status,
                        Ended ended = Ended::completed) {
  index = one.index;
  int code = MPI_SUCCESS;
  // Where the host MPI writes nothing, what the caller had there before must not be told.
  (void)host::Status_set_elements_x(&status, MPI_BYTE, 0);
  (void)host::Status_set_cancelled(&status, 0);
  if (one.work->is_told && ended == Ended::completed) {
    auto request = from_bits<MPI_Request>(one.bits);
    code = host::Wait(&request, &status);
  }
  return settle(one, status, code, ended);
}
inline int settle_early_of_some(const Watched& one, int& index, MPI_Status& status,
                                Ended ended = Ended::completed) {
  status.MPI_ERROR = settle_early(one, index, status, ended);
  return status.MPI_ERROR == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_IN_STATUS;
}

// Blocks in the host MPI when nothing of ours needs progress, else polls the testing form: also for
// any of several where one may be fetched for long while another one comes.
// `settle` gets the code of either, before what other operations have thrown meanwhile is.
enum class WaitsFor { all, any };
template <class Native, class Poll, class Settle>
int complete(const Watch& watched, WaitsFor waits_for, Native native, Poll poll, Settle settle) {
  if (engine().idle() && !watched.has_early() && !has_posted_receives() &&
      (waits_for == WaitsFor::all || !watched.may_come_from_afar())) {
    int code = MPI_SUCCESS;
    {
      const Region region(engine());
      code = native();
    }
    return settle(code);
  }
  core::Engine::Waiting waiting(engine());
  int code = MPI_SUCCESS;
  for (bool done = false;;) {
    waiting.progress();
    code = poll(done);
    if (done || code != MPI_SUCCESS) break;
    engine().port().pause();
  }
  code = settle(code);
  waiting.end();
  return code;
}

// Statuses to read from: the caller's, or our own where they are ignored but needed.
class Statuses {
 public:
  Statuses(MPI_Status* given, int count, bool needed) : pointer_(given) {
    if (given != MPI_STATUSES_IGNORE || !needed) return;
    own_.resize(static_cast<std::size_t>(count));
    pointer_ = own_.data();
  }
  MPI_Status* get() { return pointer_; }

 private:
  std::vector<MPI_Status> own_;
  MPI_Status* pointer_;
};

// After a call that completed (some of) an array; `status_of` maps a watched request to its status,
// or null when it is not among the completed ones. An error of ours becomes the array call's error.
// Where the program's error handler throws, the others are finished first.
template <class StatusOf>
int settle_array(const Watch& watched, int code, StatusOf status_of,
                 Ended ended = Ended::completed) {
  int result = code;
  std::exception_ptr thrown;
  for (const Watched& one : watched) {
    MPI_Status* status = status_of(one.index);
    if (status == nullptr) continue;
    const int own_code = code == MPI_ERR_IN_STATUS ? status->MPI_ERROR : MPI_SUCCESS;
    if (own_code == MPI_ERR_PENDING) continue;
    int settled = MPI_ERR_OTHER;
    try {
      settled = settle(one, *status, own_code, ended);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (settled == own_code) continue;
    status->MPI_ERROR = settled;
    result = MPI_ERR_IN_STATUS;
  }
  if (thrown) std::rethrow_exception(thrown);
  return result;
}

// A call of the host MPI for an array, which the program's error handler may throw out of: once the
// host MPI has returned (thrown.h), so that statuses and all are there.
template <class Call, class StatusOf>
int or_settle(const Watch& watched, Call call, StatusOf status_of) try {
  return call();
} catch (...) {
  (void)settle_array(watched, MPI_ERR_IN_STATUS, [&](int index) {
    return watched.is_over(index) ? status_of(index) : nullptr;
  });
  throw;
}

inline bool settled_as_array(int code) { return code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS; }

}  // namespace accord::shim
