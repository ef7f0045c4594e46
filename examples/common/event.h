// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Places in streams, for which the host or another stream waits. Not thread-safe.
#pragma once

#include "device.h"

namespace app {

#ifdef __CUDACC__

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& from) noexcept : event_(std::exchange(from.event_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // From now on the event is all that has been begun on `stream`.
  void record(Stream& stream) { check(cudaEventRecord(event_, stream.get()), "cudaEventRecord"); }
  // Waits until it is done.
  void synchronise() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  // What is begun on `stream` afterwards waits until it is done.
  void hold(Stream& stream) const {
    check(cudaStreamWaitEvent(stream.get(), event_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

#else

// All that is begun is over at once.
class Event {
 public:
  void record(Stream&) {}
  void synchronise() const {}
  void hold(Stream&) const {}
};

#endif

// Page-locked memory for `count` elements of a type.
template <class T>
class Pinned {
 public:
  explicit Pinned(std::size_t count)
      : count_(count), data_(static_cast<T*>(pinned_allocate(count * sizeof(T)))) {}
  Pinned(Pinned&& from) noexcept : count_(from.count_), data_(std::exchange(from.data_, nullptr)) {}
  ~Pinned() {
    if (data_ != nullptr) pinned_release(data_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  T* data() const { return data_; }
  std::size_t count() const { return count_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::size_t count_;
  T* data_;
};

}  // namespace app
