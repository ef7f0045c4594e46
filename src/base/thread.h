// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Threads of Accord's own. They take no signals: these are the program's, for threads of its own.
#pragma once

#include <signal.h>

#include <exception>
#include <thread>
#include <utility>

#include "base/status.h"

namespace accord {

// no_memory where there can be no more threads.
template <class Body>
Status start_thread(std::thread& thread, Body body) {
  struct Masked {
    sigset_t before{};
    Masked() {
      sigset_t all;
      (void)::sigfillset(&all);
      (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Masked() { (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } masked;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::exception& error) {
    return {StatusCode::no_memory, std::string("no thread can be created: ") + error.what()};
  }
  return {};
}

}  // namespace accord
