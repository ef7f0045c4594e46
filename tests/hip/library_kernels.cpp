// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Modules and launches of the stand-in: a kernel is done by the CPU, from the very arguments that
// it would get. The kernels' own code is not run.
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/cuda/kernels.h"
#include "device/cuda/pack_kernels.h"
#include "device/launched_inbox_kernels.h"
#include "device/pack.h"
#include "device/reduce_functions.h"
#include "device/reduce_on_host.h"
#include "library.h"
#include "library_inbox.h"

// NOLINTBEGIN(readability-identifier-naming): HIP's names
using namespace accord::test::hip;
using namespace accord::device::cuda;
using accord::device::Element;
using accord::device::PackArguments;
using accord::device::ReduceOp;

namespace accord::test::hip {

std::byte* address_in_kernel(const void* pointer, std::size_t size_bytes, Held& held) {
  const std::shared_ptr<Allocation> owner = find_allocation(pointer);
  if (owner == nullptr || address_on_device(*owner, pointer) != pointer) return nullptr;
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - owner->user);
  if (size_bytes > owner->size_bytes - offset) return nullptr;
  if (owner->kind == Kind::device && owner->device != current_device &&
      !state().peers.contains({current_device, owner->device}))
    return nullptr;
  return reach(pointer, size_bytes, held);
}

}  // namespace accord::test::hip

namespace accord::device::cuda {

struct ModuleHandle {
  int device = 0;
};

struct FunctionHandle {
  int device = 0;
  Element element = Element::none;
  ReduceOp op = ReduceOp::none;  // none: packing
  std::size_t pack_word_bytes = 0;
  bool pack_is_narrow = false;
  std::optional<accord::test::hip::InboxKernel> inbox = {};
};

}  // namespace accord::device::cuda

namespace {

// As clang's bundles begin.
bool is_image(const void* image) {
  constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
  return image != nullptr && std::memcmp(image, kMagic.data(), kMagic.size()) == 0;
}

bool find_kernel(std::string_view name, FunctionHandle& found) {
#define STAND_IN_KERNEL(wanted, type, operation)         \
  if (name == "accord_reduce_" #wanted "_" #operation) { \
    found.element = Element::wanted;                     \
    found.op = ReduceOp::operation;                      \
    return true;                                         \
  }
  ACCORD_REDUCTIONS(STAND_IN_KERNEL)
  ACCORD_ODD_REDUCTIONS(STAND_IN_KERNEL)
#undef STAND_IN_KERNEL
  if (InboxKernel inbox; find_inbox_kernel(name, inbox)) {
    found.inbox = inbox;
    return true;
  }
  for (const std::size_t bytes : {1, 2, 4, 8, 16}) {
    for (const bool narrow : {true, false}) {
      if (name != "accord_pack_" + std::to_string(bytes) + (narrow ? "_narrow" : "_wide")) continue;
      found.pack_word_bytes = bytes;
      found.pack_is_narrow = narrow;
      return true;
    }
  }
  return false;
}

Result reduce(const FunctionHandle& kernel, ReduceArguments arguments, Stream stream) {
  const std::size_t bytes = element_bytes(kernel.element);
  if (arguments.source_count == 0 || arguments.source_count > kReduceSourcesMax ||
      arguments.target_count == 0 || arguments.target_count > kReduceTargetsMax ||
      arguments.head + arguments.vectors * kReduceVectorBytes / bytes > arguments.count)
    return Result::invalid_value;
  Held held;
  bool good = true;
  const auto translate = [&](const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    std::byte* const there = address_in_kernel(pointer, arguments.count * bytes, held);
    good = good && there != nullptr &&
           (arguments.aligned == 0 || address % element_alignment(kernel.element) == 0) &&
           (arguments.vectors == 0 || (address + arguments.head * bytes) % kReduceVectorBytes == 0);
    return there;
  };
  for (const void*& source : std::span(arguments.sources, arguments.source_count))
    source = translate(source);
  for (void*& target : std::span(arguments.targets, arguments.target_count))
    target = translate(target);
  if (!good) return kIllegalAddress;
  return enqueue(stream, [=, kept = std::move(held)] {
    accord::device::reduce_on_host({arguments.targets[0],
                                    std::span(arguments.sources, arguments.source_count),
                                    arguments.count, kernel.op, kernel.element,
                                    std::span(arguments.targets + 1, arguments.target_count - 1)});
  });
}

// One side of the words that a kernel moves, which lie near each other.
class Side {
 public:
  std::byte* address(const void* pointer, std::size_t size_bytes, Held& held) {
    const auto* const byte = static_cast<const std::byte*>(pointer);
    if (owner_ == nullptr || byte < owner_->user ||
        byte + size_bytes > owner_->user + owner_->size_bytes) {
      if (address_in_kernel(pointer, size_bytes, held) == nullptr) return nullptr;
      owner_ = held.back();
    }
    return owner_->alias + (byte - owner_->user);
  }

