// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the two ranks of tests of messages through proxies have in common.
#pragma once

#include "net_ranks.h"
#include "proxy/port.h"

namespace accord::test {

inline constexpr std::size_t kChunkBytes = 64 << 10;

inline std::string proxy_program() {
  const char* const path = std::getenv("ACCORD_TEST_PROXY");
  return path != nullptr ? path : "accord_proxy";
}

// Each on a node of its own, or both on the one that is given, for the same children's parent.
class ProxyRank : public MailRank {
 public:
  ProxyRank(End& end, std::uint32_t number, const char* design,
            const std::string& program = proxy_program(), const char* setting = "ACCORD_LOG=error",
            std::optional<std::uint32_t> node = {})
      : MailRank(end, number),
        port({.cookie = node ? static_cast<std::uint64_t>(::getppid()) << 20 | 1
                             : static_cast<std::uint64_t>(::getpid()) << 20,
              .node = node.value_or(number),
              .program = program,
              .settings = {"ACCORD_UCX_TLS=tcp",
                           "ACCORD_PROXY_CHUNK_BYTES=" + std::to_string(kChunkBytes), setting}},
             {.chunk_bytes = kChunkBytes, .chunks = 4}),
        design_(*net::find_design(design)) {
    net::set_proxy_port(&port);
    open_mail({.kept_bytes_max = 32 << 20, .host_devices = "all", .transports = "tcp"});
  }
  ~ProxyRank() {
    mail.reset();
    net::set_proxy_port(nullptr);
  }

  std::uint32_t post(const net::Memory& memory) {
    return mail->post(other, design_, memory).value();
  }
  // The proxy, once it has come.
  pid_t proxy() {
    net::ProxyPort::Chunk chunk;
    const bool came =
        wait([&] { return !port.take(nullptr, chunk).ok() || chunk.memory != nullptr; });
    port.give_back(chunk);
    return came ? static_cast<pid_t>(port.process()) : 0;
  }

  proxy::Port port;

 private:
  const net::Design& design_;
};

// More of them than there are chunks, fetched in the other order than sent, both ways at once, from
// and to host memory, too.
inline bool exchange_many(ProxyRank& rank) {
  constexpr int kMessages = 12;
  std::vector<std::unique_ptr<DeviceBytes>> sent, received;
  std::vector<std::vector<char>> on_host(kMessages);
  std::vector<std::uint32_t> numbers, theirs;
  const auto size_of = [](int i) { return static_cast<std::size_t>(i) * 50000 + 1; };
  for (int i = 0; i < kMessages; ++i) {
    on_host[static_cast<std::size_t>(i)] = pattern(size_of(i), i);
    sent.push_back(std::make_unique<DeviceBytes>(on_host[static_cast<std::size_t>(i)]));
    net::Memory from = sent.back()->memory();
    if (i % 3 == 0) from = {on_host[static_cast<std::size_t>(i)].data(), size_of(i), {}};
    rank.tell(numbers.emplace_back(rank.post(from)));
  }
  for (int i = 0; i < kMessages; ++i) theirs.push_back(rank.hear());
  std::vector<std::shared_ptr<net::Mail::Fetch>> fetches;
  for (int i = kMessages; i-- > 0;) {
    received.push_back(std::make_unique<DeviceBytes>(std::vector<char>(size_of(i), 'x')));
    fetches.push_back(rank.mail->begin_fetch(rank.other, theirs[static_cast<std::size_t>(i)],
                                             received.back()->memory()));
  }
  bool right = true;
  for (const auto& fetch : fetches) {
    bool done = false;
    right = rank.wait([&] {
      right = rank.mail->poll(*fetch, done).ok() && right;
      return done;
    }) && right;
  }
  for (const std::uint32_t number : numbers) right = rank.end_of(number).ok() && right;
  for (int i = 0; i < kMessages; ++i)
    right = right && received[static_cast<std::size_t>(kMessages - 1 - i)]->bytes() ==
                         pattern(size_of(i), i);
  rank.tell(0);
  (void)rank.hear();
  return right;
}

}  // namespace accord::test
