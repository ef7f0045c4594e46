// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a design asks of the proxy, another process of this node. The passive one holds host memory
// that the network knows: this process writes chunks there with its own copy engine, and others
// read them there. The active one moves messages itself, from or to memory of this process. Who
// brings it is above this room (proxy/port.h). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "device/device_runtime.h"
#include "net/design.h"
#include "net/worker.h"

namespace accord::net {

class ProxyPort {
 public:
  struct Chunk {
    std::byte* memory = nullptr;  // null: none
    std::uint64_t address = 0;    // where its holder has it
    std::size_t size_bytes = 0;
    std::uint32_t number = 0;
  };
  virtual ~ProxyPort() = default;

  enum class Service { chunks, carrying };
  // Whether the proxy is here, and serves so. The first call asks for it. `runtime`: whose copies
  // go to its chunks; null: the CPU's. A system call.
  virtual bool has(Service service, device::DeviceRuntime* runtime) = 0;

  // Never waits: `chunk` is none where all are in use, or the proxy is yet to come, for which this
  // asks, too. unsupported: it will not come.
  virtual Status take(device::DeviceRuntime* runtime, Chunk& chunk) = 0;
  virtual void give_back(const Chunk& chunk) noexcept = 0;

  // Gives the proxy a message in memory of a device, which it opens: to carry to where it lands, or
  // to land, at the number `landing` of its own. Never waits: `number` is 0 where the proxy is yet
  // to come, or has too much to do to take it. unsupported, also from poll: it cannot, or is not
  // there, and nothing has moved.
  struct Target {
    Bytes worker;
    std::uint64_t landing = 0;
    std::string name;  // whose it is
  };
  virtual Status carry(const Memory& from, const Target& to, std::uint64_t& number) = 0;
  virtual Status land(const Memory& to, std::uint64_t& number, std::uint64_t& landing) = 0;
  virtual Status poll(std::uint64_t number, bool& done) = 0;
  // It is not wanted any more: poll says so once the proxy has let go of its memory.
  virtual void drop(std::uint64_t number) noexcept = 0;

  // Becomes readable when there may be something new for poll, until `attend`; -1: never.
  virtual int descriptor() noexcept = 0;
  virtual void attend() noexcept = 0;

  // Once a chunk was taken, or a message given: how the holder's worker is reached, the remote key
  // of chunks, and the name of this node.
  virtual Bytes holder() const noexcept = 0;
  virtual Bytes key() const noexcept = 0;
  virtual const std::string& node() const noexcept = 0;

  // An error that names the node once the holder is gone. A system call.
  virtual Status check() = 0;
  // No while the proxy, which was at work, has lacked a core. Costs a look at the clock.
  virtual bool has_core() = 0;
};

// Null: there is none in this process. Set before messages go, and taken away after them.
ProxyPort* proxy_port() noexcept;
void set_proxy_port(ProxyPort* port) noexcept;

}  // namespace accord::net
