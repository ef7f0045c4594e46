// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the two designs by active proxies share, which are one but for where a message lands. Where
// it is to land the receiver says, and knows it by a number there; who carries it the sender
// decides: the proxy of its node what lies on a device that the proxy opens, its own process
// anything else. Called by active1.cpp and active2.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/carriage.h"
#include "net/design.h"
#include "net/landing.h"
#include "net/proxy_port.h"

namespace accord::net {

class ActiveReceive final : public Transfer {
 public:
  // `port`: whose proxy it is to land at; null: at this process.
  ActiveReceive(const Line& line, const Memory& to, ProxyPort* port)
      : line_(line), to_(to), port_(port) {}
  ~ActiveReceive() override;
  // What goes with the request.
  Status begin(std::vector<std::byte>& ask);

  Status advance(bool& done) override;
  // The sender wants to know of a place, or of another one.
  void hear(Bytes) override;
  void stop() noexcept override;
  bool must_be_polled() const noexcept override;

 private:
  Status choose();
  Status land_here();
  Status answer();
  Status await_proxy(bool& done);
  std::vector<std::byte> place() const;

  const Line line_;
  const Memory to_;
  ProxyPort* port_;
  std::uint64_t number_ = 0;      // at the proxy; 0: not there
  std::uint64_t landing_at_ = 0;  // 0: there is no place yet
  std::optional<Landing> here_;
  bool is_asked_ = false;
  bool is_stopped_ = false;
};

class ActiveSend final : public Transfer {
 public:
  // `port`: of the proxy of this node; null: there is none.
  ActiveSend(const Line& line, const Memory& from, ProxyPort* port)
      : line_(line), from_(from), port_(port) {}
  ~ActiveSend() override;
  Status understand(Bytes place);

  Status advance(bool& done) override;
  // A place, at last.
  void hear(Bytes place) override { keep_first(heard_, understand(place)); }
  void stop() noexcept override;
  bool must_be_polled() const noexcept override;

 private:
  Status begin();
  void begin_here();
  Status ask_for_another();
  Status await_proxy(bool& done);
  Status carry_here(bool& done);

  const Line line_;
  const Memory from_;
  ProxyPort* port_;
  std::optional<Carriage::Target> target_;
  std::uint64_t number_ = 0;  // at the proxy; 0: not there
  std::optional<Carriage> here_;
  Status heard_;
  bool was_declined_ = false;
  bool is_stopped_ = false;
};

// Of a message that lies, or comes, there: whether a proxy may open it.
inline bool is_for_proxy(const device::PointerInfo& where) {
  return where.runtime != nullptr && where.kind == device::MemoryKind::device;
}

class ActiveDesign : public Design {
 public:
  // What lies elsewhere comes by page-locked memory.
  bool takes(const Worker&, const device::PointerInfo& where) const final {
    return is_for_proxy(where) || !device::needs_staging(where);
  }
  bool spends_core() const noexcept final { return true; }
  // What lies on the host needs no proxy.
  bool is_ready(const device::PointerInfo& where) const final;
  Status receive(const Line& line, const Memory& to, std::vector<std::byte>& ask,
                 std::unique_ptr<Transfer>& made) const final;
  Status send(const Line& line, const Memory& from, Bytes ask,
              std::unique_ptr<Transfer>& made) const final;

 private:
  // Whose proxy a message is to land at; null: at the receiver's process.
  virtual ProxyPort* landing_port() const noexcept = 0;
};

}  // namespace accord::net
