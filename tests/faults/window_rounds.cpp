// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What faults.py kills a rank of: rounds of one-sided calls on a window in device memory, each
// checked, until a peer is gone. The rank that dies does so inside an epoch. Then no rank may rely
// on the host MPI any more, and rounds end with the first error.
// Arguments: `fence`, `pscw`, `lock` or `update`; `die=RANK:ROUND:MICROSECONDS`: this rank is
// killed so long after it has begun that round; `managed`: memory that peers reach by messages.
#include <accord/accord.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "report.h"

namespace {

using namespace accord::test;

constexpr int kRoundsMax = 1000000;
constexpr int kCount = 1 << 18;

enum class Kind { fence, pscw, lock, update };

struct Plan {
  Kind kind = Kind::fence;
  bool is_managed = false;
  int dies = -1;  // rank
  int dies_in_round = 0;
  int dies_after_us = 0;
};

Plan plan_of(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "pscw") plan.kind = Kind::pscw;
    if (word == "lock") plan.kind = Kind::lock;
    if (word == "update") plan.kind = Kind::update;
    plan.is_managed = plan.is_managed || word == "managed";
    std::sscanf(argv[i], "die=%d:%d:%d", &plan.dies, &plan.dies_in_round, &plan.dies_after_us);
  }
  return plan;
}

// Numbers of one rank: memory that has been had stays until the end.
class Numbers {
 public:
  explicit Numbers(bool is_managed) {
    const auto kind = is_managed ? ACCORD_MEMORY_MANAGED : ACCORD_MEMORY_DEVICE;
    if (accord_malloc(&pointer_, kCount * sizeof(int), kind) != ACCORD_OK) ::_exit(3);
    fill(0);
  }
  void* pointer() const { return pointer_; }
  void fill(int number) {
    const std::vector<int> all(kCount, number);
    accord_memcpy(pointer_, all.data(), kCount * sizeof(int));
  }
  void set_first(int number) { accord_memcpy(pointer_, &number, sizeof number); }
  int first() const {
    int number = -1;
    accord_memcpy(&number, pointer_, sizeof number);
    return number;
  }
  bool are_all(int number) const {
    std::vector<int> found(kCount);
    accord_memcpy(found.data(), pointer_, kCount * sizeof(int));
    return found == std::vector<int>(kCount, number);
  }

 private:
  void* pointer_ = nullptr;
};

class Rounds {
 public:
  explicit Rounds(const Plan& plan)
      : plan_(plan), window_(plan.is_managed), origin_(plan.is_managed) {
    MPI_Win_create(window_.pointer(), kCount * MPI_Aint{sizeof(int)}, sizeof(int), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win_);
    MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN);
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;
    MPI_Group_incl(all, 1, &right, &to_);
    MPI_Group_incl(all, 1, &left, &from_);
    MPI_Group_free(&all);
  }

  // Ends with the first error, and tries once more after it: that is none that waits, either.
  int run() {
    int round = 0;
    for (; round < kRoundsMax; ++round) {
      is_last_ = rank == plan_.dies && round == plan_.dies_in_round;
      if (is_last_) die_later(plan_.dies_after_us);
      if (!is_good(go(round)) || !is_good(MPI_Win_fence(0, win_))) break;
    }
    (void)is_good(go(round));
    (void)is_good(MPI_Win_free(&win_));
    return round + 1;
  }

 private:
  static bool is_good(int code) {
    if (code != MPI_SUCCESS) tell_error(code);
    return code == MPI_SUCCESS;
  }
  void expect(bool is_right, const char* what, int round) {
    if (!is_right) tell("wrong", std::string(what) + " in round " + std::to_string(round));
  }
  // Where the rank that dies is when it does.
  void linger() const {
    while (is_last_) ::pause();
  }

  int go(int round) {
    const int code = plan_.kind == Kind::fence  ? fence(round)
                     : plan_.kind == Kind::pscw ? pscw(round)
                     : plan_.kind == Kind::lock ? lock(round)
                                                : update(round);
    if (round == 0) tell("path", accord_last_path());
    return code;
  }

  int put() {
    return MPI_Put(origin_.pointer(), kCount, MPI_INT, (rank + 1) % size, 0, kCount, MPI_INT, win_);
  }

  int fence(int round) {
    origin_.fill(round);
    if (const int code = MPI_Win_fence(0, win_)) return code;
    if (const int code = put()) return code;
    linger();
    if (const int code = MPI_Win_fence(0, win_)) return code;
    expect(window_.are_all(round), "what was put", round);
    return MPI_SUCCESS;
  }

  int pscw(int round) {
    origin_.fill(round);
    if (const int code = MPI_Win_post(from_, 0, win_)) return code;
    if (const int code = MPI_Win_start(to_, 0, win_)) return code;
    if (const int code = put()) return code;
    linger();
    if (const int code = MPI_Win_complete(win_)) return code;
    if (const int code = MPI_Win_wait(win_)) return code;
    expect(window_.are_all(round), "what was put", round);
    return MPI_SUCCESS;
  }

  // All count in the window of rank 0.
  int lock(int round) {
    if (const int code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win_)) return code;
    if (const int code = MPI_Get(origin_.pointer(), 1, MPI_INT, 0, 0, 1, MPI_INT, win_))
      return code;
    if (const int code = MPI_Win_flush(0, win_)) return code;
    linger();
    origin_.set_first(origin_.first() + 1);
    if (const int code = MPI_Put(origin_.pointer(), 1, MPI_INT, 0, 0, 1, MPI_INT, win_))
      return code;
    if (const int code = MPI_Win_unlock(0, win_)) return code;
    if (const int code = MPI_Win_fence(0, win_)) return code;
    expect(rank != 0 || window_.first() == size * (round + 1), "the number of locks", round);
    return MPI_SUCCESS;
  }

  // All add to all of the window of rank 0, the one that dies without end.
  int update(int round) {
    origin_.fill(1);
    if (const int code = MPI_Win_lock_all(0, win_)) return code;
    do {
      if (const int code = MPI_Accumulate(origin_.pointer(), kCount, MPI_INT, 0, 0, kCount, MPI_INT,
                                          MPI_SUM, win_))
        return code;
    } while (is_last_);
    if (const int code = MPI_Win_unlock_all(win_)) return code;
    if (const int code = MPI_Win_fence(0, win_)) return code;
    expect(rank != 0 || window_.are_all(size * (round + 1)), "sums", round);
    return MPI_SUCCESS;
  }

  const Plan plan_;
  Numbers window_;
  Numbers origin_;
  MPI_Win win_ = MPI_WIN_NULL;
  MPI_Group to_ = MPI_GROUP_NULL;
  MPI_Group from_ = MPI_GROUP_NULL;
  bool is_last_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (!begin_report(argc, argv)) return 2;
  Rounds rounds(plan_of(argc, argv));
  const int number = rounds.run();
  tell("done", std::to_string(number) + " rounds, " + std::to_string(errors) + " errors");
  // Others that live may still wait for this one. MPI_Finalize of the host MPI need not end.
  constexpr int kPatienceMs = 100000;
  for (int ms = 0; ms < kPatienceMs && !is_there("end"); ++ms) ::usleep(1000);
  ::_exit(0);
}
