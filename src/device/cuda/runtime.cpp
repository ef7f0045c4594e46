// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// NVIDIA GPUs through the CUDA driver API alone, found at run time (cuda/driver.h), and, over a
// table of HIP's functions in the place of CUDA's (hip/runtime.cpp), those of AMD. Asking what a
// pointer is never initialises the driver: before the program's own cuInit no pointer can be the
// device's. Memory and copies are in the context of the buffer, never in "the current device".
// Nothing here runs at exit, when the driver may be gone; what it then answers (DEINITIALIZED)
// makes every pointer host memory.
#include "device/cuda/runtime.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

#include "device/cuda/copy.h"
#include "device/cuda/copy_list.h"
#include "device/cuda/driver.h"
#include "device/cuda/host_memory.h"
#include "device/cuda/inbox.h"
#include "device/cuda/launched_inbox.h"
#include "device/cuda/mps.h"
#include "device/cuda/pack.h"
#include "device/cuda/partitions.h"
#include "device/cuda/program_order.h"
#include "device/cuda/reduce.h"
#include "device/cuda/share.h"
#include "device/cuda/stream.h"
#include "device/cuda/turn_copies.h"
#include "device/device_runtime.h"

namespace accord::device {

DeviceRuntime& cuda_runtime();

namespace {

using cuda::ContextScope;
using cuda::Driver;
using cuda::PointerAttribute;
using cuda::Result;
using cuda::status_of;

class CudaRuntime final : public DeviceRuntime {
 public:
  explicit CudaRuntime(const cuda::Vendor& vendor) : vendor_(vendor) {}

  const char* name() const noexcept override { return vendor_.name; }
  bool active() noexcept override { return vendor_.active(); }
  bool present() noexcept override;
  bool on_machine() noexcept override { return present() || vendor_.device_exists(); }

  bool classify(const void* pointer, PointerInfo& info) noexcept override;
  bool must_stage(const void* pointer) noexcept override;
  void order_behind_program(const void* context) noexcept override;
  bool keep_in_order(const PointerInfo& memory) noexcept override {
    const Driver* driver = vendor_.driver();
    return driver != nullptr && cuda::ProgramOrder::keep(*driver, memory);
  }

  Status copy(int device, std::span<const Copy> copies) override;
  Status copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) override;
  Status copy_begin_patiently(int device, std::span<const Copy> copies,
                              CopyTicket& ticket) override;
  Status copy_begin_beside_kernels(int device, std::span<const Copy> copies,
                                   CopyTicket& ticket) override;
  Status copy_done(CopyTicket& ticket, bool& done) override;
  Status copy_batch(int device, const CopyBatch& batch) override;
  Status batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket) override;

  bool can_reduce(ReduceOp op, Element element) override;
  Status reduce_begin(int device, const Reduction& reduction, CopyTicket& ticket) override;

  Status inbox_server(int device, InboxServer*& server) override;
  PacketReach packet_reach(int device) override;
  Status make_partition_reducer(int device, const PartitionReduction& reduction,
                                std::uint32_t* arrived,
                                std::unique_ptr<PartitionReducer>& reducer) override;

  Status run_on(int device, const std::function<Status()>& work) override;
  Status make_stream(int device, std::unique_ptr<LibraryStream>& stream) override;
  KernelPlace kernel_place(int device) override;
  void expect_turns(int device) noexcept override {
    if (const Driver* driver = vendor_.driver()) turn_copies_.expect(*driver, device);
  }

  bool expects_turns(int device) const noexcept override { return turn_copies_.are_taken(device); }

  Status host_allocate(std::size_t size_bytes, void*& pointer) override;
  void host_free(void* pointer, std::size_t size_bytes) noexcept override;
  Status host_pin(void* pages, std::size_t size_bytes) override {
    return host_memory_.pin(vendor_.driver(), pages, size_bytes);
  }
  void host_unpin(void* pages) noexcept override { host_memory_.unpin(vendor_.driver(), pages); }

