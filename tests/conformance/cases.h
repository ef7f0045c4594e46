// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The categories of cases. Each is a function of a Run that makes one small legal MPI program; all
// ranks draw the same program from run.global and their own details (layouts, orders, ways to
// complete) from run.local.
#pragma once

#include <vector>

#include "run.h"

namespace accord::conformance {

void case_collective(Run& run);  // one collective, any form
void case_overlap(
    Run& run);            // several collectives and messages in flight, issued in different orders
void case_p2p(Run& run);  // a random message pattern, every mode and way to receive
void case_exchange(Run& run);  // sendrecv and its kin, and ordered blocking calls
void case_requests(Run& run);  // cancel, free, inactive and null requests, status queries
void case_columns(Run& run);   // writes to interleaved parts of one buffer at the same time
void case_reuse(Run& run);     // one collective again and again, on buffers that come and go
void case_pack(Run& run);      // pack, unpack, reduce_local
void case_errors(Run& run);    // wrong arguments: the host MPI's error class, its error handler
void case_window(Run& run);    // windows on device memory: an error, on all ranks
void case_progress(
    Run& run);  // blocking calls while a peer needs progress of our unfinished requests

void case_partitioned(Run& run);  // partitioned messages and collectives, in rounds

struct Category {
  const char* name;
  int weight;
  void (*body)(Run&);
};
const std::vector<Category>& categories();

}  // namespace accord::conformance
