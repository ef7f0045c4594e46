// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A thread that serves a worker while its process computes or waits elsewhere, so that a peer never
// needs this process to be in a call of ours. It sleeps until something comes, and leaves the
// worker to whoever waits for it already.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "net/worker.h"

namespace accord::net {

class Attendant {
 public:
  // Its thread does nothing before attend(). The worker outlives it.
  static Status start(Worker& worker, std::unique_ptr<Attendant>& made);
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // Once. `serve` goes on with what is under way, progress of the worker included, and says whether
  // it is to be called again soon though nothing comes. It outlives this object.
  void attend(std::function<bool()> serve);

  // From now on it wakes for this one, too, which outlives it, and which serve goes on with.
  void also(Worker& worker) noexcept {
    if (also_.exchange(&worker) != &worker) worker_.wake();
  }

  // While one lives, its thread serves the worker itself.
  class Relief {
   public:
    explicit Relief(Attendant& attendant) : attendant_(attendant) { ++attendant_.relieved_; }
    ~Relief() { attendant_.resume(); }
    Relief(const Relief&) = delete;
    Relief& operator=(const Relief&) = delete;

   private:
    Attendant& attendant_;
  };

 private:
  explicit Attendant(Worker& worker) : worker_(worker) {}
  void run();
  void sleep();
  void resume() noexcept;

  Worker& worker_;
  std::atomic<Worker*> also_{nullptr};
  std::function<bool()> serve_;
  std::atomic<int> relieved_{1};  // by nobody, until attend()
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace accord::net
