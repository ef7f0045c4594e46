// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Active proxy, one hop: the proxy of the sender's node reads the sender's device memory, chunk by
// chunk, and puts it into the receiver's memory. The programs' processes only look, and
// the adapter reads host memory. What lies in host memory already needs no proxy: its own process
// puts it there.
#include <cstring>

#include "device/staging_pool.h"
#include "net/design.h"
#include "net/proxy_port.h"

namespace accord::net {
namespace {

// What goes with the receiver's request; the bytes of its worker's address and of the key follow.
struct Place {
  std::uint64_t address = 0;
  std::uint32_t worker_bytes = 0;
  std::uint32_t key_bytes = 0;
};

// Memory that UCX does not write is filled by way of page-locked memory, once all has come.
class OneHopReceive final : public Transfer {
 public:
  OneHopReceive(const Line& line, const Memory& to) : line_(line), to_(to) {}
  ~OneHopReceive() override {
    for (bool done = copying_.handle == nullptr; !done;) {
      if (!to_.where.runtime->copy_done(copying_, done).ok()) return;
    }
  }

  Status share(std::vector<std::byte>& ask);
  Status advance(bool& done) override;
  void hear(Bytes) override { has_come_ = true; }
  void stop() noexcept override { is_stopped_ = true; }
  bool must_be_polled() const noexcept override { return copying_.handle != nullptr; }

 private:
  const Line line_;
  const Memory to_;
  device::StagingBuffer bounce_;
  std::unique_ptr<Region> region_;
  device::CopyTicket copying_;
  bool has_come_ = false;
  bool is_stopped_ = false;
};

Status OneHopReceive::share(std::vector<std::byte>& ask) {
  void* place = to_.address();
  if (!line_.worker.reaches(to_.where)) {
    ACCORD_TRY(device::staging_pool().acquire(to_.where.runtime, to_.size_bytes, bounce_));
    place = bounce_.data();
  }
  ACCORD_TRY(line_.worker.share(place, to_.size_bytes, region_,
                                bounce_.empty() ? to_.where : device::PointerInfo()));
  const Place where{.address = reinterpret_cast<std::uintptr_t>(place),
                    .worker_bytes = static_cast<std::uint32_t>(line_.worker.address().size()),
                    .key_bytes = static_cast<std::uint32_t>(region_->key().size())};
  for (const Bytes part :
       {std::as_bytes(std::span(&where, 1)), line_.worker.address(), region_->key()})
    ask.insert(ask.end(), part.begin(), part.end());
  if (ask.size() > Line::kTellBytesMax)
    return {StatusCode::network, "active proxy: the receiver's address is too long"};
  return {};
}

Status OneHopReceive::advance(bool& done) {
  done = true;
  if (is_stopped_) return {StatusCode::network, "active proxy: the sender has given up"};
  done = false;
  if (!has_come_) return {};
  if (!bounce_.empty() && region_ != nullptr) {
    region_.reset();
    const device::Copy copy{.dst = to_.start, .src = bounce_.data(), .row_bytes = to_.size_bytes};
    ACCORD_TRY(to_.where.runtime->copy_begin(to_.where.device, {&copy, 1}, copying_));
  }
  done = true;
  return copying_.handle == nullptr ? Status() : to_.where.runtime->copy_done(copying_, done);
}

class OneHopSend final : public Transfer {
 public:
  OneHopSend(const Line& line, const Memory& from, ProxyPort* port)
      : line_(line), from_(from), port_(port) {}
  ~OneHopSend() override {
    if (!is_over_) line_.worker.cancel(putting_);
  }

  Status understand(Bytes ask);
  Status advance(bool& done) override;
  void stop() noexcept override { is_stopped_ = true; }
  bool must_be_polled() const noexcept override { return !is_begun_ || number_ != 0; }

