// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/hip/functions.h"

#include <array>
#include <atomic>

namespace accord::device::hip {
namespace {

using cuda::Context;
using cuda::DevicePointer;
using cuda::MemoryType;

// 70000000 is HIP 7.0.
int version() {
  static const int number = [] {
    int found = 0;
    if (functions().get_version(&found) == Result::success) return found;
    (void)functions().get_last_error();
    return 0;
  }();
  return number;
}

// HIP keeps an error of a thread for the program to ask after: it must not find one of ours, most
// of which are only answers ("not ready", "not my memory"). Up to HIP 6 what it keeps is the result
// of the last call, whatever that was; from 7 on it is the last error, "not ready" being none. To
// take ours away is to take away the program's, if it has not asked yet: there is no way to put
// that back.
bool is_kept(Result result) {
  return result != Result::success && (result != Result::not_ready || version() < 70000000);
}

template <auto member>
struct Quiet;
template <class... Args, Result (*Functions::*member)(Args...)>
struct Quiet<member> {
  static Result call(Args... args) {
    const Result result = (functions().*member)(args...);
    if (is_kept(result)) (void)functions().get_last_error();
    return result;
  }
};
template <auto member>
constexpr auto ask = Quiet<member>::call;

void* pointer_to(DevicePointer address) { return reinterpret_cast<void*>(address); }

Result error_name(Result result, const char** text) {
  *text = functions().get_error_name(result);
  return Result::success;
}
Result error_text(Result result, const char** text) {
  *text = functions().get_error_string(result);
  return Result::success;
}

// --- Devices and what stands for contexts ---

// A context stands for a device, and is never destroyed. Its id is none that CUDA would count to:
// tables by ids serve both.
constexpr unsigned long long kContextIds = 1ULL << 62;

Context context_of(Device device) {
  return reinterpret_cast<Context>(static_cast<std::uintptr_t>(device) + 1);
}
Device device_of(Context context) {
  return static_cast<Device>(reinterpret_cast<std::uintptr_t>(context)) - 1;
}

// HIP does not tell whether it is initialised, nor which devices the program uses: it makes all
// ready at the first question. So it counts as initialised once we had to ask it something, and a
// device as used once memory of it has turned up.
std::atomic<bool> initialised{false};
std::atomic<std::uint64_t> devices_used{0};

void note_used(Device device) {
  if (device >= 0 && device < 64)
    devices_used.fetch_or(std::uint64_t{1} << device, std::memory_order_relaxed);
}
bool is_used(Device device) {
  return device >= 0 && device < 64 &&
         (devices_used.load(std::memory_order_relaxed) >> device & 1) != 0;
}

Result init(unsigned flags) {
  initialised.store(true, std::memory_order_relaxed);
  return ask<&Functions::init>(flags);
}

Result get_count(int* count) {
  if (!initialised.load(std::memory_order_relaxed)) return Result::not_initialized;
  return ask<&Functions::device_get_count>(count);
}

// HIP counts these attributes from 0.
Result get_p2p_attribute(int* value, cuda::P2pAttribute attribute, Device from, Device to) {
  return ask<&Functions::device_get_p2p_attribute>(value, static_cast<int>(attribute) - 1, from,
                                                   to);
}

Result retain(Context* context, Device device) {
  note_used(device);
  *context = context_of(device);
  return Result::success;
}
Result release(Device) { return Result::success; }
Result get_state(Device device, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = is_used(device) ? 1 : 0;
  return Result::success;
}

// What the thread had current before each push that is not popped yet.
struct Before {
  std::array<Device, 16> devices;
  std::size_t depth;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Before before{};

Result push(Context context) {
  if (before.depth == before.devices.size()) return Result::out_of_memory;
  Device& device = before.devices[before.depth];
  Result result = ask<&Functions::context_get_device>(&device);
  if (result == Result::success) result = ask<&Functions::set_device>(device_of(context));
  if (result == Result::success) ++before.depth;
  return result;
}
Result pop(Context* context) {
  if (before.depth == 0) return Result::invalid_context;
  Device device = 0;
  const Result result = ask<&Functions::context_get_device>(&device);
  *context = result == Result::success ? context_of(device) : nullptr;
  return ask<&Functions::set_device>(before.devices[--before.depth]);
}

// Every thread has a device current, used or not.
Result get_current(Context* context) {
  *context = nullptr;
  if (devices_used.load(std::memory_order_relaxed) == 0) return Result::success;
  Device device = -1;
  const Result result = ask<&Functions::context_get_device>(&device);
  if (result == Result::success && is_used(device)) *context = context_of(device);
  return result;
}
Result get_id(Context context, unsigned long long* id) {
  *id = kContextIds + static_cast<unsigned>(device_of(context));
  return Result::success;
}
Result enable_peer_access(Context peer, unsigned flags) {
  return ask<&Functions::context_enable_peer_access>(device_of(peer), flags);
}

// --- What a pointer is ---

bool has_devices() {
  static const bool has = [] {
    int count = 0;
    return init(0) == Result::success && get_count(&count) == Result::success && count > 0;
  }();
  return has;
}

// HIP 6 has numbered the kinds of memory anew.
MemoryType type_of(const PointerFacts& facts) {
  const bool old_numbers = version() != 0 && version() < 60000000;
  const unsigned type = facts.type + (old_numbers ? 1 : 0);
  return type == 0 ? MemoryType::none : type == 1 ? MemoryType::host : MemoryType::device;
}

// Where HIP fails, the pointer is taken for a device's of which nothing else is known: HIP copies
// host memory too, whereas the host MPI must not touch device memory.
class Pointer {
 public:
  explicit Pointer(DevicePointer address) : address_(pointer_to(address)) {
    if (!has_devices()) return;
    const Result result = ask<&Functions::pointer_get_attributes>(&facts_, address_);
    if (result == Result::success) {
      type_ = type_of(facts_);
    } else if (result != Result::invalid_value &&  // which is what HIP 5 says of host memory
               result != Result::deinitialized && result != Result::not_initialized &&
               result != Result::no_device) {  // at exit there is no device memory any more
      facts_ = {};
      type_ = MemoryType::device;
    }
    if (type_ == MemoryType::device) note_used(facts_.device);
  }

