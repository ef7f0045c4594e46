// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions that the host MPI shall make in rank order (ACCORD_DETERMINISTIC), as kernels do: it
// only brings the contributions to the ranks that need a result, and each of those reduces them
// itself with MPI_Reduce_local, ((0 op 1) op 2) op ... That holds for operations of the user's,
// too, and for buffers on the host, since who has a device is not known to all.
#pragma once

#include <mpi.h>

#include <climits>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "shim/canonical.h"
#include "shim/shapes.h"

namespace accord::shim {

template <class Shape>
concept Reduction = requires(const Shape& call) {
  call.op;
};

struct RankOrderCall {
  enum class Gathering { all, to_root, blocks };
  Gathering gathering;
  // Of every rank's result where these differ, and else of all.
  std::vector<int> counts;
  int contributors;  // ranks [0, contributors) make this rank's result; 0: it gets none
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Comm comm;
  int rank;
  int root = 0;

  int own_count() const {
    return counts.size() == 1 ? counts[0] : counts[static_cast<std::size_t>(rank)];
  }
};

// One such call: its memory, what is gathered into it, and the reduction of that.
class RankOrderReduction {
 public:
  explicit RankOrderReduction(RankOrderCall call);
  ~RankOrderReduction();
  RankOrderReduction(const RankOrderReduction&) = delete;
  RankOrderReduction& operator=(const RankOrderReduction&) = delete;

  // Each takes the pointers that the reduction itself would.
  int block(const void* send, void* recv);
  int start(const void* send, void* recv, MPI_Request* request);
  int init(const void* send, void* recv, MPI_Request* request);
  // Once the contributions are here; again after each start of a persistent call.
  int reduce_into(void* recv);

 private:
  template <class Allgather, class Gather, class Alltoallv>
  int gather(const void* send, void* recv, Allgather allgather, Gather to_root,
             Alltoallv alltoallv);
  std::byte* contribution(int from) const {
    return origin_ + static_cast<std::ptrdiff_t>(from) * stride_bytes_;
  }
  void copy_elements(void* dst, const void* src) const;
  int make_memory();

  RankOrderCall call_;
  core::Segment result_;  // of this rank
  std::unique_ptr<std::byte[]> memory_;
  std::byte* origin_ = nullptr;  // what stands for the address of the first contribution
  std::ptrdiff_t stride_bytes_ = 0;
  // What a contribution is received as. Of a named type simply its elements; of another one type,
  // all of it and as long as the stride.
  int contribution_count_ = 0;
  MPI_Datatype contribution_type_ = MPI_DATATYPE_NULL;
  // Of the form in blocks.
  std::vector<int> send_displs_, recv_counts_, recv_displs_;
};

// Nothing where the host MPI shall have the call as it is, which all ranks decide alike: calls
// between two groups, counts beyond int, and wrong arguments, which it reports.

inline bool can_go_in_rank_order(MPI_Op op, MPI_Datatype datatype, const CommState& state) {
  if (!job.wants_rank_order || state.inter || state.size == 1) return false;
  if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP) return false;
  if (datatype == MPI_DATATYPE_NULL || !typemap(datatype)) return false;
  return canonical_op(op) == 0 || takes_operation(datatype, op);
}

// Whether a result can be written there.
inline bool holds_result(const void* recvbuf, MPI_Datatype datatype) {
  return recvbuf != MPI_IN_PLACE && (recvbuf != nullptr || !is_named(datatype));
}

template <class Call>
std::optional<RankOrderCall> rank_order_of(const Call& call, MPI_Count count, int contributors,
                                           RankOrderCall::Gathering gathering,
                                           const CommState& state) {
  if (!can_go_in_rank_order(call.op, call.datatype, state) || count <= 0 || count > INT_MAX)
    return std::nullopt;
  if (contributors > 0 && !holds_result(call.recvbuf, call.datatype)) return std::nullopt;
  return RankOrderCall{.gathering = gathering,
                       .counts = {static_cast<int>(count)},
                       .contributors = contributors,
                       .datatype = call.datatype,
                       .op = call.op,
                       .comm = call.comm,
                       .rank = state.rank};
}

template <class Shape>
std::optional<RankOrderCall> in_rank_order(const Shape&, const CommState&) {
  return std::nullopt;
}
template <class C>
std::optional<RankOrderCall> in_rank_order(const shape::Allreduce<C>& call,
                                           const CommState& state) {
  return rank_order_of(call, call.count, state.size, RankOrderCall::Gathering::all, state);
}
template <class C>
std::optional<RankOrderCall> in_rank_order(const shape::Scan<C>& call, const CommState& state) {
  return rank_order_of(call, call.count, state.rank + 1, RankOrderCall::Gathering::all, state);
}
template <class C>
std::optional<RankOrderCall> in_rank_order(const shape::Exscan<C>& call, const CommState& state) {
  return rank_order_of(call, call.count, state.rank, RankOrderCall::Gathering::all, state);
}
template <class C>
std::optional<RankOrderCall> in_rank_order(const shape::Reduce<C>& call, const CommState& state) {
  if (call.root < 0 || call.root >= state.size) return std::nullopt;
  if (call.root != state.rank && shape::in_place(call.sendbuf)) return std::nullopt;
  auto made = rank_order_of(call, call.count, state.rank == call.root ? state.size : 0,
                            RankOrderCall::Gathering::to_root, state);
  if (made) made->root = call.root;
  return made;
}
template <class C>
std::optional<RankOrderCall> in_rank_order(const shape::Reduce_scatter_block<C>& call,
                                           const CommState& state) {
  auto made =
      rank_order_of(call, call.recvcount, state.size, RankOrderCall::Gathering::blocks, state);
  if (!made || made->counts[0] > INT_MAX / state.size) return std::nullopt;
  made->counts.resize(static_cast<std::size_t>(state.size), made->counts[0]);
  return made;
}
template <class C>
std::optional<RankOrderCall> in_rank_order(const shape::Reduce_scatter<C>& call,
                                           const CommState& state) {
  MPI_Count total = 0;
  for (int rank = 0; call.recvcounts != nullptr && rank < state.size; ++rank) {
    if (call.recvcounts[rank] < 0 || call.recvcounts[rank] > INT_MAX / state.size)
      return std::nullopt;
    total += call.recvcounts[rank];
  }
  // A rank without a result need not have a buffer for it.
  const bool gets_none = total == 0 || call.recvcounts[state.rank] == 0;
  auto made = rank_order_of(call, total, gets_none ? 0 : state.size,
                            RankOrderCall::Gathering::blocks, state);
  if (made) made->counts.assign(call.recvcounts, call.recvcounts + state.size);
  return made;
}

}  // namespace accord::shim
