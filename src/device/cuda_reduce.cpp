// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "base/log.h"
#include "device/cuda_copy.h"
#include "device/cuda_kernels.h"
#include "device/reduce_functions.h"

#ifdef ACCORD_CUDA_KERNELS
extern "C" const unsigned char accord_cuda_kernels[];  // cuda_kernels.S
#endif

namespace accord::device::cuda {
namespace {

#ifdef ACCORD_CUDA_KERNELS
constexpr bool kBuiltIn = true;
constexpr const void* kImage = accord_cuda_kernels;
#else
constexpr bool kBuiltIn = false;
constexpr const void* kImage = nullptr;
#endif

// Blocks of a launch at most. More do not make the links faster: on 4 x H200, reading from three
// peers, 64 blocks move 325 GB/s and 132 of them 309; and they keep the program's kernels waiting.
constexpr std::uint64_t kBlocksMax = 64;

struct Kernel {
  Element element;
  ReduceOp op;
  const char* name;
};

constexpr Kernel kKernels[] = {
#define ACCORD_KERNEL(element, type, op) \
  {Element::element, ReduceOp::op, "accord_reduce_" #element "_" #op},
    ACCORD_REDUCTIONS(ACCORD_KERNEL) ACCORD_ODD_REDUCTIONS(ACCORD_KERNEL)
#undef ACCORD_KERNEL
};

// The kernels in one context. What failed once is not tried again.
struct LoadedKernels {
  Module module = nullptr;
  Status failure;
  std::array<Function, std::size(kKernels)> functions{};
};

// Never destroyed, nor unloaded: at exit the driver may be gone before us. By the id of the
// context, since a new one may have the handle of one that was destroyed, and took its module
// along.
struct LoadedModules {
  std::mutex mutex;
  std::map<unsigned long long, LoadedKernels> contexts;
};

LoadedModules& loaded_modules() {
  static LoadedModules& modules = *new LoadedModules;
  return modules;
}

// That the driver does not take the kernels is no error of the device: there are other ways.
Status unsupported(const Status& status) {
  if (status.ok() || status.code() == StatusCode::no_memory) return status;
  return Status(StatusCode::unsupported, status.message());
}

// Loads the kernels into the current context. The caller holds the mutex.
Status load(const Driver& driver, Context context, LoadedKernels*& kernels) {
  unsigned long long id = 0;
  ACCORD_TRY(status_of(driver, driver.context_get_id(context, &id), symbol::context_get_id));
  kernels = &loaded_modules().contexts[id];
  if (kernels->module != nullptr) return Status();
  ACCORD_TRY(kernels->failure);
  const Status status = unsupported(status_of(
      driver, driver.module_load_data(&kernels->module, kImage), symbol::module_load_data));
  if (!status.ok()) kernels->module = nullptr;
  if (status.code() == StatusCode::unsupported) {
    kernels->failure = status;
    log::info("no reductions on this device: {}", status.message());
  }
  return status;
}

// The kernel for a reduction, in the current context.
Status find_function(const Driver& driver, Context context, const Reduction& reduction,
                     Function& function) {
  const Element element = arithmetic_element(reduction.op, reduction.element);
  const auto* const kernel = std::find_if(
      std::begin(kKernels), std::end(kKernels),
      [&](const Kernel& next) { return next.element == element && next.op == reduction.op; });
  const std::lock_guard lock(loaded_modules().mutex);
  LoadedKernels* kernels = nullptr;
  ACCORD_TRY(load(driver, context, kernels));
  Function& found = kernels->functions[static_cast<std::size_t>(kernel - std::begin(kKernels))];
  if (found == nullptr) {
    ACCORD_TRY(unsupported(status_of(
        driver, driver.module_get_function(&found, kernels->module, kernel->name), kernel->name)));
  }
  function = found;
  return Status();
}

// Where a pointer's bytes are, as far as a kernel is concerned.
struct Place {
  const void* pointer = nullptr;
  MemoryType type = MemoryType::none;
  bool managed = false;
  Context context = nullptr;  // null: none in particular, as for memory of pools
  Device device = -1;

  // Host memory that the driver knows, and managed memory: every context can address it.
  bool everywhere() const { return managed || type == MemoryType::host; }
};

Status find_place(const Driver& driver, const void* pointer, Place& place) {
  std::uint64_t managed = 0;
  std::int64_t ordinal = 0;
  place.pointer = pointer;
  PointerAttribute attributes[] = {PointerAttribute::memory_type, PointerAttribute::is_managed,
                                   PointerAttribute::context, PointerAttribute::device_ordinal};
  void* values[] = {&place.type, &managed, static_cast<void*>(&place.context), &ordinal};
  const Result result =
      driver.pointer_get_attributes(std::size(attributes), attributes, values, address_of(pointer));
  if (result != Result::success || place.type == MemoryType::none) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("cuda reduce: {} is no memory of this runtime", pointer));
  }
  place.managed = managed != 0;
  place.device = static_cast<std::int32_t>(ordinal);
  return Status();
}

// Makes sure that kernels of the entered context can address the place. One that cannot would
// fault, and take the program's context with it.
Status check_reachable(const Driver& driver, Device device, Context context, const Place& place) {
  if (place.everywhere() || place.context == context) return Status();
  if (place.context == nullptr && place.device == device) return Status();
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
  return Status(StatusCode::unsupported, fmt::format("cuda reduce: {}: {}", place.pointer, reason));
}

// Enters the context on the device that owns one of the buffers: only there can kernels address it.
Status enter_for_reduction(const Driver& driver, Device device, const Reduction& reduction,
                           ContextScope& scope) {
  if (reduction.home != nullptr) {
    const Result result = scope.enter_owner(device, reduction.home);
    return status_of(driver, result, "reduce: context");
  }
  std::vector<const void*> pointers{reduction.dst};
  pointers.insert(pointers.end(), reduction.copies.begin(), reduction.copies.end());
  pointers.insert(pointers.end(), reduction.sources.begin(), reduction.sources.end());
  std::vector<Place> places(pointers.size());
  for (std::size_t i = 0; i < pointers.size(); ++i)
    ACCORD_TRY(find_place(driver, pointers[i], places[i]));
  const auto home = std::find_if(places.begin(), places.end(), [&](const Place& place) {
    return !place.everywhere() && place.device == device && place.context != nullptr;
  });
  const Result result = home != places.end() ? scope.enter(home->context)
                                             : scope.enter_current_or_owner(device, nullptr);
  ACCORD_TRY(status_of(driver, result, "reduce: context"));
  for (const Place& place : places) {
    ACCORD_TRY(check_reachable(driver, device, scope.context(), place));
  }
  return Status();
}

// Decides how the bytes are moved, from the addresses.
void choose_access(Element element, ReduceArguments& arguments) {
  const std::size_t bytes = element_bytes(element);
  const auto start = reinterpret_cast<std::uintptr_t>(arguments.targets[0]);
  std::uintptr_t any = start;    // bits that are set in any of the addresses
  std::uintptr_t differing = 0;  // bits that they do not have in common
  const auto look_at = [&](const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    any |= address;
    differing |= address ^ start;
  };
  std::for_each_n(arguments.sources, arguments.source_count, look_at);
  std::for_each_n(arguments.targets, arguments.target_count, look_at);
  arguments.aligned = any % element_alignment(element) == 0 ? 1 : 0;
  arguments.head = arguments.count;
  arguments.vectors = 0;
  const std::size_t head_bytes = (0 - start) % kReduceVectorBytes;
  if (kReduceVectorBytes % bytes != 0) return;
  if (differing % kReduceVectorBytes != 0 || head_bytes % bytes != 0) return;
  arguments.head = std::min<std::uint64_t>(arguments.count, head_bytes / bytes);
  arguments.vectors = (arguments.count - arguments.head) * bytes / kReduceVectorBytes;
}

Status launch(const Driver& driver, Function function, ReduceArguments& arguments, Stream stream) {
  constexpr std::uint64_t kUnits = kReduceThreads * kReduceLoadsInFlight;
  const std::uint64_t units = arguments.vectors > 0 ? arguments.vectors : arguments.count;
  const std::uint64_t blocks = (units + kUnits - 1) / kUnits;
  void* parameters[] = {&arguments};
  return status_of(
      driver,
      driver.launch_kernel(function, static_cast<unsigned>(std::min(blocks, kBlocksMax)), 1, 1,
                           kReduceThreads, 1, 1, 0, stream, parameters, nullptr),
      symbol::launch_kernel);
}

// One launch, or a chain of them that carries the result in dst: the stream keeps their order. The
// last one stores the copies, or the first of them where there are too many for one launch.
Status enqueue_reduction(const Driver& driver, Function function, const Reduction& reduction,
                         Stream stream) {
  auto left = reduction.sources;
  auto copies = reduction.copies;
  ReduceArguments arguments{};
  arguments.count = reduction.count;
  arguments.targets[0] = reduction.dst;
  while (!left.empty() || !copies.empty()) {
    std::size_t used = 0;
    if (left.size() < reduction.sources.size()) arguments.sources[used++] = reduction.dst;
    const std::size_t taken = std::min(left.size(), kReduceSourcesMax - used);
    std::copy_n(left.begin(), taken, arguments.sources + used);
    arguments.source_count = static_cast<std::uint32_t>(used + taken);
    left = left.subspan(taken);
    const std::size_t stored =
        left.empty() ? std::min<std::size_t>(copies.size(), kReduceTargetsMax - 1) : 0;
    std::copy_n(copies.begin(), stored, arguments.targets + 1);
    arguments.target_count = static_cast<std::uint32_t>(1 + stored);
    copies = copies.subspan(stored);
    choose_access(reduction.element, arguments);
    ACCORD_TRY(launch(driver, function, arguments, stream));
  }
  return Status();
}

Status check_chain(const Reduction& reduction) {
  if (reduction.sources.size() <= kReduceSourcesMax) return Status();
  const auto later = reduction.sources.subspan(kReduceSourcesMax);
  if (std::find(later.begin(), later.end(), reduction.dst) == later.end()) return Status();
  return Status(StatusCode::unsupported,
                fmt::format("cuda reduce: dst is a source after the first {}", kReduceSourcesMax));
}

}  // namespace

