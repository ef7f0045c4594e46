// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How requests of a program complete over a real MPI: alone, or in arrays that hold a generalised
// request of the program's own now and then.
#include <algorithm>
#include <thread>

#include "callbacks.h"
#include "job.h"
#include "named_reach.h"
#include "real_mpi.h"

namespace accord::programs {

using model::Random;

namespace {

constexpr unsigned kOwnPercent = 30;  // of arrays with a request of the program's own

}  // namespace

// The handles of some requests, and perhaps one of the program's own among them.
class RealMpi::Mixed {
 public:
  Mixed(RealMpi& mpi, std::vector<Request>& requests)
      : mpi_(mpi), requests_(requests), random_(mpi.draw()) {
    for (const Request request : requests) handles.push_back(mpi.state_of(request).handle);
    if (!random_.percent(kOwnPercent)) return;
    own_ = static_cast<std::ptrdiff_t>(random_.below(handles.size() + 1));
    const bool by_itself = job.has_threads && random_.percent(50);
    request_ = start_own(by_itself);
    if (!by_itself) complete_own(request_);
    handles.insert(handles.begin() + own_, request_);
  }
  ~Mixed() {
    // Where the call has not ended with it.
    if (own_ < 0 || handles[static_cast<std::size_t>(own_)] == MPI_REQUEST_NULL) return;
    MPI_Status status;
    check(MPI_Wait(&handles[static_cast<std::size_t>(own_)], &status), "MPI_Wait");
    check_own(status);
  }
  Mixed(const Mixed&) = delete;
  Mixed& operator=(const Mixed&) = delete;

  int size() const { return static_cast<int>(handles.size()); }
  Random& random() { return random_; }

  // Notes what the call has completed: the number of a request of the program, or -1 for its own.
  int completed(int at, const MPI_Status& status, Status& result) {
    if (at == own_) {
      check_own(status);
      if (handles[static_cast<std::size_t>(at)] != MPI_REQUEST_NULL)
        fail(Symptom::error, "a generalised request that has completed is not MPI_REQUEST_NULL");
      return -1;
    }
    const int number = own_ >= 0 && at > own_ ? at - 1 : at;
    Request& request = requests_[static_cast<std::size_t>(number)];
    mpi_.state_of(request).handle = handles[static_cast<std::size_t>(at)];
    result = converted(status);
    mpi_.ended(request);
    return number;
  }

  std::vector<MPI_Request> handles;

 private:
  RealMpi& mpi_;
  std::vector<Request>& requests_;
  Random random_;
  std::ptrdiff_t own_ = -1;  // its place
  MPI_Request request_ = MPI_REQUEST_NULL;
};

bool RealMpi::test(Request& request, Status& status) {
  State& state = state_of(request);
  MPI_Status found;
  int flag = 0;
  int count = 0;
  int index = 0;
  switch (draw().below(may_test_all({request}) ? 4 : 3)) {
    case 0:
      check(MPI_Testany(1, &state.handle, &index, &flag, &found), "MPI_Testany");
      break;
    case 1:
      check(MPI_Testsome(1, &state.handle, &count, &index, &found), "MPI_Testsome");
      flag = count == 1 ? 1 : 0;
      break;
    case 2:
      check(MPI_Test(&state.handle, &flag, &found), "MPI_Test");
      break;
    default:
      check(MPI_Testall(1, &state.handle, &flag, &found), "MPI_Testall");
  }
  if (flag == 0) return false;
  status = converted(found);
  ended(request);
  return true;
}

void RealMpi::wait(Request& request, Status& status) {
  State& state = state_of(request);
  MPI_Status found;
  int count = 1;
  int index = 0;
  switch (draw().below(6)) {
    case 0:
      check(MPI_Waitany(1, &state.handle, &index, &found), "MPI_Waitany");
      break;
    case 1:
      check(MPI_Waitsome(1, &state.handle, &count, &index, &found), "MPI_Waitsome");
      break;
    case 2:
      check(MPI_Waitall(1, &state.handle, &found), "MPI_Waitall");
      break;
    default:
      check(MPI_Wait(&state.handle, &found), "MPI_Wait");
  }
  if (count != 1 || index != 0) fail(Symptom::error, "a wait found no active request");
  status = converted(found);
  ended(request);
}

void RealMpi::wait_all(std::vector<Request>& requests, std::vector<Status>& statuses) {
  Mixed mixed(*this, requests);
  std::vector<MPI_Status> found(mixed.handles.size());
  check(MPI_Waitall(mixed.size(), mixed.handles.data(), found.data()), "MPI_Waitall");
  statuses.resize(requests.size());
  for (int at = 0; at < mixed.size(); ++at) {
    Status status;
    const int number = mixed.completed(at, found[static_cast<std::size_t>(at)], status);
    if (number >= 0) statuses[static_cast<std::size_t>(number)] = status;
  }
}

bool RealMpi::may_test_all(const std::vector<Request>& requests) {
  return works("Testall of a persistent collective") ||
         std::none_of(requests.begin(), requests.end(), [&](Request request) {
           const State& state = state_of(request);
           return state.persistent && state.collective;
         });
}

bool RealMpi::test_all(std::vector<Request>& requests, std::vector<Status>& statuses) {
  if (!may_test_all(requests)) return false;
  Mixed mixed(*this, requests);
  std::vector<MPI_Status> found(mixed.handles.size());
  int flag = 0;
  check(MPI_Testall(mixed.size(), mixed.handles.data(), &flag, found.data()), "MPI_Testall");
  if (flag == 0) return false;
  statuses.resize(requests.size());
  for (int at = 0; at < mixed.size(); ++at) {
    Status status;
    const int number = mixed.completed(at, found[static_cast<std::size_t>(at)], status);
    if (number >= 0) statuses[static_cast<std::size_t>(number)] = status;
  }
  return true;
}

int RealMpi::wait_any(std::vector<Request>& requests, Status& status) {
  Mixed mixed(*this, requests);
  const bool polls = mixed.random().percent(30);
  for (;;) {
    MPI_Status found;
    int at = 0;
    int flag = 1;
    if (polls) {
      check(MPI_Testany(mixed.size(), mixed.handles.data(), &at, &flag, &found), "MPI_Testany");
    } else {
      check(MPI_Waitany(mixed.size(), mixed.handles.data(), &at, &found), "MPI_Waitany");
    }
    if (flag == 0) {
      std::this_thread::yield();
      continue;
    }
    if (at == MPI_UNDEFINED) return model::kUndefined;
    const int number = mixed.completed(at, found, status);
    if (number >= 0) return number;
  }
}

std::vector<int> RealMpi::wait_some(std::vector<Request>& requests, std::vector<Status>& statuses) {
  Mixed mixed(*this, requests);
  const bool polls = mixed.random().percent(30);
  std::vector<int> numbers;
  while (numbers.empty()) {
    std::vector<MPI_Status> found(mixed.handles.size());
    std::vector<int> places(mixed.handles.size());
    int count = 0;
    check((polls ? MPI_Testsome : MPI_Waitsome)(mixed.size(), mixed.handles.data(), &count,
                                                places.data(), found.data()),
          polls ? "MPI_Testsome" : "MPI_Waitsome");
    if (count == MPI_UNDEFINED) break;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      Status status;
      const int number = mixed.completed(places[i], found[i], status);
      if (number < 0) continue;
      numbers.push_back(number);
      statuses.push_back(status);
    }
    if (count == 0) std::this_thread::yield();
  }
  return numbers;
}

}  // namespace accord::programs
