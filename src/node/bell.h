// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A word a process, in a page that it shares with its peers. Who leaves another process something
// to do in its next MPI call, whatever communicator that is of, rings there: it has withdrawn
// memory that the other one has open, or closed memory that the other one waits to free. To look
// costs a load. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "node/descriptor.h"
#include "node/shared_pages.h"

namespace accord::node {

class Bell {
 public:
  explicit Bell(std::unique_ptr<SharedPages> page) : page_(std::move(page)) {}
  void ring() const noexcept { word().fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t>& word() const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(page_->data());
  }
  std::unique_ptr<SharedPages> page_;
};

// What peers need to ring that of this process: a descriptor to be sent to them, kept for good.
Status own_bell(int& descriptor);
// That of the process with this number (PortAddress::process): the one that is known already, so
// that communicators share it, or the one given.
Status bell_of(std::uint64_t process, const Descriptor& descriptor,
               std::shared_ptr<const Bell>& bell);

// This process's own: how often it has been rung.
namespace detail {
inline constinit std::atomic<std::uint64_t> never_rung{0};
inline constinit std::atomic<std::atomic<std::uint64_t>*> own_word{&never_rung};
}  // namespace detail
inline std::uint64_t times_rung() noexcept {
  return detail::own_word.load(std::memory_order_acquire)->load(std::memory_order_acquire);
}

}  // namespace accord::node
