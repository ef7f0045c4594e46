// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which MPI call a thread is in, as its program wrote it: what errors say. Set where Accord does
// more than hand a call to the host MPI; requests keep it for the call that completes them. Knows
// no mpi.h.
#pragma once

#include <array>

namespace accord::core {

struct CallSite {
  struct Argument {
    const char* name = nullptr;  // in the MPI standard; null: none
    const void* address = nullptr;
  };
  const char* function = nullptr;  // null: none of those
  std::array<Argument, 2> arguments{};
};

extern thread_local CallSite call_site;

// A call that is made of others is what errors name.
class CallScope {
 public:
  explicit CallScope(const char* function, CallSite::Argument first = {},
                     CallSite::Argument second = {}) noexcept
      : is_outermost_(call_site.function == nullptr) {
    if (is_outermost_) call_site = {function, {first, second}};
  }
  ~CallScope() {
    if (is_outermost_) call_site = {};
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const bool is_outermost_;
};

}  // namespace accord::core
