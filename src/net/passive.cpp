// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Passive proxy: the sender's copy engine writes chunk after chunk into host memory that the proxy
// of its node has made known to the network, and tells the receiver where each one is. The receiver
// reads it there, with no process of the sender's node in between where the adapter can, and says
// that it has. So the copies out of the device and the network are at work at the same time, and no
// adapter reads device memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>

#include "device/staging_pool.h"
#include "net/copying.h"
#include "net/design.h"
#include "net/proxy_port.h"

namespace accord::net {
namespace {

using Chunk = ProxyPort::Chunk;

// What the sender tells first: how the proxy is reached. The bytes follow.
struct Introduction {
  std::uint32_t what = kWhat;
  std::uint32_t holder_bytes = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t node_bytes = 0;
  static constexpr std::uint32_t kWhat = 1;
};

// And then of each chunk.
struct Announcement {
  std::uint32_t what = kWhat;
  std::uint32_t chunk = 0;
  std::uint64_t address = 0;       // in the proxy
  std::uint64_t offset_bytes = 0;  // in the message
  std::uint64_t size_bytes = 0;
  static constexpr std::uint32_t kWhat = 2;
};

// What the receiver answers: it has read the chunk.
struct Receipt {
  std::uint32_t chunk = 0;
};

template <class T>
Bytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
bool read_as(Bytes bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  return true;
}

class PassiveSend final : public Transfer {
 public:
  PassiveSend(const Line& line, const Memory& from, ProxyPort& port)
      : line_(line), from_(from), port_(port) {}
  ~PassiveSend() override {
    for (Part& part : parts_) {
      part.copying.finish();
      port_.give_back(part.chunk);
    }
  }

  Status advance(bool& done) override;
  void hear(Bytes message) override;
  void stop() noexcept override { is_stopped_ = true; }
  // Also while it waits for chunks that others have. Receipts of its own come by the network.
  bool must_be_polled() const noexcept override {
    return parts_.empty() || std::ranges::any_of(parts_, &Part::is_copying);
  }

 private:
  struct Part {
    Chunk chunk;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    Copying copying;
    bool is_copying = true;
  };
  Status introduce();
  Status announce_copied();
  Status begin_copies();

  const Line line_;
  const Memory from_;
  ProxyPort& port_;
  std::deque<Part> parts_;  // chunks that are copied, or read by the receiver
  std::size_t begun_bytes_ = 0;
  std::size_t read_bytes_ = 0;
  bool is_introduced_ = false;
  bool is_stopped_ = false;
  bool is_confused_ = false;
};

Status PassiveSend::introduce() {
  const Introduction introduction{.holder_bytes = static_cast<std::uint32_t>(port_.holder().size()),
                                  .key_bytes = static_cast<std::uint32_t>(port_.key().size()),
                                  .node_bytes = static_cast<std::uint32_t>(port_.node().size())};
  std::vector<std::byte> message;
  for (const Bytes part : {bytes_of(introduction), port_.holder(), port_.key(),
                           std::as_bytes(std::span(port_.node()))})
    message.insert(message.end(), part.begin(), part.end());
  if (message.size() > Line::kTellBytesMax)
    return {StatusCode::network, "passive: the proxy's address is too long"};
  is_introduced_ = true;
  return line_.tell(message);
}

Status PassiveSend::announce_copied() {
  for (Part& part : parts_) {
    bool is_copied = false;
    if (!part.is_copying) continue;
    ACCORD_TRY(part.copying.poll(is_copied));
    if (!is_copied) continue;
    part.is_copying = false;
    const Announcement announcement{.chunk = part.chunk.number,
                                    .address = part.chunk.address,
                                    .offset_bytes = part.offset_bytes,
                                    .size_bytes = part.size_bytes};
    ACCORD_TRY(line_.tell(bytes_of(announcement)));
  }
  return {};
}

Status PassiveSend::begin_copies() {
  while (begun_bytes_ < from_.size_bytes) {
    Chunk chunk;
    ACCORD_TRY(port_.take(from_.where.runtime, chunk));
    if (chunk.memory == nullptr) return {};
    Part& part = parts_.emplace_back();
    part.chunk = chunk;
    part.offset_bytes = begun_bytes_;
    part.size_bytes = std::min(chunk.size_bytes, from_.size_bytes - begun_bytes_);
    begun_bytes_ += part.size_bytes;
    if (!is_introduced_) ACCORD_TRY(introduce());
    ACCORD_TRY(part.copying.begin(from_.where, chunk.memory,
                                  static_cast<const std::byte*>(from_.start) + part.offset_bytes,
                                  part.size_bytes));
  }
  return {};
}

Status PassiveSend::advance(bool& done) {
  done = true;
  if (is_stopped_) return {StatusCode::network, "passive: the receiver has given up"};
  if (is_confused_) return {StatusCode::network, "passive: a receipt for no chunk"};
  if (const Status there = port_.check(); !there.ok())
    return is_introduced_ ? there : Status(StatusCode::unsupported, there.message());
  ACCORD_TRY(announce_copied());
  ACCORD_TRY(begin_copies());
  ACCORD_TRY(announce_copied());
  done = read_bytes_ == from_.size_bytes;
  return {};
}

void PassiveSend::hear(Bytes message) {
  Receipt receipt;
  const auto found = std::ranges::find_if(parts_, [&](const Part& part) {
    return read_as(message, receipt) && !part.is_copying && part.chunk.number == receipt.chunk;
  });
  is_confused_ = is_confused_ || found == parts_.end();
  if (found == parts_.end()) return;
  read_bytes_ += found->size_bytes;
  port_.give_back(found->chunk);
  parts_.erase(found);
}

// Reads into the user's memory where UCX can, else by way of page-locked memory.
class PassiveReceive final : public Transfer {
 public:
  PassiveReceive(const Line& line, const Memory& to)
      : line_(line), to_(to), is_reached_(line.worker.reaches(to.where)) {}
  ~PassiveReceive() override {
    for (Part& part : parts_) {
      if (part.stage == Stage::reading) line_.worker.cancel(part.reading);
    }
  }

