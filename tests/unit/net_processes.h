// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Two processes with a worker each, over TCP of this machine, joined by a socket beside the
// network.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "net/worker.h"

namespace accord::test {

using net::Bytes;
using net::Peer;
using net::Ticket;
using net::Worker;

inline constexpr std::chrono::seconds kPatience{20};
// Of workers with a peer that gives no sign of life.
inline std::chrono::milliseconds silence_allowed = std::chrono::minutes(2);
inline constexpr std::size_t kLong = 3 << 20;

inline Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// One of the two processes.
class End {
 public:
  explicit End(int socket) : socket_(socket) {}

  std::string open() {
    const Status status =
        Worker::open({.net_devices = "", .transports = "tcp", .patience = silence_allowed}, worker);
    if (!status.ok()) return status.message();
    tell(worker->address());
    const std::vector<std::byte> address = hear();
    addresses = {std::vector(worker->address().begin(), worker->address().end()), address};
    const Status connected = worker->connect(address, peer);
    return connected.message();
  }

  // Beside the network.
  void tell(Bytes bytes) const {
    const std::size_t size = bytes.size();
    if (::write(socket_, &size, sizeof size) < 0 || ::write(socket_, bytes.data(), size) < 0)
      ::_exit(3);
  }
  std::vector<std::byte> hear() const {
    std::size_t size = 0;
    if (::recv(socket_, &size, sizeof size, MSG_WAITALL) != sizeof size) return {};
    std::vector<std::byte> bytes(size);
    (void)::recv(socket_, bytes.data(), size, MSG_WAITALL);
    return bytes;
  }

  // Whether it comes true in time.
  template <class Done>
  bool wait(Done done) const {
    for (const auto end = std::chrono::steady_clock::now() + kPatience;
         std::chrono::steady_clock::now() < end;) {
      worker->progress();
      if (done()) return true;
    }
    return false;
  }
  Status finish(Ticket ticket) const {
    Status status;
    const bool ended = wait([&] {
      bool done = false;
      status = worker->poll(ticket, done);
      return done;
    });
    return ended ? status : Status(StatusCode::network, "does not end");
  }
  // Whether the other one has said something.
  bool has_news() const {
    pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&readable, 1, 0) > 0;
  }
  // Serves the other one until it says that it is through.
  bool serve_until_told() const {
    return wait([&] { return has_news(); });
  }

  std::unique_ptr<Worker> worker;
  std::vector<std::vector<std::byte>> addresses;  // its own and the other one's
  Peer* peer = nullptr;

 private:
  int socket_;
};

inline std::vector<char> pattern(std::size_t size, int seed) {
  std::vector<char> made(size);
  for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<char>(i * 7 + i / 251 + seed);
  return made;
}

// Runs both, `other` in a child, before anything of UCX is in this process: it has threads and
// connections that a child must not inherit. Skips where there is no UCX.
class TwoProcesses : public ::testing::Test {
 protected:
  void run(const std::function<void(End&)>& one, const std::function<bool(End&)>& other) {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const pid_t first = start(sockets[0], sockets[1], [&](End& end) {
      one(end);
      return !HasFailure();
    });
    const pid_t second = start(sockets[1], sockets[0], other);
    ::close(sockets[0]);
    ::close(sockets[1]);
    const int code = wait_for(first);
    // One that the other has killed ends by that.
    const int code_of_other = wait_for(second);
    if (code == kSkipped) GTEST_SKIP() << "no UCX here";
    for (const int each : {code, code_of_other}) EXPECT_TRUE(each == 0 || each == -SIGKILL) << each;
  }

 private:
  static constexpr int kSkipped = 77;

  static pid_t start(int socket, int others, const std::function<bool(End&)>& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::close(others);
    int code = 1;
    {
      End end(socket);
      const std::string problem = end.open();
      if (problem.empty())
        code = body(end) ? 0 : 1;
      else if (problem.find("load") != std::string::npos || problem.find("built") == 0)
        code = kSkipped;
      else
        std::fprintf(stderr, "%s\n", problem.c_str());
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  static int wait_for(pid_t child) {
    int status = 0;
    (void)::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

}  // namespace accord::test
