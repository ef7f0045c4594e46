// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Devices and memory of the stand-in. Device memory is a memfd that is mapped twice: where the
// program may know it but not touch it, and where the library works. An IPC handle names the
// process and its descriptor.
#include "library.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

// NOLINTBEGIN(readability-identifier-naming): HIP's names
using namespace accord::test::hip;
using namespace accord::device::cuda;
using accord::device::hip::PointerFacts;

namespace accord::test::hip {

thread_local int current_device = 0;
thread_local Result last_error = Result::success;

State& state() {
  static State& only = *new State;
  return only;
}

int version() {
  static const int number = [] {
    const char* text = std::getenv("ACCORD_TEST_HIP_VERSION");
    return text == nullptr ? 6 : std::atoi(text);
  }();
  return number;
}

const void* address_on_device(const Allocation& allocation, const void* address) {
  static const bool elsewhere = std::getenv("ACCORD_TEST_HIP_REGISTERED") != nullptr;
  constexpr std::uintptr_t kAway = std::uintptr_t{1} << 46;
  if (!elsewhere || !allocation.registered) return address;
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) ^ kAway);
}

int device_count() {
  static const int count = [] {
    const char* text = std::getenv("ACCORD_TEST_HIP_DEVICES");
    return text == nullptr ? 2 : std::atoi(text);
  }();
  return count;
}

void fail(const std::string& what) {
  std::fprintf(stderr, "stand-in for HIP: %s\n", what.c_str());
  std::abort();
}

Allocation::~Allocation() {
  if (!registered && alias != nullptr && alias != user) ::munmap(alias, mapped_bytes);
  if (!registered && user != nullptr) ::munmap(user, mapped_bytes);
  if (descriptor >= 0) ::close(descriptor);
}

std::shared_ptr<Allocation> find_allocation(const void* address) {
  auto* const byte = static_cast<std::byte*>(const_cast<void*>(address));
  auto next = state().allocations.upper_bound(byte);
  if (next == state().allocations.begin()) return nullptr;
  const std::shared_ptr<Allocation>& found = std::prev(next)->second;
  return static_cast<std::size_t>(byte - found->user) < found->size_bytes ? found : nullptr;
}

std::byte* reach(const void* address, std::size_t size_bytes,
                 std::vector<std::shared_ptr<Allocation>>& held) {
  auto* const first = static_cast<std::byte*>(const_cast<void*>(address));
  std::shared_ptr<Allocation> owner = find_allocation(address);
  if (owner == nullptr) return first;
  const auto offset = static_cast<std::size_t>(first - owner->user);
  if (size_bytes > owner->size_bytes - offset) fail("a copy leaves its allocation");
  held.push_back(owner);
  return owner->alias + offset;
}

