// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What ranks on several nodes tell each other for calls of a collective library, by messages of
// the host MPI, since they share no memory: what all of them say alike (in as many steps as the
// number of ranks has binary digits), what each tells each other one, and that one has given up.
// Never waits. Knows no mpi.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "core/wire.h"

namespace accord::coll {

using CclWords = std::array<std::uint64_t, 2>;

// Of the ranks of one communicator of the library, and rung once: after that it is of no use.
class CclAlarm {
 public:
  CclAlarm(std::shared_ptr<core::Wire> wire, int rank, int size);
  ~CclAlarm();
  CclAlarm(const CclAlarm&) = delete;
  CclAlarm& operator=(const CclAlarm&) = delete;

  // Tells all others that this rank has given up; nothing where that is known.
  void ring() noexcept;
  // An error once some rank has.
  Status check();
  // Before MPI_Finalize, which must find none of its requests.
  static void stop_all();

 private:
  struct All;
  static All& all();
  struct Alarm {
    std::int32_t rank = -1;  // has given up
    std::uint32_t name = 0;  // of the wire at its receiver
  };

  void listen();
  void stop();

  std::shared_ptr<core::Wire> wire_;
  const int rank_;
  const int size_;
  std::recursive_mutex mutex_;  // requests share an alarm, and may be looked after by threads
  Alarm heard_;
  bool listens_ = false;
  core::HostRequest request_ = 0;
  Status broken_;
};

class CclRollCall {
 public:
  // `channel`: equal on the ranks, and another one for each on this wire; from 1 on.
  CclRollCall(std::shared_ptr<core::Wire> wire, int rank, int size, int channel);
  ~CclRollCall();
  CclRollCall(const CclRollCall&) = delete;
  CclRollCall& operator=(const CclRollCall&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  // Which bits all ranks have given: one such question at a time, in one order on all ranks.
  void ask(CclWords mine);
  // To be polled until it says yes.
  bool answered();
  const CclWords& common() const noexcept { return common_; }

  // Words for one peer, to each of whom each rank tells some before it asks the next question.
  void tell(int peer, CclWords words);
  // To be polled: those of all peers have come.
  bool all_told();
  const CclWords& told_by(int peer) const { return told_[static_cast<std::size_t>(peer)].words; }

  // What became of the messages.
  const Status& status() const noexcept { return status_; }

 private:
  struct Letter {
    CclWords words{};
    core::HostRequest request = 0;
    bool under_way = false;
  };

  void exchange();
  void send(int to, const CclWords& words);
  void receive(int from, Letter& letter);
  bool has_come(Letter& letter);
  void forget_sent();

  std::shared_ptr<core::Wire> wire_;
  const int rank_;
  const int size_;
  const int channel_;
  Status status_;
  CclWords common_{};
  int distance_ = 0;  // of the step under way; from size_ on: none is
  Letter incoming_;
  std::vector<Letter> told_;  // by peer
  std::list<Letter> sent_;    // or about to be
};

}  // namespace accord::coll
