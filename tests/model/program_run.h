// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One run of a program: what has been started and completed, with the buffers. Included by
// runner*.cpp only.
#pragma once

#include <atomic>

#include "buffer_pool.h"
#include "runner.h"
#include "user_buffer.h"
#include "world.h"

namespace accord::model {

// A request of the program with its buffers; a persistent one serves all rounds.
struct Call {
  Request request = kNoRequest;
  std::unique_ptr<UserBuffer> send;
  std::unique_ptr<UserBuffer> recv;
  std::vector<std::int64_t> sent;
};

struct Progress {
  Call own;
  std::atomic<bool> started{false};  // another thread of the rank may wait for what this one starts
  bool done = false;
  bool freed = false;
};

class Run {
 public:
  Run(const Program& program, const RunOptions& options);
  std::string execute();

 private:
  void run_thread(std::size_t index);
  void perform(UserMpi& mpi, int rank, const Action& action);
  void note(const Action& action) const;
  void start(UserMpi& mpi, const Ref& ref);
  void block(UserMpi& mpi, const Ref& ref);
  void release(UserMpi& mpi, const Ref& ref);
  void complete_many(UserMpi& mpi, const Action& action);
  void probe(UserMpi& mpi, const Action& action);
  void prepare(const Ref& ref);
  void make_buffers(const Ref& ref, Call& call);
  std::unique_ptr<UserBuffer> make_buffer(const Ref& ref, End end, std::size_t elements);
  void completed(const Ref& ref, const MessageStatus& status);
  void check_received(const Ref& ref, const MessageStatus& status);
  void check_collective(const Ref& ref);
  void check_freed();
  std::vector<std::int64_t> values(const Ref& ref, int who, std::size_t first,
                                   std::size_t count) const;
  std::vector<std::int64_t> input(const Ref& ref) const;
  std::vector<std::int64_t> expected(const Ref& ref) const;
  CollectiveArgs arguments(const Ref& ref, const Call& call);
  int rank_in(int comm, int world_rank) const;

  const Event& event(const Ref& ref) const {
    return program_.events[static_cast<std::size_t>(ref.event)];
  }
  const Part& part(const Ref& ref) const {
    return event(ref).parts[static_cast<std::size_t>(ref.part)];
  }
  bool persistent(const Ref& ref) const { return event(ref).persistent || part(ref).persistent; }
  std::size_t slot(const Ref& ref) const {
    return first_slot_[static_cast<std::size_t>(ref.event)] +
           static_cast<std::size_t>(ref.round) * event(ref).parts.size() +
           static_cast<std::size_t>(ref.part);
  }
  Progress& progress(const Ref& ref) { return progress_[slot(ref)]; }
  Call& call(const Ref& ref) {
    return persistent(ref) ? progress({ref.event, 0, ref.part}).own : progress(ref).own;
  }
  Comm& comm(int rank, int planned) {
    return comms_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(planned)];
  }
  void complain(const Ref& ref, const std::string& what);
  void await_start(const Ref& ref);

  const Program& program_;
  const RunOptions options_;
  World world_;
  std::vector<std::unique_ptr<BufferPool>> pools_;  // by rank
  std::vector<std::size_t> first_slot_;
  std::vector<Progress> progress_;
  std::vector<std::vector<Comm>> comms_;  // by rank, then number in the program
  std::vector<std::atomic<bool>> opened_;
  std::vector<std::atomic<int>> ended_;
  std::vector<std::atomic<std::size_t>> position_;
};

}  // namespace accord::model
