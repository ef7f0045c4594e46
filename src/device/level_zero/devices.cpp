// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/level_zero/devices.h"

#include <fmt/format.h>

#include <atomic>
#include <iterator>

#include "base/log.h"

namespace accord::device::level_zero {
namespace {

std::atomic<const Devices*> known{nullptr};

// What Level Zero lists: asked for their number first.
template <class T, class Ask>
Status list_all(std::vector<T>& items, const T& blank, const char* call, const Ask& ask) {
  std::uint32_t count = 0;
  ACCORD_TRY(status_of(ask(&count, nullptr), call));
  items.assign(count, blank);
  if (count == 0) return Status();
  ACCORD_TRY(status_of(ask(&count, items.data()), call));
  if (count < items.size()) items.resize(count);
  return Status();
}

// Engines that only copy leave the others to the program's kernels.
Status find_queues(const Driver& driver, Device& device) {
  std::vector<ze_command_queue_group_properties_t> groups;
  ze_command_queue_group_properties_t blank{};
  blank.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
  ACCORD_TRY(list_all(groups, blank, symbol::device_get_queue_groups,
                      [&](std::uint32_t* count, ze_command_queue_group_properties_t* items) {
                        return driver.device_get_queue_groups(device.handle, count, items);
                      }));
  Engines copies_only;
  for (std::size_t number = 0; number < groups.size(); ++number) {
    const auto flags = groups[number].flags;
    const bool computes = (flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE) != 0;
    const bool copies = (flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY) != 0;
    Engines& engines = computes ? device.compute : copies_only;
    if ((!computes && !copies) || engines.queues != 0) continue;
    engines = {.group = static_cast<std::uint32_t>(number), .queues = groups[number].numQueues};
  }
  device.copy = copies_only.queues != 0 ? copies_only : device.compute;
  if (device.copy.queues == 0)
    return Status(StatusCode::device_error, "level_zero: a device has no queue for copies");
  return Status();
}

Status is_gpu(const Driver& driver, ze_device_handle_t handle, bool& gpu) {
  ze_device_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
  ACCORD_TRY(
      status_of(driver.device_get_properties(handle, &properties), symbol::device_get_properties));
  gpu = properties.type == ZE_DEVICE_TYPE_GPU;
  return Status();
}

// Memory may be said to be a tile's.
Status find_tiles(const Driver& driver, ze_device_handle_t handle,
                  std::vector<ze_device_handle_t>& tiles) {
  return list_all(tiles, ze_device_handle_t{}, symbol::device_get_subdevices,
                  [&](std::uint32_t* count, ze_device_handle_t* items) {
                    return driver.device_get_subdevices(handle, count, items);
                  });
}

// The GPUs of one driver. Nothing of it is entered where something of it fails.
Status add_driver(const Driver& driver, ze_driver_handle_t handle, Devices& devices) {
  std::vector<ze_device_handle_t> handles;
  ACCORD_TRY(list_all(handles, ze_device_handle_t{}, symbol::device_get,
                      [&](std::uint32_t* count, ze_device_handle_t* items) {
                        return driver.device_get(handle, count, items);
                      }));
  std::vector<Device> found;
  std::vector<std::vector<ze_device_handle_t>> tiles;
  for (ze_device_handle_t next : handles) {
    bool gpu = false;
    ACCORD_TRY(is_gpu(driver, next, gpu));
    if (!gpu) continue;
    found.emplace_back().handle = next;
    ACCORD_TRY(find_queues(driver, found.back()));
    ACCORD_TRY(find_tiles(driver, next, tiles.emplace_back()));
  }
  if (found.empty()) return Status();
  ze_context_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
  ze_context_handle_t context = nullptr;
  ACCORD_TRY(
      status_of(driver.context_create(handle, &description, &context), symbol::context_create));
  devices.contexts.push_back(context);
  devices.first_ones[context] = static_cast<int>(devices.all.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int index = static_cast<int>(devices.all.size());
    found[i].context = context;
    devices.all.push_back(found[i]);
    devices.indices[found[i].handle] = index;
    for (ze_device_handle_t tile : tiles[i]) devices.indices[tile] = index;
  }
  return Status();
}

// After zeInit has failed nothing else may be called: the loader may have unloaded the drivers that
// its functions still point to.
const Devices* find(const Driver& driver) {
  auto* devices = new Devices;
  devices->status = status_of(driver.init(0), symbol::init);
  std::vector<ze_driver_handle_t> handles;
  if (devices->status.ok()) {
    devices->status = list_all(handles, ze_driver_handle_t{}, symbol::driver_get,
                               [&](std::uint32_t* count, ze_driver_handle_t* items) {
                                 return driver.driver_get(count, items);
                               });
  }
  if (!devices->status.ok()) handles.clear();
  for (ze_driver_handle_t handle : handles)
    keep_first(devices->status, add_driver(driver, handle, *devices));
  if (!devices->status.ok()) log::info("{}", devices->status.message());
  known.store(devices, std::memory_order_release);
  return devices;
}

}  // namespace

int Devices::index_of(ze_device_handle_t handle, ze_context_handle_t context) const {
  if (const auto found = indices.find(handle); found != indices.end()) return found->second;
  const auto first = first_ones.find(context);
  return first != first_ones.end() ? first->second : 0;
}

// Kept for good, as the contexts are.
const Devices& devices(const Driver& driver) {
  static const Devices* const found = find(driver);
  return *found;
}

ze_command_queue_desc_t queue_description(const Engines& engines, std::uint32_t number) {
  ze_command_queue_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
  description.ordinal = engines.group;
  description.index = number % engines.queues;
  if (engines.queues > 1) description.flags = ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY;
  description.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS;
  description.priority = ZE_COMMAND_QUEUE_PRIORITY_NORMAL;
  return description;
}

Status describe(const Driver& driver, const Device& device, DeviceDescription& description) {
  ze_device_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
  ACCORD_TRY(status_of(driver.device_get_properties(device.handle, &properties),
                       symbol::device_get_properties));
  std::uint32_t count = 0;
  ACCORD_TRY(status_of(driver.device_get_memory_properties(device.handle, &count, nullptr),
                       symbol::device_get_memory_properties));
  ze_device_memory_properties_t blank{};
  blank.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
  std::vector<ze_device_memory_properties_t> memories(count, blank);
  ACCORD_TRY(status_of(driver.device_get_memory_properties(device.handle, &count, memories.data()),
                       symbol::device_get_memory_properties));
  for (const ze_device_memory_properties_t& memory : memories)
    description.memory_bytes += static_cast<std::size_t>(memory.totalSize);
  description.name = properties.name;
  description.uuid = "GPU";
  for (std::size_t i = 0; i < std::size(properties.uuid.id); ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    description.uuid += fmt::format("{}{:02x}", dash ? "-" : "", properties.uuid.id[i]);
  }
  return Status();
}

std::vector<DeviceLink> links(const Driver& driver) {
  std::vector<DeviceLink> result;
  const std::vector<Device>& all = devices(driver).all;
  for (std::size_t from = 0; from < all.size(); ++from) {
    for (std::size_t to = 0; to < all.size(); ++to) {
      if (from == to) continue;
      ze_bool_t access = 0;
      const ze_result_t answer =
          driver.device_can_access_peer(all[from].handle, all[to].handle, &access);
      result.push_back({.from = static_cast<int>(from),
                        .to = static_cast<int>(to),
                        .peer_access = answer == ZE_RESULT_SUCCESS && access != 0,
                        .performance_rank = -1});
    }
  }
  return result;
}

const Devices* devices_if_known() noexcept { return known.load(std::memory_order_acquire); }

}  // namespace accord::device::level_zero
