// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "proxy/port.h"

#include <signal.h>

#include "base/log.h"
#include "device/registry.h"

namespace accord::proxy {

Port::~Port() {
  if (thread_.joinable()) thread_.join();
}

// Memory that cannot be page-locked is copied to all the same, if not as fast.
Status Port::come(device::DeviceRuntime* runtime) {
  std::unique_ptr<Client> client;
  ACCORD_TRY(Client::connect(meeting_, client));
  std::shared_ptr<Pool> pool;
  ACCORD_TRY(client->take_pool(size_.chunk_bytes * size_.chunks, pool));
  if (runtime == nullptr && device::any_active()) runtime = &device::default_runtime();
  if (runtime != nullptr) {
    if (const Status pinned = pool->pages.pin(*runtime); !pinned.ok())
      log::info("proxy: its memory is not page-locked: {}", pinned.message());
  }
  const std::lock_guard locked(mutex_);
  node_ = node_name();
  client_ = std::move(client);
  pool_ = std::move(pool);
  for (std::size_t number = size_.chunks; number > 0; --number)
    free_.push_back(static_cast<std::uint32_t>(number - 1));
  stage_ = Stage::here;
  return {};
}

// Signals are the program's, for threads of its own.
void Port::start(device::DeviceRuntime* runtime) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  stage_ = Stage::coming;
  thread_ = std::thread([this, runtime] {
    Status come_status = come(runtime);
    if (come_status.ok()) return;
    const std::lock_guard locked(mutex_);
    why_failed_ = std::move(come_status);
    stage_ = Stage::failed;
  });
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Status Port::stand(device::DeviceRuntime* runtime, bool& is_here) {
  if (stage_ == Stage::unused) start(runtime);
  is_here = stage_ == Stage::here;
  if (stage_ != Stage::failed) return {};
  return {StatusCode::network, why_failed_.message()};
}

Status Port::take(device::DeviceRuntime* runtime, Chunk& chunk) {
  const std::lock_guard locked(mutex_);
  chunk = {};
  bool is_here = false;
  ACCORD_TRY(stand(runtime, is_here));
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
  ACCORD_TRY(stand(&runtime, is_here));
  if (!is_here) return {};
  device::ExportedMemory exported;
  const Status shared = runtime.export_memory(memory.start, exported);
  if (!shared.ok()) return {StatusCode::unsupported, shared.message()};
  Packet packet;
  packet.kind = kind;
  packet.descriptor = node::Descriptor(exported.file_descriptor);
  device::DeviceDescription device;
  ACCORD_TRY(runtime.describe(memory.where.device, device));
  put_words({.number = last_number_ + 1,
             .base = reinterpret_cast<std::uintptr_t>(memory.where.base),
             .buffer_id = memory.where.buffer_id,
             .allocation_bytes = memory.where.size_bytes,
             .offset_bytes = exported.offset_bytes,
             .size_bytes = memory.size_bytes,
             .landing = to.landing,
             .handle_bytes = exported.bytes.size(),
             .device_bytes = device.uuid.size(),
             .worker_bytes = to.worker.size(),
             .name_bytes = to.name.size()},
            packet);
  for (const net::Bytes part : {net::Bytes(exported.bytes), std::as_bytes(std::span(device.uuid)),
                                to.worker, std::as_bytes(std::span(to.name))})
    packet.body.insert(packet.body.end(), part.begin(), part.end());
  bool sent = false;
  ACCORD_TRY(client_->give(packet, sent));
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
  return stage_ == Stage::here ? client_->descriptor() : -1;
}

Status Port::check() {
  {
    const std::lock_guard locked(mutex_);
    if (stage_ != Stage::here) return {};
  }
  return client_->check();
}

std::int64_t Port::process() {
  const std::lock_guard locked(mutex_);
  return stage_ == Stage::here ? client_->process() : 0;
}

}  // namespace accord::proxy
