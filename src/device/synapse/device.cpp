// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/synapse/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace accord::device::synapse {
namespace {

// What Synapse calls the device that the program has acquired: it numbers those of a process.
constexpr DeviceId kFirst = 0;

}  // namespace

Status find_modules(const Driver& driver, std::vector<Module>& modules) {
  modules.clear();
  static std::atomic<bool> initialised{false};
  if (!initialised) {
    const Result started = driver.init();
    if (started != Result::already_initialized) ACCORD_TRY(status_of(started, symbol::init));
    initialised = true;
  }
  std::uint32_t count = 0;
  ACCORD_TRY(status_of(driver.device_get_count(&count), symbol::device_get_count));
  if (count == 0) return Status();
  modules.resize(count);
  ACCORD_TRY(
      status_of(driver.device_get_modules(modules.data(), &count), symbol::device_get_modules));
  modules.resize(std::min<std::size_t>(modules.size(), count));
  return Status();
}

bool OneDevice::find_range(const Driver& driver, DeviceId id) noexcept {
  const Attribute attributes[] = {Attribute::memory_start, Attribute::memory_bytes};
  std::uint64_t values[std::size(attributes)]{};
  if (driver.device_get_attributes(values, attributes, std::size(attributes), id) !=
          Result::success ||
      values[1] == 0)
    return false;
  id_.store(id, std::memory_order_relaxed);
  start_.store(values[0], std::memory_order_relaxed);
  bytes_.store(values[1], std::memory_order_release);
  return true;
}

bool OneDevice::is_there(const Driver& driver) noexcept {
  return bytes_.load(std::memory_order_acquire) != 0 || find_range(driver, kFirst);
}

Status OneDevice::acquire(const Driver& driver, int number) {
  const std::lock_guard lock(acquiring_);
  if (is_there(driver)) {
    if (!is_ours_ || number == number_) return Status();
    return Status(
        StatusCode::unsupported,
        fmt::format("synapse: this process has device {}, and can have no other", number_.load()));
  }
  std::vector<Module> modules;
  ACCORD_TRY(find_modules(driver, modules));
  const auto index = static_cast<std::size_t>(number);
  if (number < 0 || index >= modules.size())
    return Status(StatusCode::invalid_argument,
                  fmt::format("synapse has no device {} ({} devices)", number, modules.size()));
  DeviceId id = kFirst;
  const Result acquired = driver.device_acquire(&id, modules[index]);
  if (acquired != Result::already_acquired) {
    ACCORD_TRY(status_of(acquired, symbol::device_acquire));
    number_ = number;
    is_ours_ = true;
  }
  if (find_range(driver, id)) return Status();
  return Status(StatusCode::device_error, "synapse: the device does not tell where its memory is");
}

void Allocations::add(void* base, std::size_t size_bytes) {
  static std::atomic<std::uint64_t> last_id{0};
  const std::unique_lock lock(mutex_);
  by_start_[address_of(base)] = {base, size_bytes, ++last_id};
}

bool Allocations::remove(void* base) {
  const std::unique_lock lock(mutex_);
  return by_start_.erase(address_of(base)) != 0;
}

std::optional<Allocations::Known> Allocations::find(const void* pointer) const {
  const std::shared_lock lock(mutex_);
  const auto next = by_start_.upper_bound(address_of(pointer));
  if (next == by_start_.begin()) return std::nullopt;
  const Known& known = std::prev(next)->second;
  if (address_of(pointer) - address_of(known.base) >= known.size_bytes) return std::nullopt;
  return known;
}

}  // namespace accord::device::synapse
