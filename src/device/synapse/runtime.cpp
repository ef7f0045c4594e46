// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Intel's Gaudi accelerators through Synapse, found at run time (synapse/driver.h): memory for HCCL
// to work on. A process has one Gaudi, which the program or accord_malloc acquires; asking what a
// pointer is acquires nothing. Without kernels of ours, and without a way to open memory of another
// process, everything but HCCL's calls is staged through the host. Nothing runs at exit.
#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "device/device_runtime.h"
#include "device/synapse/copy.h"
#include "device/synapse/device.h"
#include "device/synapse/driver.h"

namespace accord::device {

DeviceRuntime& synapse_runtime();

namespace {

using synapse::Allocations;
using synapse::Driver;
using synapse::Lane;
using synapse::status_of;
namespace symbol = synapse::symbol;

class SynapseRuntime final : public DeviceRuntime {
 public:
  const char* name() const noexcept override { return "synapse"; }
  bool active() noexcept override { return synapse::may_be_used(); }
  bool present() noexcept override {
    return synapse::device_exists() || device_if_there() != nullptr;
  }

  bool classify(const void* pointer, PointerInfo& info) noexcept override;
  bool must_stage(const void* pointer) noexcept override {
    return device_if_there() != nullptr && device_.contains(pointer);
  }

  Status copy(int device, std::span<const Copy> copies) override;
  Status copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) override;
  Status copy_done(CopyTicket& ticket, bool& done) override;

  Status run_on(int device, const std::function<Status()>& work) override;
  Status make_stream(int device, std::unique_ptr<LibraryStream>& stream) override;
  KernelPlace kernel_place(int device) override;

  Status host_allocate(std::size_t size_bytes, void*& pointer) override;
  void host_free(void* pointer, std::size_t size_bytes) noexcept override;

  Status allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) override;
  Status free(void* pointer) override;

  Status export_memory(const void* pointer, ExportedMemory& exported) override;
  Status open_memory(int device, const ExportedMemory& exported, void*& pointer) override;
  Status close_memory(void* pointer) override;

  int device_count() override;
  Status problem() override;
  int device_in_use() noexcept override {
    return device_if_there() == nullptr ? -1 : device_.number();
  }
  Status describe(int device, DeviceDescription& description) override;

 private:
  const Driver* device_if_there() noexcept {
    const Driver* const driver = synapse::driver();
    return driver != nullptr && device_.is_there(*driver) ? driver : nullptr;
  }
  Status enter(int device, const Driver*& driver);
  Status list_modules(const Driver*& driver, std::vector<synapse::Module>& modules);
  Status allocate_host(const Driver& driver, std::size_t size_bytes, void*& pointer);

  synapse::OneDevice device_;
  Allocations on_device_;
  Allocations on_host_;  // mapped for the device
  synapse::Lanes lanes_;
};

// Of memory that the program has allocated the extent is not known.
bool SynapseRuntime::classify(const void* pointer, PointerInfo& info) noexcept {
  if (device_if_there() == nullptr) return false;
  const bool on_device = device_.contains(pointer);
  const auto known = (on_device ? on_device_ : on_host_).find(pointer);
  if (!on_device && !known.has_value()) return false;
  info = PointerInfo{.kind = on_device ? MemoryKind::device : MemoryKind::pinned,
                     .runtime = this,
                     .device = device_.number(),
                     .base = const_cast<void*>(pointer)};
  if (!known.has_value()) return true;
  info.base = known->base;
  info.size_bytes = known->size_bytes;
  info.buffer_id = known->id;
  return true;
}

// The process has the device from here on.
Status SynapseRuntime::enter(int device, const Driver*& driver) {
  driver = synapse::open_driver();
  if (driver == nullptr) {
    ACCORD_TRY(synapse::driver_problem());
    return Status(StatusCode::unsupported, "synapse: no Gaudi here");
  }
  return device_.acquire(*driver, device);
}

Status SynapseRuntime::copy(int device, std::span<const Copy> copies) {
  const Driver* driver = nullptr;
  ACCORD_TRY(enter(device, driver));
  std::unique_ptr<Lane> lane = lanes_.borrow(*driver, device_, on_host_);
  ACCORD_TRY(lane->begin(copies));
  ACCORD_TRY(lane->wait());
  lanes_.give_back(std::move(lane));
  return Status();
}

Status SynapseRuntime::copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) {
  ticket.handle = nullptr;
  const Driver* driver = nullptr;
  ACCORD_TRY(enter(device, driver));
  std::unique_ptr<Lane> lane = lanes_.borrow(*driver, device_, on_host_);
  ACCORD_TRY(lane->begin(copies));
  ticket.handle = lane.release();
  return Status();
}

// A lane that has met an error is not used again.
Status SynapseRuntime::copy_done(CopyTicket& ticket, bool& done) {
  auto* const pending = static_cast<Lane*>(ticket.handle);
  done = true;
  if (pending == nullptr) return Status();
  Status status = pending->poll(done);
  if (!done) return status;
  ticket.handle = nullptr;
  std::unique_ptr<Lane> lane(pending);
  if (status.ok()) lanes_.give_back(std::move(lane));
  return status;
}

Status SynapseRuntime::run_on(int device, const std::function<Status()>& work) {
  const Driver* driver = nullptr;
  ACCORD_TRY(enter(device, driver));
  return work();
}

Status SynapseRuntime::make_stream(int device, std::unique_ptr<LibraryStream>& stream) {
  const Driver* driver = nullptr;
  ACCORD_TRY(enter(device, driver));
  return synapse::make_stream(*driver, device_, stream);
}