namespace {

// One function, from which of its calls on, and whether only that one.
struct Failure {
  std::string function;
  long from = 0;
  bool for_good = false;
  long calls = 0;
};

// "hipMalloc:3+": it fails from its third call on; without the plus sign, at its third call.
Failure parse(const std::string& text) {
  Failure failure;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return failure;
  failure.function = text.substr(0, colon);
  failure.from = std::strtol(text.c_str() + colon + 1, nullptr, 10);
  failure.for_good = text.back() == '+';
  return failure;
}

std::mutex failure_mutex;
Failure& failure() {
  static Failure& only = *new Failure([] {
    const char* text = std::getenv("ACCORD_TEST_HIP_FAIL");
    return parse(text == nullptr ? "" : text);
  }());
  return only;
}

std::byte* map(std::size_t size_bytes, int protection, int flags, int descriptor) {
  void* mapped = ::mmap(nullptr, size_bytes, protection, flags, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// Maps what the descriptor holds and enters the allocation, in this thread's device.
Result enter(std::shared_ptr<Allocation> made, void** pointer) {
  constexpr std::size_t kPageBytes = 4096;
  made->device = current_device;
  made->mapped_bytes = (made->size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (!made->imported && ::ftruncate(made->descriptor, static_cast<off_t>(made->mapped_bytes)) != 0)
    return Result::out_of_memory;
  made->alias = map(made->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->descriptor);
  made->user = made->kind == Kind::device ? map(made->mapped_bytes, PROT_NONE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1)
                                          : made->alias;
  if (made->alias == nullptr || made->user == nullptr) return Result::out_of_memory;
  const std::lock_guard lock(state().mutex);
  made->id = ++state().last_id;
  *pointer = made->user;
  state().allocations.emplace(made->user, std::move(made));
  return Result::success;
}

Result allocate(Kind kind, std::size_t size_bytes, void** pointer) {
  auto made = std::make_shared<Allocation>();
  made->kind = kind;
  made->size_bytes = size_bytes;
  static std::atomic<unsigned> count{0};
  made->file = "hip-test-memory-" + std::to_string(++count);
  made->descriptor = ::memfd_create(made->file.c_str(), MFD_CLOEXEC);
  if (made->descriptor < 0 || size_bytes == 0 || size_bytes > std::size_t{1} << 32)
    return Result::out_of_memory;
  return enter(std::move(made), pointer);
}

// Waits for all streams, as HIP does before it frees.
template <class Test>
Result release(void* pointer, const Test& test, Result otherwise) {
  std::unique_lock lock(state().mutex);
  state().changed.wait(lock, [] { return state().jobs == 0; });
  const auto found = state().allocations.find(static_cast<std::byte*>(pointer));
  if (found == state().allocations.end() || !test(*found->second)) return otherwise;
  state().allocations.erase(found);
  return Result::success;
}

// What a handle holds.
struct Handle {
  static constexpr std::uint64_t kMagic = 0x6c646e61'48706968;
  std::uint64_t magic = kMagic;
  int process = 0;
  int descriptor = -1;
  std::uint64_t size_bytes = 0;
  char file[32]{};  // that the descriptor is of, unless the memory has been freed since
};
static_assert(sizeof(Handle) <= sizeof(IpcHandle));

unsigned number_of(Kind kind) {
  const unsigned from_6 = kind == Kind::host ? 1 : kind == Kind::device ? 2 : 3;
  if (!is_version_5()) return from_6;
  return kind == Kind::managed ? 0 : from_6 - 1;  // HIP 5.2 calls managed memory the host's
}

}  // namespace

Result injected(const char* function) {
  const std::lock_guard lock(failure_mutex);
  Failure& now = failure();
  if (now.function != function) return Result::success;
  ++now.calls;
  constexpr auto kUnknown = static_cast<Result>(999);
  return now.calls == now.from || (now.for_good && now.calls > now.from) ? kUnknown
                                                                         : Result::success;
}

}  // namespace accord::test::hip

extern "C" {

// For tests: as ACCORD_TEST_HIP_FAIL, and what is held.
void accord_test_hip_fail(const char* text) {
  const std::lock_guard lock(failure_mutex);
  failure() = parse(text);
}
void accord_test_hip_count(long* objects, long* allocations) {
  const std::lock_guard lock(state().mutex);
  *objects = state().objects;
  *allocations = static_cast<long>(state().allocations.size());
}

// For a stand-in of a collective library (tests/ccl/stream.h).
int accord_test_hip_enqueue(Stream stream, void (*work)(void*), void (*drop)(void*),
                            void* argument) {
  const std::shared_ptr<void> kept(argument, drop);
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(enqueue(stream, [=] { work(kept.get()); }));
}
void* accord_test_hip_bytes_of(const void* pointer) {
  const std::lock_guard lock(state().mutex);
  const std::shared_ptr<Allocation> found = find_allocation(pointer);
  if (found == nullptr) return const_cast<void*>(pointer);
  return found->alias + (static_cast<const std::byte*>(pointer) - found->user);
}

Result hipGetLastError() { return std::exchange(last_error, Result::success); }
const char* hipGetErrorName(Result result) {
  return result == Result::invalid_value ? "hipErrorInvalidValue" : "hipErrorOfStandIn";
}
const char* hipGetErrorString(Result) { return "said by the stand-in"; }

Result hipInit(unsigned flags) {
  return api(__func__, [&] { return flags == 0 ? Result::success : Result::invalid_value; });
}
Result hipRuntimeGetVersion(int* version) {
  return api(__func__, [&] {
    *version = is_version_5() ? 50221153 : accord::test::hip::version() * 10000000 + 342134;
    return Result::success;
  });
}
Result hipGetDeviceCount(int* count) {
  return api(__func__, [&] {
    *count = device_count();
    return *count == 0 ? Result::no_device : Result::success;
  });
}
Result hipDeviceGet(Device* device, int ordinal) {
  return api(__func__, [&] {
    *device = ordinal;
    return ordinal >= 0 && ordinal < device_count() ? Result::success : kInvalidDevice;
  });
}
Result hipDeviceGetName(char* name, int length, Device device) {
  return api(__func__, [&] {
    std::snprintf(name, static_cast<std::size_t>(length), "AMD stand-in %d", device);
    return Result::success;
  });
}
Result hipDeviceGetUuid(Uuid* uuid, Device device) {
  return api(__func__, [&] {
    std::memset(uuid->bytes, 0x30 + device, sizeof uuid->bytes);
    return Result::success;
  });
}
Result hipDeviceTotalMem(std::size_t* size_bytes, Device) {
  return api(__func__, [&] {
    *size_bytes = std::size_t{1} << 32;
    return Result::success;
  });
}
Result hipDeviceCanAccessPeer(int* can, Device, Device) {
  return api(__func__, [&] {
    *can = 1;
    return Result::success;
  });
}
Result hipDeviceGetP2PAttribute(int* value, int attribute, Device, Device) {
  return api(__func__, [&] {
    *value = 0;
    return attribute == 0 ? Result::success : Result::invalid_value;
  });
}
Result hipGetDevice(int* device) {
  return api(__func__, [&] {
    *device = current_device;
    return Result::success;
  });
}
Result hipSetDevice(int device) {
  return api(__func__, [&] {
    if (device < 0 || device >= device_count()) return kInvalidDevice;
    current_device = device;
    return Result::success;
  });
}
Result hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return api(__func__, [&] {
    if (flags != 0 || peer < 0 || peer >= device_count() || peer == current_device)
      return Result::invalid_value;
    const std::lock_guard lock(state().mutex);
    return state().peers.emplace(current_device, peer).second ? Result::success
                                                              : Result::peer_access_already_enabled;
  });
}

Result hipMalloc(void** pointer, std::size_t size_bytes) {
  return api(__func__, [&] { return allocate(Kind::device, size_bytes, pointer); });
}
Result hipMallocManaged(void** pointer, std::size_t size_bytes, unsigned flags) {
  return api(__func__, [&] {
    return flags == kManagedAttachGlobal ? allocate(Kind::managed, size_bytes, pointer)
                                         : Result::invalid_value;
  });
}
Result hipHostMalloc(void** pointer, std::size_t size_bytes, unsigned) {
  return api(__func__, [&] { return allocate(Kind::host, size_bytes, pointer); });
}
Result hipFree(void* pointer) {
  return api(__func__, [&] {
    return release(
        pointer, [](const Allocation& its) { return its.kind != Kind::host && !its.imported; },
        Result::invalid_value);
  });
}
Result hipHostFree(void* pointer) {
  return api(__func__, [&] {
    return release(
        pointer, [](const Allocation& its) { return its.kind == Kind::host && !its.registered; },
        Result::invalid_value);
  });
}
Result hipHostRegister(void* pages, std::size_t size_bytes, unsigned) {
  return api(__func__, [&] {
    auto made = std::make_shared<Allocation>();
    made->kind = Kind::host;
    made->device = current_device;
    made->registered = true;
    made->user = made->alias = static_cast<std::byte*>(pages);
    made->size_bytes = size_bytes;
    const std::lock_guard lock(state().mutex);
    made->id = ++state().last_id;
    return state().allocations.emplace(made->user, std::move(made)).second
               ? Result::success
               : static_cast<Result>(712);
  });
}
Result hipHostUnregister(void* pages) {
  return api(__func__, [&] {
    return release(
        pages, [](const Allocation& its) { return its.registered; },
        Result::host_memory_not_registered);
  });
}

// HIP 5 does not know host memory that it has not made; HIP 6 says of what kind it is.
Result hipPointerGetAttributes(PointerFacts* facts, const void* pointer) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    *facts = {};
    const std::shared_ptr<Allocation> found = find_allocation(pointer);
    if (found == nullptr) {
      facts->device = -2;
      return is_version_5() ? Result::invalid_value : Result::success;
    }
    facts->type = number_of(found->kind);
    facts->device = found->device;
    facts->on_device = const_cast<void*>(address_on_device(*found, pointer));
    facts->is_managed = found->kind == Kind::managed ? 1 : 0;
    return Result::success;
  });
}
Result hipPointerGetAttribute(void* value, PointerAttribute attribute, void* pointer) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    const std::shared_ptr<Allocation> found = find_allocation(pointer);
    if (found == nullptr || attribute != PointerAttribute::buffer_id) return Result::invalid_value;
    std::memcpy(value, &found->id, sizeof found->id);
    return Result::success;
  });
}
Result hipMemGetAddressRange(void** base, std::size_t* size_bytes, void* pointer) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    const std::shared_ptr<Allocation> found = find_allocation(pointer);
    if (found == nullptr) return kNotFound;
    *base = found->user;
    *size_bytes = found->size_bytes;
    return Result::success;
  });
}

