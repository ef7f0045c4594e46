// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies of 8 bytes to 64 MiB of the embedded host runtime beside what they are to take on the
// machine that ACCORD_HOST_MACHINE names; no test. Prints a table, in microseconds of that machine
// (ACCORD_HOST_SLOWDOWN taken off). Ends with 1 if a copy was too early, or brought wrong bytes. A
// copy is late where the CPU itself takes longer.
// Usage: host_machine_measure [size_bytes_max]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/config.h"
#include "device/device_runtime.h"
#include "device/host/cost_model.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

struct Direction {
  const char* name;
  Link link;
  std::byte* to;
  const std::byte* from;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "host_machine_measure: %s\n", what);
  std::exit(1);
}

std::byte* device_memory(int device, std::size_t size_bytes) {
  void* memory = nullptr;
  if (!host_runtime().allocate(device, MemoryKind::device, size_bytes, memory).ok())
    fail("no device memory; are there two devices (ACCORD_HOST_DEVICES=2)?");
  return static_cast<std::byte*>(memory);
}

void copy(void* to, const void* from, std::size_t size_bytes) {
  const Copy one{to, from, size_bytes};
  if (!host_runtime().copy(0, {&one, 1}).ok()) fail("a copy has failed");
}

// By a ticket, as messages are copied.
void copy_by_ticket(void* to, const void* from, std::size_t size_bytes) {
  const Copy one{to, from, size_bytes};
  CopyTicket ticket;
  bool done = false;
  if (!host_runtime().copy_begin(0, {&one, 1}, ticket).ok()) fail("a copy has failed");
  while (!done)
    if (!host_runtime().copy_done(ticket, done).ok()) fail("a copy has failed");
}

template <class Body>
double median_ns(Body body) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = Clock::now();
    body();
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  return times[kRounds / 2];
}

// Whether no copy was too early.
bool measure(const Direction& of, const HostMachine& machine, std::size_t size_bytes) {
  const LinkCost cost = machine[of.link];
  const double expected =
      static_cast<double>(cost.latency_ns) + static_cast<double>(size_bytes) / cost.bytes_per_ns;
  const double blocking = median_ns([&] { copy(of.to, of.from, size_bytes); });
  const double other = median_ns([&] { copy_by_ticket(of.to, of.from, size_bytes); });
  const double unit = 1e3 * static_cast<double>(config().host_slowdown);
  std::printf("%-10s %9zu %12.2f %12.2f %12.2f %8.3f %8.3f\n", of.name, size_bytes, expected / unit,
              blocking / unit, other / unit, blocking / expected, other / expected);
  std::fflush(stdout);
  return blocking >= expected && other >= expected;
}

int run(std::size_t bytes_max) {
  HostMachine machine;
  if (!find_machine(config().host_machine, config().host_slowdown, machine))
    fail("ACCORD_HOST_MACHINE names no machine");
  std::vector<std::byte> data(bytes_max), back(bytes_max);
  for (std::size_t i = 0; i < bytes_max; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::byte* const first = device_memory(0, bytes_max);
  std::byte* const second = device_memory(0, bytes_max);
  std::byte* const other = device_memory(1, bytes_max);
  const Direction directions[] = {{"to device", Link::to_device, first, data.data()},
                                  {"on device", Link::on_device, second, first},
                                  {"to peer", Link::peer, other, second},
                                  {"to host", Link::to_host, back.data(), other}};
  bool is_right = true;
  std::printf("%s, %lld times slower; us\n%-10s %9s %12s %12s %12s %17s\n",
              config().host_machine.c_str(), static_cast<long long>(config().host_slowdown), "copy",
              "bytes", "model", "blocking", "by ticket", "/ model");
  for (std::size_t size_bytes = 8;; size_bytes = std::min(size_bytes * 8, bytes_max)) {
    std::ranges::fill(back, std::byte{0});
    for (const Direction& direction : directions)
      is_right = measure(direction, machine, size_bytes) && is_right;
    if (std::memcmp(data.data(), back.data(), size_bytes) != 0) fail("wrong bytes");
    if (size_bytes >= bytes_max) break;
  }
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace accord::device

int main(int argc, char** argv) {
  const std::size_t bytes_max = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64 << 20;
  return accord::device::run(bytes_max);
}