  Status allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) override;
  Status free(void* pointer) override;

  Status export_memory(const void* pointer, ExportedMemory& exported) override;
  Status open_memory(int device, const ExportedMemory& exported, void*& pointer) override;
  Status close_memory(void* pointer) override;

  std::uint64_t context_life(int device) noexcept override;
  int device_count() override;
  Status default_stream_busy(const PointerInfo& memory, bool& busy) override {
    busy = false;
    const Driver* driver = vendor_.driver();
    return driver == nullptr ? no_driver() : cuda::default_stream_busy(*driver, memory, busy);
  }
  Status problem() override { return vendor_.problem(); }
  int device_in_use() noexcept override;
  Status describe(int device, DeviceDescription& description) override;
  std::vector<DeviceLink> links() override;

 private:
  Status no_driver() const { return Status(StatusCode::unsupported, vendor_.no_driver); }
  Status check_device(int device);
  Status keep_primary(cuda::Device device);
  Status enter_owner(const char* call, const void* pointer, ContextScope& scope, PointerInfo& info);

  const cuda::Vendor& vendor_;
  cuda::HostMemory host_memory_;
  cuda::TurnCopies turn_copies_{host_memory_};
  cuda::OpenedMemory opened_memory_;
  cuda::ProgramOrder program_order_;
  std::once_flag init_once_;
  bool initialised_ = false;                                // by us, once
  std::mutex mutex_;                                        // for keep_primary
  std::array<std::atomic<cuda::Context>, 64> primaries_{};  // those kept
};

// Initialises the driver, as only calls that are asked for a device do.
int CudaRuntime::device_count() {
  const Driver* driver = vendor_.open_driver();
  if (driver == nullptr) return 0;
  std::call_once(init_once_, [&] { initialised_ = driver->init(0) == Result::success; });
  int count = 0;
  if (!initialised_ || driver->device_get_count(&count) != Result::success) return 0;
  return count;
}

bool CudaRuntime::present() noexcept {
  const Driver* driver = vendor_.driver();
  int count = 0;
  if (driver != nullptr && driver->device_get_count(&count) == Result::success) return count > 0;
  return vendor_.active() && vendor_.device_is_visible();
}

// What was found last in this thread. An allocation's id is never used twice, so to ask for that
// alone tells whether it is still the same (0.1 us; everything takes 0.35. H200, driver 580).
struct Recent {
  static constexpr std::size_t kCount = 2;
  PointerInfo infos[kCount];
  std::size_t next = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local Recent recent;

bool find_recent(const Driver& driver, const DeviceRuntime& runtime, const void* pointer,
                 PointerInfo& info) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const PointerInfo& known : recent.infos) {
    if (address - reinterpret_cast<std::uintptr_t>(known.base) >= known.size_bytes) continue;
    if (known.runtime != &runtime || !cuda::has_id(driver, pointer, known.buffer_id)) continue;
    info = known;
    return true;
  }
  return false;
}

