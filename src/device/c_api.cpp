// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The public C API, include/accord/accord.h: a thin face of the default runtime. No exception
// leaves it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "accord/accord.h"
#include "base/commit.h"
#include "base/config.h"
#include "device/frees.h"
#include "device/own_memory.h"
#include "device/registry.h"

namespace accord::device {
namespace {

constexpr std::size_t kBounceBytes = std::size_t{4} << 20;

// A plain array: usable from a thread that is ending, when strings of its own are gone.
thread_local std::array<char, 512> last_error{};
thread_local int thread_device = 0;

// Memory from accord_malloc and the runtime it came from; null: malloc.
struct Allocations {
  std::mutex mutex;
  std::unordered_map<void*, DeviceRuntime*> owners;
};

Allocations& allocations() {
  static Allocations& table = *new Allocations;  // usable while the process exits
  return table;
}

int error_code(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return ACCORD_OK;
    case StatusCode::no_memory:
      return ACCORD_ERROR_NO_MEMORY;
    case StatusCode::device_error:
      return ACCORD_ERROR_DEVICE;
    case StatusCode::unsupported:
      return ACCORD_ERROR_UNSUPPORTED;
    case StatusCode::host_mpi:
    case StatusCode::mismatch:
    case StatusCode::truncated:
    case StatusCode::network:
    case StatusCode::out_of_window:
    case StatusCode::no_epoch:
    case StatusCode::invalid_argument:
      break;
  }
  return ACCORD_ERROR_INVALID;
}

void keep_error(std::string_view text) {
  const std::size_t length = std::min(text.size(), last_error.size() - 1);
  std::memcpy(last_error.data(), text.data(), length);
  last_error[length] = '\0';
}

// Runs the body of an API function: a Status becomes a code and the thread's last error.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    const Status status = body();
    if (!status.ok()) keep_error(status.message());
    return error_code(status.code());
  } catch (const std::bad_alloc&) {
    keep_error("out of host memory");
    return ACCORD_ERROR_NO_MEMORY;
  } catch (...) {
    keep_error("unexpected error");
    return ACCORD_ERROR_INVALID;
  }
}

Status invalid(std::string text) { return Status(StatusCode::invalid_argument, std::move(text)); }

// By its bytes: a C program may pass any number, which C++ must not even load as an enumerator.
Status to_kind(const enum accord_memory& memory, MemoryKind& kind) {
  unsigned number = 0;
  static_assert(sizeof number == sizeof memory);
  std::memcpy(&number, &memory, sizeof number);
  switch (number) {
    case ACCORD_MEMORY_HOST:
      return kind = MemoryKind::host, Status();
    case ACCORD_MEMORY_PINNED:
      return kind = MemoryKind::pinned, Status();
    case ACCORD_MEMORY_MANAGED:
      return kind = MemoryKind::managed, Status();
    case ACCORD_MEMORY_DEVICE:
      return kind = MemoryKind::device, Status();
    default:
      return invalid(fmt::format("memory kind {}", number));
  }
}

enum accord_memory from_kind(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::pinned:
      return ACCORD_MEMORY_PINNED;
    case MemoryKind::managed:
      return ACCORD_MEMORY_MANAGED;
    case MemoryKind::device:
      return ACCORD_MEMORY_DEVICE;
    case MemoryKind::host:
      break;
  }
  return ACCORD_MEMORY_HOST;
}

Status allocate(std::size_t size_bytes, MemoryKind kind, void*& pointer) {
  if (size_bytes == 0) return Status();
  DeviceRuntime* owner = nullptr;
  if (kind == MemoryKind::host) {
    pointer = std::malloc(size_bytes);
    if (pointer == nullptr) {
      return Status(StatusCode::no_memory, fmt::format("{} bytes of host memory", size_bytes));
    }
  } else {
    owner = &default_runtime();
    ACCORD_TRY(owner->allocate(thread_device, kind, size_bytes, pointer));
  }
  const std::lock_guard lock(allocations().mutex);
  allocations().owners[pointer] = owner;
  return Status();
}

