// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/error_handlers.h"

#include <array>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>

#include "host_mpi.h"

namespace accord::host {
namespace {

thread_local int depth = 0;  // calls of the host MPI by the shim that this thread is in
thread_local std::exception_ptr kept;

}  // namespace

Guard::Guard() noexcept { ++depth; }
Guard::~Guard() { --depth; }

void Guard::end() {
  if (!kept) return;
  ++thrown;
  std::rethrow_exception(std::exchange(kept, nullptr));
}

bool Guard::keep() noexcept {
  if (depth == 0) return false;
  if (!kept) kept = std::current_exception();
  return true;
}

}  // namespace accord::host

namespace accord::shim {
namespace {

using Function = MPI_Comm_errhandler_function*;

// The host MPI tells a handler nothing of whose it is, so that each function of the program has one
// of these to stand for it.
constexpr std::size_t kFunctionsMax = 64;
std::array<Function, kFunctionsMax> functions{};

// An error handler may do what it likes, also where a call that completes requests has called it.
// What its own calls throw is its own.
class Outside {
 public:
  Outside() noexcept : completions_(std::exchange(host::completions, 0)), thrown_(host::thrown) {}
  ~Outside() {
    host::completions = completions_;
    host::thrown = thrown_;
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  int completions_;
  int thrown_;
};

template <std::size_t number>
void stand_in(MPI_Comm* comm, int* code, ...) {
  const Outside outside;
  try {
    functions[number](comm, code);
  } catch (...) {
    if (!host::Guard::keep()) throw;
  }
}

template <std::size_t... number>
constexpr std::array<Function, kFunctionsMax> make_stand_ins(std::index_sequence<number...>) {
  return {&stand_in<number>...};
}
constexpr auto stand_ins = make_stand_ins(std::make_index_sequence<kFunctionsMax>());

// The function itself where there are too many.
Function stand_in_for(Function function) {
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard<std::mutex> locked(mutex);
  for (std::size_t i = 0; i < kFunctionsMax; ++i) {
    if (functions[i] != nullptr && functions[i] != function) continue;
    functions[i] = function;
    return stand_ins[i];
  }
  return function;
}

}  // namespace

int Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* handler) {
  if (function == nullptr) return host::Comm_create_errhandler(function, handler);
  host::has_handlers = true;
  return host::Comm_create_errhandler(stand_in_for(function), handler);
}

}  // namespace accord::shim
