// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>

namespace accord::proxy {
namespace {

using Clock = std::chrono::steady_clock;

// How long the rank that has started the proxy takes at most to connect.
constexpr std::chrono::seconds kAlone{10};
constexpr int kLookMs = 1000;
// Steps of the network between two looks at the ranks.
constexpr int kProgressMax = 64;

std::uint64_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0
             ? static_cast<std::uint64_t>(CPU_COUNT(&cores))
             : 1;
}

std::vector<std::byte> bytes_of(net::Bytes bytes) { return {bytes.begin(), bytes.end()}; }

Packet refusal(const Status& status) {
  Packet packet;
  packet.kind = Kind::refused;
  packet.words[0] = static_cast<std::uint64_t>(status.code());
  packet.body = bytes_of(std::as_bytes(std::span(status.message())));
  return packet;
}

}  // namespace

void Server::run() {
  const auto end = Clock::now() + kAlone;
  for (;;) {
    let_in();
    if (guests_.empty() && (had_guests_ || Clock::now() >= end)) return;
    for (Guest& guest : guests_) {
      if (!serve(guest)) forget(guest);
    }
    std::erase_if(guests_, [](const Guest& guest) { return !guest.socket.is_open(); });
    // Not for as long as peers keep it busy: ranks wait, too.
    for (int i = 0; worker_ && i < kProgressMax && worker_->progress(); ++i) {
    }
    std::vector<Carrier::Ended> ended;
    if (carrier_) carrier_->advance(ended);
    for (const Carrier::Ended& one : ended) tell_of(one);
    if (!guests_.empty() || !had_guests_) sleep();
  }
}

// With the network: what it brings wakes this thread only once the worker is armed, and it is not
// where something has come already.
void Server::sleep() {
  if (carrier_ && carrier_->is_copying()) {
    ::sched_yield();
    return;
  }
  std::vector<pollfd> looks{{listener_.number(), POLLIN, 0}};
  for (const Guest& guest : guests_) looks.push_back({guest.socket.number(), POLLIN, 0});
  if (worker_ && !worker_->arm()) return;
  if (worker_) looks.push_back({worker_->descriptor(), POLLIN, 0});
  (void)::poll(looks.data(), looks.size(), kLookMs);
}

void Server::let_in() {
  for (;;) {
    node::Descriptor socket(
        ::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    if (!is_of_this_user(socket.number())) continue;
    Guest& guest = guests_.emplace_back();
    guest.number = ++last_guest_;
    guest.socket = std::move(socket);
    had_guests_ = true;
  }
}

bool Server::serve(Guest& guest) {
  for (;;) {
    Packet request;
    bool came = false;
    if (!receive_packet(guest.socket.number(), request, came).ok()) return false;
    if (!came) return true;
    if (request.kind == Kind::carry && guest.is_greeted) {
      // Nothing has moved: the rank has another way.
      if (const Status begun = carry(guest, request); !begun.ok())
        tell_of({guest.number, carry_words(request).number,
                 Status(StatusCode::unsupported, begun.message())});
      continue;
    }
    Packet reply;
    const Status status = answer(guest, request, reply);
    if (!status.ok()) reply = refusal(status);
    if (!tell(guest, reply) || !guest.is_greeted) return false;
  }
}

Status Server::answer(Guest& guest, const Packet& request, Packet& reply) {
  if (!guest.is_greeted) {
    if (request.kind != Kind::hello || request.words[0] != kVersion)
      return {StatusCode::unsupported, "proxy: a rank of another version of Accord"};
    guest.is_greeted = true;
    reply.kind = Kind::welcome;
    reply.words[0] = static_cast<std::uint64_t>(::getpid());
    reply.words[1] = usable_cores();
    if (worker_) reply.body = bytes_of(worker_->address());
    return {};
  }
  if (request.kind == Kind::take_pool) return give_pool(guest, request.words[0], reply);
  return {StatusCode::invalid_argument, "proxy: a request that is not known"};
}

Status Server::carry(const Guest& guest, const Packet& packet) {
  ACCORD_TRY(why_not_);
  return carrier_->begin(guest.number, packet);
}

bool Server::tell(const Guest& guest, const Packet& packet) {
  bool sent = false;
  return send_packet(guest.socket.number(), packet, sent).ok() && sent;
}

// One that does not take its answers is forgotten at its next look.
void Server::tell_of(const Carrier::Ended& ended) {
  const auto found = std::ranges::find(guests_, ended.guest, &Guest::number);
  if (found == guests_.end()) return;
  Packet packet = refusal(ended.status);
  packet.kind = Kind::carried;
  packet.words[1] = packet.words[0];
  packet.words[0] = ended.number;
  if (!tell(*found, packet)) ::shutdown(found->socket.number(), SHUT_RDWR);
}

Status Server::give_pool(Guest& guest, std::size_t size_bytes, Packet& reply) {
  ACCORD_TRY(why_not_);
  const std::size_t left_bytes =
      bounds_.pool_bytes_max - std::min(given_bytes_, bounds_.pool_bytes_max);
  if (size_bytes == 0 || size_bytes > left_bytes) {
    return {StatusCode::unsupported, fmt::format("proxy: {} of {} bytes are left, fewer than {}",
                                                 left_bytes, bounds_.pool_bytes_max, size_bytes)};
  }
  auto grant = std::make_unique<Grant>();
  ACCORD_TRY(grant->pages.make(size_bytes));
  ACCORD_TRY(worker_->share(grant->pages.data(), grant->pages.size_bytes(), grant->region));
  reply.kind = Kind::pool;
  reply.words[0] = size_bytes;
  reply.words[1] = reinterpret_cast<std::uintptr_t>(grant->pages.data());
  reply.body = bytes_of(grant->region->key());
  reply.descriptor =
      node::Descriptor(::fcntl(grant->pages.descriptor().number(), F_DUPFD_CLOEXEC, 0));
  if (!reply.descriptor.is_open())
    return {StatusCode::no_memory, "proxy: no descriptor left for a pool"};
  given_bytes_ += grant->pages.size_bytes();
  guest.grants.push_back(std::move(grant));
  return {};
}

// Its memory stays: what it has announced may be read for as long as receivers like.
void Server::forget(Guest& guest) noexcept {
  std::ranges::move(guest.grants, std::back_inserter(retired_));
  guest.grants.clear();
  if (carrier_) carrier_->forget(guest.number);
  guest.socket.close();
}

}  // namespace accord::proxy
