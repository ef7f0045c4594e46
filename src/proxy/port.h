// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank has from its node's proxy: the way to it, and a pool, in chunks. Either comes by a
// thread of its own once a message first wants it: the start of a process takes long, and so does
// memory that the network has to know. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/proxy_port.h"
#include "proxy/client.h"

namespace accord::proxy {

class Port final : public net::ProxyPort {
 public:
  struct Size {
    std::size_t chunk_bytes = 0;
    std::size_t chunks = 0;
  };
  Port(Meeting meeting, Size size) : meeting_(std::move(meeting)), size_(size) {}
  // With no chunk in use. The proxy may end then.
  ~Port() override;

  bool has(Service service, device::DeviceRuntime* runtime) override;
  Status take(device::DeviceRuntime* runtime, Chunk& chunk) override;
  void give_back(const Chunk& chunk) noexcept override;
  Status carry(const net::Memory& from, const Target& to, std::uint64_t& number) override;
  Status land(const net::Memory& to, std::uint64_t& number, std::uint64_t& landing) override;
  Status poll(std::uint64_t number, bool& done) override { return client_->poll(number, done); }
  void drop(std::uint64_t number) noexcept override { client_->drop(number); }
  int descriptor() noexcept override;
  void attend() noexcept override { (void)check(); }
  net::Bytes holder() const noexcept override { return client_->worker(); }
  net::Bytes key() const noexcept override { return pool_->key; }
  const std::string& node() const noexcept override { return node_; }
  Status check() override;
  bool has_core() override;
  // Of the proxy; 0: it has not come.
  std::int64_t process();

 private:
  // What has been asked for once.
  struct Coming {
    enum class Stage { unused, coming, here, failed } stage = Stage::unused;
    Status why_failed;
    std::thread thread;
    bool is_here() const noexcept { return stage == Stage::here; }
  };
  // Whether it has come, asking for it; unsupported, if it will not. Under the mutex.
  Status await(Coming& coming, Status (Port::*bring)(device::DeviceRuntime*),
               device::DeviceRuntime* runtime, bool& is_here);
  // It has come, or will not. Under the mutex.
  static void end(Coming& coming, Status status);
  // All that a service needs, one after the other.
  Status await(Service service, device::DeviceRuntime* runtime, bool& is_here);
  Status bring_proxy(device::DeviceRuntime*);
  Status bring_pool(device::DeviceRuntime* runtime);
  Status give(Kind kind, const net::Memory& memory, const Target& to, std::uint64_t& number);

  const Meeting meeting_;
  const Size size_;
  std::mutex mutex_;  // guards what follows until it is here
  Coming proxy_;
  Coming chunks_;
  std::string node_;
  std::unique_ptr<Client> client_;
  std::shared_ptr<Pool> pool_;
  std::vector<std::uint32_t> free_;
  std::uint64_t last_number_ = 0;
};

}  // namespace accord::proxy
