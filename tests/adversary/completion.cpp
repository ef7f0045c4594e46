// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When requests complete, and what looks at them tell. A request that is under way may be refused
// some looks, some requests many; then it is looked at. One that was told to be complete is not
// refused again. Waits are loops of such looks.
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "adversary.h"
#include "host_mpi.h"  // which functions this MPI declares

namespace accord::adversary {
namespace {

struct UnderWay {
  MPI_Comm comm = MPI_COMM_NULL;
  unsigned refusals_left = 0;
  bool active = false;  // else persistent, and not started
  bool fails = false;
  bool shared = false;  // by requests that are complete at birth: MPIs give out one handle for all
};

std::mutex mutex;  // guards the table
std::unordered_map<std::uint64_t, UnderWay>& table() {
  static auto& kept = *new std::unordered_map<std::uint64_t, UnderWay>;
  return kept;
}

unsigned draw_refusals() {
  const unsigned limit = settings().looks_max;
  if (limit == 0 || percent(50)) return 0;
  return static_cast<unsigned>(below(percent(5) ? 8U * limit : limit));
}

UnderWay* find(MPI_Request request) {
  const auto found = table().find(to_bits(request));
  return found == table().end() || !found->second.active ? nullptr : &found->second;
}

// Whether a request is to be looked at; what is not under way is.
bool may_look(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return true;
  const std::lock_guard locked(mutex);
  UnderWay* const known = find(request);
  if (known == nullptr || known->refusals_left == 0) return true;
  --known->refusals_left;
  counts().looks.fetch_add(1, std::memory_order_relaxed);
  return false;
}

bool may_look_at_all(int count, const MPI_Request* requests) {
  bool refused = false;
  for (int i = 0; i < count; ++i) refused = !may_look(requests[i]) || refused;
  return !refused;
}

bool is_under_way(MPI_Request request) {
  const std::lock_guard locked(mutex);
  return find(request) != nullptr;
}

// The real MPI says that it is still under way.
void look_later(MPI_Request request) {
  const std::lock_guard locked(mutex);
  UnderWay* const known = find(request);
  if (known != nullptr && !known->shared && percent(10))
    known->refusals_left = static_cast<unsigned>(below(4));
}

// `request` was completed, and is `left` now. Whether it is to fail, and on which communicator.
bool complete(MPI_Request request, MPI_Request left, const char* name, MPI_Comm& comm) {
  if (request == MPI_REQUEST_NULL) return false;
  const std::lock_guard locked(mutex);
  const auto found = table().find(to_bits(request));
  if (found == table().end() || !found->second.active) return false;
  comm = found->second.comm;
  const bool fails = found->second.fails || fault_is_due(name);
  found->second.active = found->second.fails = false;
  if (left == MPI_REQUEST_NULL && !found->second.shared) table().erase(found);
  return fails;
}

int complete_one(int code, MPI_Request request, MPI_Request left, const char* name) {
  MPI_Comm comm = MPI_COMM_NULL;
  const bool fails = complete(request, left, name, comm);
  return fails && code == MPI_SUCCESS ? fail(comm, name) : code;
}

// Of a call that completes several: `places` of `before` are complete, and have a status each.
int complete_several(int code, const std::vector<MPI_Request>& before, const MPI_Request* left,
                     const std::vector<int>& places, MPI_Status* statuses, const char* name) {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<bool> failed;
  for (const int place : places) {
    const auto at = static_cast<std::size_t>(place);
    failed.push_back(complete(before[at], left[at], name, comm));
  }
  if (code != MPI_SUCCESS || std::count(failed.begin(), failed.end(), true) == 0) return code;
  if (statuses != MPI_STATUSES_IGNORE) {
    for (std::size_t i = 0; i < failed.size(); ++i) {
      statuses[i].MPI_ERROR = failed[i] ? MPI_ERR_OTHER : MPI_SUCCESS;
    }
  }
  (void)fail(comm, name);
  return MPI_ERR_IN_STATUS;
}

// The requests of an array that are looked at, in some order.
struct Looked {
  std::vector<int> places;
  std::vector<MPI_Request> requests;
  bool refused = false;  // others are not

