// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/proxy_port.h"

#include <atomic>

namespace accord::net {
namespace {

std::atomic<ProxyPort*> port_of_process{nullptr};

}  // namespace

ProxyPort* proxy_port() noexcept { return port_of_process.load(); }
void set_proxy_port(ProxyPort* port) noexcept { port_of_process.store(port); }

}  // namespace accord::net
