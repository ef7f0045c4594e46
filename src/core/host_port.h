// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the core asks of the host MPI, in words that need no mpi.h: the shim implements it over
// PMPI, the model test over a fake MPI that delays, reorders and never progresses by itself. Every
// function returns at once; none waits for a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include "base/status.h"

namespace accord::core {

// The bits of an MPI_Request, whatever its type in the ABI at hand.
using HostRequest = std::uint64_t;

// How a request ended, as its MPI status tells.
struct Completion {
  std::size_t received_bytes = std::numeric_limits<std::size_t>::max();
  bool cancelled = false;
  bool failed = false;
};

class HostPort {
 public:
  virtual ~HostPort() = default;

  // MPI_Test: pokes the host MPI's progress; when the request is complete it is freed and `done`
  // set.
  virtual Status test(HostRequest& request, bool& done) = 0;

  // MPI_Test of a message that nobody else will ask about: also tells how it ended, since a receive
  // may be larger than what arrives.
  virtual Status test_message(HostRequest& request, bool& done, Completion& completion) {
    (void)completion;
    return test(request, done);
  }

  // MPI_Cancel of a request that test_message is still to be asked about, and then tells.
  virtual void cancel(HostRequest request) { (void)request; }

  // MPI_Request_get_status: like test, but the request stays.
  virtual Status peek(HostRequest request, bool& done) = 0;

  // MPI_Grequest_start / MPI_Grequest_complete: a real request for an operation of ours.
  virtual Status grequest_start(HostRequest& request) = 0;
  virtual void grequest_complete(HostRequest request) = 0;

  // A persistent request for an operation of ours: after each MPI_Start it is complete once
  // placeholder_complete has been called, whichever comes first. `number` tells it apart until
  // placeholder_release, which is for when nothing is under way.
  virtual Status placeholder_init(HostRequest& request, int& number) = 0;
  virtual void placeholder_complete(int number) = 0;
  virtual void placeholder_release(int number) = 0;

  // Lets the host MPI go on with what it has under way: called while we wait for something that it
  // knows nothing of.
  virtual void poke() {}

  // One pause of a wait loop: gives the core away where ranks outnumber cores.
  virtual void pause() = 0;

  // Whether somebody else calls Engine::progress while a thread blocks in the host MPI, so that the
  // engine needs no thread of its own. The model test's scheduler does.
  virtual bool progress_elsewhere() { return false; }

  // Locks the engine. The model test, which runs one thread at a time, replaces it by
  // try-and-pause.
  virtual void lock(std::recursive_mutex& mutex) { mutex.lock(); }
};

}  // namespace accord::core
