// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/request_calls.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "shim/check.h"
#include "shim/looks.h"
#include "shim/settle.h"

namespace accord::shim {

int Wait(MPI_Request* request, MPI_Status* status) {
  const check::Completion checked("MPI_Wait", 1, request);
  if (quiet() || request == nullptr) {
    const Region region(engine());
    return host::Wait(request, status);
  }
  const Watch watched(1, request);
  Statuses statuses(status, 1, !watched.empty());
  // An early one is inactive to the host MPI, whose calls for one request and for all of an array
  // then say that it is complete; those for any of an array pass it over.
  return complete(
      watched, WaitsFor::all, [&] { return host::Wait(request, statuses.get()); },
      [&](bool& done) -> int {
        int flag = 0;
        if (!watched.all_early_through()) return MPI_SUCCESS;
        const int tested = host::Test(request, &flag, statuses.get());
        done = flag != 0;
        return tested;
      },
      [&](int code) {
        return watched.empty() ? code : settle(watched.front(), *statuses.get(), code);
      });
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const check::Completion checked("MPI_Test", 1, request);
  if (quiet() || request == nullptr || flag == nullptr) return host::Test(request, flag, status);
  engine().progress();
  const Watch watched(1, request);
  if (all_are_there(watched)) return test_watched(watched, request, flag, status);
  *flag = 0;
  return MPI_SUCCESS;
}

namespace {

// Waitall where nothing of ours needs progress.
int wait_for_all(const Watch& watched, int count, MPI_Request array[], MPI_Status given[]) {
  Statuses statuses(given, count, !watched.empty());
  const auto status_of = [&](int index) { return statuses.get() + index; };
  int code = MPI_SUCCESS;
  {
    const Region region(engine());
    code = or_settle(
        watched, [&] { return host::Waitall(count, array, statuses.get()); }, status_of);
  }
  return settled_as_array(code) ? settle_array(watched, code, status_of) : code;
}

// Waitall where something of ours needs progress, or has to be done for each: one request by
// itself, in the order in which they complete, since the testing form of all at once is not to be
// trusted (MPICH 5.0.2's MPI_Testall says MPI_ERR_IN_STATUS of a persistent collective that went
// well).
int wait_for_each(Looks& looks, int count, MPI_Request array[], MPI_Status statuses[]) {
  std::vector<int> codes(static_cast<std::size_t>(count));
  std::vector<int> left(codes.size());
  std::iota(left.begin(), left.end(), 0);
  const auto status_of = [&](int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
  };
  const core::Engine::Waiting waiting(engine());
  // The last one is waited for by itself, once all senders of others have their memory back.
  while (left.size() > 1 || !looks.idle()) {
    looks.let_stay_beside(left.size());
    engine().progress();
    bool in_order = true;
    std::erase_if(left, [&](int i) {
      if (looks.keeps_order(i) && !in_order) return false;
      const bool is_complete =
          looks.test(i, array + i, status_of(i), codes[static_cast<std::size_t>(i)]);
      in_order = in_order && (is_complete || !looks.keeps_order(i));
      return is_complete;
    });
    looks.advance(left.size() <= 1);
    engine().port().pause();
  }
  looks.let_stay_beside(left.size());
  for (const int last : left)
    codes[static_cast<std::size_t>(last)] = Wait(array + last, status_of(last));
  // Of each, as host MPIs do even where none has failed.
  for (int i = 0; i < count && statuses != MPI_STATUSES_IGNORE; ++i) {
    statuses[i].MPI_ERROR = codes[static_cast<std::size_t>(i)];
  }
  return std::ranges::all_of(codes, [](int code) { return code == MPI_SUCCESS; })
             ? MPI_SUCCESS
             : MPI_ERR_IN_STATUS;
}

}  // namespace

int Waitall(int count, MPI_Request array[], MPI_Status given[]) {
  const check::Completion checked("MPI_Waitall", count, array);
  if (quiet() || count < 0) {
    const Region region(engine());
    return host::Waitall(count, array, given);
  }
  std::optional<Looks> looks;
  {
    const Watch watched(count, array);
    // A header's message is fetched while others are on their way, and others' are copied out.
    if (array == nullptr ||
        (engine().idle() && !listens() && !watched.has_early() && !watched.have_copies_in_common()))
      return wait_for_all(watched, count, array, given);
    looks.emplace(watched, count);
  }
  return wait_for_each(*looks, count, array, given);
}

int Testall(int count, MPI_Request array[], int* flag, MPI_Status given[]) {
  const check::Completion checked("MPI_Testall", count, array);
  if (quiet() || count < 0 || flag == nullptr) return host::Testall(count, array, flag, given);
  engine().progress();
  const Watch watched(count, array);
  Statuses statuses(given, count, !watched.empty());
  if (!watched.all_early_through() || !all_are_there(watched)) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  const auto status_of = [&](int index) { return statuses.get() + index; };
  const int code = or_settle(
      watched, [&] { return host::Testall(count, array, flag, statuses.get()); }, status_of);
  if (!settled_as_array(code) || (code == MPI_SUCCESS && *flag == 0)) return code;
  return settle_array(watched, code, status_of);
}

int Waitany(int count, MPI_Request array[], int* index, MPI_Status* status) {
  const check::Completion checked("MPI_Waitany", count, array);
  if (quiet() || count < 0 || index == nullptr) {
    const Region region(engine());
    return host::Waitany(count, array, index, status);
  }
  const Watch watched(count, array);
  Statuses statuses(status, 1, !watched.empty());
  const Watched* early = nullptr;
  return complete(
      watched, WaitsFor::any, [&] { return host::Waitany(count, array, index, statuses.get()); },
      [&](bool& done) -> int {
        int flag = 0;
        early = watched.early();
        done = early != nullptr;
        if (done) return MPI_SUCCESS;
        Arrived arrived(watched, count, array);
        const int tested = host::Testany(count, arrived.array(), index, &flag, statuses.get());
        done =
            flag != 0 && (*index != MPI_UNDEFINED || (!watched.has_early() && arrived.are_all()));
        return tested;
      },
      [&](int code) {
        if (early != nullptr) return settle_early(*early, *index, *statuses.get());
        for (const Watched& one : watched) {
          if (one.index == *index) return settle(one, *statuses.get(), code);
        }
        return code;
      });
}

int Testany(int count, MPI_Request array[], int* index, int* flag, MPI_Status* status) {
  const check::Completion checked("MPI_Testany", count, array);
  if (quiet() || count < 0 || index == nullptr || flag == nullptr) {
    return host::Testany(count, array, index, flag, status);
  }
  engine().progress();
  const Watch watched(count, array);
  Statuses statuses(status, 1, !watched.empty());
  if (const Watched* early = watched.early()) {
    *flag = 1;
    return settle_early(*early, *index, *statuses.get());
  }
  *index = MPI_UNDEFINED;
  Arrived arrived(watched, count, array);
  const int code = host::Testany(count, arrived.array(), index, flag, statuses.get());
  if (code == MPI_SUCCESS && *index == MPI_UNDEFINED && (watched.has_early() || !arrived.are_all()))
    *flag = 0;
  if (code == MPI_SUCCESS && *flag == 0) return code;
  for (const Watched& one : watched) {
    if (one.index == *index) return settle(one, *statuses.get(), code);
  }
  return code;
}

namespace {

// Waitsome and Testsome: the i-th status belongs to request indices[i].
struct StatusOfSome {
  int* outcount;
  int* indices;
  MPI_Status* statuses;

