// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where ranks come in: shares them out among the threads of the proxy, which are its servers, and
// ends the proxy with the last rank. Called by main.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "node/descriptor.h"
#include "proxy/server.h"

namespace accord::proxy {

class Door {
 public:
  Door(node::Descriptor listener, std::vector<std::unique_ptr<Server>> servers);

  // Returns once all ranks are gone, or none has ever come. The place is free then.
  void run();

 private:
  void let_in();
  bool is_over() const;

  node::Descriptor listener_;
  node::Descriptor bell_;  // a server is idle
  std::vector<std::unique_ptr<Server>> servers_;
  std::uint64_t last_guest_ = 0;
};

}  // namespace accord::proxy