bool CudaRuntime::classify(const void* pointer, PointerInfo& info) noexcept {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return false;
  if (find_recent(*driver, *this, pointer, info)) return true;
  // The driver leaves zero where an attribute does not apply; some are narrower than ours.
  auto type = cuda::MemoryType::none;
  std::uint64_t managed = 0;
  std::int64_t ordinal = 0;
  void* base = nullptr;
  std::uint64_t size_bytes = 0;
  std::uint64_t buffer_id = 0;
  cuda::Context context = nullptr;
  PointerAttribute attributes[] = {PointerAttribute::memory_type,    PointerAttribute::is_managed,
                                   PointerAttribute::device_ordinal, PointerAttribute::range_start,
                                   PointerAttribute::range_size,     PointerAttribute::buffer_id,
                                   PointerAttribute::context};
  void* values[] = {&type,
                    &managed,
                    &ordinal,
                    static_cast<void*>(&base),
                    &size_bytes,
                    &buffer_id,
                    static_cast<void*>(&context)};
  if (driver->pointer_get_attributes(std::size(attributes), attributes, values,
                                     cuda::address_of(pointer)) != Result::success ||
      type == cuda::MemoryType::none)
    return false;
  info.kind = managed != 0                       ? MemoryKind::managed
              : type == cuda::MemoryType::device ? MemoryKind::device
                                                 : MemoryKind::pinned;
  info.runtime = this;
  const auto device = static_cast<std::int32_t>(ordinal);
  info.device = device >= 0 ? device : 0;  // managed memory that prefers the CPU
  info.base = base;
  info.size_bytes = static_cast<std::size_t>(size_bytes);
  info.buffer_id = buffer_id;
  info.context = context;
  if (info.kind == MemoryKind::device && context == nullptr)
    cuda::narrow_to_mapping(*driver, pointer, info);
  if (info.buffer_id != 0) recent.infos[recent.next++ % Recent::kCount] = info;
  return true;
}

bool CudaRuntime::must_stage(const void* pointer) noexcept {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return false;
  // The plural form even for one attribute: the singular one takes 470 ns to say that it does not
  // know an address. One at a time: each is a search of its own, and to find nothing takes longest
  // (170 ns for two; H200, driver 580).
  const auto ask = [&](PointerAttribute attribute, auto& value) {
    void* values[] = {&value};
    return driver->pointer_get_attributes(1, &attribute, values, cuda::address_of(pointer)) ==
           Result::success;
  };
  auto type = cuda::MemoryType::none;
  if (!ask(PointerAttribute::memory_type, type) || type == cuda::MemoryType::none) return false;
  if (type == cuda::MemoryType::device) return true;
  std::uint64_t managed = 0;
  return ask(PointerAttribute::is_managed, managed) && managed != 0;
}

void CudaRuntime::order_behind_program(const void* context) noexcept {
  const Driver* driver = vendor_.driver();
  if (driver != nullptr)
    program_order_.order(*driver, static_cast<cuda::Context>(const_cast<void*>(context)));
}

Status CudaRuntime::copy(int device, std::span<const Copy> copies) {
  const Driver* driver = vendor_.driver();
  return driver == nullptr ? no_driver() : turn_copies_.copy(*driver, device, copies);
}

Status CudaRuntime::copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) {
  const Driver* driver = vendor_.driver();
  return driver == nullptr ? no_driver() : turn_copies_.begin(*driver, device, copies, ticket);
}

Status CudaRuntime::copy_begin_patiently(int device, std::span<const Copy> copies,
                                         CopyTicket& ticket) {
  const Driver* driver = vendor_.driver();
  return driver == nullptr ? no_driver() : cuda::copy_list_begin(*driver, device, copies, ticket);
}

Status CudaRuntime::copy_begin_beside_kernels(int device, std::span<const Copy> copies,
                                              CopyTicket& ticket) {
  const Driver* driver = vendor_.driver();
  return driver == nullptr ? no_driver()
                           : turn_copies_.begin_beside_kernels(*driver, device, copies, ticket);
}

Status CudaRuntime::copy_done(CopyTicket& ticket, bool& done) {
  const Driver* driver = vendor_.driver();
  return driver == nullptr ? no_driver() : turn_copies_.done(*driver, ticket, done);
}

Status CudaRuntime::copy_batch(int device, const CopyBatch& batch) {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return no_driver();
  if (batch.laid_out.empty()) return turn_copies_.copy(*driver, device, batch.plain.copies());
  return cuda::copy_batch(*driver, device, batch);
}

Status CudaRuntime::batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket) {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return no_driver();
  if (batch.laid_out.empty())
    return turn_copies_.begin(*driver, device, batch.plain.copies(), ticket);
  return cuda::batch_begin(*driver, device, batch, ticket);
}

