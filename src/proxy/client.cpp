// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

#include "base/peer_status.h"
#include "node/node_number.h"
#include "proxy/meeting_place.h"

namespace accord::proxy {
namespace {

using Clock = std::chrono::steady_clock;

// What the start of a process takes on a machine that has much to do.
constexpr std::chrono::seconds kPatience{10};
// How long messages go without a proxy that lacked a core: one that is tried in vain costs little.
constexpr std::chrono::seconds kSpared{1};
// Proxies that a rank starts before it believes that they end at once.
constexpr int kLaunchesMax = 3;

// A child that this process forks is no rank: the proxy must not live on for it.
std::atomic<int> socket_of_process{-1};
void close_in_children() {
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { ::close(socket_of_process.exchange(-1)); });
  static_cast<void>(registered);
}

// Waits for a packet.
Status await_packet(int socket, Clock::time_point end, Packet& packet) {
  for (;;) {
    bool came = false;
    ACCORD_TRY(receive_packet(socket, packet, came));
    if (came) return {};
    if (Clock::now() >= end) return {StatusCode::unsupported, "proxy: it does not answer"};
    constexpr int kLookMs = 100;
    pollfd look{socket, POLLIN, 0};
    (void)::poll(&look, 1, kLookMs);
  }
}

Status send_all(int socket, const Packet& packet) {
  for (bool sent = false;;) {
    ACCORD_TRY(send_packet(socket, packet, sent));
    if (sent) return {};
    pollfd look{socket, POLLOUT, 0};
    (void)::poll(&look, 1, -1);
  }
}

Status start_proxy(const Meeting& meeting, int place) {
  // One of a name: of two it depends on who looks which one counts.
  std::vector<std::string> environment = meeting.settings;
  for (const std::string& variable : meeting.environment) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    if (std::ranges::none_of(meeting.settings,
                             [&](const auto& setting) { return setting.starts_with(name); }))
      environment.push_back(variable);
  }
  return launch(meeting.program, node_name(), environment, place);
}

Status error_in(const Packet& answer, std::size_t code_word) {
  return {status_code_of_peer(answer.words[code_word]),
          {reinterpret_cast<const char*>(answer.body.data()), answer.body.size()}};
}

}  // namespace

std::string node_name() {
  char name[HOST_NAME_MAX + 1] = "";
  (void)::gethostname(name, HOST_NAME_MAX);
  const auto part = node::own_part();
  return part ? fmt::format("{} (part {})", name, *part) : std::string(name);
}

Client::Client(node::Descriptor socket) : socket_(std::move(socket)) {}

Client::~Client() {
  int mine = socket_.number();
  (void)socket_of_process.compare_exchange_strong(mine, -1);
}

