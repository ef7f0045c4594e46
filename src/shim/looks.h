// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the requests of an array are completed one by one, and what they bring together.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "shim/settle.h"

namespace accord::shim {

// Begins to bring what has come for these and would take long. False: some of it is still on its
// way.
inline bool all_are_there(const Watch& watched) {
  bool all = true;
  for (const Watched& one : watched) {
    one.work->begin_fetch(one.bits);
    all = !one.work->is_being_fetched() && all;
  }
  return all;
}

// The requests of an array as the host MPI is to see them in a call for any of them: without those
// whose messages are still on their way from another node. Begins to bring what has come for them.
// At its end the handles that the host MPI has completed are as it left them.
template <class Request>
class Arrived {
 public:
  Arrived(const Watch& watched, int count, Request* array) : array_(array) {
    if (!messaging.net_joined) return;
    for (const Watched& one : watched) {
      one.work->begin_fetch(one.bits);
      if (!one.work->is_being_fetched()) continue;
      if (shown_.empty()) shown_.assign(array, array + count);
      shown_[static_cast<std::size_t>(one.index)] = MPI_REQUEST_NULL;
      hidden_.push_back(one.index);
    }
  }
  ~Arrived() {
    if constexpr (!std::is_const_v<Request>) {
      for (const int index : hidden_) shown_[static_cast<std::size_t>(index)] = array_[index];
      std::ranges::copy(shown_, array_);
    }
  }
  Arrived(const Arrived&) = delete;
  Arrived& operator=(const Arrived&) = delete;

  Request* array() noexcept { return shown_.empty() ? array_ : shown_.data(); }
  bool are_all() const noexcept { return hidden_.empty(); }

 private:
  Request* array_;
  std::vector<MPI_Request> shown_;
  std::vector<int> hidden_;
};

// MPI_Test of a request that is watched, if it is ours.
inline int test_watched(const Watch& watched, MPI_Request* request, int* flag, MPI_Status* status) {
  if (!watched.all_early_through()) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  MPI_Status own;
  MPI_Status* const told = status == MPI_STATUS_IGNORE && !watched.empty() ? &own : status;
  const int code = host::Test(request, flag, told);
  if (watched.empty() || (code == MPI_SUCCESS && *flag == 0)) return code;
  return settle(watched.front(), *told, code);
}

// Looks at each request of an array. What has come by headers by one look is copied together, while
// the next look is taken, and fetched together from other nodes. What has come through host memory
// is copied out some messages at a time.
class Looks {
 public:
  // Those of an array of so many that are watched, which may end before this.
  Looks(const Watch& watched, int count) : works_(static_cast<std::size_t>(count)) {
    if (messaging.node_joined) near_.emplace(outbox());
    if (messaging.net_joined) far_.emplace(net_mail());
    for (const Watched& one : watched) {
      one.work->is_waited_for.store(true);
      if (one.work->may_stay(false)) ++loans_;
      works_[static_cast<std::size_t>(one.index)] = one.work;
    }
  }
  // Also where the program's error handler has thrown.
  ~Looks() {
    for (const auto& work : works_)
      if (work) work->is_waited_for.store(false);
    let_stay(false);
    end_all();
  }
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

  // Whether those before it that say so, too, are to be complete first. Transfers of files are:
  // ROMIO's collective ones send messages that differ in nothing but their order. Nothing else is:
  // what one waits for may need another that lies behind it.
  bool keeps_order(int i) const {
    const auto& work = works_[static_cast<std::size_t>(i)];
    return work && work->keeps_order();
  }

