// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/door.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "proxy/packet.h"

namespace accord::proxy {
namespace {

using Clock = std::chrono::steady_clock;

// How long the rank that has started the proxy takes at most to connect.
constexpr std::chrono::seconds kAlone{10};
constexpr int kLookMs = 1000;

}  // namespace

Door::Door(node::Descriptor listener, std::vector<std::unique_ptr<Server>> servers)
    : listener_(std::move(listener)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      servers_(std::move(servers)) {}

void Door::run() {
  const auto alone_until = Clock::now() + kAlone;
  std::vector<std::jthread> threads;
  for (const auto& server : servers_) {
    threads.emplace_back([&server = *server, bell = bell_.number()] {
      server.run([bell] { (void)::eventfd_write(bell, 1); });
    });
  }
  for (;;) {
    let_in();
    if (last_guest_ > 0 ? is_over() : Clock::now() >= alone_until) break;
    pollfd looks[] = {{listener_.number(), POLLIN, 0}, {bell_.number(), POLLIN, 0}};
    (void)::poll(looks, 2, kLookMs);
    eventfd_t rung = 0;
    (void)::eventfd_read(bell_.number(), &rung);
  }
  // Whoever comes now starts another proxy, and those that are not let in yet learn it: UCX takes
  // seconds to close its workers where ranks keep all cores busy.
  listener_.close();
  for (const auto& server : servers_) server->stop();
}

// Each to the thread that has the fewest.
void Door::let_in() {
  for (;;) {
    node::Descriptor socket(
        ::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    if (!is_of_this_user(socket.number())) continue;
    const auto least =
        std::ranges::min_element(servers_, {}, [](const auto& server) { return server->guests(); });
    (*least)->take(std::move(socket), ++last_guest_);
  }
}

bool Door::is_over() const {
  return std::ranges::all_of(servers_, [](const auto& server) { return server->is_idle(); });
}

}  // namespace accord::proxy
