// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When a rank may hand a call to a collective library. The library's kernels occupy the device
// until all ranks' kernels of that call run, so two calls must never wait for each other's place on
// two devices. The rule: a process has one such call on its devices at a time, and a call starts
// only when all its ranks have their place for it.
//
// Where the program makes one collective at a time on every rank, a rank waits for its place, since
// whoever has it is about to finish. If nothing else is under way in its process, it has its place
// as soon as it enters, and one look at what the others say tells that all may start: nothing that
// comes later can need the place first. Else two calls may each have a place on some of the ranks:
// then a rank answers no where it has none, all give theirs back, and try again. The ranks prefer
// calls alike, by the numbers of the groups, so that one call gets all its places in the end.
//
// Nothing of this waits on a device, so kernels that wait for peers a bounded time only (those of
// inboxes) may run beside it. How the ranks tell each other: within a node in the mailboxes of
// their group (CclNodeTurn), else by messages (far_turn.h).
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "node/group.h"

namespace accord::coll {

class CclTurn;

// Who has the devices of a process, and who would have them. Thread-safe.
class CclPlace {
 public:
  static CclPlace& of_this_process() noexcept;

  void wait(const CclTurn& turn, std::uint64_t precedence);
  // False where somebody else has it, or waits and comes first.
  bool take(const CclTurn& turn, std::uint64_t precedence);
  void give_back(const CclTurn& turn);
  // Neither waits nor has it.
  void leave(const CclTurn& turn);

 private:
  struct Waiting {
    const CclTurn* turn;
    std::uint64_t precedence;
  };
  std::mutex mutex_;
  const CclTurn* holder_ = nullptr;
  std::vector<Waiting> waiting_;
};

class CclTurn {
 public:
  // Whether other collectives of the same process may be under way meanwhile, on whichever rank:
  // equal on all ranks.
  enum class Company { none, possible };
  // Without company: whether anything else is under way in this process, which is its own affair.
  enum class Process { busy, idle };

  virtual ~CclTurn() = default;
  CclTurn(const CclTurn&) = delete;
  CclTurn& operator=(const CclTurn&) = delete;

  // Where ranks tell each other something for a call, to be polled first: what they have told for
  // earlier calls has been read.
  virtual bool may_tell() const = 0;
  // A word for the peers, of each call, before this rank enters it.
  virtual void tell(std::uint64_t word) noexcept = 0;
  // Once this rank's buffers are ready.
  virtual void enter() = 0;
  // To be polled one after the other, each until it says yes: all ranks have entered the call;
  virtual bool all_entered() = 0;
  // (from here on: the bits that all have told)
  virtual std::uint64_t told_by_all() const noexcept = 0;
  // all start it now.
  virtual bool comes() = 0;
  // Once this rank has started it.
  virtual void started() = 0;
  // The call is over on this rank.
  virtual void end() = 0;

 protected:
  CclTurn() = default;
};

// Among ranks of a node. They write into the mailboxes of their group: `filled` counts the calls
// that they have entered, `reduced` the attempts at a place, with the answer as its lowest bit, and
// `drained` the attempts of which they have seen all answers.
class CclNodeTurn final : public CclTurn {
 public:
  // `group` has no other use; `number` is equal on its ranks, and not zero.
  CclNodeTurn(node::Group& group, std::uint64_t number, Company company,
              Process process = Process::busy, CclPlace& place = CclPlace::of_this_process());
  ~CclNodeTurn() override { end(); }

  bool may_tell() const override;
  void tell(std::uint64_t word) noexcept override;
  void enter() override;
  bool all_entered() override;
  std::uint64_t told_by_all() const noexcept override;
  bool comes() override;
  void started() override;
  void end() override;

 private:
  enum class State { begin, entering, trying, answered, granted, running, ended };

  bool all_saw(std::uint64_t attempt) const;
  bool all_answered() const;
  bool all_say_yes() const;
  void answer(bool yes);
  void note_answers();
  void try_again();

  node::Group& group_;
  const Company company_;
  const Process process_;
  CclPlace& place_;
  const std::uint64_t call_;        // its number in the group's life
  const std::uint64_t precedence_;  // lower ones are preferred
  std::uint64_t attempt_ = 0;       // in the group's life, from 1
  bool is_placed_ = false;          // from the start
  State state_ = State::begin;
};

}  // namespace accord::coll
