// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Tells base/stages what an MPI call is, in MPI's words. Only asked where somebody listens.
#pragma once

#include <mpi.h>

#include <string>
#include <type_traits>

#include "shim/neighbor_exchanges.h"
#include "shim/uneven_exchanges.h"

namespace accord::shim {

// 262144 B float sum device in place, root 0, comm of 4, rank 0
struct CallWords {
  const Told& told;
  MPI_Op op = MPI_OP_NULL;
  bool in_place = false;
  int root = kNoRoot;
  const CommState* comm = nullptr;

  static constexpr int kNoRoot = -1;
};
std::string words_of(const CallWords& call);

// The name in the trace of the MPI function `mpi_name`: MPI_Allreduce is allreduce.
stages::Story begin_story(const char* mpi_name);

// Of a call that has no communicator's state at hand.
inline void tell(const stages::Story& story, const Description& d) {
  if (story) story->describe(words_of({.told = d.told}));
}

template <class Shape>
void tell(const stages::Story& story, const Shape& call, const Description& d,
          const CommState& state) {
  CallWords words{.told = d.told, .comm = &state};
  if constexpr (requires { call.op; }) words.op = call.op;
  if constexpr (requires { call.root; }) words.root = call.root;
  if constexpr (requires { call.sendbuf; }) {
    words.in_place = shape::in_place(call.sendbuf) || shape::in_place(call.recvbuf);
  }
  story->describe(words_of(words));
}

// Why a call cannot go through exchange regions whatever the ranks' buffers are; one of
// coll/select/reasons.h.
template <class Shape>
const char* why_no_exchange(const Shape& call, const CommState& state,
                            const std::optional<coll::CollArgs>& made) {
  namespace reason = coll::reason;
  if (made && made->exchange) return "";
  if (state.inter) return reason::kIntercommunicator;
  if (state.mixed_worlds) return reason::kNotOneWorld;
  if (state.size == 1) return reason::kOneRank;
  if constexpr (!std::is_same_v<decltype(pipeline_bytes(call)), std::size_t>) {
    return reason::kHostOnly;
  } else {
    if (!job.has_devices) return reason::kNoDevices;
    const auto sketch = outline(call, state);
    if (sketch && sketch->asked.for_host()) return reason::of(sketch->asked.origin);
    if constexpr (AmongNeighbours<Shape>) {
      if (sketch && sketch->asked.variant.library == nullptr) return reason::kHostOnly;
    }
    if (config().node_bytes == 0) return reason::kNodeOff;
    if constexpr (requires { call.op; }) {
      if (device_element(device_op(call.op), call.datatype,
                         static_cast<std::size_t>(size_of(call.datatype))) == device::Element::none)
        return reason::kOperation;
    }
    if constexpr (requires { overlaps(call, state.rank); }) return reason::kArguments;
    return pipeline_bytes(call) < config().node_bytes ? reason::kShort : reason::kArguments;
  }
}

}  // namespace accord::shim
