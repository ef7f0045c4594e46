// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Intel GPUs through Level Zero, found at run time (level_zero/driver.h). Level Zero has no way to
// ask whether the program has initialised it, so the first pointer that may be a device's does
// (zeInit, which may be called again and again). Nothing runs
// at exit, when the loader may be gone.
#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "device/device_runtime.h"
#include "device/level_zero/copy.h"
#include "device/level_zero/devices.h"
#include "device/level_zero/driver.h"
#include "device/level_zero/inbox.h"
#include "device/level_zero/modules.h"
#include "device/level_zero/pack.h"
#include "device/level_zero/reduce.h"
#include "device/level_zero/share.h"

namespace accord::device {

DeviceRuntime& level_zero_runtime();

namespace {

using level_zero::Device;
using level_zero::Devices;
using level_zero::Driver;
using level_zero::Lane;
using level_zero::status_of;
namespace symbol = level_zero::symbol;

// What copy_done asks after.
struct PendingCopy {
  level_zero::Lanes* lanes;
  std::unique_ptr<Lane> lane;
};

// What was found last in this thread. The id of an allocation is never used twice, so to ask for
// that alone tells whether it is still the same.
struct Recent {
  static constexpr std::size_t kCount = 2;
  PointerInfo infos[kCount];
  std::size_t next = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local Recent recent;

class LevelZeroRuntime final : public DeviceRuntime {
 public:
  const char* name() const noexcept override { return "level_zero"; }
  bool active() noexcept override { return level_zero::driver() != nullptr; }
  bool present() noexcept override;

  bool classify(const void* pointer, PointerInfo& info) noexcept override;
  bool must_stage(const void* pointer) noexcept override;

  Status copy(int device, std::span<const Copy> copies) override;
  Status copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) override;
  Status copy_done(CopyTicket& ticket, bool& done) override;
  Status copy_batch(int device, const CopyBatch& batch) override;
  Status batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket) override;

  bool can_reduce(ReduceOp op, Element element) override;
  Status reduce_begin(int device, const Reduction& reduction, CopyTicket& ticket) override;

  Status inbox_server(int device, InboxServer*& server) override;

  Status host_allocate(std::size_t size_bytes, void*& pointer) override;
  void host_free(void* pointer, std::size_t size_bytes) noexcept override;

  Status allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) override;
  Status free(void* pointer) override;

  Status export_memory(const void* pointer, ExportedMemory& exported) override;
  Status open_memory(int device, const ExportedMemory& exported, void*& pointer) override;
  Status close_memory(void* pointer) override;

  int device_count() override;
  Status problem() override;
  int device_in_use() noexcept override { return last_device_.load(std::memory_order_relaxed); }
  Status describe(int device, DeviceDescription& description) override;
  std::vector<DeviceLink> links() override;

 private:
  // The functions of the loader, all devices and the one that was asked for.
  struct Place {
    const Driver* driver = nullptr;
    const Devices* devices = nullptr;
    const Device* device = nullptr;
  };

  // What the drivers say of an address.
  struct Owner {
    enum class Answer { unknown_address, known, failed };
    Answer answer = Answer::unknown_address;
    ze_memory_allocation_properties_t properties{};
    ze_device_handle_t device = nullptr;
    ze_context_handle_t context = nullptr;
  };

  static Owner find_owner(const void* pointer) noexcept;
  static bool find_recent(const void* pointer, PointerInfo& info) noexcept;
  Status find(int device, Place& place);
  level_zero::DeviceLanes& lanes(int device);
  template <class Start>
  static Status begin(level_zero::Lanes& lanes, std::unique_ptr<Lane> lane, const Start& start,
                      CopyTicket& ticket);
  Status begin_work(int device, const Place& place, const level_zero::Work& work,
                    CopyTicket& ticket);

  std::atomic<int> last_device_{-1};
  level_zero::OpenedMemory opened_memory_;
  level_zero::MappedMemory mapped_memory_;
  std::mutex mutex_;                           // guards what follows
  std::deque<level_zero::DeviceLanes> lanes_;  // addresses stay
  std::unordered_set<void*> host_memory_;      // the driver's; else it was mapped by us
};

// Before Level Zero is initialised the file system or the environment has told that there is one.
bool LevelZeroRuntime::present() noexcept {
  if (level_zero::driver() == nullptr) return false;
  const Devices* known = level_zero::devices_if_known();
  return known == nullptr || !known->all.empty();
}

int LevelZeroRuntime::device_count() {
  const Driver* driver = level_zero::driver();
  return driver == nullptr ? 0 : static_cast<int>(level_zero::devices(*driver).all.size());
}

