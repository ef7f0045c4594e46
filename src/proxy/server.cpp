// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace accord::proxy {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFarewell{1};
// How long receivers may still look for what a rank has announced that is gone: after that they
// know that it is.
constexpr std::chrono::seconds kMourning{2};
constexpr int kLookMs = 1000;
constexpr int kLookSoonMs = 100;  // for what time alone brings
// How long it watches the network before it sleeps while messages are under way: to be woken takes
// as long as a piece.
constexpr std::chrono::microseconds kWatch{100};
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

Server::Server(std::unique_ptr<net::Worker> worker, Status why_not, const Bounds& bounds,
               const std::string& node)
    : worker_(std::move(worker)),
      why_not_(std::move(why_not)),
      bounds_(bounds),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!worker_) return;
  freight_.emplace(*worker_, bounds_.freight, "the proxy of node " + node);
  errands_.emplace(*freight_);
}

void Server::run(const std::function<void()>& rest) {
  while (let_in()) {
    for (Guest& guest : guests_) {
      if (!serve(guest)) forget(guest);
    }
    std::erase_if(guests_, [](const Guest& guest) { return !guest.socket.is_open(); });
    if (worker_) go_on();
    if (note_load()) rest();
    sleep();
  }
}

void Server::take(node::Descriptor socket, std::uint64_t number) {
  {
    const std::lock_guard locked(mutex_);
    Guest& guest = newcomers_.emplace_back();
    guest.number = number;
    guest.socket = std::move(socket);
    ++guest_count_;
    is_idle_ = false;
  }
  (void)::eventfd_write(bell_.number(), 1);
}

std::size_t Server::guests() {
  const std::lock_guard locked(mutex_);
  return guest_count_;
}

bool Server::is_idle() {
  const std::lock_guard locked(mutex_);
  return is_idle_;
}

void Server::stop() noexcept {
  {
    const std::lock_guard locked(mutex_);
    is_stopping_ = true;
  }
  (void)::eventfd_write(bell_.number(), 1);
}

bool Server::let_in() {
  eventfd_t rung = 0;
  (void)::eventfd_read(bell_.number(), &rung);
  const std::lock_guard locked(mutex_);
  std::ranges::move(newcomers_, std::back_inserter(guests_));
  newcomers_.clear();
  return !is_stopping_;
}

bool Server::note_load() {
  const bool ended = has_ended();
  const std::lock_guard locked(mutex_);
  guest_count_ = guests_.size() + newcomers_.size();
  return !std::exchange(is_idle_, ended && newcomers_.empty()) && is_idle_;
}

// What is under way for ranks that are gone has a while to end.
bool Server::has_ended() {
  if (!guests_.empty()) {
    leave_by_.reset();
    return false;
  }
  if (!leave_by_) leave_by_ = Clock::now() + kFarewell;
  return !errands_ || errands_->empty() || Clock::now() >= *leave_by_;
}

// What ranks have asked for before a carrier has come is known by now: so it serves them first. Not
// for as long as peers keep the network busy: ranks wait, too.
void Server::go_on() {
  const auto locked = worker_->lock();
  freight_->refuse_strangers();
  for (int i = 0; i < kProgressMax && worker_->progress(); ++i) moved_at_ = Clock::now();
  std::vector<Errands::Ended> ended;
  errands_->advance(ended);
  for (const Errands::Ended& one : ended) tell_of(one);
}

// With the network: what it brings wakes this thread only once the worker is armed, and it is not
// where something has come already.
void Server::sleep() {
  const bool waits = worker_ && !errands_->empty() && Clock::now() - moved_at_ < kWatch;
  if (waits || (worker_ && (errands_->must_be_polled() || freight_->has_strangers()))) {
    ::sched_yield();
    return;
  }
  std::vector<pollfd> looks{{bell_.number(), POLLIN, 0}};
  for (const Guest& guest : guests_) {
    const int events = guest.untold.empty() ? POLLIN : POLLIN | POLLOUT;
    looks.push_back({guest.socket.number(), static_cast<short>(events), 0});
  }
  if (worker_ && !worker_->arm()) return;
  if (worker_) looks.push_back({worker_->descriptor(), POLLIN, 0});
  const bool waits_for_time = errands_ && (errands_->holds_memory() || !errands_->empty());
  (void)::poll(looks.data(), looks.size(), waits_for_time ? kLookSoonMs : kLookMs);
}

