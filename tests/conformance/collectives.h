// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Prepares one collective operation of any kind: draws types, counts, roots and layouts, makes the
// buffers and returns something that can be called in any form. Which operations are issued when is
// the cases' business.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "run.h"

namespace accord::conformance {

enum class Kind {
  barrier,
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  reduce,
  allreduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
};
const char* kind_name(Kind kind);
bool is_neighbour(Kind kind);
bool is_reduction(Kind kind);

// A collective call with its arguments bound. Empty on a process that is no member of the
// communicator.
struct Prepared {
  Kind kind = Kind::barrier;
  bool in_place = false;
  bool user_op = false;
  std::vector<Buffer*> buffers;
  std::vector<Stretch> stretches;
  std::function<int(Form form, bool large, MPI_Request* request)> call;
  std::function<int(MPI_Info info, MPI_Request* request)> partitioned;
};

// What a message is made of: `signature` is one unit, and all counts are in units.
struct Payload {
  std::vector<const Element*> signature;
  std::size_t unit_bytes = 0;
  bool aligned = true;      // false: buffers may start at any byte
  bool mixed = false;       // elements of several types
  bool plain = false;       // predefined types only
  bool unit_types = false;  // one element of every rank's type must be one unit
  bool apart = false;       // no columns: elements of a type do not lie between the next one's
};
Payload random_payload(Run& run);
// An element type that the host MPI moves correctly, also in derived types if asked.
const Element& random_element(Run& run, bool derived);

// A number of units, from the distribution that all cases share: nothing, one, few, odd, around the
// edges of the library's chunks, and now and then as much as allowed. `blocks` of them make up a
// buffer, or a partition of it.
std::int64_t random_units(Run& run, std::size_t unit_bytes, int blocks);
// ... of a payload, within what the host MPI can do.
std::int64_t random_units(Run& run, const Payload& payload, int blocks);

// One side of a data movement: `units[i]` units of each partition to or from peer i.
enum class Spread { one, equal, v, w };
struct Blocks {
  Buffer* buffer = nullptr;
  void* pointer = nullptr;
  Count count;  // one, equal
  MPI_Datatype type = MPI_DATATYPE_NULL;
  ArrayRef counts;                      // v, w
  ArrayRef displacements;               // v: in extents; w: in bytes
  const MPI_Datatype* types = nullptr;  // w
};
Blocks make_blocks(Run& run, const char* role, const Payload& payload,
                   std::span<const std::int64_t> units, Spread spread);

// What to prepare. `index` tells operations of one case apart; `form` is the one it will be called
// in.
struct CollectiveCall {
  Kind kind = Kind::barrier;
  Form form = Form::blocking;
  int index = 0;
};

// Throws Skip where the host MPI is known to fail at this call.
void require_call(const Run& run, const Comm& comm, Kind kind, Form form);
// Whether the host MPI can do it in place.
bool in_place_works(const Run& run, const CollectiveCall& call);

// Draws a kind that is legal on the communicator (`comm.inter`, neighbours).
Kind random_kind(Run& run, const Comm& comm, bool neighbours);

// Draws from run.global what all ranks must agree on.
Prepared prepare(Run& run, const Comm& comm, const CollectiveCall& call);

// Whether the host MPI has the call in this form. The same on all ranks, members or not.
bool available(const Run& run, Kind kind, Form form, bool large);

// An argument that is not significant on this rank: often a null pointer, sometimes an address that
// must not be touched with a count that does not fit it.
struct Unused {
  void* pointer = nullptr;
  Count count;
  MPI_Datatype type = MPI_BYTE;
};
Unused unused(Run& run);

// Parts of prepare(), one a file.
Prepared prepare_movement(Run& run, const Comm& comm, const CollectiveCall& call);
Prepared prepare_neighbour(Run& run, const Comm& comm, const CollectiveCall& call);
Prepared prepare_reduction(Run& run, const Comm& comm, const CollectiveCall& call);

// The counts of one partition.
ArrayRef counts_of_partition(Run& run, ArrayRef counts);

// A partitioned collective takes the arguments of the ordinary one, with the number of partitions
// before the first count, and counts of one partition.
template <class... P, class... A>
auto bind_partitioned(Run& run, int (*)(P...), void (*function)(), A... arguments) {
  constexpr bool kCounts[] = {(std::is_same_v<A, Count> || std::is_same_v<A, ArrayRef>)...};
  constexpr std::size_t kFirst =
      static_cast<std::size_t>(std::ranges::find(kCounts, true) - std::begin(kCounts));
  const int partitions = run.partitions();
  int arrays = 0;  // of counts, and of displacements, in turn
  const auto convert = [&]<class Parameter, class Argument>(std::type_identity<Parameter>,
                                                            Argument argument) {
    if constexpr (std::is_same_v<Argument, Count>) {
      return MPI_Count{argument.value / partitions};
    } else if constexpr (std::is_same_v<Argument, ArrayRef>) {
      const bool counts = arrays++ % 2 == 0;
      return static_cast<Parameter>(counts ? counts_of_partition(run, argument) : argument);
    } else {
      return static_cast<Parameter>(argument);
    }
  };
  const std::tuple all{convert(std::type_identity<P>(), arguments)...};
  return [=](MPI_Info info, MPI_Request* request) {
    return [&]<std::size_t... before, std::size_t... behind>(std::index_sequence<before...>,
                                                             std::index_sequence<behind...>) {
      const auto call = [function](auto... values) {
        return reinterpret_cast<int (*)(decltype(values)...)>(function)(values...);
      };
      return call(std::get<before>(all)..., partitions, std::get<kFirst + behind>(all)..., info,
                  request);
    }
    (std::make_index_sequence<kFirst>(), std::make_index_sequence<sizeof...(A) - kFirst>());
  };
}

// What the parts build their result with.
template <class S, class L, class... A>
Prepared bind(Run& run, Collective<S, L> Api::*entry, A... arguments) {
  Prepared prepared;
  const Collective<S, L>* function = &(run.api().*entry);
  if constexpr ((std::is_same_v<A, Count> || ...) || (std::is_same_v<A, ArrayRef> || ...))
    prepared.partitioned =
        bind_partitioned(run, static_cast<S*>(nullptr), function->partitioned, arguments...);
  prepared.call = [function, arguments...](Form form, bool large, MPI_Request* request) {
    return function->call(form, large, request, arguments...);
  };
  return prepared;
}

}  // namespace accord::conformance