// Who finds nobody at the meeting place takes it and starts the proxy with it, which keeps it. Who
// comes meanwhile waits there already. A proxy that is just ending turns those away that it has not
// let in: they begin anew.
Status Client::connect(const Meeting& meeting, std::unique_ptr<Client>& made) {
  close_in_children();
  const auto end = Clock::now() + kPatience;
  Status last(StatusCode::unsupported, "proxy: nobody could start it");
  for (int launches = 0; Clock::now() < end;) {
    node::Descriptor socket;
    bool is_there = false;
    ACCORD_TRY(connect_to_place(meeting.cookie, meeting.node, socket, is_there));
    if (is_there) {
      std::unique_ptr<Client> client(new Client(std::move(socket)));
      last = client->greet();
      if (last.ok()) {
        socket_of_process.store(client->socket_.number());
        made = std::move(client);
        return {};
      }
      if (last.code() != StatusCode::device_error) return last;
    } else if (launches < kLaunchesMax) {
      node::Descriptor place;
      ACCORD_TRY(take_place(meeting.cookie, meeting.node, place));
      if (place.is_open()) {
        ++launches;
        ACCORD_TRY(start_proxy(meeting, place.number()));
        continue;
      }
    } else {
      return last;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return last;
}

Status Client::greet() {
  if (!is_of_this_user(socket_.number()))
    return {StatusCode::unsupported, "proxy: its place belongs to another user"};
  Packet hello;
  hello.kind = Kind::hello;
  hello.words[0] = kVersion;
  ACCORD_TRY(send_all(socket_.number(), hello));
  const auto end = Clock::now() + kPatience;
  Packet welcome;
  ACCORD_TRY(await_packet(socket_.number(), end, welcome));
  if (welcome.kind != Kind::welcome) return error_in(welcome, 0);
  process_ = static_cast<std::int64_t>(welcome.words[0]);
  cores_ = static_cast<int>(welcome.words[1]);
  number_ = welcome.words[2];
  worker_ = std::move(welcome.body);
  return {};
}

Status Client::gone() {
  is_gone_ = true;
  return {StatusCode::device_error, fmt::format("the proxy of node {} is gone", node_name())};
}

Status Client::attend() {
  for (bool came = !is_gone_; came;) {
    Packet packet;
    if (!receive_packet(socket_.number(), packet, came).ok()) return gone();
    if (came && packet.kind == Kind::ended) {
      ended_.insert_or_assign(packet.words[0],
                              packet.words[1] == 0 ? Status() : error_in(packet, 1));
      if (packet.words[2] != 0) spared_until_ = Clock::now() + kSpared;
    } else if (came) {
      answer_ = std::move(packet);
    }
  }
  while (!is_gone_ && !dropped_.empty()) {
    Packet packet;
    packet.kind = Kind::drop;
    packet.words[0] = dropped_.back();
    bool sent = false;
    if (!send_packet(socket_.number(), packet, sent).ok()) return gone();
    if (!sent) break;
    dropped_.pop_back();
  }
  return is_gone_ ? gone() : Status();
}

Status Client::check() {
  const std::lock_guard locked(mutex_);
  return attend();
}

bool Client::has_core() {
  const std::lock_guard locked(mutex_);
  return Clock::now() >= spared_until_;
}

Status Client::give(const Packet& packet, bool& sent) {
  const std::lock_guard locked(mutex_);
  sent = false;
  ACCORD_TRY(attend());
  return send_packet(socket_.number(), packet, sent).ok() ? Status() : gone();
}

Status Client::poll(std::uint64_t number, bool& done) {
  const std::lock_guard locked(mutex_);
  done = true;
  // One that has ended before the proxy did has ended well.
  const Status attended = attend();
  const auto found = ended_.find(number);
  if (found == ended_.end()) {
    done = !attended.ok();
    return attended;
  }
  Status status = std::move(found->second);
  ended_.erase(found);
  return status;
}

void Client::drop(std::uint64_t number) noexcept {
  const std::lock_guard locked(mutex_);
  dropped_.push_back(number);
  (void)attend();
}

int Client::descriptor() noexcept {
  const std::lock_guard locked(mutex_);
  return is_gone_ ? -1 : socket_.number();
}

// Others go on meanwhile, who may take the answer for it.
Status Client::ask(const Packet& request, Packet& answer) {
  const std::lock_guard one_at_a_time(asking_);
  for (bool is_asked = false;;) {
    {
      const std::lock_guard locked(mutex_);
      const Status attended = attend();
      if (answer_) break;
      ACCORD_TRY(attended);
      if (!is_asked && !send_packet(socket_.number(), request, is_asked).ok()) return gone();
    }
    constexpr int kLookMs = 5;
    pollfd look{socket_.number(), POLLIN, 0};
    (void)::poll(&look, 1, kLookMs);
  }
  const std::lock_guard locked(mutex_);
  answer = std::move(*answer_);
  answer_.reset();
  return answer.kind == Kind::refused ? error_in(answer, 0) : Status();
}

Status Client::take_pool(std::size_t size_bytes, std::shared_ptr<Pool>& pool) {
  Packet request;
  request.kind = Kind::take_pool;
  request.words[0] = size_bytes;
  Packet answer;
  ACCORD_TRY(ask(request, answer));
  auto taken = std::make_shared<Pool>();
  ACCORD_TRY(taken->pages.map(answer.descriptor));
  if (taken->pages.size_bytes() < size_bytes)
    return {StatusCode::unsupported, "proxy: the pool is smaller than it was to be"};
  taken->address = answer.words[1];
  taken->key = std::move(answer.body);
  pool = std::move(taken);
  return {};
}

}  // namespace accord::proxy
