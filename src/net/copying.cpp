// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/copying.h"

#include <cstring>
#include <utility>

namespace accord::net {

Copying::Copying(Copying&& other) noexcept
    : runtime_(other.runtime_), ticket_(std::exchange(other.ticket_, {})) {}

Copying& Copying::operator=(Copying&& other) noexcept {
  finish();
  runtime_ = other.runtime_;
  ticket_ = std::exchange(other.ticket_, {});
  return *this;
}

Status Copying::begin(const device::PointerInfo& where, void* to, const void* from,
                      std::size_t size_bytes) {
  runtime_ = where.runtime;
  if (runtime_ == nullptr || !device::needs_staging(where)) {
    std::memcpy(to, from, size_bytes);
    return {};
  }
  const device::Copy copy{.dst = to, .src = from, .row_bytes = size_bytes};
  return runtime_->copy_begin(where.device, {&copy, 1}, ticket_);
}

Status Copying::poll(bool& done) {
  done = true;
  if (!is_under_way()) return {};
  const Status status = runtime_->copy_done(ticket_, done);
  if (done || !status.ok()) ticket_ = {};
  return status;
}

void Copying::finish() noexcept {
  for (bool done = false; !done;) {
    if (!poll(done).ok()) return;
  }
}

}  // namespace accord::net
