// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "device/cuda/share.h"

namespace accord::device::cuda {
namespace {

// Allocations that the bytes of one range may lie in, as those of a program that maps memory piece
// by piece do: each costs a question to the driver.
constexpr std::size_t kPlacesMax = 64;

// Where a byte is, as far as a kernel is concerned.
struct Place {
  const void* pointer = nullptr;
  MemoryType type = MemoryType::none;
  bool managed = false;
  Context context = nullptr;  // null: none in particular, as for memory of pools
  Device device = -1;
  bool is_part = false;       // of what a kernel is to touch there: each part has its own access
  std::uintptr_t extent = 0;  // where the memory around it ends, if that is known

  // Whether what is known of it holds of these bytes, too.
  bool covers(const ByteRange& bytes) const {
    return !is_part && bytes.first >= pointer &&
           reinterpret_cast<std::uintptr_t>(bytes.last) < extent;
  }
  // Host memory that the driver knows, and managed memory: every context can address it.
  bool everywhere() const { return managed || type == MemoryType::host; }
  bool may_be_elsewhere() const { return !managed && type == MemoryType::host; }
};

// Page-locked memory of the program's own may have another address on a device than on the host,
// as on some of AMD's; kernels are given that of the host.
bool has_one_address(const Driver& driver, const void* pointer) {
  DevicePointer on_device = 0;
  return driver.pointer_get_attribute(&on_device, PointerAttribute::device_pointer,
                                      address_of(pointer)) == Result::success &&
         on_device == address_of(pointer);
}

// With `extent` also where the memory around the byte ends; 0 where the driver does not say.
Status find_place(const Driver& driver, const void* pointer, const char* purpose, Place& place,
                  std::uintptr_t* extent = nullptr) {
  std::uint64_t managed = 0;
  std::int64_t ordinal = 0;
  PointerInfo range;
  place.pointer = pointer;
  PointerAttribute attributes[] = {PointerAttribute::memory_type, PointerAttribute::is_managed,
                                   PointerAttribute::context,     PointerAttribute::device_ordinal,
                                   PointerAttribute::range_start, PointerAttribute::range_size};
  void* values[] = {&place.type,
                    &managed,
                    static_cast<void*>(&place.context),
                    &ordinal,
                    static_cast<void*>(&range.base),
                    &range.size_bytes};
  const std::size_t asked = extent != nullptr ? std::size(attributes) : std::size(attributes) - 2;
  const Result result = driver.pointer_get_attributes(static_cast<unsigned>(asked), attributes,
                                                      values, address_of(pointer));
  if (result != Result::success || place.type == MemoryType::none) {
    return Status(
        StatusCode::invalid_argument,
        fmt::format("{} {}: {} is no memory of this runtime", driver.runtime, purpose, pointer));
  }
  place.managed = managed != 0;
  if (place.may_be_elsewhere() && !has_one_address(driver, pointer)) {
    return Status(StatusCode::unsupported,
                  fmt::format("{} {}: {}: host memory that a device finds at another address",
                              driver.runtime, purpose, pointer));
  }
  place.device = static_cast<std::int32_t>(ordinal);
  if (extent == nullptr) return Status();
  if (!place.everywhere() && place.context == nullptr) narrow_to_mapping(driver, pointer, range);
  *extent = reinterpret_cast<std::uintptr_t>(range.base) + range.size_bytes;
  return Status();
}

// Of all allocations that the bytes lie in; where one does not say how far it goes, of the last
// byte at least.
Status find_places(const Driver& driver, const ByteRange& bytes, const char* purpose,
                   std::vector<Place>& places) {
  const auto last = reinterpret_cast<std::uintptr_t>(bytes.last);
  auto at = reinterpret_cast<std::uintptr_t>(bytes.first);
  for (std::size_t count = 0; count < kPlacesMax; ++count) {
    Place& place = places.emplace_back();
    std::uintptr_t extent = 0;
    const bool is_last = at == last;
    ACCORD_TRY(find_place(driver, reinterpret_cast<const void*>(at), purpose, place,
                          is_last ? nullptr : &extent));
    const bool ends = is_last || extent > last;
    place.is_part = count > 0 || !ends;
    place.extent = extent;
    if (ends) return Status();
    at = extent > at ? extent : last;
  }
  return Status(StatusCode::unsupported, fmt::format("{} {}: {} lies in too many allocations",
                                                     driver.runtime, purpose, bytes.first));
}

// Makes sure that kernels of the entered context can address the place. One that cannot would
// fault, and take the program's context with it.
Status check_reachable(const Driver& driver, Device device, Context context, const char* purpose,
                       const Place& place) {
  if (place.everywhere() || place.context == context) return Status();
  if (place.context == nullptr && place.device == device && !place.is_part) return Status();
  // Of a pool or of the virtual memory API: whoever made or opened it says which devices may.
  std::uint64_t access = 0;
  if (place.context == nullptr &&
      driver.pointer_get_attribute(&access, PointerAttribute::access_flags,
                                   address_of(place.pointer)) == Result::success &&
      access == kAccessReadWrite)
    return Status();
  const char* reason = "memory of another device, which this one may not access";
  if (place.context != nullptr) {
    reason = "memory of another context of the device";
    if (place.device != device) {
      const Result result = driver.context_enable_peer_access(place.context, 0);
      if (result == Result::success || result == Result::peer_access_already_enabled) {
        return Status();
      }
      return unsupported(status_of(driver, result, symbol::context_enable_peer_access));
    }
  }
  return Status(StatusCode::unsupported,
                fmt::format("{} {}: {}: {}", driver.runtime, purpose, place.pointer, reason));
}

}  // namespace

Status unsupported(const Status& status) {
  if (status.ok() || status.code() == StatusCode::no_memory) return status;
  return Status(StatusCode::unsupported, status.message());
}

Status Kernels::load_locked(const Driver& driver, Context context, Loaded*& loaded) {
  unsigned long long id = 0;
  ACCORD_TRY(status_of(driver, driver.context_get_id(context, &id), symbol::context_get_id));
  loaded = &contexts_[id];
  if (loaded->module != nullptr) return Status();
  ACCORD_TRY(loaded->failure);
  const Status status =
      unsupported(status_of(driver, driver.module_load_data(&loaded->module, driver.images.*image_),
                            symbol::module_load_data));
  if (!status.ok()) loaded->module = nullptr;
  if (status.code() == StatusCode::unsupported) {
    loaded->failure = status;
    log::info("no {} on this device: {}", purpose_, status.message());
  }
  return status;
}

Status Kernels::load(const Driver& driver, Context context) {
  const std::lock_guard lock(mutex_);
  Loaded* loaded = nullptr;
  return load_locked(driver, context, loaded);
}

Status Kernels::find(const Driver& driver, Context context, const char* name, Function& function) {
  const std::lock_guard lock(mutex_);
  Loaded* loaded = nullptr;
  ACCORD_TRY(load_locked(driver, context, loaded));
  Function& found = loaded->functions[name];
  if (found == nullptr) {
    ACCORD_TRY(unsupported(
        status_of(driver, driver.module_get_function(&found, loaded->module, name), name)));
  }
  function = found;
  return Status();
}

Status enter_for_kernel(const Driver& driver, Device device, std::span<const ByteRange> ranges,
                        const char* purpose, ContextScope& scope, Reach reach) {
  std::vector<Place> places;
  for (const ByteRange& bytes : ranges) {
    // Of a window of messages, most lie in the same two buffers.
    if (std::ranges::any_of(places, [&](const Place& place) { return place.covers(bytes); }))
      continue;
    ACCORD_TRY(find_places(driver, bytes, purpose, places));
    const Place& last = places.back();
    if ((reach != Reach::everywhere && last.everywhere()) ||
        (reach == Reach::device && last.device != device))
      return {StatusCode::unsupported, "memory elsewhere"};
  }
  const auto home = std::find_if(places.begin(), places.end(), [&](const Place& place) {
    return !place.everywhere() && place.device == device && place.context != nullptr;
  });
  const Result result = home != places.end() ? scope.enter(home->context)
                                             : scope.enter_current_or_owner(device, nullptr);
  if (result != Result::success)
    return status_of(driver, result, fmt::format("{}: context", purpose).c_str());
  for (const Place& place : places) {
    ACCORD_TRY(check_reachable(driver, device, scope.context(), purpose, place));
  }
  return Status();
}

}  // namespace accord::device::cuda
