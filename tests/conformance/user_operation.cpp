// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "user_operation.h"

#include <atomic>
#include <cstring>

#include "exclusions.h"

namespace accord::conformance {
namespace {

// The types of the pass in progress: an operation gets only a handle and must know its layout.
// Atomic since a library may call an operation from a thread of its own.
std::atomic<const TypeFactory*> known_types{nullptr};
std::atomic<const char*> complaint{nullptr};

// An affine map x -> a x + b over integers modulo 2^n: composing them is associative and not
// commutative.
template <class T>
struct Affine {
  T a;
  T b;
};

template <class T>
Affine<T> compose(Affine<T> first, Affine<T> second) {
  return {static_cast<T>(second.a * first.a), static_cast<T>(second.a * first.b + second.b)};
}

template <class T>
Affine<T> add(Affine<T> first, Affine<T> second) {
  return {static_cast<T>(first.a + second.a), static_cast<T>(first.b ^ second.b)};
}

// One value that packs a map: `Half` is half as wide as the element.
template <class Half, bool kCompose>
void combine_packed(const std::byte* in, std::byte* inout) {
  Affine<Half> left;
  Affine<Half> right;
  std::memcpy(&left, in, sizeof left);
  std::memcpy(&right, inout, sizeof right);
  const Affine<Half> result = kCompose ? compose(left, right) : add(left, right);
  std::memcpy(inout, &result, sizeof result);
}

// Two elements of a derived type, `distance` bytes apart.
template <class T, bool kCompose>
void combine_pair(const std::byte* in, std::byte* inout, std::ptrdiff_t distance) {
  Affine<T> left;
  Affine<T> right;
  std::memcpy(&left.a, in, sizeof(T));
  std::memcpy(&left.b, in + distance, sizeof(T));
  std::memcpy(&right.a, inout, sizeof(T));
  std::memcpy(&right.b, inout + distance, sizeof(T));
  const Affine<T> result = kCompose ? compose(left, right) : add(left, right);
  std::memcpy(inout, &result.a, sizeof(T));
  std::memcpy(inout + distance, &result.b, sizeof(T));
}

// Element i = in[i] op inout[i], where `in` comes from the lower rank.
template <bool kCompose>
void combine(const void* in_void, void* inout_void, std::int64_t count, MPI_Datatype type) {
  const auto* in = static_cast<const std::byte*>(in_void);
  auto* inout = static_cast<std::byte*>(inout_void);
  if (type == MPI_UINT32_T || type == MPI_UINT64_T) {
    const std::ptrdiff_t step = type == MPI_UINT32_T ? 4 : 8;
    for (std::int64_t i = 0; i < count; ++i, in += step, inout += step) {
      if (step == 4)
        combine_packed<std::uint16_t, kCompose>(in, inout);
      else
        combine_packed<std::uint32_t, kCompose>(in, inout);
    }
    return;
  }
  const TypeFactory* types = known_types.load();
  const TypeModel* model = types == nullptr ? nullptr : types->find(type);
  if (model == nullptr) {
    complaint = "a user-defined operation was called with a datatype that is not the call's";
    return;
  }
  const std::ptrdiff_t distance = model->pieces[1].offset_bytes;
  for (std::int64_t i = 0; i < count;
       ++i, in += model->extent_bytes, inout += model->extent_bytes) {
    if (model->pieces[0].element->size_bytes == 4)
      combine_pair<std::uint32_t, kCompose>(in, inout, distance);
    else
      combine_pair<std::uint64_t, kCompose>(in, inout, distance);
  }
}

void compose_function(void* in, void* inout, int* count, MPI_Datatype* type) {
  combine<true>(in, inout, *count, *type);
}
void add_function(void* in, void* inout, int* count, MPI_Datatype* type) {
  combine<false>(in, inout, *count, *type);
}
void compose_large(void* in, void* inout, MPI_Count* count, MPI_Datatype* type) {
  combine<true>(in, inout, *count, *type);
}
void add_large(void* in, void* inout, MPI_Count* count, MPI_Datatype* type) {
  combine<false>(in, inout, *count, *type);
}

const Element* element_of(const Run& run, MPI_Datatype handle) {
  for (const Element& element : run.elements())
    if (element.handle == handle) return &element;
  throw Skip{"no unsigned integer types of fixed width"};
}

}  // namespace

UserReduction make_user_reduction(Run& run) {
  Rng& rng = run.global;
  const bool wide = rng.chance(50);
  const bool commutes = rng.chance(40);
  const bool large = rng.chance(30) && run.oracle_api().Op_create_c != nullptr;
  const int layout = rng.below(4);
  const int gap = rng.between(1, 3);
  const int trailing =
      works(run, "user operations on types with a trailing gap") ? rng.below(3) : 0;
  const bool large_type = rng.chance(30) && run.oracle_api().Type_contiguous.large != nullptr;

  UserReduction result;
  const Element& element = *element_of(run, wide ? MPI_UINT64_T : MPI_UINT32_T);
  result.type = layout < 2
                    ? run.types.predefined(element)
                    : run.types.gapped_pair(element, layout == 2 ? 0 : gap, trailing, large_type);
  result.name = commutes ? "user op (commutative)" : "user op (not commutative)";
  if (large)
    run.check(
        run.api().Op_create_c(commutes ? add_large : compose_large, commutes ? 1 : 0, &result.op),
        "Op_create_c");
  else
    run.check(run.api().Op_create(commutes ? add_function : compose_function, commutes ? 1 : 0,
                                  &result.op),
              "Op_create");
  run.adopt(result.op);
  known_types = &run.types;
  return result;
}

std::string take_user_operation_error() {
  const char* text = complaint.exchange(nullptr);
  known_types = nullptr;
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace accord::conformance
