// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The MPI functions a case calls, as tables of pointers: the *tested* table is what an unchanged
// program would call (so Accord, where it is loaded), the *oracle* table is the host MPI's own
// functions, found inside its shared object, so that a call through it never meets Accord. The same
// case runs once with each table.
#pragma once

#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace accord::conformance {

static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8);

// A count that fits whichever form of the function it is given to.
struct Count {
  std::int64_t value = 0;
  template <class T>
  requires std::is_integral_v<T>
  operator T() const {  // NOLINT: converting to the form's own type is its purpose
    return static_cast<T>(value);
  }
};

// Counts or displacements, as whatever array the form of the function takes. The arrays live as
// long as this object: an MPI call may read them until it is complete.
class Array {
 public:
  explicit Array(std::span<const std::int64_t> values)
      : narrow_(values.begin(), values.end()), wide_(values.begin(), values.end()) {
    narrow_.resize(values.size() + 1);  // never an empty array: data() must not be null
    wide_.resize(values.size() + 1);
  }

  std::size_t size() const { return narrow_.size() - 1; }

  template <class T>
  requires std::is_integral_v<T>
  const T* as() const {
    if constexpr (sizeof(T) == sizeof(int))
      return narrow_.data();
    else
      return reinterpret_cast<const T*>(wide_.data());
  }

 private:
  std::vector<int> narrow_;
  std::vector<std::int64_t> wide_;
};

// How an Array is passed.
struct ArrayRef {
  const Array* array = nullptr;
  template <class T>
  requires std::is_integral_v<T>
  operator const T*() const {  // NOLINT
    return array == nullptr ? nullptr : array->as<T>();
  }
};

using LargeUserFunction = void(void*, void*, MPI_Count*, MPI_Datatype*);

enum class Form { blocking, nonblocking, persistent };
const char* form_name(Form form);

template <class Small, class Large>
struct Counted {
  Small* small = nullptr;
  Large* large = nullptr;

  template <class... A>
  int operator()(bool use_large, A... arguments) const {
    return use_large ? large(arguments...) : small(arguments...);
  }
};

template <class F>
struct Forms;

template <class... A>
struct Forms<int(A...)> {
  using Nonblocking = int(A..., MPI_Request*);
  using Persistent = int(A..., MPI_Info, MPI_Request*);
};

// One collective in its six forms, and in Accord's partitioned one.
template <class Small, class Large>
struct Collective {
  Counted<Small, Large> blocking;
  Counted<typename Forms<Small>::Nonblocking, typename Forms<Large>::Nonblocking> nonblocking;
  Counted<typename Forms<Small>::Persistent, typename Forms<Large>::Persistent> persistent;
  void (*partitioned)() = nullptr;  // its type follows from that of the blocking form

  bool available(Form form, bool large) const {
    switch (form) {
      case Form::blocking:
        return large ? blocking.large != nullptr : blocking.small != nullptr;
      case Form::nonblocking:
        return large ? nonblocking.large != nullptr : nonblocking.small != nullptr;
      default:
        return large ? persistent.large != nullptr : persistent.small != nullptr;
    }
  }

  template <class... A>
  int call(Form form, bool large, MPI_Request* request, A... arguments) const {
    switch (form) {
      case Form::blocking:
        return blocking(large, arguments...);
      case Form::nonblocking:
        return nonblocking(large, arguments..., request);
      default:
        return persistent(large, arguments..., MPI_INFO_NULL, request);
    }
  }
};

#define PLAIN(name)
#define OPTIONAL(name, ...)
#define COUNTED(name, ...)             \
  template <class C, class D, class A> \
  using name##Signature = int(__VA_ARGS__);
#define COLLECTIVE(name, ...) COUNTED(name, __VA_ARGS__)
#include "api_functions.def"
#undef PLAIN
#undef COUNTED
#undef COLLECTIVE
#undef OPTIONAL

struct Api {
#define PLAIN(name) decltype(&MPI_##name) name = nullptr;
#define COUNTED(name, ...)                                                                      \
  Counted<name##Signature<int, int, MPI_Aint>, name##Signature<MPI_Count, MPI_Aint, MPI_Count>> \
      name;
#define COLLECTIVE(name, ...)                                                                      \
  Collective<name##Signature<int, int, MPI_Aint>, name##Signature<MPI_Count, MPI_Aint, MPI_Count>> \
      name;
#define OPTIONAL(name, ...) int (*name)(__VA_ARGS__) = nullptr;
#include "api_functions.def"
#undef PLAIN
#undef COUNTED
#undef COLLECTIVE
#undef OPTIONAL
};

struct ApiSet {
  Api oracle;                  // the host MPI itself
  Api tested;                  // MPI_X as the program sees it
  Api tested_pmpi;             // PMPI_X as the program sees it: Accord takes these too
  std::string host_library;    // path of the host MPI's shared object
  std::string tested_library;  // path of the object that MPI_Send comes from
};

// Fills the tables. Returns an empty string, or one sentence saying what is missing.
std::string load_api(ApiSet& set);

}  // namespace accord::conformance
