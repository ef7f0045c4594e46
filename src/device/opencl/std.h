// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the headers that kernels share with the host take from the standard library, for compilers
// of C++ for OpenCL, which have none. The files beside this one lend it the names of its headers.
#pragma once

namespace std {

using int8_t = char;
using uint8_t = uchar;
using int16_t = short;
using uint16_t = ushort;
using int32_t = int;
using uint32_t = uint;
using int64_t = long;
using uint64_t = ulong;
using size_t = ::size_t;
using ptrdiff_t = ::ptrdiff_t;
using uintptr_t = ::uintptr_t;
enum class byte : unsigned char {};

inline void memcpy(void* to, const void* from, size_t size_bytes) {
  __builtin_memcpy(to, from, size_bytes);
}

template <class T>
class span {
 public:
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <bool choice, class First, class Second>
struct conditional {
  using type = First;
};
template <class First, class Second>
struct conditional<false, First, Second> {
  using type = Second;
};
template <bool choice, class First, class Second>
using conditional_t = typename conditional<choice, First, Second>::type;

template <class First, class Second>
constexpr bool is_same_v = false;
template <class T>
constexpr bool is_same_v<T, T> = true;

template <class T>
constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;

}  // namespace std

#define INT64_MIN (-0x7fffffffffffffffL - 1)

// Atomic accesses to memory of the device: clang itself declares those of generic addresses, which
// a compiler of SPIR-V may know for fewer types.
[[clang::overloadable]] ulong atomic_load_explicit(volatile __global atomic_ulong*, memory_order,
                                                   memory_scope);
[[clang::overloadable]] void atomic_store_explicit(volatile __global atomic_ulong*, ulong,
                                                   memory_order, memory_scope);
