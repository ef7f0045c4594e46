// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/local_calls.h"

#include <algorithm>

namespace accord::shim {

void* BsendBuffers::replace(void* user, std::size_t size_bytes) {
  const std::lock_guard<std::mutex> locked(mutex_);
  replaced_.push_back({std::make_unique<std::byte[]>(size_bytes), user});
  return replaced_.back().host.get();
}

void* BsendBuffers::restore(void* attached) {
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto found = std::find_if(replaced_.begin(), replaced_.end(),
                                  [&](const Replaced& one) { return one.host.get() == attached; });
  if (found == replaced_.end()) return attached;
  void* user = found->user;
  replaced_.erase(found);
  return user;
}

BsendBuffers& bsend_buffers() {
  static BsendBuffers& instance = *new BsendBuffers;
  return instance;
}

}  // namespace accord::shim
