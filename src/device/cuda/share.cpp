// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/share.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

namespace accord::device::cuda {
namespace {

enum class Origin : std::uint64_t { allocation, mapping, pool };

// What ExportedMemory::bytes holds.
struct Handle {
  static constexpr std::uint64_t kMagic = 0x33616475'63636361ULL;
  std::uint64_t magic = kMagic;
  std::array<char, 8> runtime{};  // whose it is: others have handles of the same form
  Origin origin = Origin::allocation;
  std::uint64_t size_bytes = 0;  // of a mapping
  IpcHandle ipc{};
  PoolPointer pool_pointer{};
};

std::array<char, 8> name_of(const Driver& driver) {
  std::array<char, 8> name{};
  std::string_view(driver.runtime).copy(name.data(), name.size());
  return name;
}

// That memory was not made to be exported is no error of the device: there are other ways.
Status unsupported(const Driver& driver, Result result, const char* call) {
  const Status status = status_of(driver, result, call);
  if (result != Result::invalid_value && result != Result::not_supported &&
      result != Result::not_permitted)
    return status;
  return Status(StatusCode::unsupported, status.message());
}

template <class Value>
bool ask(const Driver& driver, const void* pointer, PointerAttribute attribute, Value& value) {
  return driver.pointer_get_attribute(&value, attribute, address_of(pointer)) == Result::success;
}

Pool pool_of(const Driver& driver, const void* pointer) noexcept {
  Pool pool = nullptr;
  return ask(driver, pointer, PointerAttribute::pool, pool) ? pool : nullptr;
}

Status export_mapping(const Driver& driver, const PointerInfo& info, Handle& handle,
                      int& descriptor) {
  MemoryHandle memory = 0;
  ACCORD_TRY(unsupported(driver, driver.memory_retain_handle(&memory, info.base),
                         symbol::memory_retain_handle));
  handle.origin = Origin::mapping;
  handle.size_bytes = info.size_bytes;
  const Status status = unsupported(
      driver, driver.memory_export(&descriptor, memory, HandleType::posix_file_descriptor, 0),
      symbol::memory_export);
  (void)driver.memory_release(memory);
  return status;
}

Status export_from_pool(const Driver& driver, const PointerInfo& info, Pool pool, Handle& handle,
                        int& descriptor) {
  handle.origin = Origin::pool;
  ACCORD_TRY(unsupported(
      driver, driver.pool_export(&descriptor, pool, HandleType::posix_file_descriptor, 0),
      symbol::pool_export));
  const Status status =
      unsupported(driver, driver.pool_export_pointer(&handle.pool_pointer, address_of(info.base)),
                  symbol::pool_export_pointer);
  if (status.ok()) return status;
  ::close(descriptor);
  descriptor = -1;
  return status;
}

void* handle_of(int descriptor) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
}

AccessDescription access_of(Device device) {
  return {.location = {kLocationDevice, device}, .flags = kAccessReadWrite};
}

Status map(const Driver& driver, Device device, MemoryHandle memory, std::size_t size_bytes,
           DevicePointer& address) {
  const AccessDescription access = access_of(device);
  ACCORD_TRY(status_of(driver, driver.address_reserve(&address, size_bytes, 0, 0, 0),
                       symbol::address_reserve));
  Status status =
      status_of(driver, driver.memory_map(address, size_bytes, 0, memory, 0), symbol::memory_map);
  if (status.ok()) {
    status = unsupported(driver, driver.memory_set_access(address, size_bytes, &access, 1),
                         symbol::memory_set_access);
    if (!status.ok()) (void)driver.memory_unmap(address, size_bytes);
  }
  if (!status.ok()) (void)driver.address_free(address, size_bytes);
  return status;
}

Status open_mapping(const Driver& driver, Device device, const Handle& handle, int descriptor,
                    DevicePointer& address) {
  MemoryHandle memory = 0;
  ACCORD_TRY(unsupported(
      driver,
      driver.memory_import(&memory, handle_of(descriptor), HandleType::posix_file_descriptor),
      symbol::memory_import));
  const Status status =
      map(driver, device, memory, static_cast<std::size_t>(handle.size_bytes), address);
  (void)driver.memory_release(memory);  // the mapping keeps it
  return status;
}

Status open_from_pool(const Driver& driver, Device device, const Handle& handle, int descriptor,
                      Pool& pool, DevicePointer& address) {
  const AccessDescription access = access_of(device);
  PoolPointer pointer = handle.pool_pointer;
  ACCORD_TRY(unsupported(
      driver,
      driver.pool_import(&pool, handle_of(descriptor), HandleType::posix_file_descriptor, 0),
      symbol::pool_import));
  Status status =
      unsupported(driver, driver.pool_set_access(pool, &access, 1), symbol::pool_set_access);
  if (status.ok())
    status = unsupported(driver, driver.pool_import_pointer(&address, pool, &pointer),
                         symbol::pool_import_pointer);
  if (!status.ok()) (void)driver.pool_destroy(pool);
  return status;
}

}  // namespace