bool CudaRuntime::can_reduce(ReduceOp op, Element element) {
  const Driver* driver = vendor_.driver();
  return driver != nullptr && is_defined(op, element) && cuda::can_reduce(*driver);
}

Status CudaRuntime::reduce_begin(int device, const Reduction& reduction, CopyTicket& ticket) {
  const Driver* driver = vendor_.driver();
  return driver == nullptr ? no_driver() : cuda::reduce_begin(*driver, device, reduction, ticket);
}

Status CudaRuntime::host_allocate(std::size_t size_bytes, void*& pointer) {
  return host_memory_.allocate(vendor_.driver(), size_bytes, pointer);
}

void CudaRuntime::host_free(void* pointer, std::size_t size_bytes) noexcept {
  host_memory_.free(vendor_.driver(), pointer, size_bytes);
}

Status CudaRuntime::check_device(int device) {
  const int count = device_count();
  if (vendor_.driver() == nullptr) return no_driver();
  if (device >= 0 && device < count) return Status();
  return Status(StatusCode::invalid_argument,
                fmt::format("{} has no device {} ({} devices)", name(), device, count));
}

// Memory that we make lives in the primary context where the thread has no other: one reference is
// kept for good, taken anew after the program has reset the device.
Status CudaRuntime::keep_primary(cuda::Device device) {
  const Driver& driver = *vendor_.driver();
  const std::lock_guard lock(mutex_);
  unsigned flags = 0;
  int is_active = 0;
  ACCORD_TRY(status_of(driver, driver.primary_context_get_state(device, &flags, &is_active),
                       cuda::symbol::primary_context_get_state));
  const auto index = static_cast<std::size_t>(device);
  if (is_active != 0 && index < primaries_.size() && primaries_[index] != nullptr) return Status();
  cuda::Context context = nullptr;
  ACCORD_TRY(status_of(driver, driver.primary_context_retain(&context, device),
                       cuda::symbol::primary_context_retain));
  if (index < primaries_.size()) primaries_[index] = context;
  return Status();
}

std::uint64_t CudaRuntime::context_life(int device) noexcept {
  const auto index = static_cast<std::size_t>(device);
  const cuda::Context context = index < primaries_.size() ? primaries_[index].load() : nullptr;
  unsigned long long id = 0;
  if (context == nullptr || vendor_.driver()->context_get_id(context, &id) != Result::success)
    return 0;
  return id;
}

// AMD's GPUs have kernels of inboxes that are launched for each call.
static bool is_nvidia(const Driver& driver) { return driver.images.launched_inbox == nullptr; }

KernelPlace CudaRuntime::kernel_place(int device) {
  if (!check_device(device).ok()) return {};
  const std::uint64_t number = cuda::device_number(*vendor_.driver(), device);
  if (number == 0) return {};
  // One H100, driver 580. What AMD's GPUs do is not known.
  constexpr std::uint64_t kTurnUs = 150;
  return {.device = number,
          .server = cuda::mps_server(*vendor_.driver(), device),
          .turn_us = is_nvidia(*vendor_.driver()) ? kTurnUs : 0};
}

Status CudaRuntime::inbox_server(int device, InboxServer*& server) {
  ACCORD_TRY(check_device(device));
  const Driver& driver = *vendor_.driver();
  ACCORD_TRY(keep_primary(device));
  ContextScope scope(driver);
  ACCORD_TRY(status_of(driver, scope.enter_current_or_owner(device, nullptr), "inbox: context"));
  if (driver.images.launched_inbox != nullptr)
    return cuda::launched_inbox_server(driver, scope, *this, device, server);
  return cuda::inbox_server(driver, scope, kernel_place(device), server);
}

PacketReach CudaRuntime::packet_reach(int device) {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr || driver->images.launched_inbox != nullptr) return {};
  return reach_of_packets(*driver, device);
}