Status LevelZeroRuntime::problem() {
  const Driver* driver = level_zero::driver();
  return driver == nullptr ? level_zero::driver_problem() : level_zero::devices(*driver).status;
}

Status LevelZeroRuntime::find(int device, Place& place) {
  place.driver = level_zero::driver();
  if (place.driver == nullptr) {
    ACCORD_TRY(level_zero::driver_problem());
    return Status(StatusCode::unsupported, "level_zero: no Intel GPU here");
  }
  place.devices = &level_zero::devices(*place.driver);
  const std::vector<Device>& all = place.devices->all;
  if (device >= 0 && static_cast<std::size_t>(device) < all.size()) {
    place.device = &all[static_cast<std::size_t>(device)];
    return Status();
  }
  if (all.empty() && !place.devices->status.ok()) return place.devices->status;
  return Status(StatusCode::invalid_argument,
                fmt::format("level_zero has no device {} ({} devices)", device, all.size()));
}

// An error leaves open whose the address is, unless Level Zero is not there any more (at exit).
LevelZeroRuntime::Owner LevelZeroRuntime::find_owner(const void* pointer) noexcept {
  Owner owner;
  const Driver* driver = level_zero::driver();
  if (driver == nullptr) return owner;
  for (ze_context_handle_t context : level_zero::devices(*driver).contexts) {
    owner.context = context;
    owner.properties = {};
    owner.properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES;
    const ze_result_t result =
        driver->memory_get_properties(context, pointer, &owner.properties, &owner.device);
    if (result == ZE_RESULT_SUCCESS && owner.properties.type != ZE_MEMORY_TYPE_UNKNOWN) {
      owner.answer = Owner::Answer::known;
      return owner;
    }
    if (result != ZE_RESULT_SUCCESS && result != ZE_RESULT_ERROR_UNINITIALIZED)
      owner.answer = Owner::Answer::failed;
  }
  return owner;
}

bool LevelZeroRuntime::find_recent(const void* pointer, PointerInfo& info) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const PointerInfo& known : recent.infos) {
    if (address - reinterpret_cast<std::uintptr_t>(known.base) >= known.size_bytes) continue;
    const Owner owner = find_owner(pointer);
    if (owner.answer != Owner::Answer::known || owner.properties.id != known.buffer_id) continue;
    info = known;
    return true;
  }
  return false;
}

// Where the driver fails, the pointer is taken for a device's of which nothing else is known:
// command lists copy host memory too, whereas the host MPI must not touch device memory.
bool LevelZeroRuntime::classify(const void* pointer, PointerInfo& info) noexcept {
  if (find_recent(pointer, info)) return true;
  const Owner owner = find_owner(pointer);
  if (owner.answer == Owner::Answer::unknown_address) return false;
  const Driver& driver = *level_zero::driver();
  info = PointerInfo{.kind = MemoryKind::device,
                     .runtime = this,
                     .device = 0,
                     .base = const_cast<void*>(pointer),
                     .context = owner.context};
  if (owner.answer == Owner::Answer::failed) return true;
  if (owner.properties.type != ZE_MEMORY_TYPE_DEVICE) {
    info.kind =
        owner.properties.type == ZE_MEMORY_TYPE_SHARED ? MemoryKind::managed : MemoryKind::pinned;
  }
  info.device = level_zero::devices(driver).index_of(owner.device, owner.context);
  info.buffer_id = owner.properties.id;
  void* base = nullptr;
  std::size_t size_bytes = 0;
  if (driver.memory_get_range(owner.context, pointer, &base, &size_bytes) == ZE_RESULT_SUCCESS) {
    info.base = base;
    info.size_bytes = size_bytes;
  }
  last_device_.store(info.device, std::memory_order_relaxed);
  if (info.buffer_id != 0 && info.size_bytes != 0)
    recent.infos[recent.next++ % Recent::kCount] = info;
  return true;
}

bool LevelZeroRuntime::must_stage(const void* pointer) noexcept {
  const Owner owner = find_owner(pointer);
  return owner.answer == Owner::Answer::failed ||
         (owner.answer == Owner::Answer::known && owner.properties.type != ZE_MEMORY_TYPE_HOST);
}

level_zero::DeviceLanes& LevelZeroRuntime::lanes(int device) {
  const std::lock_guard lock(mutex_);
  while (lanes_.size() <= static_cast<std::size_t>(device)) lanes_.emplace_back();
  return lanes_[static_cast<std::size_t>(device)];
}

