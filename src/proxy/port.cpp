// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/port.h"

#include "base/log.h"
#include "base/thread.h"
#include "device/registry.h"
#include "node/registration.h"

namespace accord::proxy {

Port::~Port() {
  for (Coming* const coming : {&proxy_, &chunks_})
    if (coming->thread.joinable()) coming->thread.join();
}

Status Port::bring_proxy(device::DeviceRuntime*) {
  std::unique_ptr<Client> client;
  ACCORD_TRY(Client::connect(meeting_, client));
  const std::lock_guard locked(mutex_);
  node_ = node_name();
  client_ = std::move(client);
  return {};
}

// Memory that cannot be page-locked is copied to all the same, if not as fast.
Status Port::bring_pool(device::DeviceRuntime* runtime) {
  std::shared_ptr<Pool> pool;
  ACCORD_TRY(client_->take_pool(size_.chunk_bytes * size_.chunks, pool));
  if (runtime == nullptr && device::any_active()) runtime = &device::default_runtime();
  if (runtime != nullptr) {
    if (const Status pinned = pool->pages.pin(*runtime); !pinned.ok())
      log::info("proxy: its memory is not page-locked: {}", pinned.message());
  }
  const std::lock_guard locked(mutex_);
  pool_ = std::move(pool);
  for (std::size_t number = size_.chunks; number > 0; --number)
    free_.push_back(static_cast<std::uint32_t>(number - 1));
  return {};
}

Status Port::await(Coming& coming, Status (Port::*bring)(device::DeviceRuntime*),
                   device::DeviceRuntime* runtime, bool& is_here) {
  using Stage = Coming::Stage;
  is_here = coming.is_here();
  if (coming.stage == Stage::unused) {
    coming.stage = Stage::coming;
    Status started = start_thread(coming.thread, [this, &coming, bring, runtime] {
      Status status = (this->*bring)(runtime);
      const std::lock_guard locked(mutex_);
      end(coming, std::move(status));
    });
    if (!started.ok()) end(coming, std::move(started));
  }
  if (coming.stage == Stage::failed) return {StatusCode::unsupported, coming.why_failed.message()};
  return {};
}

void Port::end(Coming& coming, Status status) {
  if (!status.ok()) log::info("proxy: messages go without one: {}", status.message());
  coming.stage = status.ok() ? Coming::Stage::here : Coming::Stage::failed;
  coming.why_failed = std::move(status);
}

Status Port::await(Service service, device::DeviceRuntime* runtime, bool& is_here) {
  ACCORD_TRY(await(proxy_, &Port::bring_proxy, runtime, is_here));
  if (!is_here || service != Service::chunks) return {};
  return await(chunks_, &Port::bring_pool, runtime, is_here);
}

bool Port::has(Service service, device::DeviceRuntime* runtime) {
  bool is_here = false;
  {
    const std::lock_guard locked(mutex_);
    if (!await(service, runtime, is_here).ok()) return false;
  }
  return is_here && client_->check().ok();
}

Status Port::take(device::DeviceRuntime* runtime, Chunk& chunk) {
  const std::lock_guard locked(mutex_);
  chunk = {};
  bool is_here = false;
  ACCORD_TRY(await(Service::chunks, runtime, is_here));
  if (!is_here || free_.empty()) return {};
  chunk.number = free_.back();
  free_.pop_back();
  chunk.size_bytes = size_.chunk_bytes;
  chunk.memory = pool_->pages.data() + chunk.number * size_.chunk_bytes;
  chunk.address = pool_->address + chunk.number * size_.chunk_bytes;
  return {};
}

void Port::give_back(const Chunk& chunk) noexcept {
  if (chunk.memory == nullptr) return;
  const std::lock_guard locked(mutex_);
  free_.push_back(chunk.number);
}

Status Port::give(Kind kind, const net::Memory& memory, const Target& to, std::uint64_t& number) {
  const std::lock_guard locked(mutex_);
  number = 0;
  bool is_here = false;
  device::DeviceRuntime& runtime = *memory.where.runtime;
  ACCORD_TRY(await(Service::carrying, &runtime, is_here));
  if (!is_here) return {};
  node::Registration registration;
  const Status shared = registration.make(runtime, memory.where, 0);  // it knows which process
  if (!shared.ok()) return {StatusCode::unsupported, shared.message()};
  const node::MemoryHandle& handle = registration.handle();
  Packet packet;
  packet.kind = kind;
  packet.descriptor = std::move(registration.descriptor());
  device::DeviceDescription device;
  ACCORD_TRY(runtime.describe(memory.where.device, device));
  put_words({.number = last_number_ + 1,
             .base = handle.base,
             .buffer_id = handle.buffer_id,
             .allocation_bytes = handle.size_bytes,
             .offset_bytes = reinterpret_cast<std::uint64_t>(memory.start) - handle.base,
             .size_bytes = memory.size_bytes,
             .landing = to.landing,
             .handle_bytes = handle.told().size(),
             .device_bytes = device.uuid.size(),
             .worker_bytes = to.worker.size(),
             .name_bytes = to.name.size()},
            packet);
  for (const net::Bytes part : {handle.told(), std::as_bytes(std::span(device.uuid)), to.worker,
                                std::as_bytes(std::span(to.name))})
    packet.body.insert(packet.body.end(), part.begin(), part.end());
  bool sent = false;
  if (const Status given = client_->give(packet, sent); !given.ok())
    return {StatusCode::unsupported, given.message()};
  if (sent) number = ++last_number_;
  return {};
}

Status Port::carry(const net::Memory& from, const Target& to, std::uint64_t& number) {
  return give(Kind::carry, from, to, number);
}

Status Port::land(const net::Memory& to, std::uint64_t& number, std::uint64_t& landing) {
  ACCORD_TRY(give(Kind::land, to, {}, number));
  if (number != 0) landing = landing_number(client_->number(), number);
  return {};
}

int Port::descriptor() noexcept {
  const std::lock_guard locked(mutex_);
  return proxy_.is_here() ? client_->descriptor() : -1;
}

Status Port::check() {
  {
    const std::lock_guard locked(mutex_);
    if (!proxy_.is_here()) return {};
  }
  return client_->check();
}

bool Port::has_core() {
  const std::lock_guard locked(mutex_);
  return !proxy_.is_here() || client_->has_core();
}

std::int64_t Port::process() {
  const std::lock_guard locked(mutex_);
  return proxy_.is_here() ? client_->process() : 0;
}

}  // namespace accord::proxy
