// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Active proxies, two hops: the proxy of the sender's node reads the sender's device memory and
// puts it, piece by piece, into host memory of the proxy of the receiver's node, which copies it
// into the receiver's device memory. No adapter reads or writes device memory. The three steps of
// neighbouring pieces go at once; what is to be forwarded where only the proxies know. To memory
// that is no device's, or that the proxy cannot open, a message goes in one hop.
#include "net/active.h"

namespace accord::net {
namespace {

class Active2 final : public ActiveDesign {
 public:
  const char* name() const noexcept override { return "active2"; }
  const char* path() const noexcept override { return "net-active2"; }

 private:
  ProxyPort* landing_port() const noexcept override { return proxy_port(); }
};

}  // namespace

const Design& active2_design() {
  static const Active2& instance = *new Active2;
  return instance;
}

}  // namespace accord::net
