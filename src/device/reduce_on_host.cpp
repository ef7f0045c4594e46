// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/reduce_on_host.h"

#include <algorithm>
#include <cstring>

#include "device/direct_work.h"
#include "device/reduce_functions.h"

namespace accord::device {
namespace {

// Calculated in a block of the stack: that needs no alignment, lets dst be one of the sources and
// the compiler use vectors all the same.
constexpr std::size_t kBlockBytes = 4096;

template <ReduceOp op, class T>
void reduce(const Reduction& reduction) {
  constexpr std::size_t kBlock = kBlockBytes / sizeof(T);
  T result[kBlock];
  T next[kBlock];
  for (std::size_t start = 0; start < reduction.count; start += kBlock) {
    const std::size_t count = std::min(kBlock, reduction.count - start);
    const auto load = [&](T* block, const void* source) {
      std::memcpy(block, static_cast<const std::byte*>(source) + start * sizeof(T),
                  count * sizeof(T));
    };
    load(result, reduction.sources[0]);
    for (const void* source : reduction.sources.subspan(1)) {
      load(next, source);
      for (std::size_t i = 0; i < count; ++i) result[i] = combine<op>(result[i], next[i]);
    }
    const auto store = [&](void* dst) {
      std::memcpy(static_cast<std::byte*>(dst) + start * sizeof(T), result, count * sizeof(T));
    };
    store(reduction.dst);
    for (void* copy : reduction.copies) store(copy);
  }
}

}  // namespace

void reduce_on_host(const Reduction& reduction) {
  const Element element = arithmetic_element(reduction.op, reduction.element);
#define ACCORD_REDUCE(name, type, operation)                             \
  if (element == Element::name && reduction.op == ReduceOp::operation) { \
    return reduce<ReduceOp::operation, type>(reduction);                 \
  }
  ACCORD_REDUCTIONS(ACCORD_REDUCE)
  ACCORD_ODD_REDUCTIONS(ACCORD_REDUCE)
#undef ACCORD_REDUCE
}

void update_on_host(const DirectUpdate& update) {
  if (update.result != nullptr) std::memcpy(update.result, update.target, update.size_bytes);
  const bool differs = update.compare != nullptr &&
                       std::memcmp(update.target, update.compare, update.size_bytes) != 0;
  if (update.operand == nullptr || differs) return;
  if (update.op == ReduceOp::none) {
    std::memcpy(update.target, update.operand, update.size_bytes);
    return;
  }
  const void* const sources[] = {update.target, update.operand};
  reduce_on_host({.dst = update.target,
                  .sources = sources,
                  .count = update.size_bytes / element_bytes(update.element),
                  .op = update.op,
                  .element = update.element});
}

}  // namespace accord::device