  MPI_Status* operator()(int index) const {
    for (int i = 0; i < *outcount; ++i) {
      if (indices[i] == index) return statuses + i;
    }
    return nullptr;
  }
};

// What the host MPI does not see, or takes for inactive, is active all the same.
int test_some(const Watch& watched, int count, MPI_Request array[], const StatusOfSome& some) {
  const auto test = [&] {
    Arrived arrived(watched, count, array);
    const int code =
        host::Testsome(count, arrived.array(), some.outcount, some.indices, some.statuses);
    if (code == MPI_SUCCESS && *some.outcount == MPI_UNDEFINED &&
        (watched.has_early() || !arrived.are_all()))
      *some.outcount = 0;
    return code;
  };
  return or_settle(watched, test, some);
}

int settle_some(const Watch& watched, int code, const StatusOfSome& status_of,
                Ended ended = Ended::completed) {
  if (!settled_as_array(code) || *status_of.outcount == MPI_UNDEFINED) return code;
  return settle_array(watched, code, status_of, ended);
}

}  // namespace

int Waitsome(int count, MPI_Request array[], int* outcount, int indices[], MPI_Status given[]) {
  const check::Completion checked("MPI_Waitsome", count, array);
  if (quiet() || count < 0 || outcount == nullptr) {
    const Region region(engine());
    return host::Waitsome(count, array, outcount, indices, given);
  }
  const Watch watched(count, array);
  Statuses statuses(given, count, !watched.empty());
  const StatusOfSome status_of{outcount, indices, statuses.get()};
  const Watched* early = nullptr;
  return complete(
      watched, WaitsFor::any,
      [&] {
        const auto waits = [&] {
          return host::Waitsome(count, array, outcount, indices, statuses.get());
        };
        return or_settle(watched, waits, status_of);
      },
      [&](bool& done) -> int {
        early = watched.early();
        done = early != nullptr;
        if (done) return MPI_SUCCESS;
        const int tested = test_some(watched, count, array, status_of);
        done = *outcount != 0;
        return tested;
      },
      [&](int code) {
        if (early == nullptr) return settle_some(watched, code, status_of);
        *outcount = 1;
        return settle_early_of_some(*early, indices[0], *statuses.get());
      });
}

int Testsome(int count, MPI_Request array[], int* outcount, int indices[], MPI_Status given[]) {
  const check::Completion checked("MPI_Testsome", count, array);
  if (quiet() || count < 0 || outcount == nullptr)
    return host::Testsome(count, array, outcount, indices, given);
  engine().progress();
  const Watch watched(count, array);
  Statuses statuses(given, count, !watched.empty());
  if (const Watched* early = watched.early()) {
    *outcount = 1;
    return settle_early_of_some(*early, indices[0], *statuses.get());
  }
  const StatusOfSome status_of{outcount, indices, statuses.get()};
  return settle_some(watched, test_some(watched, count, array, status_of), status_of);
}

int Start(MPI_Request* request) {
  check::start("MPI_Start", 1, request);
  if (quiet() || request == nullptr) return host::Start(request);
  engine().progress();
  const auto work = requests().find(to_bits(*request));
  const ReceiveOrder ordered(work ? from_bits<MPI_Comm>(work->context) : MPI_COMM_NULL);
  if (work) {
    device::order_behind_program();
    const Status status = requests().start(to_bits(*request));
    if (!status.ok()) return raise(from_bits<MPI_Comm>(work->context), status, work->site);
    if (work->early) return MPI_SUCCESS;
  }
  const int code = host::Start(request);
  if (code == MPI_SUCCESS) requests().started(to_bits(*request));
  return code;
}

namespace {

// Handles of persistent requests stay as they are.
int start_in_host(int count, MPI_Request array[]) {
  std::vector<MPI_Request> begun(array, array + std::max(count, 0));
  std::erase_if(begun, [](MPI_Request request) {
    const auto work = requests().find(to_bits(request));
    return work && work->early;
  });
  const int code = host::Startall(count < 0 ? count : static_cast<int>(begun.size()), begun.data());
  for (const MPI_Request request : begun) {
    if (code == MPI_SUCCESS) requests().started(to_bits(request));
  }
  return code;
}

}  // namespace

int Startall(int count, MPI_Request array[]) {
  if (quiet() || array == nullptr) return host::Startall(count, array);
  if (must_post_receives()) {
    int code = MPI_SUCCESS;
    for (int i = 0; i < count && code == MPI_SUCCESS; ++i) code = Start(array + i);
    return code;
  }
  check::start("MPI_Startall", count, array);
  engine().progress();
  device::order_behind_program();
  for (int i = 0; i < count; ++i) {
    const auto work = requests().find(to_bits(array[i]));
    if (!work) continue;
    const Status status = requests().start(to_bits(array[i]));
    if (status.ok()) continue;
    // What has begun goes on, and needs its request.
    (void)start_in_host(i, array);
    return raise(from_bits<MPI_Comm>(work->context), status, work->site);
  }
  return start_in_host(count, array);
}

namespace {

// One whose message another request of the host MPI brings, and whose own its user has freed.
class EarlyOrphan final : public core::Operation {
 public:
  explicit EarlyOrphan(std::shared_ptr<core::Tracked> work) : work_(std::move(work)) {}
  Phase advance(core::HostPort&) override {
    if (!work_->early_is_through() || work_->is_being_fetched()) return Phase::issued;
    status_ = work_->finish({});
    work_.reset();
    return Phase::done;
  }