 private:
  bool is_on_device() const noexcept { return from_.where.kind == device::MemoryKind::device; }
  Status begin();
  Status begin_by_itself(const void* start);
  Status poll(bool& done) {
    return number_ != 0 ? port_->poll(number_, done) : line_.worker.poll(putting_, done);
  }

  const Line line_;
  const Memory from_;
  ProxyPort* const port_;
  std::vector<std::byte> worker_;
  std::vector<std::byte> key_;
  std::uint64_t address_ = 0;
  std::uint64_t number_ = 0;  // at the proxy; 0: not there
  std::unique_ptr<RemoteRegion> region_;
  Ticket putting_;
  bool is_begun_ = false;
  bool is_over_ = false;
  bool is_stopped_ = false;
};

Status OneHopSend::understand(Bytes ask) {
  Place where;
  if (ask.size() >= sizeof where) std::memcpy(&where, ask.data(), sizeof where);
  if (ask.size() != sizeof where + std::size_t{where.worker_bytes} + where.key_bytes)
    return {StatusCode::network, "active proxy: a request that is not understood"};
  address_ = where.address;
  const Bytes rest = ask.subspan(sizeof where);
  worker_.assign(rest.begin(), rest.begin() + where.worker_bytes);
  key_.assign(rest.begin() + where.worker_bytes, rest.end());
  return {};
}

Status OneHopSend::begin_by_itself(const void* start) {
  ACCORD_TRY(line_.worker.reach(line_.peer, key_, region_));
  putting_ = line_.worker.put(line_.peer, start, from_.size_bytes, address_, *region_, from_.where);
  is_begun_ = true;
  return {};
}

// Memory that no other process can open goes by UCX alone, as far as that reaches it.
Status OneHopSend::begin() {
  if (!is_on_device()) return begin_by_itself(from_.address());
  if (port_ == nullptr) return {StatusCode::unsupported, "active proxy: none in this process"};
  const Status begun =
      port_->carry(from_, {.worker = worker_, .key = key_, .address = address_}, number_);
  is_begun_ = number_ != 0;
  if (begun.code() == StatusCode::unsupported && line_.worker.reaches(from_.where))
    return begin_by_itself(from_.address());
  return begun;
}

Status OneHopSend::advance(bool& done) {
  done = true;
  if (is_stopped_) return {StatusCode::network, "active proxy: the receiver has given up"};
  if (!is_begun_) ACCORD_TRY(begin());
  done = false;
  if (!is_begun_) return {};
  ACCORD_TRY(poll(done));
  is_over_ = done;
  return done ? line_.tell(std::as_bytes(std::span(&address_, 1))) : Status();
}

class Active1 final : public Design {
 public:
  const char* name() const noexcept override { return "active1"; }
  const char* path() const noexcept override { return "net-active1"; }
  bool takes(const Worker&, const device::PointerInfo& where) const override {
    return where.runtime == nullptr || where.kind == device::MemoryKind::device ||
           !device::needs_staging(where);
  }
  // What lies on the host already needs no proxy.
  bool is_ready(const device::PointerInfo& where) const override {
    return where.kind != device::MemoryKind::device ||
           (proxy_port() != nullptr &&
            proxy_port()->has(ProxyPort::Service::carrying, where.runtime));
  }
  Status receive(const Line& line, const Memory& to, std::vector<std::byte>& ask,
                 std::unique_ptr<Transfer>& made) const override {
    auto transfer = std::make_unique<OneHopReceive>(line, to);
    ACCORD_TRY(transfer->share(ask));
    made = std::move(transfer);
    return {};
  }
  Status send(const Line& line, const Memory& from, Bytes ask,
              std::unique_ptr<Transfer>& made) const override {
    auto transfer = std::make_unique<OneHopSend>(line, from, proxy_port());
    ACCORD_TRY(transfer->understand(ask));
    made = std::move(transfer);
    return {};
  }
};

}  // namespace

const Design& active1_design() {
  static const Active1& instance = *new Active1;
  return instance;
}

}  // namespace accord::net