bool can_reduce(const Driver& driver) {
  static std::atomic<bool> known{false};
  if (!kBuiltIn) return false;
  if (known.load(std::memory_order_relaxed)) return true;
  ContextScope scope(driver);
  if (!scope.enter_any()) return false;
  const std::lock_guard lock(loaded_modules().mutex);
  LoadedKernels* kernels = nullptr;
  if (!load(driver, scope.context(), kernels).ok()) return false;
  known.store(true, std::memory_order_relaxed);
  return true;
}

Status reduce_begin(const Driver& driver, Device device, const Reduction& reduction,
                    CopyTicket& ticket) {
  ticket.handle = nullptr;
  ACCORD_TRY(check_reduction(reduction));
  if (!kBuiltIn) {
    return Status(StatusCode::unsupported, "cuda reduce: the library was built without nvcc");
  }
  if (reduction.count == 0) return Status();
  ACCORD_TRY(check_chain(reduction));
  ContextScope scope(driver);
  ACCORD_TRY(enter_for_reduction(driver, device, reduction, scope));
  Function function = nullptr;
  ACCORD_TRY(find_function(driver, scope.context(), reduction, function));
  const auto enqueue = [&](Stream stream) {
    return enqueue_reduction(driver, function, reduction, stream);
  };
  return begin_work(driver, scope, enqueue, ticket);
}

}  // namespace accord::device::cuda
