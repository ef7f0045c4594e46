// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned messages and collectives in rounds: started and marked in any order, by the host and
// by kernels, looked at while they arrive, and completed together with ordinary requests. Nothing
// that waits for another rank comes before all that this one has to start and, but for
// MPIX_Pbuf_prepare, to mark.
#include "case_partitioned.h"

#include <unistd.h>

#include <algorithm>

#include "cases.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kPauseUsMax = 300;

class Partitions {
 public:
  Partitions(Run& run, PartitionedProgram& program)
      : run_(run),
        api_(run.api()),
        program_(program),
        shared_(run.global.fork()),
        own_(run.local.fork()) {}

  void execute() {
    for (int life = 0; life < program_.lives; ++life) {
      if (run_.tested()) make();
      for (int round = 0; round < program_.rounds; ++round) {
        begin_round(life * program_.rounds + round);
        if (run_.tested())
          partitioned_round();
        else
          ordinary_round();
        note_round();
      }
      if (run_.tested()) release();
    }
  }

 private:
  void pause(int percent) {
    if (own_.chance(percent)) ::usleep(static_cast<useconds_t>(own_.below(kPauseUsMax)));
  }

  template <class May>
  PartitionedWork* any(May may) {
    std::vector<PartitionedWork*> found;
    for (PartitionedWork& work : program_.works)
      if (may(work)) found.push_back(&work);
    return found.empty() ? nullptr : own_.pick(found);
  }

  // Those of one key in order, all else in any.
  void make() {
    std::vector<PartitionedWork*> left;
    for (PartitionedWork& work : program_.works) left.push_back(&work);
    while (!left.empty()) {
      pause(30);
      const std::string key = own_.pick(left)->key;
      const auto first =
          std::ranges::find_if(left, [&](const PartitionedWork* work) { return work->key == key; });
      (*first)->end.make();
      if (own_.chance(60)) (*first)->end.make_kernels();
      left.erase(first);
    }
    if (program_.freed_early) {
      run_.types.free_all();
      run_.free_operations();
    }
    const bool frees = shared_.chance(50);
    if (program_.fresh != nullptr && program_.fresh->member && frees)
      run_.check(api_.Comm_free(&program_.fresh->handle), "Comm_free");
  }

  std::vector<Prepared*> ordinaries() {
    std::vector<Prepared*> all;
    for (Prepared* one : {&program_.collective, &program_.receive, &program_.send})
      if (one->call) all.push_back(one);
    return all;
  }

  void begin_round(int round) {
    for (PartitionedWork& work : program_.works) work.end.begin_round(round);
    for (Prepared* one : ordinaries())
      for (Buffer* buffer : one->buffers)
        if (round > 0) run_.fill(*buffer, static_cast<std::uint64_t>(round));
  }

  void start_ordinaries() {
    ordinary_requests_.clear();
    for (Prepared* one : ordinaries())
      run_.check(one->call(Form::nonblocking, false, &ordinary_requests_.emplace_back()),
                 "an ordinary call");
  }

  void ordinary_round() {
    start_ordinaries();
    std::vector<PartitionedWork*> posted;
    for (PartitionedWork& work : program_.works) {
      if (!work.post) continue;
      run_.check(work.post(), work.end.name().c_str());
      posted.push_back(&work);
    }
    for (PartitionedWork& work : program_.works)
      if (work.call) run_.check(work.call(), work.end.name().c_str());
    for (PartitionedWork* work : posted)
      run_.check(api_.Wait(&work->ordinary, &work->end.status), work->end.name().c_str());
    for (MPI_Request& request : ordinary_requests_)
      run_.check(api_.Wait(&request, MPI_STATUS_IGNORE), "an ordinary call");
  }

  void start(PartitionedWork& work) {
    PartitionedEnd& end = work.end;
    pause(10);
    if (own_.chance(25)) end.make_kernels();
    end.start(own_);
    if (end.settings().transfer_partitions == 1 && own_.chance(10)) end.make_kernels();
  }

  void partitioned_round() {
    std::vector<PartitionedWork*> early;
    for (PartitionedWork& work : program_.works)
      if (work.end.settings().prepared || own_.chance(60)) early.push_back(&work);
    own_.shuffle(early);
    for (PartitionedWork* work : early) start(*work);
    prepare_some(shared_.chance(50));
    start_ordinaries();
    mark_all();
    if (shared_.chance(20))
      run_.check(api_.Barrier.blocking(false, run_.comms().world().handle), "Barrier");
    watch();
    complete_all();
    for (PartitionedWork& work : program_.works) work.end.end_round();
  }

