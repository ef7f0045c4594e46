// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/attendant.h"

#include <poll.h>
#include <sched.h>

#include <chrono>
#include <iterator>

#include "base/thread.h"
#include "net/proxy_port.h"

namespace accord::net {
namespace {

// The descriptor may stay readable though nothing comes: then it is looked at now and then only.
constexpr unsigned kVainWakesMax = 64;
constexpr std::chrono::microseconds kNap{200};
// Nobody has to wake it, then, for what is not in its descriptor.
constexpr int kSleepMs = 100;

}  // namespace

Status Attendant::start(Worker& worker, std::unique_ptr<Attendant>& made) {
  std::unique_ptr<Attendant> started(new Attendant(worker));
  ACCORD_TRY(start_thread(started->thread_, [own = started.get()] { own->run(); }));
  made = std::move(started);
  return {};
}

Attendant::~Attendant() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard locked(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  worker_.wake();
  thread_.join();
}

void Attendant::attend(std::function<bool()> serve) {
  serve_ = std::move(serve);
  resume();
}

void Attendant::resume() noexcept {
  if (--relieved_ != 0) return;
  // Under the lock, so that the thread does not miss it between its look and its sleep.
  const std::lock_guard locked(mutex_);
  wake_.notify_one();
}

void Attendant::run() {
  unsigned vain_wakes = 0;
  for (;;) {
    {
      std::unique_lock locked(mutex_);
      wake_.wait(locked, [&] { return is_stopping_ || relieved_.load() == 0; });
      if (is_stopping_) return;
    }
    bool is_busy = false;
    bool is_armed = false;
    {
      // What another thread begins meanwhile would be polled by nobody.
      const auto locked = worker_.lock();
      is_busy = serve_();
      Worker* const also = also_.load();
      is_armed = !is_busy && vain_wakes < kVainWakesMax && worker_.arm() &&
                 (also == nullptr || also->arm());
    }
    if (is_busy) {
      vain_wakes = 0;
      ::sched_yield();
    } else if (++vain_wakes > kVainWakesMax) {
      std::this_thread::sleep_for(kNap);
      vain_wakes = 0;
    } else if (is_armed) {
      sleep();
    }
  }
}

// What a proxy has to say wakes it, too.
void Attendant::sleep() {
  ProxyPort* const port = proxy_port();
  Worker* const also = also_.load();
  pollfd readable[] = {
      {.fd = worker_.descriptor(), .events = POLLIN, .revents = 0},
      {.fd = port != nullptr ? port->descriptor() : -1, .events = POLLIN, .revents = 0},
      {.fd = also != nullptr ? also->descriptor() : -1, .events = POLLIN, .revents = 0}};
  (void)::poll(readable, std::size(readable), kSleepMs);
  if (readable[1].revents != 0) port->attend();
}

}  // namespace accord::net
