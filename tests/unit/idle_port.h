// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A host MPI that knows no requests and completes none.
#pragma once

#include "core/engine.h"

namespace accord::test {

class IdlePort : public core::HostPort {
 public:
  Status test(core::HostRequest& request, bool& done) override { return peek(request, done); }
  Status peek(core::HostRequest, bool& done) override {
    done = false;
    return {};
  }
  Status grequest_start(core::HostRequest&) override { return {}; }
  void grequest_complete(core::HostRequest) override {}
  Status placeholder_init(core::HostRequest&, int&) override { return {}; }
  void placeholder_complete(int) override {}
  void placeholder_release(int) override {}
  void pause() override {}
};

}  // namespace accord::test
