// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/core_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace accord::proxy {
namespace {

// Less says nothing: a thread that is woken waits for a moment in any case.
constexpr std::chrono::milliseconds kSpan{2};
// Of the time that it could run, the part that is too much to wait.
constexpr int kOneOf = 4;

}  // namespace

bool CoreWatch::read(Nanoseconds& ran, Nanoseconds& waited) {
  if (!std::exchange(is_open_, true)) {
    const char* const path = path_.empty() ? "/proc/thread-self/schedstat" : path_.c_str();
    file_ = node::Descriptor(::open(path, O_RDONLY | O_CLOEXEC));
  }
  char text[96] = "";
  if (!file_.is_open() || ::pread(file_.number(), text, sizeof text - 1, 0) <= 0) return false;
  long long ran_ns = 0;
  long long waited_ns = 0;
  if (std::sscanf(text, "%lld %lld", &ran_ns, &waited_ns) != 2) return false;
  ran = Nanoseconds(ran_ns);
  waited = Nanoseconds(waited_ns);
  return true;
}

bool CoreWatch::is_starved() {
  Nanoseconds ran;
  Nanoseconds waited;
  if (!read(ran, waited)) return false;
  const Nanoseconds wanted = ran - ran_ + waited - waited_;
  if (wanted < kSpan) return is_starved_;
  is_starved_ = (waited - waited_) * kOneOf > wanted;
  ran_ = ran;
  waited_ = waited;
  return is_starved_;
}

}  // namespace accord::proxy