Result hipIpcGetMemHandle(IpcHandle* handle, void* pointer) {
  return api(__func__, [&] {
    const std::lock_guard lock(state().mutex);
    const std::shared_ptr<Allocation> found = find_allocation(pointer);
    if (found == nullptr || found->kind != Kind::device || found->imported ||
        found->user != pointer || found->device != current_device) {
      return Result::invalid_value;
    }
    Handle made;
    made.process = ::getpid();
    made.descriptor = found->descriptor;
    made.size_bytes = found->size_bytes;
    found->file.copy(made.file, sizeof made.file - 1);
    *handle = {};
    std::memcpy(handle->bytes, &made, sizeof made);
    return Result::success;
  });
}
Result hipIpcOpenMemHandle(void** pointer, IpcHandle handle, unsigned flags) {
  return api(__func__, [&] {
    Handle asked;
    std::memcpy(&asked, handle.bytes, sizeof asked);
    if (flags != (is_version_5() ? 0U : 1U) || asked.magic != Handle::kMagic)
      return Result::invalid_value;
    if (asked.process == ::getpid()) return Result::invalid_context;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", asked.process, asked.descriptor);
    auto made = std::make_shared<Allocation>();
    made->imported = true;
    made->size_bytes = asked.size_bytes;
    char link[64] = "";
    if (::readlink(path, link, sizeof link - 1) < 0 ||
        std::string(link) != "/memfd:" + std::string(asked.file) + " (deleted)")
      return Result::invalid_value;
    made->descriptor = ::open(path, O_RDWR | O_CLOEXEC);
    return made->descriptor < 0 ? Result::invalid_value : enter(std::move(made), pointer);
  });
}
Result hipIpcCloseMemHandle(void* pointer) {
  return api(__func__, [&] {
    return release(
        pointer, [](const Allocation& its) { return its.imported; }, Result::invalid_value);
  });
}

}  // extern "C"
// NOLINTEND
