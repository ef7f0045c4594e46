// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "requests.h"

#include <sched.h>

#include <algorithm>

#include "exclusions.h"

namespace accord::conformance {
namespace {

constexpr int kSpinsBeforeYield = 20;

// Gives the core away now and then: ranks outnumber cores in most test runs.
class Patience {
 public:
  void wait() {
    if (++spins_ % kSpinsBeforeYield == 0) sched_yield();
  }

 private:
  int spins_ = 0;
};

void keep_first(int& kept, int code) {
  if (kept == MPI_SUCCESS) kept = code;
}

class Completer {
 public:
  Completer(const Run& run, std::vector<MPI_Request>& requests, std::vector<MPI_Status>* statuses,
            Rng rng)
      : run_(run), api_(run.api()), requests_(requests), statuses_(statuses), rng_(rng) {}

  int one_by_one(Completion completion) {
    std::vector<std::size_t> order(requests_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    rng_.shuffle(order);
    int result = MPI_SUCCESS;
    for (std::size_t i : order) keep_first(result, single(completion, requests_[i], status(i)));
    return result;
  }

  int single(Completion completion, MPI_Request& request, MPI_Status* status) {
    int flag = 0;
    int code = MPI_SUCCESS;
    switch (completion) {
      case Completion::test:
        while (code == MPI_SUCCESS && flag == 0) {
          code = api_.Test(&request, &flag, status);
          patience_.wait();
        }
        return code;
      case Completion::get_status:
        return look_then_wait(request, status);
      default:
        return api_.Wait(&request, status);
    }
  }

  int look_then_wait(MPI_Request& request, MPI_Status* status) {
    MPI_Status looked{};
    int flag = 0;
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS && flag == 0) {
      code = api_.Request_get_status(request, &flag, &looked);
      patience_.wait();
    }
    keep_first(code, api_.Wait(&request, status));
    if (status != MPI_STATUS_IGNORE && !works(run_, "status after Request_get_status"))
      *status = looked;
    return code;
  }

  // After an error all that is left is completed, too: of a request left behind nothing might move
  // on any more while the host MPI is asked by itself, and its peers would wait for it.
  int together(Completion completion) {
    const int code = until_error(completion);
    if (code == MPI_SUCCESS) return code;
    for (MPI_Request& request : requests_)
      if (request != MPI_REQUEST_NULL) (void)api_.Wait(&request, MPI_STATUS_IGNORE);
    return code;
  }

 private:
  int until_error(Completion completion) {
    switch (completion) {
      case Completion::waitall:
      case Completion::testall:
        return all_at_once(completion);
      case Completion::waitany:
      case Completion::testany:
        return any(completion);
      default:
        return some(completion);
    }
  }

  int all_at_once(Completion completion) {
    std::vector<MPI_Status> got(requests_.size() + 1);
    MPI_Status* array = statuses_ == nullptr ? MPI_STATUSES_IGNORE : got.data();
    int code = MPI_SUCCESS;
    int flag = 0;
    if (completion == Completion::testall) {
      while (code == MPI_SUCCESS && flag == 0) {
        code = api_.Testall(count(), requests_.data(), &flag, array);
        patience_.wait();
      }
    } else {
      code = api_.Waitall(count(), requests_.data(), array);
    }
    if (statuses_ != nullptr) statuses_->assign(got.begin(), got.end() - 1);
    return code;
  }

  int any(Completion completion) {
    for (;;) {
      int index = MPI_UNDEFINED;
      int flag = 1;
      MPI_Status status;
      MPI_Status* where = statuses_ == nullptr ? MPI_STATUS_IGNORE : &status;
      const int code = completion == Completion::testany
                           ? api_.Testany(count(), requests_.data(), &index, &flag, where)
                           : api_.Waitany(count(), requests_.data(), &index, where);
      if (code != MPI_SUCCESS) return code;
      patience_.wait();
      if (flag == 0) continue;
      if (index == MPI_UNDEFINED) return MPI_SUCCESS;  // none is active
      if (statuses_ != nullptr) (*statuses_)[static_cast<std::size_t>(index)] = status;
    }
  }