Status CudaRuntime::make_partition_reducer(int device, const PartitionReduction& reduction,
                                           std::uint32_t* arrived,
                                           std::unique_ptr<PartitionReducer>& reducer) {
  ACCORD_TRY(check_device(device));
  ACCORD_TRY(keep_primary(device));
  return cuda::make_partition_reducer(*vendor_.driver(), device, reduction, arrived, reducer);
}

// Libraries know devices by their primary context alone.
Status CudaRuntime::run_on(int device, const std::function<Status()>& work) {
  ACCORD_TRY(check_device(device));
  ACCORD_TRY(keep_primary(device));
  ContextScope scope(*vendor_.driver());
  ACCORD_TRY(status_of(*vendor_.driver(), scope.enter_owner(device, nullptr), "library: context"));
  return work();
}

Status CudaRuntime::make_stream(int device, std::unique_ptr<LibraryStream>& stream) {
  ACCORD_TRY(check_device(device));
  ACCORD_TRY(keep_primary(device));
  ContextScope scope(*vendor_.driver());
  ACCORD_TRY(status_of(*vendor_.driver(), scope.enter_owner(device, nullptr), "library: context"));
  return cuda::make_stream(*vendor_.driver(), scope, stream);
}

Status CudaRuntime::allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) {
  pointer = nullptr;
  ACCORD_TRY(check_device(device));
  if (size_bytes == 0) return Status();
  const Driver& driver = *vendor_.driver();
  cuda::Device handle = 0;
  ACCORD_TRY(status_of(driver, driver.device_get(&handle, device), cuda::symbol::device_get));
  ACCORD_TRY(keep_primary(handle));
  ContextScope scope(driver);
  ACCORD_TRY(status_of(driver, scope.enter_current_or_owner(handle, nullptr), "allocate: context"));
  cuda::DevicePointer address = 0;
  Status status;
  switch (kind) {
    case MemoryKind::device:
      status = status_of(driver, driver.memory_allocate(&address, size_bytes),
                         cuda::symbol::memory_allocate);
      break;
    case MemoryKind::managed:
      status = status_of(
          driver, driver.memory_allocate_managed(&address, size_bytes, cuda::kManagedAttachGlobal),
          cuda::symbol::memory_allocate_managed);
      break;
    case MemoryKind::pinned:
      return status_of(
          driver, driver.host_memory_allocate(&pointer, size_bytes, cuda::kHostAllocatePortable),
          cuda::symbol::host_memory_allocate);
    case MemoryKind::host:
      return Status(StatusCode::invalid_argument, "plain host memory comes from malloc");
  }
  pointer = reinterpret_cast<void*>(address);
  return status;
}

// Finds out what the pointer is and enters its context.
Status CudaRuntime::enter_owner(const char* call, const void* pointer, ContextScope& scope,
                                PointerInfo& info) {
  if (!classify(pointer, info)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} {}: {} is no memory of this runtime", name(), call, pointer));
  }
  return status_of(*vendor_.driver(), scope.enter_owner(info.device, pointer), call);
}

Status CudaRuntime::free(void* pointer) {
  if (pointer == nullptr) return Status();
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return no_driver();
  ContextScope scope(*driver);
  PointerInfo info;
  ACCORD_TRY(enter_owner("free", pointer, scope, info));
  if (info.kind == MemoryKind::pinned) {
    return status_of(*driver, driver->host_memory_free(pointer), cuda::symbol::host_memory_free);
  }
  return status_of(*driver, driver->memory_free(cuda::address_of(pointer)),
                   cuda::symbol::memory_free);
}

Status CudaRuntime::export_memory(const void* pointer, ExportedMemory& exported) {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return no_driver();
  ContextScope scope(*driver);
  PointerInfo info;
  ACCORD_TRY(enter_owner("export", pointer, scope, info));
  if (info.kind != MemoryKind::device || info.base == nullptr) {
    return Status(StatusCode::unsupported, "only device memory can be exported");
  }
  ACCORD_TRY(cuda::export_allocation(*driver, info, exported));
  exported.offset_bytes = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) -
                                                   static_cast<const std::byte*>(info.base));
  return Status();
}

