// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One run of a program, or of one rank of it: what has been started and completed, with the
// buffers. Whose MPI that is and how its threads run the host of the run knows.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "buffer_pool.h"
#include "program.h"
#include "user_buffer.h"
#include "user_mpi.h"

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
  // `on_devices`: else all buffers are the host's. `notes`: what is reached (named_reach.h).
  Run(const Program& program, RunHost& host, bool on_devices, bool notes);

  // The list of thread `index` of the job; that of a rank's first one ends as the last of the rank.
  // False: it has stopped after `actions_max` actions.
  bool run_thread(std::size_t index, long actions_max = std::numeric_limits<long>::max());
  // What that thread does just now.
  std::string describe(std::size_t index) const;
  std::uint64_t position(std::size_t index) const { return position_[index].load(); }
  // Once everything has ended. What is wrong with the data of receives that were freed while they
  // were active, of the ranks that have run here, or empty.
  std::string freed_problem();
  // The same and what was written late; complains.
  void check_ended();
  void drop_buffers();
  // The handle of one of the program's communicators on a rank.
  Comm comm_of(int rank, int planned) { return comm(rank, planned); }

 private:
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
  std::size_t result_elements(const Ref& ref) const;
  template <class Visit>
  void for_each_ref(Visit&& visit) const;
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
  std::string complaint(const Ref& ref, const std::string& what) const;
  void complain(const Ref& ref, const std::string& what) { host_.fail(complaint(ref, what)); }
  void await_start(const Ref& ref);

  const Program& program_;
  RunHost& host_;
  const bool on_devices_;
  const bool notes_;
  std::vector<std::unique_ptr<BufferPool>> pools_;  // by rank
  std::vector<std::size_t> first_slot_;
  std::vector<Progress> progress_;
  std::vector<std::vector<Comm>> comms_;  // by rank, then number in the program
  std::vector<std::atomic<bool>> opened_;
  std::vector<std::atomic<int>> ended_;
  std::vector<std::atomic<std::size_t>> position_;
};

}  // namespace accord::model
