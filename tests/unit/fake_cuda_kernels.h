// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The fake driver's modules: a launch of one of our kernels is done by the CPU, from the very
// arguments that the kernel would get. Refuses what would fault on a device: memory of another
// context, and vectors that are not aligned. The kernels' own code is only tested on a GPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "device/cuda/kernels.h"
#include "device/cuda/pack_kernels.h"
#include "device/cuda/partition_kernels.h"
#include "device/host/pack.h"
#include "device/reduce_functions.h"
#include "device/reduce_on_host.h"
#include "fake_cuda_state.h"

namespace accord::device::cuda {

constexpr auto kInvalidDevice = static_cast<Result>(101);
constexpr auto kNotFound = static_cast<Result>(500);
constexpr auto kIllegalAddress = static_cast<Result>(700);

struct ModuleHandle {
  Context context = nullptr;
  unsigned long long context_id = 0;
};

struct FunctionHandle {
  Context context = nullptr;
  unsigned long long context_id = 0;
  Element element = Element::none;
  ReduceOp op = ReduceOp::none;     // none: packing, or the resident kernel of inbox exchanges
  std::size_t pack_word_bytes = 0;  // 0: no packing
  bool of_partitions = false;       // without an operation: the one that marks
  bool pack_is_narrow = false;
  bool copies_list = false;
  bool of_direct_work = false;  // a resident kernel, too
};

// Ids of contexts: kernels of the first may use the memory of the second.
inline std::set<std::pair<unsigned long long, unsigned long long>>& peers =
    *new std::set<std::pair<unsigned long long, unsigned long long>>;

// As nvcc's fat binaries begin.
inline bool is_image(const void* image) {
  constexpr std::uint32_t kMagic = 0xba55ed50;
  std::uint32_t magic = 0;
  if (image == nullptr || reinterpret_cast<std::uintptr_t>(image) % 16 != 0) return false;
  std::memcpy(&magic, image, sizeof magic);
  return magic == kMagic;
}

inline Function find_kernel(const ModuleHandle& module, std::string_view name) {
#define FAKE_KERNEL(element, type, op)           \
  if (name == "accord_reduce_" #element "_" #op) \
    return new FunctionHandle{module.context, module.context_id, Element::element, ReduceOp::op};
  ACCORD_REDUCTIONS(FAKE_KERNEL)
  ACCORD_ODD_REDUCTIONS(FAKE_KERNEL)
#undef FAKE_KERNEL
#define FAKE_KERNEL(element, type, op)                                                         \
  if (name == "accord_partitions_" #element "_" #op) {                                         \
    auto* function =                                                                           \
        new FunctionHandle{module.context, module.context_id, Element::element, ReduceOp::op}; \
    function->of_partitions = true;                                                            \
    return function;                                                                           \
  }
  ACCORD_PARTITION_REDUCTIONS(FAKE_KERNEL)
#undef FAKE_KERNEL
  if (name == "accord_partitions_mark") {
    auto* function = new FunctionHandle{module.context, module.context_id};
    function->of_partitions = true;
    return function;
  }
  if (name == "accord_copy_list") {
    auto* function = new FunctionHandle{module.context, module.context_id};
    function->copies_list = true;
    return function;
  }
  if (name == "accord_direct") {
    auto* function = new FunctionHandle{module.context, module.context_id};
    function->of_direct_work = true;
    return function;
  }
  if (name == "accord_inbox") return new FunctionHandle{module.context, module.context_id};
  for (const std::size_t bytes : {1, 2, 4, 8, 16}) {
    for (const bool narrow : {true, false}) {
      if (name == "accord_pack_" + std::to_string(bytes) + (narrow ? "_narrow" : "_wide")) {
        auto* function = new FunctionHandle{module.context, module.context_id};
        function->pack_word_bytes = bytes;
        function->pack_is_narrow = narrow;
        return function;
      }
    }
  }
  return nullptr;
}

inline bool kernel_can_address(const void* pointer, std::size_t size_bytes, Context context) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto entry = find(address);
  if (entry == state.allocations.end()) return false;
  const Allocation& allocation = entry->second;
  if (address - entry->first + size_bytes > allocation.size_bytes) return false;
  if (allocation.managed || allocation.type == MemoryType::host) return true;
  if (allocation.context == nullptr) return can_access(allocation, context);
  return allocation.context == context || peers.contains({context->id, allocation.context->id});
}

inline Result check_arguments(const FunctionHandle& kernel, const ReduceArguments& arguments) {
  const std::size_t bytes = element_bytes(kernel.element);
  const std::uint64_t in_vectors = arguments.vectors * kReduceVectorBytes / bytes;
  if (arguments.source_count == 0 || arguments.source_count > kReduceSourcesMax ||
      arguments.target_count == 0 || arguments.target_count > kReduceTargetsMax ||
      arguments.head + in_vectors > arguments.count ||
      (arguments.vectors > 0 && kReduceVectorBytes % bytes != 0)) {
    return Result::invalid_value;
  }
  const auto check = [&](const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const bool fits =
        (arguments.aligned == 0 || address % element_alignment(kernel.element) == 0) &&
        (arguments.vectors == 0 || (address + arguments.head * bytes) % kReduceVectorBytes == 0);
    return fits && kernel_can_address(pointer, arguments.count * bytes, current());
  };
  const bool good =
      std::all_of(arguments.sources, arguments.sources + arguments.source_count, check) &&
      std::all_of(arguments.targets, arguments.targets + arguments.target_count, check);
  return good ? Result::success : kIllegalAddress;
}

// Word by word, as the kernel goes.
inline Result check_arguments(const FunctionHandle& kernel, const PackArguments& arguments) {
  const std::size_t bytes = kernel.pack_word_bytes;
  if (arguments.length_bytes % bytes != 0 || kernel.pack_is_narrow != pack_is_narrow(arguments))
    return Result::invalid_value;
  if (arguments.runs != nullptr &&
      !kernel_can_address(arguments.runs, arguments.run_count * sizeof(Run), current()))
    return kIllegalAddress;
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  for (std::uint64_t word = 0; word < arguments.length_bytes / bytes; ++word) {
    if (!locate_word<std::uint64_t>(arguments, bytes, word, dst, src)) continue;
    for (const void* pointer : {static_cast<const void*>(dst), static_cast<const void*>(src)}) {
      if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0 ||
          !kernel_can_address(pointer, bytes, current()))
        return kIllegalAddress;
    }
  }
  return Result::success;
}