Status CudaRuntime::open_memory(int device, const ExportedMemory& exported, void*& pointer) {
  pointer = nullptr;
  ACCORD_TRY(check_device(device));
  const Driver& driver = *vendor_.driver();
  ACCORD_TRY(keep_primary(device));
  ContextScope scope(driver);
  ACCORD_TRY(status_of(driver, scope.enter_current_or_owner(device, nullptr), "open: context"));
  return opened_memory_.open(driver, device, exported, pointer);
}

Status CudaRuntime::close_memory(void* pointer) {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return no_driver();
  ContextScope scope(*driver);
  PointerInfo info;
  ACCORD_TRY(enter_owner("close", pointer, scope, info));
  return opened_memory_.close(*driver, pointer);
}

int CudaRuntime::device_in_use() noexcept {
  const Driver* driver = vendor_.driver();
  if (driver == nullptr) return -1;
  ContextScope scope(*driver);
  cuda::Device device = -1;
  if (!scope.enter_any() || driver->context_get_device(&device) != Result::success) return -1;
  return device;
}

Status CudaRuntime::describe(int device, DeviceDescription& description) {
  ACCORD_TRY(check_device(device));
  const Driver& driver = *vendor_.driver();
  std::array<char, 256> text{};
  cuda::Device handle = 0;
  cuda::Uuid uuid{};
  ACCORD_TRY(status_of(driver, driver.device_get(&handle, device), cuda::symbol::device_get));
  ACCORD_TRY(status_of(
      driver, driver.device_get_name(text.data(), static_cast<int>(text.size() - 1), handle),
      cuda::symbol::device_get_name));
  ACCORD_TRY(
      status_of(driver, driver.device_get_uuid(&uuid, handle), cuda::symbol::device_get_uuid));
  ACCORD_TRY(status_of(driver, driver.device_total_memory(&description.memory_bytes, handle),
                       cuda::symbol::device_total_memory));
  description.name = text.data();
  description.uuid = "GPU";
  for (std::size_t i = 0; i < std::size(uuid.bytes); ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    description.uuid += fmt::format("{}{:02x}", dash ? "-" : "", uuid.bytes[i]);
  }
  if (is_nvidia(driver)) description.mps = cuda::mps_server(driver, handle) != 0;
  return Status();
}

std::vector<DeviceLink> CudaRuntime::links() {
  std::vector<DeviceLink> result;
  const int count = device_count();
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      const Driver& driver = *vendor_.driver();
      DeviceLink link{from, to};
      int access = 0;
      link.peer_access =
          driver.device_can_access_peer(&access, from, to) == Result::success && access != 0;
      if (driver.device_get_p2p_attribute(&link.performance_rank,
                                          cuda::P2pAttribute::performance_rank, from,
                                          to) != Result::success)
        link.performance_rank = -1;
      result.push_back(link);
    }
  }
  return result;
}

constexpr cuda::Vendor kNvidia{.name = "cuda",
                               .driver = cuda::driver,
                               .open_driver = cuda::driver,
                               .active = []() noexcept { return cuda::driver() != nullptr; },
                               .device_is_visible = cuda::device_is_visible,
                               .device_exists = cuda::device_exists,
                               .problem = cuda::problem,
                               .no_driver = "cuda: no NVIDIA driver for CUDA 12 or later here"};

}  // namespace

DeviceRuntime& cuda::make_runtime(const Vendor& vendor) { return *new CudaRuntime(vendor); }

DeviceRuntime& cuda_runtime() {
  static DeviceRuntime& runtime = cuda::make_runtime(kNvidia);  // never destroyed, see above
  return runtime;
}

}  // namespace accord::device