void narrow_to_mapping(const Driver& driver, const void* pointer, PointerInfo& info) noexcept {
  void* base = nullptr;
  std::uint64_t size_bytes = 0;
  std::uint64_t block = 0;
  if (pool_of(driver, pointer) != nullptr ||
      !ask(driver, pointer, PointerAttribute::mapping_start, base) ||
      !ask(driver, pointer, PointerAttribute::mapping_size, size_bytes) ||
      !ask(driver, pointer, PointerAttribute::memory_block_id, block) || block == 0)
    return;
  info.base = base;
  info.size_bytes = static_cast<std::size_t>(size_bytes);
  info.buffer_id = block | kPhysicalId;
  info.is_mapping = true;
}

bool has_id(const Driver& driver, const void* pointer, std::uint64_t buffer_id) noexcept {
  std::uint64_t id = 0;
  if ((buffer_id & kPhysicalId) != 0)
    return ask(driver, pointer, PointerAttribute::memory_block_id, id) &&
           (id | kPhysicalId) == buffer_id;
  void* values[] = {&id};
  PointerAttribute attribute = PointerAttribute::buffer_id;
  return driver.pointer_get_attributes(1, &attribute, values, address_of(pointer)) ==
             Result::success &&
         id == buffer_id;
}

Status export_allocation(const Driver& driver, const PointerInfo& info, ExportedMemory& exported) {
  Handle handle;
  handle.runtime = name_of(driver);
  int descriptor = -1;
  std::uint64_t capable = 1;
  if (!ask(driver, info.base, PointerAttribute::is_legacy_ipc_capable, capable) || capable != 0) {
    ACCORD_TRY(unsupported(driver, driver.ipc_get_handle(&handle.ipc, address_of(info.base)),
                           symbol::ipc_get_handle));
  } else if (const Pool pool = pool_of(driver, info.base); pool != nullptr) {
    ACCORD_TRY(export_from_pool(driver, info, pool, handle, descriptor));
  } else if ((info.buffer_id & kPhysicalId) != 0) {
    ACCORD_TRY(export_mapping(driver, info, handle, descriptor));
  } else {
    return Status(StatusCode::unsupported, "export: memory of an unknown kind");
  }
  if (descriptor >= 0) (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  exported.bytes.resize(sizeof handle);
  std::memcpy(exported.bytes.data(), &handle, sizeof handle);
  exported.file_descriptor = descriptor;
  return Status();
}

Status OpenedMemory::open(const Driver& driver, Device device, const ExportedMemory& exported,
                          void*& pointer) {
  Handle handle;
  handle.magic = 0;
  if (exported.bytes.size() == sizeof handle) {
    std::memcpy(&handle, exported.bytes.data(), sizeof handle);
  }
  if (handle.magic != Handle::kMagic || handle.runtime != name_of(driver)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} open: no handle of this runtime", driver.runtime));
  }
  if (handle.origin != Origin::allocation && exported.file_descriptor < 0)
    return Status(StatusCode::invalid_argument, "open: a handle without its descriptor");
  DevicePointer address = 0;
  Opened opened;
  if (handle.origin == Origin::allocation) {
    ACCORD_TRY(status_of(driver,
                         driver.ipc_open_handle(&address, handle.ipc, kIpcLazyEnablePeerAccess),
                         symbol::ipc_open_handle));
  } else if (handle.origin == Origin::mapping) {
    opened.mapped_bytes = static_cast<std::size_t>(handle.size_bytes);
    ACCORD_TRY(open_mapping(driver, device, handle, exported.file_descriptor, address));
  } else {
    ACCORD_TRY(
        open_from_pool(driver, device, handle, exported.file_descriptor, opened.pool, address));
  }
  pointer = reinterpret_cast<void*>(address);
  const std::lock_guard lock(mutex_);
  opened_[pointer] = opened;  // also over one that a reset of the device has ended
  return Status();
}

Status OpenedMemory::close(const Driver& driver, void* pointer) {
  const DevicePointer address = address_of(pointer);
  Opened opened;
  {
    const std::lock_guard lock(mutex_);
    const auto found = opened_.extract(pointer);
    if (!found.empty()) opened = found.mapped();
  }
  if (opened.pool != nullptr) {
    Status status = status_of(driver, driver.memory_free(address), symbol::memory_free);
    keep_first(status, status_of(driver, driver.pool_destroy(opened.pool), symbol::pool_destroy));
    return status;
  }
  if (opened.mapped_bytes == 0)
    return status_of(driver, driver.ipc_close_handle(address), symbol::ipc_close_handle);
  Status status =
      status_of(driver, driver.memory_unmap(address, opened.mapped_bytes), symbol::memory_unmap);
  keep_first(status, status_of(driver, driver.address_free(address, opened.mapped_bytes),
                               symbol::address_free));
  return status;
}

}  // namespace accord::device::cuda