Status LevelZeroRuntime::copy(int device, std::span<const Copy> copies) {
  Place place;
  ACCORD_TRY(find(device, place));
  if (mapped_memory_.copy(*place.driver, *this, copies)) return Status();
  level_zero::Lanes& all = lanes(device).copy;
  std::unique_ptr<Lane> lane = all.borrow(*place.driver, *place.device, place.device->copy);
  Status status = lane->begin(copies);
  if (status.ok()) status = lane->wait();
  all.give_back(std::move(lane));
  return status;
}

Status LevelZeroRuntime::copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) {
  ticket.handle = nullptr;
  Place place;
  ACCORD_TRY(find(device, place));
  if (mapped_memory_.copy(*place.driver, *this, copies)) return Status();
  level_zero::Lanes& all = lanes(device).copy;
  return begin(
      all, all.borrow(*place.driver, *place.device, place.device->copy),
      [&](Lane& lane) { return lane.begin(copies); }, ticket);
}

// `start` puts work on the lane; what became of it, copy_done tells.
template <class Start>
Status LevelZeroRuntime::begin(level_zero::Lanes& lanes, std::unique_ptr<Lane> lane,
                               const Start& start, CopyTicket& ticket) {
  auto pending = std::make_unique<PendingCopy>(PendingCopy{&lanes, std::move(lane)});
  Status status = start(*pending->lane);
  if (status.ok()) {
    ticket.handle = pending.release();
  } else {
    lanes.give_back(std::move(pending->lane));
  }
  return status;
}

Status LevelZeroRuntime::copy_done(CopyTicket& ticket, bool& done) {
  auto* const pending = static_cast<PendingCopy*>(ticket.handle);
  done = true;
  if (pending == nullptr) return Status();
  Status status = pending->lane->poll(done);
  if (!done) return status;
  ticket.handle = nullptr;
  pending->lanes->give_back(std::move(pending->lane));
  delete pending;
  return status;
}

// Where kernels have a part in it all of it is theirs and that of the engines that run them.
Status LevelZeroRuntime::batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket) {
  ticket.handle = nullptr;
  if (batch.laid_out.empty()) return copy_begin(device, batch.plain.copies(), ticket);
  Place place;
  ACCORD_TRY(find(device, place));
  level_zero::Work work;
  ACCORD_TRY(level_zero::make_batch(*place.driver, *this, device, *place.device, batch, work));
  if (work.launches.empty()) return copy_begin(device, work.copies, ticket);
  return begin_work(device, place, work, ticket);
}

Status LevelZeroRuntime::copy_batch(int device, const CopyBatch& batch) {
  CopyTicket ticket;
  ACCORD_TRY(batch_begin(device, batch, ticket));
  for (bool done = false; !done;) ACCORD_TRY(copy_done(ticket, done));
  return Status();
}

Status LevelZeroRuntime::begin_work(int device, const Place& place, const level_zero::Work& work,
                                    CopyTicket& ticket) {
  level_zero::Lanes& all = lanes(device).compute;
  return begin(
      all, all.borrow(*place.driver, *place.device, place.device->compute),
      [&](Lane& lane) { return lane.begin(work); }, ticket);
}

bool LevelZeroRuntime::can_reduce(ReduceOp op, Element element) {
  Place place;
  return is_defined(op, element) && find(device_in_use(), place).ok() &&
         level_zero::has_reductions(*place.driver, *place.device);
}

Status LevelZeroRuntime::reduce_begin(int device, const Reduction& reduction, CopyTicket& ticket) {
  ticket.handle = nullptr;
  ACCORD_TRY(check_reduction(reduction));
  Place place;
  ACCORD_TRY(find(device, place));
  if (!level_zero::has_reductions(*place.driver, *place.device))
    return Status(StatusCode::unsupported, "level_zero reduce: no kernels on this device");
  if (reduction.count == 0) return Status();
  level_zero::Work work;
  ACCORD_TRY(
      level_zero::make_reduction(*place.driver, *this, device, *place.device, reduction, work));
  if (work.launches.empty()) return Status();
  return begin_work(device, place, work, ticket);
}

Status LevelZeroRuntime::inbox_server(int device, InboxServer*& server) {
  Place place;
  ACCORD_TRY(find(device, place));
  return level_zero::inbox_server(*place.driver, *this, device, *place.device, server);
}