 private:
  std::shared_ptr<core::Tracked> work_;
};

}  // namespace

int Request_free(MPI_Request* request) {
  if (request != nullptr) check::forget(*request);
  if (quiet() || request == nullptr) return host::Request_free(request);
  const core::HostRequest bits = to_bits(*request);
  const auto work = requests().find(bits);
  if (!work) return host::Request_free(request);
  if (work->active && !work->may_be_freed_active())
    return raise(from_bits<MPI_Comm>(work->context),
                 {StatusCode::invalid_argument, "MPI_Request_free of a request that is active"});
  requests().forget(bits);
  if (!work->active || work->finished) return host::Request_free(request);
  work->wanted();
  if (work->early) {
    engine().submit_unawaited(std::make_shared<EarlyOrphan>(work));
    return host::Request_free(request);
  }
  // Nobody waits for it: of a receive the message may never come.
  engine().submit_unawaited(
      std::make_shared<core::OrphanOperation>(bits, work, [](core::HostRequest orphan) {
        auto handle = from_bits<MPI_Request>(orphan);
        (void)host::Request_free(&handle);
      }));
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

// What has been matched is received.
int Cancel(MPI_Request* request) {
  if (quiet() || request == nullptr) return host::Cancel(request);
  const auto work = requests().find(to_bits(*request));
  return work && (work->cancel() || work->early) ? MPI_SUCCESS : host::Cancel(request);
}

int Grequest_complete(MPI_Request request) { return host::Grequest_complete(request); }

// A request reported complete must have its data in place, though the handle stays. The host MPI is
// asked once: MPICH 5.0.2 forgets the status of a persistent request when it has told it.
int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (quiet() || flag == nullptr) return host::Request_get_status(request, flag, status);
  engine().progress();
  const Watch watched(1, &request);
  Statuses statuses(status, 1, !watched.empty());
  if (!watched.all_early_through() || !all_are_there(watched)) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  const int code = host::Request_get_status(request, flag, statuses.get());
  if (watched.empty() || (code == MPI_SUCCESS && *flag == 0)) return code;
  return settle(watched.front(), *statuses.get(), code, Ended::kept);
}

#ifdef ACCORD_HAS_Request_get_status_all
int Request_get_status_all(int count, const MPI_Request array[], int* flag, MPI_Status given[]) {
  if (quiet() || count < 0 || flag == nullptr)
    return host::Request_get_status_all(count, array, flag, given);
  engine().progress();
  const Watch watched(count, array);
  Statuses statuses(given, count, !watched.empty());
  if (!watched.all_early_through() || !all_are_there(watched)) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  const int code = host::Request_get_status_all(count, array, flag, statuses.get());
  if (!settled_as_array(code) || (code == MPI_SUCCESS && *flag == 0)) return code;
  return settle_array(
      watched, code, [&](int index) { return statuses.get() + index; }, Ended::kept);
}

int Request_get_status_any(int count, const MPI_Request array[], int* index, int* flag,
                           MPI_Status* status) {
  if (quiet() || count < 0 || index == nullptr || flag == nullptr) {
    return host::Request_get_status_any(count, array, index, flag, status);
  }
  engine().progress();
  const Watch watched(count, array);
  Statuses statuses(status, 1, !watched.empty());
  if (const Watched* early = watched.early()) {
    *flag = 1;
    return settle_early(*early, *index, *statuses.get(), Ended::kept);
  }
  *index = MPI_UNDEFINED;
  Arrived arrived(watched, count, array);
  const int code =
      host::Request_get_status_any(count, arrived.array(), index, flag, statuses.get());
  if (code == MPI_SUCCESS && *index == MPI_UNDEFINED && (watched.has_early() || !arrived.are_all()))
    *flag = 0;
  if (code == MPI_SUCCESS && *flag == 0) return code;
  for (const Watched& one : watched) {
    if (one.index == *index) return settle(one, *statuses.get(), code, Ended::kept);
  }
  return code;
}

int Request_get_status_some(int count, const MPI_Request array[], int* outcount, int indices[],
                            MPI_Status given[]) {
  if (quiet() || count < 0 || outcount == nullptr) {
    return host::Request_get_status_some(count, array, outcount, indices, given);
  }
  engine().progress();
  const Watch watched(count, array);
  Statuses statuses(given, count, !watched.empty());
  if (const Watched* early = watched.early()) {
    *outcount = 1;
    return settle_early_of_some(*early, indices[0], *statuses.get(), Ended::kept);
  }
  Arrived arrived(watched, count, array);
  const int code =
      host::Request_get_status_some(count, arrived.array(), outcount, indices, statuses.get());
  if (code == MPI_SUCCESS && *outcount == MPI_UNDEFINED &&
      (watched.has_early() || !arrived.are_all()))
    *outcount = 0;
  return settle_some(watched, code, {outcount, indices, statuses.get()}, Ended::kept);
}
#endif

}  // namespace accord::shim
