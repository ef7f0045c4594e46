// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What error handlers of the program throw while the shim calls the host MPI. It does not go
// through the host MPI, which may hold a lock (MPICH does with MPI_THREAD_MULTIPLE, for which
// Accord may have asked): it is kept until that call returns. In calls that are not the shim's it
// goes its own way.
#pragma once

namespace accord::host {

// Whether the program has made an error handler. Without one all this costs a look at memory.
inline bool has_handlers = false;

// How many exceptions of error handlers this thread has thrown on. std::uncaught_exceptions() may
// not know of them: the program and the shim may have a C++ library each.
inline thread_local int thrown = 0;

// One call of the host MPI by this thread.
class Guard {
 public:
  Guard() noexcept;
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // Throws what has been kept.
  void end();

  // To be called by whoever has caught an exception of an error handler: false where it is to throw
  // it again.
  static bool keep() noexcept;
};

template <class Call>
int guarded(Call call) {
  if (__builtin_expect(!has_handlers, 1)) return call();
  Guard guard;
  const int code = call();
  guard.end();
  return code;
}

// Calls about requests, in which this thread is inside the host MPI. Functions of the program's
// generalised requests are called from there, where MPICH holds a lock with MPI_THREAD_MULTIPLE:
// nothing of ours may go on then in calls which the host MPI answers.
inline thread_local int completions = 0;

template <class Call>
int completing(Call call) {
  struct Inside {
    Inside() noexcept { ++completions; }
    ~Inside() { --completions; }
  } const inside;
  return guarded(call);
}

}  // namespace accord::host
