// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One failure of a run, wherever it may be. A rank whose call gets an error stops, as the default
// error handler of MPI has it, and so does the one that is chosen to: its process is gone.
#pragma once

namespace accord::model {

struct Failing {
  enum class Kind {
    none,
    copy,       // a copy, a kernel or a begin of an inbox exchange of a device
    memory,     // an allocation, of the library's own, on a device or the host
    host_call,  // a call that the library makes of the host MPI on its own account
    rank,       // a rank stops between two calls, of which it may have requests under way
  };
  Kind kind = Kind::none;
  int rank_of = 0;  // host_call, rank: whose
  long after = 0;   // so many that do not fail
};

// Unwinds the program of such a rank.
struct RankStopped {};

}  // namespace accord::model
