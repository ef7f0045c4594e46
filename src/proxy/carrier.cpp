// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/carrier.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "device/registry.h"
#include "node/handle_cache.h"

namespace accord::proxy {
namespace {

// How long a put may take that was cancelled.
constexpr std::chrono::seconds kFarewell{1};

// The pieces of a packet's body, one behind the other.
class Body {
 public:
  explicit Body(const Packet& packet) : rest_(packet.body) {}
  // Cut short where there is no more.
  net::Bytes take(std::uint64_t size_bytes) {
    const net::Bytes taken =
        rest_.first(static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes, rest_.size())));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  net::Bytes rest_;
};

std::string text_of(net::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Ranks number devices each in their own way.
Status find_device(device::DeviceRuntime& runtime, const std::string& name, int& device) {
  for (device = 0; device < runtime.device_count(); ++device) {
    device::DeviceDescription description;
    if (runtime.describe(device, description).ok() && description.uuid == name) return {};
  }
  return {StatusCode::unsupported, "proxy: it does not see the rank's device " + name};
}

Status open_source(const Packet& packet, const CarryWords& words, net::Bytes handle,
                   std::uint64_t guest, device::DeviceRuntime& runtime, int device, void*& start) {
  const node::PeerMemory memory{.process = guest,
                                .descriptor = packet.descriptor.number(),
                                .base = words.base,
                                .buffer_id = words.buffer_id,
                                .size_bytes = words.allocation_bytes,
                                .handle = handle};
  return node::handle_cache().open(runtime, device, memory, start);
}

}  // namespace

Carrier::~Carrier() {
  for (Message& message : messages_) end(message);
}

Status Carrier::begin(std::uint64_t guest, const Packet& packet) {
  const CarryWords words = carry_words(packet);
  Body body(packet);
  const net::Bytes handle = body.take(words.handle_bytes);
  const net::Bytes worker = body.take(words.worker_bytes);
  const net::Bytes key = body.take(words.key_bytes);
  if (key.size() != words.key_bytes || key.empty() || words.offset_bytes > words.allocation_bytes ||
      words.size_bytes > words.allocation_bytes - words.offset_bytes)
    return {StatusCode::invalid_argument, "proxy: a message that is not in its allocation"};
  Message message;
  message.guest = guest;
  message.number = words.number;
  message.runtime = &device::default_runtime();
  ACCORD_TRY(find_device(*message.runtime, text_of(body.take(words.device_bytes)), message.device));
  message.size_bytes = words.size_bytes;
  message.to = words.to;
  {
    const auto locked = worker_.lock();
    ACCORD_TRY(worker_.connect(worker, message.peer));
    ACCORD_TRY(worker_.reach(*message.peer, key, message.region));
  }
  ACCORD_TRY(
      open_source(packet, words, handle, guest, *message.runtime, message.device, message.opened));
  message.from = static_cast<const std::byte*>(message.opened) + words.offset_bytes;
  messages_.push_back(std::move(message));
  return {};
}

Status Carrier::begin_copies(Message& message) {
  while (message.begun_bytes < message.size_bytes && message.parts.size() < bounds_.chunks_of_one &&
         used_bytes_ + bounds_.chunk_bytes <= bounds_.bytes_max) {
    device::StagingBuffer chunk;
    ACCORD_TRY(device::staging_pool().acquire(message.runtime, bounds_.chunk_bytes, chunk));
    Part& part = message.parts.emplace_back();
    part.chunk = std::move(chunk);
    used_bytes_ += bounds_.chunk_bytes;
    part.offset_bytes = message.begun_bytes;
    part.size_bytes = std::min(bounds_.chunk_bytes, message.size_bytes - message.begun_bytes);
    message.begun_bytes += part.size_bytes;
    const device::Copy copy{.dst = part.chunk.data(),
                            .src = message.from + part.offset_bytes,
                            .row_bytes = part.size_bytes};
    ACCORD_TRY(message.runtime->copy_begin(message.device, {&copy, 1}, part.copying));
  }
  return {};
}

Status Carrier::advance(Message& message, Part& part, bool& is_over) {
  is_over = false;
  if (part.is_copying) {
    bool is_copied = true;
    if (part.copying.handle != nullptr)
      ACCORD_TRY(message.runtime->copy_done(part.copying, is_copied));
    if (!is_copied) return {};
    part.is_copying = false;
    part.putting = worker_.put(*message.peer, part.chunk.data(), part.size_bytes,
                               message.to + part.offset_bytes, *message.region);
  }
  return worker_.poll(part.putting, is_over);
}

Status Carrier::advance(Message& message) {
  ACCORD_TRY(begin_copies(message));
  for (Part& part : message.parts) {
    bool is_over = false;
    ACCORD_TRY(advance(message, part, is_over));
    if (!is_over) continue;
    message.put_bytes += part.size_bytes;
    part.size_bytes = 0;
    part.chunk.reset();
    used_bytes_ -= bounds_.chunk_bytes;
  }
  std::erase_if(message.parts, [](const Part& part) { return part.chunk.empty(); });
  return begin_copies(message);
}

void Carrier::advance(std::vector<Ended>& ended) {
  const auto locked = worker_.lock();
  for (auto at = messages_.begin(); at != messages_.end();) {
    Status status = advance(*at);
    const bool is_over = !status.ok() || at->put_bytes == at->size_bytes;
    if (is_over) {
      ended.push_back({at->guest, at->number, std::move(status)});
      end(*at);
    }
    at = is_over ? messages_.erase(at) : std::next(at);
  }
}

bool Carrier::is_copying() const noexcept {
  return std::ranges::any_of(messages_, [](const Message& message) {
    return std::ranges::any_of(message.parts, &Part::is_copying);
  });
}

// Nothing of a message goes on into its chunks or its source any more.
void Carrier::end(Message& message) noexcept {
  for (Part& part : message.parts) {
    for (bool done = !part.is_copying || part.copying.handle == nullptr; !done;) {
      if (!message.runtime->copy_done(part.copying, done).ok()) break;
    }
    worker_.cancel(part.putting);
    const auto until = std::chrono::steady_clock::now() + kFarewell;
    for (bool done = part.is_copying; !done && std::chrono::steady_clock::now() < until;) {
      worker_.progress();
      (void)worker_.poll(part.putting, done);
    }
    if (!part.chunk.empty()) used_bytes_ -= bounds_.chunk_bytes;
  }
  message.parts.clear();
  message.region.reset();
  (void)node::handle_cache().close(message.opened);
}

void Carrier::forget(std::uint64_t guest) noexcept {
  const auto locked = worker_.lock();
  for (auto at = messages_.begin(); at != messages_.end();) {
    const bool is_its = at->guest == guest;
    if (is_its) end(*at);
    at = is_its ? messages_.erase(at) : std::next(at);
  }
}

}  // namespace accord::proxy