  bool is_known() const { return type_ != MemoryType::none; }

  // Writes one attribute as wide as CUDA does; false where it does not apply.
  bool tell(PointerAttribute attribute, void* value) const {
    if (!is_known()) return false;
    switch (attribute) {
      case PointerAttribute::memory_type:
        return give(value, type_);
      case PointerAttribute::is_managed:
        return give(value, facts_.is_managed);
      case PointerAttribute::device_ordinal:
        return give(value, facts_.device);
      case PointerAttribute::context:
        return give(value, context_of(facts_.device));
      case PointerAttribute::device_pointer:
        return give(value, cuda::address_of(facts_.on_device));
      case PointerAttribute::access_flags:
        return give(value, cuda::kAccessReadWrite);
      case PointerAttribute::buffer_id:
        return tell_id(value);
      case PointerAttribute::range_start:
        return tell_range(value, nullptr);
      case PointerAttribute::range_size:
        return tell_range(nullptr, value);
      default:  // of pools and of the virtual memory functions
        return false;
    }
  }

 private:
  template <class Value>
  static bool give(void* to, Value value) {
    *static_cast<Value*>(to) = value;
    return true;
  }

  // HIP writes 32 bits.
  bool tell_id(void* value) const {
    unsigned id = 0;
    return ask<&Functions::pointer_get_attribute>(&id, PointerAttribute::buffer_id, address_) ==
               Result::success &&
           give(value, std::uint64_t{id});
  }

  // The attributes of the range would be told in 32 bits, too.
  bool tell_range(void* start, void* size_bytes) const {
    void* base = nullptr;
    std::size_t bytes = 0;
    if (ask<&Functions::get_address_range>(&base, &bytes, address_) != Result::success)
      return false;
    return start != nullptr ? give(start, base) : give(size_bytes, std::uint64_t{bytes});
  }

