// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Several operations in flight at once on the same and on different communicators. All ranks start
// from one list of steps, and each moves steps past each other as far as the standard allows:
// collectives of one communicator stay in order, and so do all steps that may block, but a Start
// may move anywhere.
#include <algorithm>

#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

struct Overlapping {
  Prepared prepared;
  int comm = 0;
  bool member = false;
  Form form = Form::nonblocking;
  bool large = false;
  bool ring = false;  // not a collective: each rank sends to the next
  std::vector<MPI_Request> requests;
  std::function<int()> start_ring;
};

enum class Act { call, init, start, wait };
constexpr const char* kActs[] = {"call", "init", "start", "wait"};

struct Step {
  Act act;
  int operation;
  int round = 0;
};

class Overlap {
 public:
  explicit Overlap(Run& run) : run_(run) {}

  void draw() {
    const int number = run_.global.between(2, 6);
    const bool one_comm = run_.global.chance(35);
    const int common = run_.global.pick(run_.comms().plain());
    for (int i = 0; i < number; ++i) {
      const int comm = run_.global.pick(run_.comms().plain());
      add_operation(i, one_comm ? common : comm);
    }
    for (int i = 0; i < number; ++i)
      if (operations_[idx(i)].form == Form::persistent) steps_.push_back({Act::init, i});
    for (int i = 0; i < number; ++i)
      if (operations_[idx(i)].form != Form::persistent) steps_.push_back({Act::call, i});
    for (int i = 0; i < number; ++i) add_later_steps(i);
  }

  void reorder() {
    const int passes = run_.local.below(12);
    for (int pass = 0; pass < passes; ++pass)
      for (std::size_t i = 0; i + 1 < steps_.size(); ++i)
        if (run_.local.chance(50) && may_swap(steps_[i], steps_[i + 1]))
          std::swap(steps_[i], steps_[i + 1]);
  }

  void execute() {
    for (const Step& step : steps_) {
      Overlapping& operation = operations_[idx(step.operation)];
      if (!operation.member) continue;
      run_.note(std::string(kActs[static_cast<int>(step.act)]) + " of operation " +
                std::to_string(step.operation));
      const char* name = operation.ring ? "ring" : kind_name(operation.prepared.kind);
      if (step.act == Act::wait)
        wait(operation, step.round);
      else
        run_.check(issue(operation, step), name);
      poll();
    }
    wait_for_the_rest();
  }

 private:
  static std::size_t idx(int i) { return static_cast<std::size_t>(i); }

  void add_operation(int index, int comm_index) {
    Overlapping& operation = operations_.emplace_back();
    const Comm& comm = run_.comms().all()[idx(comm_index)];
    operation.comm = comm_index;
    operation.member = comm.member;
    const int form = run_.global.below(100);
    operation.form = form < 50 ? Form::nonblocking : form < 75 ? Form::persistent : Form::blocking;
    operation.large = run_.global.chance(30);
    operation.ring = run_.global.chance(15);
    const Kind kind = random_kind(run_, comm, false);
    if (!available(run_, kind, operation.form, operation.large)) operation.large = false;
    if (!available(run_, kind, operation.form, operation.large)) operation.form = Form::nonblocking;
    require_call(run_, comm, kind, operation.form);
    if (operation.ring) {
      operation.form = Form::nonblocking;
      prepare_ring(operation, comm, index);
      return;
    }
    run_.describe(form_name(operation.form));
    operation.prepared =
        prepare(run_, comm, {.kind = kind, .form = operation.form, .index = index});
    operation.requests.assign(1, MPI_REQUEST_NULL);
  }

  void prepare_ring(Overlapping& operation, const Comm& comm, int index) {
    const Payload payload = random_payload(run_);
    const std::int64_t units = random_units(run_, payload, 1);
    run_.describe("ring of " + std::to_string(units) + " units on " + comm.name + ",");
    if (!comm.member) return;
    const Blocks send = make_blocks(run_, "send", payload, std::vector{units}, Spread::one);
    const Blocks receive = make_blocks(run_, "receive", payload, std::vector{units}, Spread::one);
    operation.requests.assign(2, MPI_REQUEST_NULL);
    // Between two groups each rank has a partner or, where the groups differ in size, none.
    const int peers = comm.peers();
    int to = (comm.rank + 1) % peers;
    int from = (comm.rank + peers - 1) % peers;
    if (comm.inter) to = from = comm.rank < peers ? comm.rank : MPI_PROC_NULL;
    Run* run = &run_;
    auto* requests = &operation.requests;
    operation.start_ring = [=, comm_handle = comm.handle] {
      const int first = run->api().Irecv(false, receive.pointer, receive.count, receive.type, from,
                                         index, comm_handle, &(*requests)[0]);
      const int second = run->api().Isend(false, static_cast<const void*>(send.pointer), send.count,
                                          send.type, to, index, comm_handle, &(*requests)[1]);
      return first != MPI_SUCCESS ? first : second;
    };
  }