bool Server::serve(Guest& guest) {
  if (!tell_rest(guest)) return false;
  for (;;) {
    Packet request;
    bool came = false;
    if (!receive_packet(guest.socket.number(), request, came).ok()) return false;
    if (!came) return true;
    if (guest.is_greeted && (request.kind == Kind::carry || request.kind == Kind::land)) {
      // Nothing has moved: the rank has another way.
      if (const Status begun = begin(guest, request); !begun.ok())
        tell_of({guest.number, errand_words(request).number,
                 Status(StatusCode::unsupported, begun.message())});
      continue;
    }
    if (guest.is_greeted && request.kind == Kind::drop) {
      if (errands_) errands_->drop(guest.number, request.words[0]);
      continue;
    }
    Packet reply;
    const Status status = answer(guest, request, reply);
    if (!status.ok()) reply = refusal(status);
    if (!tell(guest, std::move(reply)) || !guest.is_greeted) return false;
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
    reply.words[2] = guest.number;
    if (worker_) reply.body = bytes_of(worker_->address());
    return {};
  }
  if (request.kind == Kind::take_pool) return give_pool(guest, request.words[0], reply);
  return {StatusCode::invalid_argument, "proxy: a request that is not known"};
}

Status Server::begin(const Guest& guest, const Packet& packet) {
  ACCORD_TRY(why_not_);
  const auto locked = worker_->lock();
  return errands_->begin(guest.number, packet);
}

// A rank whose threads do not run for a while has not gone: what it has not taken waits here, no
// more than it has asked for.
bool Server::tell(Guest& guest, Packet packet) {
  guest.untold.push_back(std::move(packet));
  return tell_rest(guest);
}

bool Server::tell_rest(Guest& guest) {
  while (!guest.untold.empty()) {
    bool sent = false;
    if (!send_packet(guest.socket.number(), guest.untold.front(), sent).ok()) return false;
    if (!sent) return true;
    guest.untold.pop_front();
  }
  return true;
}

// One that is gone is forgotten at its next look.
void Server::tell_of(const Errands::Ended& ended) {
  const auto found = std::ranges::find(guests_, ended.guest, &Guest::number);
  if (found == guests_.end()) return;
  Packet packet = refusal(ended.status);
  packet.kind = Kind::ended;
  packet.words[1] = packet.words[0];
  packet.words[0] = ended.number;
  packet.words[2] = core_.is_starved() ? 1 : 0;
  if (!tell(*found, std::move(packet))) ::shutdown(found->socket.number(), SHUT_RDWR);
}

Status Server::make_grant(std::size_t size_bytes, std::unique_ptr<Grant>& grant) {
  const auto fitting = std::ranges::find_if(retired_, [&](const Retired& retired) {
    return retired.grant->pages.size_bytes() >= size_bytes &&
           Clock::now() - retired.since >= kMourning;
  });
  if (fitting != retired_.end()) {
    grant = std::move(fitting->grant);
    retired_.erase(fitting);
    return {};
  }
  const std::size_t left_bytes =
      bounds_.pool_bytes_max - std::min(given_bytes_, bounds_.pool_bytes_max);
  if (size_bytes == 0 || size_bytes > left_bytes) {
    return {StatusCode::unsupported, fmt::format("proxy: {} of {} bytes are left, fewer than {}",
                                                 left_bytes, bounds_.pool_bytes_max, size_bytes)};
  }
  auto made = std::make_unique<Grant>();
  ACCORD_TRY(made->pages.make(size_bytes));
  ACCORD_TRY(worker_->share(made->pages.data(), made->pages.size_bytes(), made->region));
  given_bytes_ += made->pages.size_bytes();
  grant = std::move(made);
  return {};
}

Status Server::give_pool(Guest& guest, std::size_t size_bytes, Packet& reply) {
  ACCORD_TRY(why_not_);
  std::unique_ptr<Grant> grant;
  ACCORD_TRY(make_grant(size_bytes, grant));
  reply.kind = Kind::pool;
  reply.words[0] = size_bytes;
  reply.words[1] = reinterpret_cast<std::uintptr_t>(grant->pages.data());
  reply.body = bytes_of(grant->region->key());
  reply.descriptor =
      node::Descriptor(::fcntl(grant->pages.descriptor().number(), F_DUPFD_CLOEXEC, 0));
  if (!reply.descriptor.is_open()) {
    retired_.push_back({std::move(grant), Clock::now()});
    return {StatusCode::no_memory, "proxy: no descriptor left for a pool"};
  }
  guest.grants.push_back(std::move(grant));
  return {};
}

// Its memory stays for a while: what it has announced may be read until its receivers know that it
// is gone.
void Server::forget(Guest& guest) noexcept {
  for (auto& grant : guest.grants) retired_.push_back({std::move(grant), Clock::now()});
  guest.grants.clear();
  if (errands_) errands_->forget(guest.number);
  guest.socket.close();
}

}  // namespace accord::proxy