  Status advance(bool& done) override;
  void hear(Bytes message) override {
    if (heard_.ok()) heard_ = understand(message);
  }
  void stop() noexcept override {
    heard_ = {StatusCode::network, fmt::format("passive: rank {} has given up", line_.other)};
  }
  bool must_be_polled() const noexcept override {
    return std::ranges::any_of(parts_,
                               [](const Part& part) { return part.stage == Stage::copying; });
  }

 private:
  enum class Stage { announced, reading, copying, done };
  struct Part {
    Announcement of;
    Stage stage = Stage::announced;
    Ticket reading;
    device::StagingBuffer bounce;
    Copying copying;
  };
  Status understand(Bytes message);
  Status meet(const Introduction& introduction, Bytes rest);
  Status advance(Part& part);
  Status wind_up(bool& done);
  Status begin_reading(Part& part);
  Status end_reading(Part& part);
  std::byte* place_of(const Part& part) const {
    return static_cast<std::byte*>(is_reached_ ? to_.address() : to_.start) + part.of.offset_bytes;
  }

  const Line line_;
  const Memory to_;
  const bool is_reached_;
  std::string node_;  // of the proxy
  Peer* proxy_ = nullptr;
  std::unique_ptr<RemoteRegion> region_;
  Status heard_;
  std::deque<Part> parts_;
  std::size_t announced_bytes_ = 0;
  std::size_t done_bytes_ = 0;
};

Status PassiveReceive::meet(const Introduction& introduction, Bytes rest) {
  if (std::uint64_t{introduction.holder_bytes} + introduction.key_bytes + introduction.node_bytes !=
      rest.size())
    return {StatusCode::network, "passive: an introduction that is cut off"};
  const Bytes node = rest.subspan(introduction.holder_bytes + introduction.key_bytes);
  node_.assign(reinterpret_cast<const char*>(node.data()), node.size());
  ACCORD_TRY(line_.worker.connect(rest.first(introduction.holder_bytes), proxy_));
  return line_.worker.reach(
      *proxy_, rest.subspan(introduction.holder_bytes, introduction.key_bytes), region_);
}

Status PassiveReceive::understand(Bytes message) {
  std::uint32_t what = 0;
  Introduction introduction;
  Announcement announcement;
  (void)read_as(message, what);
  // Only once: chunks are read by what it says.
  if (what == Introduction::kWhat && region_ == nullptr && read_as(message, introduction))
    return meet(introduction, message.subspan(sizeof introduction));
  if (what != Announcement::kWhat || !read_as(message, announcement) || region_ == nullptr ||
      announcement.offset_bytes > to_.size_bytes ||
      announcement.size_bytes > to_.size_bytes - announcement.offset_bytes ||
      announcement.size_bytes > to_.size_bytes - announced_bytes_ || announcement.size_bytes == 0)
    return {StatusCode::network, "passive: a message that is not understood"};
  announced_bytes_ += announcement.size_bytes;
  parts_.emplace_back().of = announcement;
  return {};
}

Status PassiveReceive::begin_reading(Part& part) {
  void* into = place_of(part);
  if (!is_reached_) {
    ACCORD_TRY(device::staging_pool().acquire(to_.where.runtime, part.of.size_bytes, part.bounce));
    into = part.bounce.data();
  }
  part.reading = line_.worker.get(*proxy_, into, part.of.size_bytes, part.of.address, *region_,
                                  is_reached_ ? to_.where : device::PointerInfo());
  part.stage = Stage::reading;
  return {};
}

Status PassiveReceive::end_reading(Part& part) {
  part.stage = is_reached_ ? Stage::done : Stage::copying;
  ACCORD_TRY(line_.tell(bytes_of(Receipt{part.of.chunk})));
  if (is_reached_) return {};
  return part.copying.begin(to_.where, place_of(part), part.bounce.data(), part.of.size_bytes);
}

Status PassiveReceive::advance(Part& part) {
  if (part.stage == Stage::announced) ACCORD_TRY(begin_reading(part));
  bool is_over = false;
  if (part.stage == Stage::reading) {
    (void)line_.worker.await(*proxy_);
    if (const Status read = line_.worker.poll(part.reading, is_over); !read.ok()) {
      part.stage = Stage::done;
      return {read.code(), fmt::format("the proxy of node {}: {}", node_, read.message())};
    }
    if (is_over) ACCORD_TRY(end_reading(part));
  }
  if (part.stage == Stage::copying) {
    ACCORD_TRY(part.copying.poll(is_over));
    if (is_over) part.stage = Stage::done;
  }
  return {};
}

// After an error nothing may write to the user's memory any more.
Status PassiveReceive::wind_up(bool& done) {
  done = true;
  for (Part& part : parts_) {
    bool is_over = true;
    if (part.stage != Stage::reading) continue;
    line_.worker.cancel(part.reading);
    (void)line_.worker.poll(part.reading, is_over);
    if (is_over) part.stage = Stage::done;
    done = done && is_over;
  }
  return done ? heard_ : Status();
}

Status PassiveReceive::advance(bool& done) {
  for (Part& part : parts_) {
    if (heard_.ok()) heard_ = advance(part);
  }
  if (!heard_.ok()) return wind_up(done);
  std::erase_if(parts_, [&](const Part& part) {
    if (part.stage != Stage::done) return false;
    done_bytes_ += part.of.size_bytes;
    return true;
  });
  done = done_bytes_ == to_.size_bytes;
  return {};
}

class Passive final : public Design {
 public:
  const char* name() const noexcept override { return "passive"; }
  const char* path() const noexcept override { return "net-passive"; }
  // The copies are ours.
  bool takes(const Worker&, const device::PointerInfo&) const override { return true; }
  bool is_ready(const device::PointerInfo& where) const override {
    return proxy_port() != nullptr && proxy_port()->has(ProxyPort::Service::chunks, where.runtime);
  }
  Status receive(const Line& line, const Memory& to, std::vector<std::byte>&,
                 std::unique_ptr<Transfer>& made) const override {
    made = std::make_unique<PassiveReceive>(line, to);
    return {};
  }
  Status send(const Line& line, const Memory& from, Bytes,
              std::unique_ptr<Transfer>& made) const override {
    ProxyPort* const port = proxy_port();
    if (port == nullptr) return {StatusCode::unsupported, "passive: no proxy in this process"};
    made = std::make_unique<PassiveSend>(line, from, *port);
    return {};
  }
};

}  // namespace

const Design& passive_design() {
  static const Passive& instance = *new Passive;
  return instance;
}

}  // namespace accord::net
