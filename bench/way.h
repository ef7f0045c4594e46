// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A way of doing an operation: ours, and the peers it is compared with. A peer is one file that
// implements this class and one line in ways.def. All functions but run are collective; run is what
// is timed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/operation.h"
#include "bench/session.h"

namespace accord::bench {

struct Buffers {
  void* send = nullptr;
  void* recv = nullptr;
};

// One size of one operation.
struct Trial {
  const Operation* operation = nullptr;
  Shape shape;
  Extent extent;    // of this rank, in elements
  Buffers buffers;  // the program's
};

class Way {
 public:
  virtual ~Way() = default;
  virtual std::string name() const = 0;
  // Why this rank cannot run `operation` this way; empty when it can.
  virtual std::string why_not(const Operation& operation) = 0;
  // Gets everything ready for run; the same answer as why_not. The trial outlives release.
  virtual std::string prepare(const Trial& trial) = 0;
  // Throws std::runtime_error when the operation fails.
  virtual void run() = 0;
  virtual void release() = 0;
  // It took much longer than others for messages of this size, and was not timed.
  virtual void note_left(const Operation&, std::size_t) {}
  // The memory that run reads and writes, where it is not the program's own. Of the program's
  // kinds.
  virtual Buffers buffers(const Trial& trial) const { return trial.buffers; }
  // Whether run goes through Accord, which then tells the path; and by which of its algorithms.
  virtual bool is_accord() const { return false; }
  virtual std::string algorithm() const { return ""; }
  // Versions and variants, for the records.
  virtual std::string detail() const { return ""; }
};

// The MPI call itself: what the program would reach, or (Reach::library) the MPI library past
// Accord.
enum class Reach { program, library };
std::unique_ptr<Way> make_direct(const Session& session, std::string name, Reach reach);

// Ours by the named algorithm, on a communicator whose info asks for it. Collective, as is its end.
std::unique_ptr<Way> make_algorithm(const Session& session, const std::string& algorithm);

// Names of all peers, and one of them made.
std::vector<std::string> peer_names();
std::unique_ptr<Way> make_peer(const Session& session, const std::string& name);

}  // namespace accord::bench
