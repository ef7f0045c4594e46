// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Receives that are none of our business, asked before anything else is done for them: programs
// receive into host memory far more often than onto devices.
#pragma once

#include <mpi.h>

#include <atomic>

#include "shim/collectives.h"
#include "shim/messages.h"
#include "shim/posted_receives.h"

namespace accord::shim {

// The host MPI may take a receive as it is: nothing of ours has to progress or to be staged, and no
// header may come.
template <class C>
bool passes_receive(const void* buf, C count, MPI_Datatype datatype, Lasts lasts) {
  return engine().idle() && !has_posted_receives() && !needs_us(buf) &&
         !must_look_after(count, datatype, lasts);
}

// After a blocking receive that nobody has looked after: see give_up_cut_off.
template <class C>
int after_host_receive(int code, void* buf, C count, MPI_Datatype datatype) {
  int error_class = MPI_SUCCESS;
  if (code == MPI_SUCCESS || !listens() || needs_us(buf)) return code;
  (void)host::Error_class(code, &error_class);
  if (error_class == MPI_ERR_TRUNCATE)
    give_up_cut_off(
        has_room_for_header(count, datatype) ? Landing(count, datatype, Lasts::call) : Landing(),
        buf);
  return code;
}

// A blocking receive, under way for as long as this lives, that the host MPI may take as it is.
class HostReceive {
 public:
  template <class C>
  HostReceive(const void* buf, C count, MPI_Datatype datatype) {
    if (messaging.joined && job.has_threads) {
      is_counted_ = true;
      messaging.blind_calls.fetch_add(1);
      // Pairs with the one in attend(): the other thread sees this receive, or this one its device.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    is_granted_ = passes_receive(buf, count, datatype, Lasts::call);
    if (!is_granted_) end();
  }
  ~HostReceive() { end(); }
  HostReceive(const HostReceive&) = delete;
  HostReceive& operator=(const HostReceive&) = delete;

  bool is_granted() const noexcept { return is_granted_; }

 private:
  void end() {
    if (is_counted_) messaging.blind_calls.fetch_sub(1);
    is_counted_ = false;
  }

  bool is_counted_ = false;
  bool is_granted_ = false;
};

}  // namespace accord::shim
