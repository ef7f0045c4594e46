// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/errands.h"

#include <algorithm>
#include <string>

#include "device/registry.h"
#include "net/carriage.h"
#include "net/landing.h"

namespace accord::proxy {
namespace {

using Clock = std::chrono::steady_clock;

// How long memory stays open after a message, since opening takes as long as a message and the next
// one is often in it; and of how many. Its owner may free it meanwhile, and has it back later.
constexpr std::chrono::milliseconds kOpen{100};
constexpr std::size_t kIdleMax = 64;

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

// Ranks number devices each in their own way.
Status find_device(device::DeviceRuntime& runtime, const std::string& name, int& device) {
  for (device = 0; device < runtime.device_count(); ++device) {
    device::DeviceDescription description;
    if (runtime.describe(device, description).ok() && description.uuid == name) return {};
  }
  return {StatusCode::unsupported, "proxy: it does not see the rank's device " + name};
}

// `memory` becomes where the message is here.
Status open_memory(std::uint64_t guest, const Packet& packet, const ErrandWords& words, Body& body,
                   net::Memory& memory, node::PeerMemory& opened) {
  if (words.offset_bytes > words.allocation_bytes ||
      words.size_bytes > words.allocation_bytes - words.offset_bytes)
    return {StatusCode::invalid_argument, "proxy: a message that is not in its allocation"};
  device::DeviceRuntime& runtime = device::default_runtime();
  int device = -1;
  node::MemoryHandle handle{.process = guest,
                            .vendor = node::MemoryHandle::vendor_of(runtime),
                            .base = words.base,
                            .buffer_id = words.buffer_id,
                            .size_bytes = words.allocation_bytes};
  ACCORD_TRY(handle.put(body.take(words.handle_bytes)));
  ACCORD_TRY(find_device(runtime, net::text_of(body.take(words.device_bytes)), device));
  const Status status = opened.open(runtime, device, handle, packet.descriptor);
  if (!status.ok()) return {StatusCode::unsupported, status.message()};
  memory = {.start = opened.start() + words.offset_bytes,
            .size_bytes = words.size_bytes,
            .where = {.kind = device::MemoryKind::device,
                      .runtime = &runtime,
                      .device = device,
                      .base = opened.start(),
                      .size_bytes = words.allocation_bytes}};
  return {};
}

}  // namespace

Status Errands::begin(std::uint64_t guest, const Packet& packet) {
  const ErrandWords words = errand_words(packet);
  Body body(packet);
  net::Memory memory;
  Errand errand;
  errand.guest = guest;
  errand.number = words.number;
  ACCORD_TRY(open_memory(guest, packet, words, body, memory, errand.opened));
  if (packet.kind == Kind::land) {
    errand.work = std::make_unique<net::Landing>(freight_, landing_number(guest, words.number),
                                                 memory, net::Landing::Way::by_pieces);
  } else {
    const net::Bytes worker = body.take(words.worker_bytes);
    net::Carriage::Target target{.worker = {worker.begin(), worker.end()},
                                 .landing = words.landing,
                                 .name = net::text_of(body.take(words.name_bytes))};
    errand.work = std::make_unique<net::Carriage>(freight_, memory, std::move(target),
                                                  net::Carriage::Way::by_chunks);
  }
  errands_.push_back(std::move(errand));
  return {};
}

void Errands::set_aside(Errand& errand) {
  idle_.push_back({errand.guest, std::move(errand.opened), Clock::now()});
  if (idle_.size() > kIdleMax) idle_.pop_front();
}

void Errands::advance(std::vector<Ended>& ended) {
  std::erase_if(errands_, [&](Errand& errand) {
    bool done = false;
    Status status = errand.work->advance(done);
    if (!done && status.ok()) return false;
    errand.work.reset();
    set_aside(errand);
    ended.push_back({errand.guest, errand.number, std::move(status)});
    return true;
  });
  while (!idle_.empty() && Clock::now() - idle_.front().since >= kOpen) idle_.pop_front();
}

void Errands::drop(std::uint64_t guest, std::uint64_t number) noexcept {
  for (Errand& errand : errands_)
    if (errand.guest == guest && errand.number == number) errand.work->stop();
}

bool Errands::must_be_polled() const noexcept {
  return std::ranges::any_of(errands_,
                             [](const Errand& errand) { return errand.work->must_be_polled(); });
}

void Errands::forget(std::uint64_t guest) noexcept {
  for (Errand& errand : errands_)
    if (errand.guest == guest) errand.work->stop();
  std::erase_if(idle_, [&](const Idle& idle) { return idle.guest == guest; });
}

}  // namespace accord::proxy