// The driver's own where Level Zero is in use by then, since that needs no pinning for each copy.
Status LevelZeroRuntime::host_allocate(std::size_t size_bytes, void*& pointer) {
  const Devices* known = level_zero::devices_if_known();
  if (known != nullptr && !known->contexts.empty()) {
    ze_host_mem_alloc_desc_t description{};
    description.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    constexpr std::size_t kPageBytes = 4096;
    if (level_zero::driver()->memory_allocate_host(known->contexts[0], &description, size_bytes,
                                                   kPageBytes, &pointer) == ZE_RESULT_SUCCESS) {
      const std::lock_guard lock(mutex_);
      host_memory_.insert(pointer);
      return Status();
    }
  }
  pointer = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer != MAP_FAILED) return Status();
  pointer = nullptr;
  return Status(StatusCode::no_memory,
                fmt::format("{} bytes of host memory: mmap: {}", size_bytes, std::strerror(errno)));
}

void LevelZeroRuntime::host_free(void* pointer, std::size_t size_bytes) noexcept {
  bool of_driver = false;
  {
    const std::lock_guard lock(mutex_);
    of_driver = host_memory_.erase(pointer) != 0;
  }
  if (of_driver) {
    level_zero::driver()->memory_free(level_zero::devices_if_known()->contexts[0], pointer);
  } else {
    munmap(pointer, size_bytes);
  }
}

Status LevelZeroRuntime::allocate(int device, MemoryKind kind, std::size_t size_bytes,
                                  void*& pointer) {
  pointer = nullptr;
  Place place;
  ACCORD_TRY(find(device, place));
  if (size_bytes == 0) return Status();
  ze_device_mem_alloc_desc_t on_device{};
  on_device.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
  ze_host_mem_alloc_desc_t on_host{};
  on_host.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
  ze_context_handle_t context = place.device->context;
  ze_device_handle_t handle = place.device->handle;
  const Driver& driver = *place.driver;
  last_device_.store(device, std::memory_order_relaxed);
  switch (kind) {
    case MemoryKind::device:
      return status_of(
          driver.memory_allocate_device(context, &on_device, size_bytes, 0, handle, &pointer),
          symbol::memory_allocate_device);
    case MemoryKind::managed:
      return status_of(driver.memory_allocate_shared(context, &on_device, &on_host, size_bytes, 0,
                                                     handle, &pointer),
                       symbol::memory_allocate_shared);
    case MemoryKind::pinned:
      return status_of(driver.memory_allocate_host(context, &on_host, size_bytes, 0, &pointer),
                       symbol::memory_allocate_host);
    case MemoryKind::host:
      break;
  }
  return Status(StatusCode::invalid_argument, "plain host memory comes from malloc");
}

Status LevelZeroRuntime::free(void* pointer) {
  if (pointer == nullptr) return Status();
  const Owner owner = find_owner(pointer);
  if (owner.answer == Owner::Answer::unknown_address) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("level_zero free: {} is no memory of this runtime", pointer));
  }
  return status_of(level_zero::driver()->memory_free(owner.context, pointer), symbol::memory_free);
}

Status LevelZeroRuntime::export_memory(const void* pointer, ExportedMemory& exported) {
  PointerInfo info;
  if (!classify(pointer, info)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("level_zero export: {} is no memory of this runtime", pointer));
  }
  if (info.kind != MemoryKind::device || info.size_bytes == 0)
    return Status(StatusCode::unsupported, "level_zero export: no device memory of known extent");
  ACCORD_TRY(level_zero::export_allocation(*level_zero::driver(), info, exported));
  exported.offset_bytes = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) -
                                                   static_cast<const std::byte*>(info.base));
  return Status();
}

Status LevelZeroRuntime::open_memory(int device, const ExportedMemory& exported, void*& pointer) {
  pointer = nullptr;
  Place place;
  ACCORD_TRY(find(device, place));
  return opened_memory_.open(*place.driver, *place.device, exported, pointer);
}

Status LevelZeroRuntime::close_memory(void* pointer) {
  const Driver* driver = level_zero::driver();
  if (driver == nullptr)
    return Status(StatusCode::invalid_argument, "level_zero close: nothing was opened here");
  return opened_memory_.close(*driver, pointer);
}

Status LevelZeroRuntime::describe(int device, DeviceDescription& description) {
  Place place;
  ACCORD_TRY(find(device, place));
  return level_zero::describe(*place.driver, *place.device, description);
}

std::vector<DeviceLink> LevelZeroRuntime::links() {
  const Driver* driver = level_zero::driver();
  return driver == nullptr ? std::vector<DeviceLink>() : level_zero::links(*driver);
}

}  // namespace

DeviceRuntime& level_zero_runtime() {
  static LevelZeroRuntime& runtime = *new LevelZeroRuntime;  // never destroyed, see above
  return runtime;
}

}  // namespace accord::device
