// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages and collectives: late, standard sends synchronous, collectives behind a barrier, and
// what they begin known to completion.cpp. The linker asks a function of each name for what to call
// (ifunc), so that no parameter is written anew.
#include <tuple>
#include <type_traits>

#include "adversary.h"
#include "host_mpi.h"  // which functions this MPI declares

namespace accord::adversary {
namespace {

constexpr int kNone = 0;

enum class Kind {
  local,
  blocking,
  collective,
  receiving,
  nonblocking,
  receiving_later,
  persistent
};

constexpr bool begins(Kind kind) {
  return kind == Kind::nonblocking || kind == Kind::receiving_later;
}
constexpr bool receives(Kind kind) {
  return kind == Kind::receiving || kind == Kind::receiving_later;
}

bool is_synchronous() {
  const Often often = settings().synchronous_sends;
  if (often == Often::never || (often == Often::half && percent(50))) return false;
  counts().sends.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Collectives may synchronise, so that this is one.
void synchronise(MPI_Comm comm) {
  if (!settings().synchronous_collectives || comm == MPI_COMM_NULL) return;
  counts().barriers.fetch_add(1, std::memory_order_relaxed);
  (void)REAL(Barrier)(comm);
}

template <class Name, class Twin>
typename Name::Function choose() {
  if constexpr (!std::is_same_v<Name, Twin>) {
    if (is_synchronous()) {
      static const auto twin = real_function<typename Name::Function>(Twin::real_text);
      return twin;
    }
  }
  static const auto own = real_function<typename Name::Function>(Name::real_text);
  return own;
}

template <Kind kind, int comm_at, class Name, class Twin, class Function>
struct Call;

template <Kind kind, int comm_at, class Name, class Twin, class... A>
struct Call<kind, comm_at, Name, Twin, int (*)(A...)> {
  static MPI_Comm comm_of(const std::tuple<A...>& all) {
    if constexpr (comm_at == kNone) {
      return MPI_COMM_NULL;
    } else {
      return std::get<sizeof...(A) - comm_at>(all);
    }
  }

  static int call(A... arguments) {
    const std::tuple<A...> all(arguments...);
    const MPI_Comm comm = comm_of(all);
    linger();
    if constexpr (kind == Kind::collective) synchronise(comm);
    if constexpr (receives(kind)) take_message(comm);
    const int code = choose<Name, Twin>()(arguments...);
    if constexpr (kind == Kind::local) {
      return fault_is_due(Name::text, Asked::by_name) ? fail(comm, Name::text) : code;
    } else if constexpr (begins(kind)) {
      begin_if(code, std::get<sizeof...(A) - 1>(all), comm, Name::text);
      linger();
    } else if constexpr (kind == Kind::persistent) {
      if (code == MPI_SUCCESS) remember(*std::get<sizeof...(A) - 1>(all), comm);
    } else {
      return end_call(code, comm, Name::text);
    }
    return code;
  }
};

}  // namespace
}  // namespace accord::adversary

#define NAMED(name)                                         \
  struct name##_name {                                      \
    static constexpr const char* text = #name;              \
    static constexpr const char* real_text = "PMPI_" #name; \
    using Function = decltype(&::PMPI_##name);              \
  };
#define EXPORT(name, twin, kind, comm_at)                                                         \
  namespace accord::adversary {                                                                   \
  namespace {                                                                                     \
  NAMED(name)                                                                                     \
  using name##_call = Call<Kind::kind, comm_at, name##_name, twin##_name, name##_name::Function>; \
  }                                                                                               \
  }                                                                                               \
  extern "C" decltype(&::PMPI_##name) accord_adversary_find_##name() {                            \
    return &accord::adversary::name##_call::call;                                                 \
  }                                                                                               \
  extern "C" __attribute__((ifunc("accord_adversary_find_" #name),                                \
                            visibility("default"))) decltype(::PMPI_##name) PMPI_##name;

// EXPORT of what the header declares.
#define PLACE_1 0,
#define SECOND(first, second, ...) second
#define IS_SET_OF(place) SECOND(place 1, 0, 0)
#define IS_SET_AS(value) IS_SET_OF(PLACE_##value)
#define IS_SET(macro) IS_SET_AS(macro)
#define JOIN_AS(left, right) left##right
#define JOIN(left, right) JOIN_AS(left, right)
#define EXPORT_IF_1(name, twin, kind, comm_at) EXPORT(name, twin, kind, comm_at)
#define EXPORT_IF_0(name, twin, kind, comm_at)
#define EXPORT_BOTH(name, twin, kind, comm_at) \
  JOIN(EXPORT_IF_, IS_SET(ACCORD_HAS_##name))  \
  (name, twin, kind, comm_at)                  \
      JOIN(EXPORT_IF_, IS_SET(ACCORD_HAS_##name##_c))(name##_c, twin##_c, kind, comm_at)

#define LOCAL(name) EXPORT_BOTH(name, name, local, kNone)
#define BLOCKING(name, comm_at) EXPORT_BOTH(name, name, blocking, comm_at)
#define RECEIVING(name, comm_at) EXPORT_BOTH(name, name, receiving, comm_at)
#define NONBLOCKING(name, comm_at) EXPORT_BOTH(name, name, nonblocking, comm_at)
#define RECEIVING_LATER(name, comm_at) EXPORT_BOTH(name, name, receiving_later, comm_at)
#define PERSISTENT(name, comm_at) EXPORT_BOTH(name, name, persistent, comm_at)
#define COLLECTIVE(name, begun)             \
  EXPORT_BOTH(name, name, collective, 1)    \
  EXPORT_BOTH(begun, begun, nonblocking, 2) \
  EXPORT_BOTH(name##_init, name##_init, persistent, 3)
#define SEND(name, twin, kind, comm_at) EXPORT_BOTH(name, twin, kind, comm_at)
#include "functions.def"
