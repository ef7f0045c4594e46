// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// In worker.cpp's place where UCX's headers were not found.
#include "net/worker.h"

namespace accord::net {

void* Worker::address_of(void* memory, const device::PointerInfo&) noexcept { return memory; }

std::string Worker::library() { return {}; }

Status Worker::open(const Options&, std::unique_ptr<Worker>&) {
  return {StatusCode::unsupported, "built without UCX"};
}

}  // namespace accord::net
