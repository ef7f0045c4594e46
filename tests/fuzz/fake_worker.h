// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A network that ends at once: whatever moves has moved, and the memory it moved from or to has
// been touched, so that the sanitizer sees where that is none. Messages of peers are the input's.
#pragma once

#include <deque>
#include <map>
#include <numeric>

#include "fuzz.h"
#include "net/worker.h"

namespace accord::fuzz {

class FakeWorker : public net::Worker {
 public:
  // As if a peer had sent it: the next progress brings it.
  void deliver(unsigned kind, net::Bytes message) {
    coming_.push_back({kind % kKinds, {message.begin(), message.end()}});
  }

  // Called some steps after the last message, and again, with how often.
  std::function<void(int)> when_idle;

  net::Bytes address() const noexcept override { return key_; }
  Status connect(net::Bytes address, net::Peer*& peer) override {
    if (address.empty()) return {StatusCode::network, "nobody has such an address"};
    peer = reinterpret_cast<net::Peer*>(&peer_);
    return {};
  }
  Status check(const net::Peer&) override { return {}; }
  Status post(net::Peer& peer, unsigned kind, net::Bytes message) override {
    FUZZ_CHECK(is_peer(peer) && kind < kKinds && message.size() <= kMessageBytesMax);
    read(message.data(), message.size());
    return {};
  }
  void listen(unsigned kind, Handler handler) override { handlers_[kind] = std::move(handler); }
  bool reaches(const device::PointerInfo& where) const noexcept override {
    return !device::needs_staging(where);
  }
  net::Ticket send(net::Peer& peer, std::uint64_t, const void* memory, std::size_t size_bytes,
                   const Where& where) override {
    FUZZ_CHECK(is_peer(peer) && reaches(where));
    read(memory, size_bytes);
    return {};
  }
  net::Ticket receive(net::Peer& peer, std::uint64_t, void* memory, std::size_t size_bytes,
                      const Where& where) override {
    FUZZ_CHECK(is_peer(peer) && reaches(where));
    write(memory, size_bytes);
    return {};
  }
  Status share(void* memory, std::size_t size_bytes, std::unique_ptr<net::Region>& made,
               const Where&) override {
    FUZZ_CHECK(memory != nullptr && size_bytes != 0);
    made = std::make_unique<FakeRegion>();
    return {};
  }
  Status reach(net::Peer& peer, net::Bytes key, std::unique_ptr<net::RemoteRegion>& made) override {
    FUZZ_CHECK(is_peer(peer));
    if (key.empty()) return {StatusCode::network, "no key"};
    made = std::make_unique<net::RemoteRegion>();
    return {};
  }
  net::Ticket put(net::Peer& peer, const void* from, std::size_t size_bytes, std::uint64_t,
                  net::RemoteRegion&, const Where& where) override {
    FUZZ_CHECK(is_peer(peer) && reaches(where));
    read(from, size_bytes);
    return {};
  }
  net::Ticket get(net::Peer& peer, void* to, std::size_t size_bytes, std::uint64_t,
                  net::RemoteRegion&, const Where& where) override {
    FUZZ_CHECK(is_peer(peer) && reaches(where));
    write(to, size_bytes);
    return {};
  }
  Status poll(net::Ticket& ticket, bool& done) override {
    done = true;
    return ticket.status;
  }
  void cancel(net::Ticket&) noexcept override {}
  // One message at a time, so that what it has begun goes on before the next one.
  bool progress() override {
    if (coming_.empty()) {
      if (++idle_ % kIdle == 0 && when_idle) when_idle(idle_ / kIdle);
      return false;
    }
    const auto [kind, message] = std::move(coming_.front());
    coming_.pop_front();
    if (handlers_[kind]) handlers_[kind](message);
    return false;
  }
  int descriptor() const noexcept override { return -1; }
  bool arm() override { return false; }
  void wake() noexcept override {}
  void close() noexcept override {}

 private:
  struct FakeRegion final : net::Region {
    FakeRegion() { key_.resize(8); }
  };
  bool is_peer(const net::Peer& peer) const noexcept {
    return reinterpret_cast<const int*>(&peer) == &peer_;
  }
  static void read(const void* memory, std::size_t size_bytes) {
    const auto* const bytes = static_cast<const unsigned char*>(memory);
    FUZZ_CHECK(std::accumulate(bytes, bytes + size_bytes, std::size_t{0}) <= size_bytes * 255);
  }
  static void write(void* memory, std::size_t size_bytes) {
    if (size_bytes != 0) std::memset(memory, 1, size_bytes);
  }

  static constexpr int kIdle = 4;

  int peer_ = 0;
  int idle_ = 0;
  std::vector<std::byte> key_ = std::vector<std::byte>(16);
  std::map<unsigned, Handler> handlers_;
  std::deque<std::pair<unsigned, std::vector<std::byte>>> coming_;
};

}  // namespace accord::fuzz