 private:
  std::shared_ptr<Allocation> owner_;
};

struct Move {
  std::byte* dst;
  const std::byte* src;
};

// Word by word: the address that a layout counts from need not be in the allocation itself.
Result pack(const FunctionHandle& kernel, PackArguments arguments, Stream stream) {
  const std::size_t bytes = kernel.pack_word_bytes;
  if (arguments.length_bytes % bytes != 0 ||
      kernel.pack_is_narrow != accord::device::pack_is_narrow(arguments))
    return Result::invalid_value;
  Held held;
  if (arguments.runs != nullptr) {
    const std::size_t run_bytes = arguments.run_count * sizeof(accord::device::Run);
    arguments.runs = reinterpret_cast<const accord::device::Run*>(
        address_in_kernel(arguments.runs, run_bytes, held));
    if (arguments.runs == nullptr) return kIllegalAddress;
  }
  std::vector<Move> moves;
  Side to;
  Side from;
  for (std::uint64_t word = 0; word < arguments.length_bytes / bytes; ++word) {
    std::byte* dst = nullptr;
    const std::byte* src = nullptr;
    if (!accord::device::locate_word<std::uint64_t>(arguments, bytes, word, dst, src)) continue;
    const Move move{to.address(dst, bytes, held), from.address(src, bytes, held)};
    if (move.dst == nullptr || move.src == nullptr ||
        reinterpret_cast<std::uintptr_t>(move.dst) % bytes != 0 ||
        reinterpret_cast<std::uintptr_t>(move.src) % bytes != 0)
      return kIllegalAddress;
    moves.push_back(move);
  }
  return enqueue(stream, [bytes, all = std::move(moves), kept = std::move(held)] {
    for (const Move& move : all) std::memcpy(move.dst, move.src, bytes);
  });
}

}  // namespace

extern "C" {

Result hipModuleLoadData(Module* module, const void* image) {
  return api(__func__, [&] {
    if (!is_image(image)) return kNoBinary;
    const std::lock_guard lock(state().mutex);
    *module = new ModuleHandle{current_device};
    ++state().objects;
    return Result::success;
  });
}
Result hipModuleGetFunction(Function* function, Module module, const char* name) {
  return api(__func__, [&] {
    FunctionHandle found{.device = module->device};
    if (!find_kernel(name, found)) return kNotFound;
    *function = new FunctionHandle(found);
    return Result::success;
  });
}
Result hipModuleLaunchKernel(Function function, unsigned blocks, unsigned grid_y, unsigned grid_z,
                             unsigned threads, unsigned block_y, unsigned block_z, unsigned,
                             Stream stream, void** parameters, void** extra) {
  return api(__func__, [&] {
    const bool packs = function->op == ReduceOp::none;
    const unsigned wanted = function->inbox ? accord::device::launched::kInboxGroupThreads
                            : packs         ? kPackThreads
                                            : kReduceThreads;
    if (blocks == 0 || grid_y * grid_z * block_y * block_z != 1 || extra != nullptr ||
        threads != wanted || function->device != current_device)
      return Result::invalid_value;
    const std::lock_guard lock(state().mutex);
    if (function->inbox)
      return launch_inbox(*function->inbox, *static_cast<void**>(parameters[0]), stream);
    return packs ? pack(*function, *static_cast<const PackArguments*>(parameters[0]), stream)
                 : reduce(*function, *static_cast<const ReduceArguments*>(parameters[0]), stream);
  });
}

}  // extern "C"
// NOLINTEND