// No two processes have one, so this only tells them apart.
KernelPlace SynapseRuntime::kernel_place(int device) {
  const Driver* driver = nullptr;
  std::array<char, 64> bus{};
  if (!enter(device, driver).ok() ||
      driver->device_get_pci_bus(bus.data(), static_cast<int>(bus.size() - 1), device_.id()) !=
          synapse::Result::success)
    return {};
  return {.device = std::hash<std::string_view>{}(bus.data()) | 1};
}

Status SynapseRuntime::allocate_host(const Driver& driver, std::size_t size_bytes, void*& pointer) {
  void* made = nullptr;
  ACCORD_TRY(status_of(driver.host_memory_allocate(device_.id(), size_bytes, 0, &made),
                       symbol::host_memory_allocate));
  on_host_.add(made, size_bytes);
  pointer = made;
  return Status();
}

// Mapped for the device where there is one by then.
Status SynapseRuntime::host_allocate(std::size_t size_bytes, void*& pointer) {
  const Driver* const driver = device_if_there();
  if (driver != nullptr && allocate_host(*driver, size_bytes, pointer).ok()) return Status();
  pointer = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer != MAP_FAILED) return Status();
  pointer = nullptr;
  return Status(StatusCode::no_memory,
                fmt::format("{} bytes of host memory: mmap: {}", size_bytes, std::strerror(errno)));
}

void SynapseRuntime::host_free(void* pointer, std::size_t size_bytes) noexcept {
  if (on_host_.remove(pointer)) {
    (void)synapse::driver()->host_memory_free(device_.id(), pointer, 0);
  } else {
    munmap(pointer, size_bytes);
  }
}

Status SynapseRuntime::allocate(int device, MemoryKind kind, std::size_t size_bytes,
                                void*& pointer) {
  pointer = nullptr;
  const Driver* driver = nullptr;
  ACCORD_TRY(enter(device, driver));
  if (size_bytes == 0) return Status();
  switch (kind) {
    case MemoryKind::device: {
      synapse::Address address = 0;
      ACCORD_TRY(status_of(driver->memory_allocate(device_.id(), size_bytes, 0, 0, &address),
                           symbol::memory_allocate));
      pointer = reinterpret_cast<void*>(address);
      on_device_.add(pointer, size_bytes);
      return Status();
    }
    case MemoryKind::pinned:
      return allocate_host(*driver, size_bytes, pointer);
    case MemoryKind::managed:
      return Status(StatusCode::unsupported, "synapse: a Gaudi has no managed memory");
    case MemoryKind::host:
      break;
  }
  return Status(StatusCode::invalid_argument, "plain host memory comes from malloc");
}

// Forgotten first: another thread may get the same address at once.
Status SynapseRuntime::free(void* pointer) {
  if (pointer == nullptr) return Status();
  const Driver* const driver = device_if_there();
  const bool on_host = driver != nullptr && on_host_.remove(pointer);
  if (on_host)
    return status_of(driver->host_memory_free(device_.id(), pointer, 0), symbol::host_memory_free);
  if (driver == nullptr || !on_device_.remove(pointer))
    return Status(StatusCode::invalid_argument,
                  fmt::format("synapse free: {} is no memory of this runtime", pointer));
  return status_of(driver->memory_free(device_.id(), synapse::address_of(pointer), 0),
                   symbol::memory_free);
}

Status SynapseRuntime::export_memory(const void*, ExportedMemory&) {
  return Status(StatusCode::unsupported, "synapse: memory of a Gaudi cannot be exported");
}

Status SynapseRuntime::open_memory(int, const ExportedMemory&, void*& pointer) {
  pointer = nullptr;
  return Status(StatusCode::unsupported, "synapse: memory of a Gaudi cannot be opened");
}

Status SynapseRuntime::close_memory(void*) {
  return Status(StatusCode::invalid_argument, "synapse: nothing was opened here");
}

Status SynapseRuntime::list_modules(const Driver*& driver, std::vector<synapse::Module>& modules) {
  driver = synapse::open_driver();
  return driver == nullptr ? synapse::driver_problem() : synapse::find_modules(*driver, modules);
}

int SynapseRuntime::device_count() {
  const Driver* driver = nullptr;
  std::vector<synapse::Module> modules;
  return list_modules(driver, modules).ok() ? static_cast<int>(modules.size()) : 0;
}

Status SynapseRuntime::problem() {
  const Driver* driver = nullptr;
  std::vector<synapse::Module> modules;
  return list_modules(driver, modules);
}

// Without acquiring it.
Status SynapseRuntime::describe(int device, DeviceDescription& description) {
  const Driver* driver = nullptr;
  std::vector<synapse::Module> modules;
  ACCORD_TRY(list_modules(driver, modules));
  const auto index = static_cast<std::size_t>(device);
  if (device < 0 || index >= modules.size())
    return Status(StatusCode::invalid_argument,
                  fmt::format("synapse has no device {} ({} devices)", device, modules.size()));
  using synapse::Attribute;
  const Attribute attributes[] = {Attribute::memory_bytes, Attribute::type};
  std::uint64_t values[std::size(attributes)]{};
  ACCORD_TRY(status_of(
      driver->module_get_attributes(values, attributes, std::size(attributes), modules[index]),
      symbol::module_get_attributes));
  const auto type = static_cast<synapse::Type>(values[1]);
  description.name = type == synapse::Type::gaudi2   ? "Gaudi 2"
                     : type == synapse::Type::gaudi3 ? "Gaudi 3"
                                                     : "Gaudi";
  description.uuid = fmt::format("HPU-module-{}", modules[index]);
  description.memory_bytes = static_cast<std::size_t>(values[0]);
  return Status();
}

}  // namespace

DeviceRuntime& synapse_runtime() {
  static SynapseRuntime& runtime = *new SynapseRuntime;  // never destroyed, see above
  return runtime;
}

}  // namespace accord::device