  Looked(int count, const MPI_Request* all) {
    for (int i = 0; i < count; ++i) {
      if (may_look(all[i])) {
        places.push_back(i);
      } else {
        refused = true;
      }
    }
    if (percent(50)) std::reverse(places.begin(), places.end());
    for (std::size_t i = places.size(); i > 1 && percent(80); --i) {
      std::swap(places[i - 1], places[below(i)]);
    }
    for (const int place : places) requests.push_back(all[place]);
  }
  int count() const { return static_cast<int>(places.size()); }
  void put_back(MPI_Request* all) const {
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = requests[i];
  }
  // One of a lower place may be complete as well.
  void note_order(int at) const {
    if (std::any_of(places.begin() + at, places.end(), [&](int p) { return p < places[at]; })) {
      counts().reordered.fetch_add(1, std::memory_order_relaxed);
    }
  }
};

int test(MPI_Request* request, int* flag, MPI_Status* status, const char* name) {
  *flag = 0;
  if (!may_look(*request)) return MPI_SUCCESS;
  const MPI_Request before = *request;
  const int code = REAL(Test)(request, flag, status);
  if (code == MPI_SUCCESS && *flag == 0) {
    look_later(before);
    return code;
  }
  return complete_one(code, before, *request, name);
}

// Of a call that completes all. After an error some may be under way, and are not refused any more.
int complete_all(int code, const std::vector<MPI_Request>& before, const MPI_Request* left,
                 MPI_Status* statuses, const char* name) {
  std::vector<int> places(before.size());
  std::iota(places.begin(), places.end(), 0);
  return complete_several(code, before, left, places, statuses, name);
}

int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status,
             const char* name) {
  Looked looked(count, requests);
  const std::vector<MPI_Request> before = looked.requests;
  int at = MPI_UNDEFINED;
  *flag = 0;
  *index = MPI_UNDEFINED;
  if (looked.count() == 0 && looked.refused) return MPI_SUCCESS;
  const int code = REAL(Testany)(looked.count(), looked.requests.data(), &at, flag, status);
  looked.put_back(requests);
  if (at == MPI_UNDEFINED || at < 0 || at >= looked.count()) {
    if (looked.refused && code == MPI_SUCCESS) *flag = 0;
    return code;
  }
  if (code == MPI_SUCCESS && *flag == 0) return code;
  *index = looked.places[static_cast<std::size_t>(at)];
  looked.note_order(at);
  return complete_one(code, before[static_cast<std::size_t>(at)],
                      looked.requests[static_cast<std::size_t>(at)], name);
}

int test_some(int count, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses,
              const char* name) {
  Looked looked(count, requests);
  // Now and then one alone.
  while (looked.count() > 1 && is_under_way(looked.requests.back()) && percent(40)) {
    looked.places.pop_back();
    looked.requests.pop_back();
    looked.refused = true;
    counts().withheld.fetch_add(1, std::memory_order_relaxed);
  }
  *outcount = 0;
  if (looked.count() == 0 && looked.refused) return MPI_SUCCESS;
  const std::vector<MPI_Request> before = looked.requests;
  const int code =
      REAL(Testsome)(looked.count(), looked.requests.data(), outcount, indices, statuses);
  looked.put_back(requests);
  if (*outcount == MPI_UNDEFINED) {
    if (looked.refused && code == MPI_SUCCESS) *outcount = 0;
    return code;
  }
  const std::vector<int> done(indices, indices + *outcount);
  for (int i = 0; i < *outcount; ++i) {
    looked.note_order(done[static_cast<std::size_t>(i)]);
    indices[i] = looked.places[static_cast<std::size_t>(done[static_cast<std::size_t>(i)])];
  }
  return complete_several(code, before, looked.requests.data(), done, statuses, name);
}

// Until `look` tells of something, or fails.
template <class Look>
int wait(Look look) {
  linger();
  for (;;) {
    bool done = false;
    const int code = look(done);
    if (done || code != MPI_SUCCESS) {
      linger();
      return code;
    }
    (void)sched_yield();
  }
}

void start(MPI_Request request) {
  const std::lock_guard locked(mutex);
  UnderWay& known = table()[to_bits(request)];
  known.active = true;
  known.refusals_left = draw_refusals();
  known.fails = fault_is_due("Start");
}

}  // namespace

void begin(MPI_Request request, MPI_Comm comm, bool fails) {
  if (request == MPI_REQUEST_NULL) return;
  const std::lock_guard locked(mutex);
  UnderWay& known = table()[to_bits(request)];
  const bool shared = known.shared || known.active;
  known = {comm, shared ? 0 : draw_refusals(), true, fails, shared};
}