  void add_later_steps(int i) {
    const Overlapping& operation = operations_[idx(i)];
    if (operation.form == Form::persistent) {
      const int rounds = run_.global.between(1, 3);
      for (int round = 0; round < rounds; ++round) {
        insert_later({Act::start, i, round}, i);
        insert_later({Act::wait, i, round}, i);
      }
      return;
    }
    if (operation.form == Form::nonblocking && run_.global.chance(40))
      insert_later({Act::wait, i}, i);
  }

  // Somewhere behind the operation's last step so far: also among steps of other operations.
  void insert_later(Step step, int operation) {
    std::size_t first = steps_.size();
    while (first > 0 && steps_[first - 1].operation != operation) --first;
    const int room = static_cast<int>(steps_.size() - first);
    const auto at =
        steps_.begin() + static_cast<std::ptrdiff_t>(first) + run_.global.below(room + 1);
    steps_.insert(at, step);
  }

  bool may_block(const Step& step) const {
    return step.act == Act::wait || step.act == Act::init ||
           (step.act == Act::call && operations_[idx(step.operation)].form == Form::blocking);
  }

  bool ordered(const Step& step) const {
    return (step.act == Act::call || step.act == Act::init) &&
           !operations_[idx(step.operation)].ring;
  }

  bool may_swap(const Step& a, const Step& b) const {
    if (a.operation == b.operation) return false;
    if (may_block(a) && may_block(b)) return false;
    const bool same_comm = operations_[idx(a.operation)].comm == operations_[idx(b.operation)].comm;
    return !(same_comm && ordered(a) && ordered(b));
  }

  int issue(Overlapping& operation, const Step& step) {
    if (operation.ring) return operation.start_ring();
    if (step.act == Act::start) return run_.api().Start(&operation.requests[0]);
    return operation.prepared.call(operation.form, operation.large, &operation.requests[0]);
  }

  void wait(Overlapping& operation, int round) {
    const Completion completion = random_completion(run_.local);
    if (operation.form != Form::persistent) {
      run_.check(complete(run_, completion, operation.requests, nullptr, run_.local.fork()),
                 "completion");
      return;
    }
    run_.check(complete_persistent(run_, operation.requests[0], run_.local.fork()), "completion");
    for (Buffer* buffer : operation.prepared.buffers) {
      run_.snapshot(*buffer);
      run_.fill(*buffer, static_cast<std::uint64_t>(round) + 1);
    }
  }

  // Now and then looks at all that is outstanding without waiting for it.
  void poll() {
    if (!run_.local.chance(15)) return;
    Rng rng = run_.local.fork();
    for (Overlapping& operation : operations_) {
      // Persistent rounds are checked right after their wait, so nothing may complete them before.
      if (!operation.member || operation.form == Form::persistent || operation.requests.empty())
        continue;
      int flag = 0;
      MPI_Request& request =
          operation.requests[idx(rng.below(static_cast<int>(operation.requests.size())))];
      run_.check(run_.api().Test(&request, &flag, MPI_STATUS_IGNORE), "Test");
    }
  }

  void wait_for_the_rest() {
    std::vector<MPI_Request> rest;
    for (Overlapping& operation : operations_)
      if (operation.member && operation.form == Form::nonblocking)
        rest.insert(rest.end(), operation.requests.begin(), operation.requests.end());
    run_.local.shuffle(rest);
    if (run_.local.chance(30) && works(run_, "types freed while in use")) run_.types.free_all();
    run_.check(complete(run_, random_completion(run_.local), rest, nullptr, run_.local.fork()),
               "completion");
    for (Overlapping& operation : operations_)
      if (operation.member && operation.form == Form::persistent)
        run_.check(run_.api().Request_free(&operation.requests[0]), "Request_free");
  }

  Run& run_;
  std::deque<Overlapping> operations_;
  std::vector<Step> steps_;
};

}  // namespace

void case_overlap(Run& run) {
  Overlap overlap(run);
  overlap.draw();
  overlap.reorder();
  overlap.execute();
}

}  // namespace accord::conformance
