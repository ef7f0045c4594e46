// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a non-blocking collective is told in arrays (counts, displacements, types), for as long as
// it waits for its turn. Programs have to leave these alone until it is complete (MPI 4.1, 6.12),
// but host MPIs read them at once, and mpi4py 4.1 gives their memory back as early.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <vector>

#include "shim/shapes.h"
#include "shim/shim.h"

namespace accord::shim {

// A copy, shared by those of the call that holds it; where there is no length, the array itself.
template <class T>
class KeptArray {
 public:
  KeptArray(const T* given, std::size_t length) : given_(given) {
    if (given != nullptr && length != 0)
      copy_ = std::make_shared<const std::vector<T>>(given, given + length);
  }
  operator const T*() const noexcept { return copy_ ? copy_->data() : given_; }

 private:
  const T* given_;
  std::shared_ptr<const std::vector<T>> copy_;
};

// How many blocks of a communicator's ranks an array tells of at this one; 0: it is to be let be,
// as where it does not count and may be anything.
template <class Call>
std::size_t blocks_of_ranks(const Call& call) noexcept {
  const CommState* const state = comm_state(call.comm);
  if (state == nullptr) return 0;
  if constexpr (requires { call.root; }) {
    if (state->inter ? call.root != MPI_ROOT : call.root != state->rank) return 0;
  }
  // The one whose ranks share out what their own group has.
  constexpr bool is_of_own_group = requires { call.op; };
  return static_cast<std::size_t>(is_of_own_group ? state->size : state->remote_size);
}
template <class Call>
std::size_t sent_blocks(const Call& call) noexcept {
  if constexpr (!requires { call.root; }) {
    if (shape::in_place(call.sendbuf)) return 0;
  }
  return blocks_of_ranks(call);
}
template <class Call>
std::size_t received_blocks(const Call& call) noexcept {
  return blocks_of_ranks(call);
}

}  // namespace accord::shim