void remember(MPI_Request request, MPI_Comm comm) {
  const std::lock_guard locked(mutex);
  table()[to_bits(request)] = {comm, 0, false, false, false};
}

}  // namespace accord::adversary

using namespace accord::adversary;
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  linger();
  return test(request, flag, status, "Test");
}

EXPORTED int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  return wait([&](bool& done) {
    int flag = 0;
    const int code = test(request, &flag, status, "Wait");
    done = flag != 0;
    return code;
  });
}

EXPORTED int PMPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  linger();
  *flag = 0;
  if (!may_look_at_all(count, requests)) return MPI_SUCCESS;
  const std::vector<MPI_Request> before(requests, requests + std::max(count, 0));
  const int code = REAL(Testall)(count, requests, flag, statuses);
  if (code == MPI_SUCCESS && *flag == 0) return code;
  return complete_all(code, before, requests, statuses, "Testall");
}

// The real one in the end: MPICH 5.0.2's MPI_Testall says MPI_ERR_IN_STATUS of a persistent
// collective that went well.
EXPORTED int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  linger();
  while (!may_look_at_all(count, requests)) (void)sched_yield();
  const std::vector<MPI_Request> before(requests, requests + std::max(count, 0));
  const int code = REAL(Waitall)(count, requests, statuses);
  return complete_all(code, before, requests, statuses, "Waitall");
}

EXPORTED int PMPI_Testany(int count, MPI_Request requests[], int* index, int* flag,
                          MPI_Status* status) {
  linger();
  return test_any(count, requests, index, flag, status, "Testany");
}

EXPORTED int PMPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return wait([&](bool& done) {
    int flag = 0;
    const int code = test_any(count, requests, index, &flag, status, "Waitany");
    done = flag != 0;
    return code;
  });
}

EXPORTED int PMPI_Testsome(int count, MPI_Request requests[], int* outcount, int indices[],
                           MPI_Status statuses[]) {
  linger();
  return test_some(count, requests, outcount, indices, statuses, "Testsome");
}

EXPORTED int PMPI_Waitsome(int count, MPI_Request requests[], int* outcount, int indices[],
                           MPI_Status statuses[]) {
  return wait([&](bool& done) {
    const int code = test_some(count, requests, outcount, indices, statuses, "Waitsome");
    done = *outcount != 0;
    return code;
  });
}

EXPORTED int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  linger();
  *flag = 0;
  if (!may_look(request)) return MPI_SUCCESS;
  const int code = REAL(Request_get_status)(request, flag, status);
  if (code == MPI_SUCCESS && *flag == 0) look_later(request);
  return code;
}

#ifdef ACCORD_HAS_Request_get_status_all
EXPORTED int PMPI_Request_get_status_all(int count, const MPI_Request requests[], int* flag,
                                         MPI_Status statuses[]) {
  linger();
  *flag = 0;
  if (!may_look_at_all(count, requests)) return MPI_SUCCESS;
  return REAL(Request_get_status_all)(count, requests, flag, statuses);
}
#endif

EXPORTED int PMPI_Start(MPI_Request* request) {
  linger();
  take_message();
  const int code = REAL(Start)(request);
  if (code == MPI_SUCCESS) start(*request);
  return code;
}

EXPORTED int PMPI_Startall(int count, MPI_Request requests[]) {
  linger();
  take_message();
  const int code = REAL(Startall)(count, requests);
  for (int i = 0; code == MPI_SUCCESS && i < count; ++i) start(requests[i]);
  return code;
}

EXPORTED int PMPI_Request_free(MPI_Request* request) {
  linger();
  {
    const std::lock_guard locked(mutex);
    const auto found = table().find(to_bits(*request));
    if (found != table().end() && !found->second.shared) table().erase(found);
  }
  return REAL(Request_free)(request);
}

EXPORTED int PMPI_Grequest_start(MPI_Grequest_query_function* query,
                                 MPI_Grequest_free_function* free,
                                 MPI_Grequest_cancel_function* cancel, void* state,
                                 MPI_Request* request) {
  const int code = REAL(Grequest_start)(query, free, cancel, state, request);
  if (code == MPI_SUCCESS) begin(*request, MPI_COMM_NULL, false);
  return code;
}