Status release(void* pointer) {
  if (pointer == nullptr) return Status();
  DeviceRuntime* owner = nullptr;
  {
    const std::lock_guard lock(allocations().mutex);
    const auto entry = allocations().owners.find(pointer);
    if (entry == allocations().owners.end()) {
      return invalid(fmt::format("{} is no memory from accord_malloc", pointer));
    }
    owner = entry->second;
    allocations().owners.erase(entry);
  }
  if (owner != nullptr) {
    Status freed = owner->free(pointer);
    note_freed();
    return freed;
  }
  std::free(pointer);
  return Status();
}

// Between memory of two runtimes, neither of which knows the other's.
Status bounce(const Copy& copy, const PointerInfo& dst, const PointerInfo& src) {
  const std::size_t chunk_bytes = std::min(copy.row_bytes, kBounceBytes);
  const auto buffer = std::make_unique<std::byte[]>(chunk_bytes);
  for (std::size_t done = 0; done < copy.row_bytes; done += chunk_bytes) {
    const std::size_t now = std::min(chunk_bytes, copy.row_bytes - done);
    const Copy out{buffer.get(), static_cast<const std::byte*>(copy.src) + done, now};
    const Copy in{static_cast<std::byte*>(copy.dst) + done, buffer.get(), now};
    ACCORD_TRY(src.runtime->copy(src.device, {&out, 1}));
    ACCORD_TRY(dst.runtime->copy(dst.device, {&in, 1}));
  }
  return Status();
}

Status copy_any(const Copy& copy) {
  if (copy.row_bytes == 0) return Status();
  if (copy.dst == nullptr || copy.src == nullptr) return invalid("accord_memcpy: a null pointer");
  const PointerInfo dst = classify_argument(copy.dst);
  const PointerInfo src = classify_argument(copy.src);
  if (!needs_staging(dst) && !needs_staging(src)) {
    std::memmove(copy.dst, copy.src, copy.row_bytes);
    return Status();
  }
  if (needs_staging(dst) && needs_staging(src) && dst.runtime != src.runtime) {
    return bounce(copy, dst, src);
  }
  const PointerInfo& owner = needs_staging(src) ? src : dst;
  return owner.runtime->copy(owner.device, {&copy, 1});
}

using Json = nlohmann::ordered_json;

Json settings_json() {
  Json settings = Json::array();
  for (const SettingRow& row : config_rows()) {
    settings.push_back({{"name", row.name},
                        {"type", row.type},
                        {"default", row.default_value},
                        {"value", row.value},
                        {"origin", row.origin},
                        {"scope", row.scope == SettingScope::equal ? "equal" : "local"},
                        {"audience", name_of(row.audience)},
                        {"text", row.text},
                        {"old_names", row.old_names}});
  }
  return settings;
}

Json runtime_json(DeviceRuntime& runtime) {
  Json devices = Json::array();
  for (int device = 0; device < runtime.device_count(); ++device) {
    DeviceDescription description;
    if (const Status status = runtime.describe(device, description); !status.ok()) {
      devices.push_back({{"error", status.message()}});
      continue;
    }
    devices.push_back({{"name", description.name},
                       {"uuid", description.uuid},
                       {"memory_bytes", description.memory_bytes}});
    if (description.mps) devices.back()["mps"] = *description.mps;
  }
  Json facts = {{"name", runtime.name()},
                {"active", runtime.active()},
                {"present", runtime.present()},
                {"devices", devices}};
  if (const Status status = runtime.problem(); !status.ok()) facts["problem"] = status.message();
  return facts;
}

// Runtimes that this build has left out.
Json missing_runtimes() {
  Json missing = Json::array();
#ifndef ACCORD_LEVEL_ZERO
  missing.push_back({{"name", "level_zero"},
                     {"problem", "left out: the headers of libze-dev were not there at build"}});
#endif
  return missing;
}

