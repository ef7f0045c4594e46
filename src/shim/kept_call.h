// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a non-blocking collective has been told, for as long as it waits for its turn: with copies
// of its arrays (counts, displacements, types). Programs have to leave these alone until it is
// complete (MPI 4.1, 6.12), but host MPIs read them at once, and mpi4py 4.1 gives their memory back
// as early.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "shim/neighbor_exchanges.h"
#include "shim/shapes.h"

namespace accord::shim {

// How long its arrays are at this rank; 0 where they do not count, and may be anything.
struct ArrayLengths {
  std::size_t sent = 0;
  std::size_t received = 0;
};

template <class Shape>
ArrayLengths array_lengths(const Shape& call, const CommState& state) {
  const auto ranks = static_cast<std::size_t>(state.remote_size);
  if constexpr (AmongNeighbours<Shape>) {
    const Neighbours neighbours(call.comm);
    return {static_cast<std::size_t>(neighbours.out_count()),
            static_cast<std::size_t>(neighbours.in_count())};
  } else if constexpr (requires { call.op; }) {
    return {0, static_cast<std::size_t>(state.size)};  // its own group shares the result out
  } else if constexpr (requires { call.root; }) {
    return shape::Rooted(state, call.root).is_root ? ArrayLengths{ranks, ranks} : ArrayLengths{};
  } else {
    return {shape::in_place(shape::send_pointer(call)) ? 0 : ranks, ranks};
  }
}

template <class Shape>
concept HasArrays = requires(const Shape& call) {
  call.recvcounts;
}
|| requires(const Shape& call) { call.sendcounts; };

// The host MPI may look at the arrays it gets until the call is complete: to be kept as long. What
// was one array stays one, since MPICH 5.0 tells by that whether blocks are sent from where others
// are received.
template <class Shape>
class KeptCall {
 public:
  KeptCall(const Shape& call, const CommState& state) : call_(call) {
    if constexpr (HasArrays<Shape>) {
      const ArrayLengths lengths = array_lengths(call, state);
      if constexpr (requires { call_.sendcounts; }) keep(call_.sendcounts, lengths.sent);
      if constexpr (requires { call_.sdispls; }) keep(call_.sdispls, lengths.sent);
      if constexpr (requires { call_.sendtypes; }) keep(call_.sendtypes, lengths.sent);
      if constexpr (requires { call_.recvcounts; }) keep(call_.recvcounts, lengths.received);
      if constexpr (requires { call_.rdispls; }) keep(call_.rdispls, lengths.received);
      if constexpr (requires { call_.recvtypes; }) keep(call_.recvtypes, lengths.received);
      // Of the blocks of the one side that has several.
      if constexpr (requires {
                      call_.displs;
                      call_.sendcounts;
                    })
        keep(call_.displs, lengths.sent);
      else if constexpr (requires { call_.displs; })
        keep(call_.displs, lengths.received);
    }
  }

  const Shape& operator*() const noexcept { return call_; }

 private:
  template <class T>
  void keep(const T*& array, std::size_t length) {
    if (array == nullptr || length == 0) return;
    const std::size_t size_bytes = length * sizeof(T);
    for (const Copy& copy : copies_) {
      if (copy.of != array || copy.size_bytes != size_bytes) continue;
      array = static_cast<const T*>(copy.data.get());
      return;
    }
    const auto copy = std::make_shared<const std::vector<T>>(array, array + length);
    copies_.push_back({array, size_bytes, std::shared_ptr<const void>(copy, copy->data())});
    array = copy->data();
  }

  struct Copy {
    const void* of;
    std::size_t size_bytes;
    std::shared_ptr<const void> data;
  };
  Shape call_;
  std::vector<Copy> copies_;
};

}  // namespace accord::shim