  void prepare_some(bool together) {
    std::vector<MPI_Request> requests;
    for (PartitionedWork& work : program_.works)
      if (work.end.settings().prepared) requests.push_back(work.end.request);
    own_.shuffle(requests);
    if (together) {
      run_.check(
          partitioned_calls().prepare_all(static_cast<int>(requests.size()), requests.data()),
          "Pbuf_prepare_all");
      return;
    }
    for (MPI_Request request : requests)
      run_.check(partitioned_calls().prepare(request), "Pbuf_prepare");
  }

  // Starts what is left, and marks everything, in any order.
  void mark_all() {
    for (;;) {
      const auto is_late = [](const PartitionedWork& work) { return !work.end.is_started(); };
      const auto has_marks = [](const PartitionedWork& work) { return work.end.has_marks(); };
      PartitionedWork* const late = any(is_late);
      PartitionedWork* const unmarked = any(has_marks);
      if (late == nullptr && unmarked == nullptr) return;
      if (late != nullptr && (unmarked == nullptr || own_.chance(20))) {
        start(*late);
      } else {
        unmarked->end.mark_some(own_);
      }
      meddle();
    }
  }

  void meddle() {
    pause(10);
    PartitionedWork* const started =
        any([](const PartitionedWork& work) { return work.end.is_started(); });
    if (started == nullptr) return;
    if (own_.chance(40)) started->end.look(own_);
    if (own_.chance(3)) started->end.mistake(own_);
    if (own_.chance(5)) {
      int flag = 0;
      run_.check(api_.Request_get_status(started->end.request, &flag, MPI_STATUS_IGNORE),
                 "Request_get_status");
      run_.note(started->end.name() + (flag != 0 ? " is said to be complete" : " is not complete"));
    }
  }

  // Until all partitions of some requests have been seen to arrive.
  void watch() {
    std::vector<PartitionedWork*> watched;
    for (PartitionedWork& work : program_.works)
      if (work.end.gets && own_.chance(40)) watched.push_back(&work);
    while (!watched.empty()) {
      own_.pick(watched)->end.look(own_);
      std::erase_if(watched, [](const PartitionedWork* work) { return work->end.all_arrived(); });
      pause(2);
    }
  }

  void complete_all() {
    std::vector<PartitionedWork*> owners;
    for (PartitionedWork& work : program_.works) {
      if (!work.is_truncated_receive()) {
        owners.push_back(&work);
        continue;
      }
      const int code = api_.Wait(&work.end.request, MPI_STATUS_IGNORE);
      if (run_.error_class(code) != MPI_ERR_TRUNCATE)
        run_.fail(work.end.name() + ": no error of a message that is too long");
    }
    own_.shuffle(owners);
    std::vector<MPI_Request> requests = ordinary_requests_;
    for (PartitionedWork* work : owners) requests.push_back(work->end.request);
    std::vector<MPI_Status> statuses;
    const Completion completion = random_completion(own_);
    run_.note(std::string("completed by ") + completion_name(completion));
    run_.check(complete(run_, completion, requests, &statuses, own_.fork()),
               completion_name(completion));
    for (std::size_t i = 0; i < owners.size(); ++i)
      owners[i]->end.status = statuses[ordinary_requests_.size() + i];
  }

  void note_round() {
    for (PartitionedWork& work : program_.works)
      if (work.is_receive() && !work.is_truncated_receive())
        log_status(run_, work.end.status, MPI_BYTE);
    for (PartitionedWork& work : program_.works) work.end.note_digests();
    for (const Buffer& buffer : run_.buffers()) run_.snapshot(buffer);
  }

  void release() {
    std::vector<PartitionedWork*> all;
    for (PartitionedWork& work : program_.works) all.push_back(&work);
    own_.shuffle(all);
    for (PartitionedWork* work : all) work->end.release(own_);
  }

  Run& run_;
  const Api& api_;
  PartitionedProgram& program_;
  Rng shared_;
  Rng own_;
  std::vector<MPI_Request> ordinary_requests_;
};

}  // namespace

void case_partitioned(Run& run) {
  PartitionedProgram program;
  draw_partitioned(run, program);
  Partitions(run, program).execute();
}

}  // namespace accord::conformance