std::string info_text() {
  Json runtimes_list = Json::array();
  Json links = Json::array();
  for (DeviceRuntime* runtime : runtimes()) {
    runtimes_list.push_back(runtime_json(*runtime));
    for (const DeviceLink& link : runtime->links()) {
      links.push_back({{"runtime", runtime->name()},
                       {"from", link.from},
                       {"to", link.to},
                       {"peer_access", link.peer_access},
                       {"performance_rank", link.performance_rank}});
    }
  }
  const Json info = {{"version", ACCORD_VERSION},
                     {"commit", commit()},
                     {"settings", settings_json()},
                     {"problems", config_status().message()},
                     {"warnings", config_warnings()},
                     {"runtimes", runtimes_list},
                     {"missing_runtimes", missing_runtimes()},
                     {"default_runtime", default_runtime().name()},
                     {"own_device_bytes", own_memory.bytes.load()},
                     {"most_own_device_bytes", own_memory.most_bytes.load()},
                     {"links", links}};
  // Values come from the environment: bytes that are no UTF-8 are replaced, not thrown about.
  return info.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace
}  // namespace accord::device

#define ACCORD_EXPORT extern "C" __attribute__((visibility("default")))

using namespace accord::device;

ACCORD_EXPORT int accord_malloc(void** pointer, size_t size_bytes, enum accord_memory kind) {
  return guarded([&]() -> accord::Status {
    if (pointer == nullptr) return invalid("accord_malloc: pointer is null");
    *pointer = nullptr;
    MemoryKind memory_kind{};
    ACCORD_TRY(to_kind(kind, memory_kind));
    return allocate(size_bytes, memory_kind, *pointer);
  });
}

ACCORD_EXPORT int accord_free(void* pointer) {
  return guarded([&] { return release(pointer); });
}

ACCORD_EXPORT int accord_memcpy(void* dst, const void* src, size_t size_bytes) {
  return guarded([&] { return copy_any(Copy{dst, src, size_bytes}); });
}

ACCORD_EXPORT int accord_memory_kind(const void* pointer, enum accord_memory* kind) {
  return guarded([&]() -> accord::Status {
    if (kind == nullptr) return invalid("accord_memory_kind: kind is null");
    *kind = from_kind(classify(pointer).kind);
    return accord::Status();
  });
}

ACCORD_EXPORT int accord_set_device(int device) {
  return guarded([&]() -> accord::Status {
    DeviceRuntime& runtime = default_runtime();
    if (device < 0 || device >= runtime.device_count()) {
      return invalid(fmt::format("device {}: the {} runtime has {}", device, runtime.name(),
                                 runtime.device_count()));
    }
    thread_device = device;
    return accord::Status();
  });
}

ACCORD_EXPORT int accord_device_count(void) {
  want_memory();
  int count = 0;
  const int code = guarded([&]() -> accord::Status {
    count = default_runtime().device_count();
    return accord::Status();
  });
  return code == ACCORD_OK ? count : 0;
}

ACCORD_EXPORT const char* accord_runtime_name(void) {
  const char* name = "";
  guarded([&]() -> accord::Status {
    name = default_runtime().name();
    return accord::Status();
  });
  return name;
}

ACCORD_EXPORT const char* accord_last_error(void) { return last_error.data(); }

ACCORD_EXPORT size_t accord_info_json(char* buffer, size_t capacity) {
  std::size_t needed_bytes = 0;
  guarded([&]() -> accord::Status {
    const std::string text = info_text();
    needed_bytes = text.size() + 1;
    if (buffer != nullptr && capacity > 0) {
      const std::size_t length = std::min(text.size(), capacity - 1);
      std::memcpy(buffer, text.data(), length);
      buffer[length] = '\0';
    }
    return accord::Status();
  });
  return needed_bytes;
}
