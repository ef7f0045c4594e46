// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "device/cuda/kernels.h"
#include "device/cuda/modules.h"
#include "device/reduce_functions.h"

namespace accord::device::cuda {
namespace {

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

Kernels& kernels() {
  static Kernels& loaded = *new Kernels(&KernelImages::reductions, "reductions");
  return loaded;
}

// The kernel for a reduction, in the current context.
Status find_function(const Driver& driver, Context context, const Reduction& reduction,
                     Function& function) {
  const Element element = arithmetic_element(reduction.op, reduction.element);
  const auto* const kernel = std::find_if(
      std::begin(kKernels), std::end(kKernels),
      [&](const Kernel& next) { return next.element == element && next.op == reduction.op; });
  return kernels().find(driver, context, kernel->name, function);
}

Status enter_for_reduction(const Driver& driver, Device device, const Reduction& reduction,
                           ContextScope& scope) {
  if (reduction.home != nullptr) {
    const Result result = scope.enter_owner(device, reduction.home);
    return status_of(driver, result, "reduce: context");
  }
  // Each is memory of one allocation, of which a byte tells enough.
  std::vector<ByteRange> bytes{{reduction.dst, reduction.dst}};
  for (void* copy : reduction.copies) bytes.push_back({copy, copy});
  for (const void* source : reduction.sources) bytes.push_back({source, source});
  return enter_for_kernel(driver, device, bytes, "reduce", scope);
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
  if (differing % kReduceVectorBytes == 0) choose_vectors(start, bytes, arguments);
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

Status check_chain(const Driver& driver, const Reduction& reduction) {
  if (reduction.sources.size() <= kReduceSourcesMax) return Status();
  const auto later = reduction.sources.subspan(kReduceSourcesMax);
  if (std::find(later.begin(), later.end(), reduction.dst) == later.end()) return Status();
  return Status(StatusCode::unsupported,
                fmt::format("{} reduce: dst is a source after the first {}", driver.runtime,
                            kReduceSourcesMax));
}

}  // namespace

bool can_reduce(const Driver& driver) {
  static std::atomic<const Driver*> known{nullptr};
  if (driver.images.reductions == nullptr) return false;
  if (known.load(std::memory_order_relaxed) == &driver) return true;
  ContextScope scope(driver);
  if (!scope.enter_any()) return false;
  if (!kernels().load(driver, scope.context()).ok()) return false;
  known.store(&driver, std::memory_order_relaxed);
  return true;
}

Status reduce_begin(const Driver& driver, Device device, const Reduction& reduction,
                    CopyTicket& ticket) {
  ticket.handle = nullptr;
  ACCORD_TRY(check_reduction(reduction));
  if (driver.images.reductions == nullptr) {
    return Status(StatusCode::unsupported,
                  fmt::format("{} reduce: the library was built without kernels", driver.runtime));
  }
  if (reduction.count == 0) return Status();
  ACCORD_TRY(check_chain(driver, reduction));
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