  int some(Completion completion) {
    std::vector<int> indices(requests_.size() + 1);
    std::vector<MPI_Status> got(requests_.size() + 1);
    for (;;) {
      int number = 0;
      MPI_Status* array = statuses_ == nullptr ? MPI_STATUSES_IGNORE : got.data();
      const int code =
          completion == Completion::testsome
              ? api_.Testsome(count(), requests_.data(), &number, indices.data(), array)
              : api_.Waitsome(count(), requests_.data(), &number, indices.data(), array);
      if (code != MPI_SUCCESS) return code;
      if (number == MPI_UNDEFINED) return MPI_SUCCESS;
      patience_.wait();
      for (std::size_t i = 0; statuses_ != nullptr && i < static_cast<std::size_t>(number); ++i)
        (*statuses_)[static_cast<std::size_t>(indices[i])] = got[i];
    }
  }

  int count() const { return static_cast<int>(requests_.size()); }
  MPI_Status* status(std::size_t i) {
    return statuses_ == nullptr ? MPI_STATUS_IGNORE : &(*statuses_)[i];
  }

  const Run& run_;
  const Api& api_;
  std::vector<MPI_Request>& requests_;
  std::vector<MPI_Status>* statuses_;
  Rng rng_;
  Patience patience_;
};

// Whether elements of several types, or of types that are pairs, are in it.
bool is_mixed(const Run& run, MPI_Datatype type) {
  const TypeModel* model = run.types.find(type);
  return model != nullptr &&
         std::any_of(model->pieces.begin(), model->pieces.end(), [&](const Piece& piece) {
           return piece.element != model->pieces.front().element ||
                  piece.element->element_class == ElementClass::pair ||
                  piece.element->element_class == ElementClass::pair_uniform;
         });
}

void log_elements(Run& run, const MPI_Status& status, MPI_Datatype type) {
  int elements = 0;
  MPI_Count large_elements = 0;
  run.check(run.api().Get_elements(&status, type, &elements), "Get_elements");
  run.check(run.api().Get_elements_x(&status, type, &large_elements), "Get_elements_x");
  run.log("Get_elements", elements);
  run.log("Get_elements_x", large_elements);
}

}  // namespace

const char* completion_name(Completion completion) {
  static constexpr const char* kNames[] = {"wait",     "test",     "waitall",
                                           "testall",  "waitany",  "testany",
                                           "waitsome", "testsome", "get_status"};
  return kNames[static_cast<int>(completion)];
}

Completion random_completion(Rng& rng) { return static_cast<Completion>(rng.below(9)); }

int complete(const Run& run, Completion completion, std::vector<MPI_Request>& requests,
             std::vector<MPI_Status>* statuses, Rng orders) {
  if (statuses != nullptr) statuses->resize(requests.size());
  Completer completer(run, requests, statuses, orders);
  switch (completion) {
    case Completion::wait:
    case Completion::test:
    case Completion::get_status:
      return completer.one_by_one(completion);
    default:
      return completer.together(completion);
  }
}

int complete_one(const Run& run, MPI_Request& request, MPI_Status* status, Rng orders) {
  std::vector<MPI_Request> requests = {request};
  std::vector<MPI_Status> statuses(1);
  const Completion completion = random_completion(orders);
  const int code =
      complete(run, completion, requests, status == nullptr ? nullptr : &statuses, orders);
  request = requests[0];
  if (status != nullptr) *status = statuses[0];
  return code;
}

int complete_persistent(const Run& run, MPI_Request& request, Rng orders) {
  std::vector<MPI_Request> requests = {request};
  Completion completion = random_completion(orders);
  if (completion == Completion::testall && !works(run, "Testall of a persistent collective"))
    completion = Completion::waitall;
  if (completion > Completion::testall && !works(run, "inactive persistent collectives in arrays"))
    completion = Completion::test;
  const int code = complete(run, completion, requests, nullptr, orders);
  request = requests[0];
  return code;
}

void log_status(Run& run, const MPI_Status& status, MPI_Datatype type) {
  int count = 0;
  int cancelled = 0;
  const Api& api = run.api();
  run.check(api.Get_count(&status, type, &count), "Get_count");
  run.check(api.Test_cancelled(&status, &cancelled), "Test_cancelled");
  run.log("status source", status.MPI_SOURCE);
  run.log("status tag", status.MPI_TAG);
  run.log("Get_count", count);
  run.log("Test_cancelled", cancelled);
  if (!is_mixed(run, type) || works(run, "Get_elements of mixed types"))
    log_elements(run, status, type);
}

}  // namespace accord::conformance