  void* const address_;
  PointerFacts facts_{};
  MemoryType type_ = MemoryType::none;
};

Result pointer_attribute(void* value, PointerAttribute attribute, DevicePointer address) {
  return Pointer(address).tell(attribute, value) ? Result::success : Result::invalid_value;
}

// What does not apply is left as it is, which the callers take for zero.
Result pointer_attributes(unsigned count, PointerAttribute* attributes, void** values,
                          DevicePointer address) {
  const Pointer pointer(address);
  for (unsigned i = 0; i < count; ++i) (void)pointer.tell(attributes[i], values[i]);
  return Result::success;
}

// --- Memory and copies ---

Result allocate(DevicePointer* address, std::size_t size_bytes) {
  Device device = -1;
  const Result result = ask<&Functions::memory_allocate>(address, size_bytes);
  if (result == Result::success && ask<&Functions::context_get_device>(&device) == Result::success)
    note_used(device);
  return result;
}

Result copy(DevicePointer dst, DevicePointer src, std::size_t size_bytes) {
  return ask<&Functions::copy>(pointer_to(dst), pointer_to(src), size_bytes, CopyKind::by_address);
}
Result copy_async(DevicePointer dst, DevicePointer src, std::size_t size_bytes, Stream stream) {
  return ask<&Functions::copy_async>(pointer_to(dst), pointer_to(src), size_bytes,
                                     CopyKind::by_address, stream);
}
Result copy_2d_async(const cuda::Copy2d* copy, Stream stream) {
  return ask<&Functions::copy_2d_async>(
      pointer_to(copy->dst_device), copy->dst_pitch_bytes, pointer_to(copy->src_device),
      copy->src_pitch_bytes, copy->width_bytes, copy->height, CopyKind::by_address, stream);
}

// The one flag that there is was 0 before it got CUDA's value, and HIP takes no other.
Result ipc_open(DevicePointer* address, cuda::IpcHandle handle, unsigned flags) {
  void* opened = nullptr;
  Result result = ask<&Functions::ipc_open_handle>(&opened, handle, flags);
  if (result == Result::invalid_value)
    result = ask<&Functions::ipc_open_handle>(&opened, handle, 0U);
  *address = cuda::address_of(opened);
  return result;
}

}  // namespace

Functions& functions() noexcept {
  static Functions& only = *new Functions;
  return only;
}

cuda::Driver make_driver() {
  cuda::Driver made;
#define HIP_TWIN(member, symbol, parameters) made.member = ask<&Functions::member>;
#define HIP_LIKE(member, symbol, parameters)
#define HIP_OWN(member, symbol, parameters)
#define HIP_TEXT(member, symbol)
#include "device/hip/driver.def"
#undef HIP_TWIN
#undef HIP_LIKE
#undef HIP_OWN
#undef HIP_TEXT
  made.get_error_name = error_name;
  made.get_error_string = error_text;
  made.init = init;
  made.device_get_count = get_count;
  made.device_get_p2p_attribute = get_p2p_attribute;
  made.primary_context_retain = retain;
  made.primary_context_release = release;
  made.primary_context_get_state = get_state;
  made.context_push = push;
  made.context_pop = pop;
  made.context_get_current = get_current;
  made.context_get_device = ask<&Functions::context_get_device>;
  made.context_get_id = get_id;
  made.context_enable_peer_access = enable_peer_access;
  made.pointer_get_attribute = pointer_attribute;
  made.pointer_get_attributes = pointer_attributes;
  made.memory_allocate = allocate;
  made.copy = copy;
  made.copy_async = copy_async;
  made.copy_2d_async = copy_2d_async;
  made.ipc_open_handle = ipc_open;
#define CUDA_FUNCTION(member, symbol, parameters) \
  if (made.member == nullptr) cuda::leave_out(made.member);
#include "device/cuda/driver.def"
#undef CUDA_FUNCTION
  return made;
}

}  // namespace accord::device::hip
