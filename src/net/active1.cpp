// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Active proxy, one hop: the proxy of the sender's node reads the sender's device memory, chunk by
// chunk, and puts it into the receiver's memory. The programs' processes only look, and the adapter
// of the sender's node reads host memory.
#include "net/active.h"

namespace accord::net {
namespace {

class Active1 final : public ActiveDesign {
 public:
  const char* name() const noexcept override { return "active1"; }
  const char* path() const noexcept override { return "net-active1"; }

 private:
  ProxyPort* landing_port() const noexcept override { return nullptr; }
};

}  // namespace

const Design& active1_design() {
  static const Active1& instance = *new Active1;
  return instance;
}

}  // namespace accord::net
