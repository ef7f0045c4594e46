// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A driver for Level Zero over host memory, which the real loader loads (ZE_ENABLE_ALT_DRIVERS), so
// that the Level Zero runtime is tested without a GPU. It is strict where the interface is: device
// memory cannot be touched by the CPU, a list must be closed to be executed and reset to be used
// again, nothing may be freed or destroyed that is in use. Work is done by threads, late
// (ACCORD_TEST_ZE_DELAY_US), and the commands of a list in another order than they were appended
// in, where no barrier is between them, since none is promised. Kernels are compiled for the CPU,
// too (driver_kernels.cpp); memory that they do not reach on a device, they do not here. A mistake
// of the caller that a GPU would only show as wrong bytes ends the process.
#pragma once

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace accord::test::level_zero {

constexpr int kDevices = 2;
constexpr int kTiles = 2;  // of the first device

// What handles are: addresses of these.
struct Object {
  enum class Kind {
    driver,
    device,
    context,
    queue,
    list,
    fence,
    event_pool,
    event,
    module,
    kernel
  };
  explicit Object(Kind what) : kind(what) {}
  virtual ~Object() = default;
  const Kind kind;
  int users = 0;  // jobs in flight that use it
};

struct Device : Object {
  Device() : Object(Kind::device) {}
  int number = 0;
  bool is_tile = false;  // of the first device
};

struct Allocation {
  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation();

  ze_memory_type_t type = ZE_MEMORY_TYPE_UNKNOWN;
  bool imported = false;
  Device* device = nullptr;
  std::byte* user = nullptr;   // what the program holds
  std::byte* alias = nullptr;  // where its bytes are
  std::size_t size_bytes = 0;
  std::size_t mapped_bytes = 0;
  int descriptor = -1;
  std::size_t offset_bytes = 0;  // where it begins in what the descriptor holds
  std::uint64_t id = 0;
  std::vector<const Device*> residence;  // where else it was made resident
  int kernels = 0;                       // that run now and may touch it
};

// Everything that the driver holds. Any context serves: there is one table of allocations.
struct State {
  std::mutex mutex;  // guards what follows
  std::map<Object*, std::unique_ptr<Object>> objects;
  std::map<std::byte*, std::shared_ptr<Allocation>> allocations;
  std::uint64_t last_id = 0;
};
State& state();

// Null where the handle is none, or one of another kind. With the state's mutex held.
Object* find_object(const void* handle, Object::Kind kind);
template <class T>
T* find(const void* handle, Object::Kind kind) {
  return static_cast<T*>(find_object(handle, kind));
}
// Enters the object and returns its handle.
void* add(std::unique_ptr<Object> object);
ze_result_t destroy(const void* handle, Object::Kind kind);

// The allocation that the address is in, or null. With the state's mutex held.
std::shared_ptr<Allocation> find_allocation(const void* address);

// Whether kernels of the device reach the allocation. With the state's mutex held.
bool reaches(const Device& device, ze_kernel_indirect_access_flags_t access,
             const Allocation& allocation);

// Device memory that the process may touch as long as this lives.
class OpenedToKernels {
 public:
  OpenedToKernels(const Device& device, ze_kernel_indirect_access_flags_t access);
  OpenedToKernels(const OpenedToKernels&) = delete;
  OpenedToKernels& operator=(const OpenedToKernels&) = delete;
  ~OpenedToKernels();

 private:
  std::vector<std::shared_ptr<Allocation>> opened_;
};

// What a kernel is run by, one of the two.
struct OpenclKernel;
struct Code {
  void (*on_cpu)(const void* argument, std::size_t id, std::size_t count) = nullptr;
  OpenclKernel* opencl = nullptr;
};

// A launch as it was appended to a list.
struct Launch {
  const Device* device = nullptr;
  ze_kernel_indirect_access_flags_t access = 0;
  const Code* code = nullptr;
  std::uint32_t groups = 0;
  std::uint32_t group_size = 0;
  void* argument = nullptr;
};
// What the kernel's handle says now; an error where it cannot be launched on the device. With the
// state's mutex held.
ze_result_t make_launch(ze_kernel_handle_t kernel, const Device& device,
                        const ze_group_count_t& groups, Launch& launch);
void run(const Launch& launch);

// What a driver could not forgive.
[[noreturn]] void fail(const std::string& what);

// Whether this call is to fail, and with what (ACCORD_TEST_ZE_FAIL, see driver.cpp).
ze_result_t injected(const char* function);

// What the devices lack (ACCORD_TEST_ZE_WITHOUT, see driver.cpp).
bool is_without(std::string_view what);

// The functions, by the tables that the loader asks for.
void fill(ze_global_dditable_t& table);
void fill(ze_driver_dditable_t& table);
void fill(ze_device_dditable_t& table);
void fill(ze_context_dditable_t& table);
void fill(ze_mem_dditable_t& table);
void fill(ze_command_queue_dditable_t& table);
void fill(ze_command_list_dditable_t& table);
void fill(ze_fence_dditable_t& table);
void fill(ze_event_pool_dditable_t& table);
void fill(ze_event_dditable_t& table);
void fill(ze_module_dditable_t& table);
void fill(ze_kernel_dditable_t& table);

struct Name {
  char text[48]{};
  template <std::size_t n>
  constexpr Name(const char (&name)[n]) {  // NOLINT: meant to convert
    for (std::size_t i = 0; i < n; ++i) text[i] = name[i];
  }
};

// The function of a table's member: `function`, unless an error is injected.
template <Name name, auto function>
struct Entry;
template <Name name, class... Args, ze_result_t (*function)(Args...)>
struct Entry<name, function> {
  static ze_result_t call(Args... args) {
    const ze_result_t result = injected(name.text);
    return result != ZE_RESULT_SUCCESS ? result : function(args...);
  }
};

}  // namespace accord::test::level_zero