  // Whether the one at that place is complete, unless what it has got is still to be brought.
  bool test(int i, MPI_Request* request, MPI_Status* status, int& code) {
    if (const auto& known = works_[static_cast<std::size_t>(i)]; known && known->is_pending())
      return false;
    int flag = kUntold;  // stays where a call has failed, and see has_error_function
    const Watch watched(1, request);
    if (watched.empty()) {
      code = test_watched(watched, request, &flag, status);
      return flag != 0 || code != MPI_SUCCESS;
    }
    if (watched.front().work->is_being_fetched()) return false;
    const std::size_t near_before = near_ ? near_->copies.size() : 0;
    const std::size_t far_before = far_ ? far_->size() : 0;
    const std::size_t staged_before = staged_->copies.size();
    {
      const Collecting collecting{near_ ? &near_->copies : nullptr, far_ ? &*far_ : nullptr,
                                  &staged_->copies};
      code = test_watched(watched, request, &flag, status);
    }
    const auto& work = watched.front().work;
    const Collected one{&code, from_bits<MPI_Comm>(work->context), work};
    if (near_ && near_->copies.size() != near_before) near_->collected.push_back(one);
    if (far_ && far_->size() != far_before) fetched_.push_back(one);
    if (staged_->copies.size() != staged_before) staged_->collected.push_back(one);
    const bool is_complete = flag != 0 || code != MPI_SUCCESS;
    if (is_complete && work->may_stay(false)) --loans_;
    return is_complete;
  }
  // Messages that are lent stay so while others are waited for: of the `left` ones that are not
  // complete, or whose copies are under way. The program goes on no sooner if they are moved.
  void let_stay_beside(std::size_t left) { let_stay(left > loans_ || !idle()); }
  // Begins to copy what the looks have found, unless more of it may come soon, ends what has been
  // copied, and brings what has come from other nodes. `last`: nothing more is looked at.
  void advance(bool last) {
    if (near_ && near_->copies.size() != 0 && (last || !near_->copies.may_grow(near_seen_))) {
      begin(*near_, near_under_way_);
      near_.emplace(outbox());
    }
    near_seen_ = near_ ? near_->copies.size() : 0;
    if (staged_->copies.are_enough() || (last && staged_->copies.size() != 0)) {
      begin(*staged_, staged_under_way_);
      staged_.emplace();
    }
    go_on(near_under_way_);
    go_on(staged_under_way_);
    if (fetched_.empty()) return;
    const std::vector<Status> outcomes = far_->run();
    for (std::size_t i = 0; i < fetched_.size(); ++i) fetched_[i].tell(outcomes[i]);
    fetched_.clear();
  }
  bool idle() const noexcept {
    return near_seen_ == 0 && near_under_way_.empty() && staged_under_way_.empty() &&
           staged_->copies.size() == 0;
  }

 private:
  struct Collected {
    int* code;
    MPI_Comm comm;
    std::shared_ptr<core::Tracked> work;  // with the shadow
    void tell(const Status& status) const {
      if (*code == MPI_SUCCESS) *code = raise(comm, status, work->site);
    }
  };
  template <class Copies>
  struct Batch {
    template <class... From>
    explicit Batch(From&... from) : copies(from...) {}
    Copies copies;
    std::vector<Collected> collected;
  };
  using Near = Batch<p2p::FetchBatch>;
  using Staged = Batch<core::CopyOuts>;

  // What the next receive of this thread to be completed has got, until that is so or has failed.
  struct Collecting {
    Collecting(p2p::FetchBatch* of_node, p2p::NetBatch* of_others, core::CopyOuts* of_host) {
      collected_fetches = {of_node, of_others, of_host};
    }
    ~Collecting() { collected_fetches = {}; }
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;
  };

  void let_stay(bool may) {
    if (std::exchange(may_stay_, may) == may) return;
    for (const auto& work : works_)
      if (work) (void)work->may_stay(may);
  }
  template <class Some>
  static void begin(Some& batch, std::list<Some>& under_way) {
    under_way.push_back(std::move(batch));
    under_way.back().copies.begin();
  }
  template <class Some>
  static void go_on(std::list<Some>& under_way) {
    std::erase_if(under_way, [](Some& batch) {
      bool done = false;
      const Status status = batch.copies.poll(done);
      for (const Collected& one : batch.collected)
        if (done) one.tell(status);
      return done;
    });
  }

  // Brings what has been found: it is complete for the host MPI, and its senders wait until it has
  // been fetched. What comes of it nobody asks any more.
  void end_all() {
    if (near_ && near_->copies.size() != 0) begin(*near_, near_under_way_);
    if (staged_->copies.size() != 0) begin(*staged_, staged_under_way_);
    end_each(near_under_way_);
    end_each(staged_under_way_);
    if (far_ && far_->size() != 0) (void)far_->run();
  }
  template <class Some>
  static void end_each(std::list<Some>& under_way) {
    for (Some& batch : under_way)
      for (bool done = false; !done; engine().port().pause()) (void)batch.copies.poll(done);
  }

  std::vector<std::shared_ptr<core::Tracked>> works_;  // by place in the array; null: not ours
  std::size_t loans_ = 0;                              // of these, not complete
  bool may_stay_ = false;
  std::optional<Near> near_;   // found, and not begun
  std::size_t near_seen_ = 0;  // of these, before this look
  std::optional<Staged> staged_{std::in_place};
  std::list<Near> near_under_way_;
  std::list<Staged> staged_under_way_;
  std::optional<p2p::NetBatch> far_;
  std::vector<Collected> fetched_;
};

}  // namespace accord::shim