inline Result check_copies(const ListedCopies& list, unsigned blocks) {
  if (list.blocks_each == 0 || blocks % list.blocks_each != 0 ||
      blocks / list.blocks_each > kListedCopiesMax)
    return Result::invalid_value;
  for (const ListedCopies::One& copy : std::span(list.copies, blocks / list.blocks_each)) {
    if (!kernel_can_address(copy.dst, copy.size_bytes, current()) ||
        !kernel_can_address(copy.src, copy.size_bytes, current()))
      return kIllegalAddress;
  }
  return Result::success;
}

inline void run_copies(const ListedCopies& list, unsigned blocks) {
  for (const ListedCopies::One& copy : std::span(list.copies, blocks / list.blocks_each))
    std::memcpy(copy.dst, copy.src, copy.size_bytes);
}

inline void run(const FunctionHandle& kernel, const PackArguments& arguments) {
  pack_on_host(arguments, kernel.pack_word_bytes, kernel.pack_is_narrow);
}

inline void run(const FunctionHandle& kernel, const ReduceArguments& arguments) {
  reduce_on_host({arguments.targets[0], std::span(arguments.sources, arguments.source_count),
                  arguments.count, kernel.op, kernel.element,
                  std::span(arguments.targets + 1, arguments.target_count - 1)});
}

}  // namespace accord::device::cuda
