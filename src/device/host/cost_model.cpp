// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/cost_model.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <string>

#include "base/config.h"
#include "device/host/link_clocks.h"

namespace accord::device {
namespace {

using std::chrono::nanoseconds;
using Moment = AdapterModel::Moment;

// A sleep ends this much later than asked for, at most times.
constexpr nanoseconds kSleepsLate{70'000};
constexpr nanoseconds kNap{50'000};
constexpr nanoseconds kAwake{25'000};  // between two naps

std::int64_t now_ns() {
  return nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
Moment moment(std::int64_t ns) { return Moment(nanoseconds(ns)); }

void sleep_until(Moment until) {
  const std::int64_t ns = nanoseconds(until.time_since_epoch()).count();
  const timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  (void)::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace

bool find_machine(const std::string& name, std::int64_t slowdown, HostMachine& machine) {
  const auto cost = [slowdown](std::int64_t latency_ns, double megabytes_per_s) {
    return LinkCost{latency_ns * slowdown, megabytes_per_s / 1e3 / static_cast<double>(slowdown)};
  };
#define MACHINE(named, to_device_ns, to_device, to_host_ns, to_host, on_device_ns, on_device, \
                peer, network, adapter_ns, adapter_reads, adapter_writes)                     \
  if (name == #named) {                                                                       \
    machine = {{cost(to_device_ns, to_device), cost(to_host_ns, to_host),                     \
                cost(on_device_ns, on_device), cost(on_device_ns, peer),                      \
                cost(adapter_ns, adapter_reads), cost(adapter_ns, adapter_writes)},           \
               cost(0, network).bytes_per_ns};                                                \
    return true;                                                                              \
  }
#include "device/host/machines.def"
  return false;
}

void Traffic::add(int to_device, int from_device, std::size_t size_bytes) {
  if (to_device == kHost && from_device == kHost) return;
  Part part{from_device == kHost ? to_device : from_device, Link::peer, size_bytes};
  if (from_device == kHost) {
    part.link = Link::to_device;
  } else if (to_device == kHost) {
    part.link = Link::to_host;
  } else if (to_device == from_device) {
    part.link = Link::on_device;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    Part& known = parts_[i];
    const bool is_same = known.device == part.device && known.link == part.link;
    if (!is_same && i + 1 < kPartsMax) continue;
    known.size_bytes += size_bytes;
    return;
  }
  parts_[count_++] = part;
}

std::unique_ptr<CostModel> CostModel::of_settings() {
  HostMachine machine;
  const std::int64_t slowdown = std::max<std::int64_t>(1, config().host_slowdown);
  if (!find_machine(config().host_machine, slowdown, machine)) return nullptr;
  return std::make_unique<CostModel>(machine);
}

CostModel::Nanoseconds CostModel::duration(Link link, std::size_t size_bytes) const {
  return static_cast<Nanoseconds>(static_cast<double>(size_bytes) / machine_[link].bytes_per_ns);
}

CostModel::Nanoseconds CostModel::on_wire(std::size_t size_bytes) const {
  return static_cast<Nanoseconds>(static_cast<double>(size_bytes) / machine_.network_bytes_per_ns);
}

CostModel::Nanoseconds CostModel::take(int device, Link link, std::size_t size_bytes,
                                       Nanoseconds earliest) {
  std::atomic_ref<Nanoseconds> clock(link_clock(device, static_cast<unsigned>(link)));
  const Nanoseconds needs = duration(link, size_bytes);
  Nanoseconds free = clock.load(std::memory_order_relaxed);
  while (!clock.compare_exchange_weak(free, std::max(free, earliest) + needs,
                                      std::memory_order_relaxed)) {
  }
  return std::max(free, earliest) + needs;
}

Moment CostModel::begin(const Traffic& traffic) {
  const Nanoseconds now = now_ns();
  Nanoseconds last = now;
  for (std::size_t i = 0; i < traffic.count_; ++i) {
    const Traffic::Part& part = traffic.parts_[i];
    last = std::max(
        last, take(part.device, part.link, part.size_bytes, now) + machine_[part.link].latency_ns);
  }
  return moment(last);
}

void CostModel::wait_until(Moment until) {
  if (until - std::chrono::steady_clock::now() > kSleepsLate) sleep_until(until - kSleepsLate);
  while (std::chrono::steady_clock::now() < until) ::sched_yield();
}

bool CostModel::has_come(Moment until) {
  static thread_local Moment awake_until;
  const Moment now = std::chrono::steady_clock::now();
  if (now >= until) return true;
  if (now < awake_until || until - now < kNap + kSleepsLate) return false;
  sleep_until(now + kNap);
  awake_until = std::chrono::steady_clock::now() + kAwake;
  return false;
}

// An adapter that reads faster than the network sends has read its last byte as that leaves.
Moment CostModel::begin_read(int device, std::size_t size_bytes) {
  const Nanoseconds now = now_ns();
  const Nanoseconds end =
      take(device, Link::adapter_reads, size_bytes, now) + machine_[Link::adapter_reads].latency_ns;
  return moment(std::max(now, end - on_wire(size_bytes)));
}

// It has written meanwhile what came before the last byte.
Moment CostModel::end_write(int device, std::size_t size_bytes, From from) {
  Nanoseconds comes = on_wire(size_bytes);
  if (from == From::device) comes = std::max(comes, duration(Link::adapter_reads, size_bytes));
  const Nanoseconds began = now_ns() - comes;
  return moment(take(device, Link::adapter_writes, size_bytes, began) +
                machine_[Link::adapter_writes].latency_ns);
}

Moment CostModel::end_write_at_peer(Moment& free, std::size_t size_bytes) {
  const Moment began = moment(now_ns() - on_wire(size_bytes));
  free = std::max(free, began) + nanoseconds(duration(Link::adapter_writes, size_bytes));
  return free + nanoseconds(machine_[Link::adapter_writes].latency_ns);
}

}  // namespace accord::device
