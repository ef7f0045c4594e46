// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What each collective reads and writes on one rank (MPI 4.1, chapter 6; those among neighbours:
// neighbor_shapes.h): one aggregate a collective, its fields in the order of the MPI call, used by
// the blocking, non-blocking and persistent form alike. C is the type of counts (int or MPI_Count),
// D that of displacements.
#pragma once

#include <mpi.h>

#include "shim/describe.h"

namespace accord::shim::shape {

// Who gives and who gets at this rank of a rooted collective.
struct Rooted {
  bool is_root;   // holds the root's buffer
  bool is_other;  // takes part without being the root
  int others;     // ranks on the other side of the root

  Rooted(const CommState& comm, int root) {
    if (comm.inter) {
      is_root = root == MPI_ROOT;
      is_other = root != MPI_ROOT && root != MPI_PROC_NULL;
      others = comm.remote_size;
    } else {
      is_root = root == comm.rank;
      // The root of an intracommunicator also sends to itself. A root that is none is the user's
      // mistake: nothing of ours may be copied out should the host MPI not object.
      is_other = root >= 0 && root < comm.size;
      others = comm.size;
    }
  }
};

inline bool in_place(const void* buffer) { return buffer == MPI_IN_PLACE; }

// The buffers of a call. MPI_IN_PLACE stands for one that it does not have, too: never on a device,
// never read.
template <class Call>
const void* send_pointer(const Call& call) {
  if constexpr (requires { call.sendbuf; }) {
    return call.sendbuf;
  } else {
    return MPI_IN_PLACE;
  }
}
template <class Call>
const void* recv_pointer(const Call& call) {
  if constexpr (requires { call.recvbuf; }) {
    return call.recvbuf;
  } else if constexpr (requires { call.buffer; }) {
    return call.buffer;
  } else {
    return MPI_IN_PLACE;
  }
}

struct Barrier {
  MPI_Comm comm;
  void describe(Description&, const CommState&) const {}
};

template <class C>
struct Bcast {
  void* buffer;
  C count;
  MPI_Datatype datatype;
  int root;
  MPI_Comm comm;
  bool operator==(const Bcast&) const = default;
  void describe(Description& d, const CommState& state) const {
    const Rooted role(state, root);
    if (role.is_root) {
      d.reads(d.recv, count, datatype);
    } else if (role.is_other) {
      d.writes(d.recv, count, datatype);
    }
  }
};

template <class C>
struct Gather {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  C recvcount;
  MPI_Datatype recvtype;
  int root;
  MPI_Comm comm;
  bool operator==(const Gather&) const = default;
  void describe(Description& d, const CommState& state) const {
    const Rooted role(state, root);
    if (role.is_other && !in_place(sendbuf)) d.reads(d.send, sendcount, sendtype);
    if (!role.is_root) return;
    const MPI_Aint step = static_cast<MPI_Aint>(recvcount) * extent_of(recvtype);
    for (int rank = 0; rank < role.others; ++rank) {
      if (in_place(sendbuf) && !state.inter && rank == state.rank) {
        d.reads(d.recv, recvcount, recvtype,
                rank * step);  // already there, and the host MPI may move it about
      } else {
        d.writes(d.recv, recvcount, recvtype, rank * step);
      }
    }
  }
};

template <class C, class D>
struct Gatherv {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  const C* recvcounts;
  const D* displs;
  MPI_Datatype recvtype;
  int root;
  MPI_Comm comm;
  void describe(Description& d, const CommState& state) const {
    const Rooted role(state, root);
    if (role.is_other && !in_place(sendbuf)) d.reads(d.send, sendcount, sendtype);
    if (!role.is_root) return;
    const MPI_Aint extent = extent_of(recvtype);
    for (int rank = 0; rank < role.others; ++rank) {
      if (in_place(sendbuf) && !state.inter && rank == state.rank) {
        d.reads(d.recv, recvcounts[rank], recvtype, displs[rank] * extent);
      } else {
        d.writes(d.recv, recvcounts[rank], recvtype, displs[rank] * extent);
      }
    }
  }
};

template <class C>
struct Scatter {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  C recvcount;
  MPI_Datatype recvtype;
  int root;
  MPI_Comm comm;
  bool operator==(const Scatter&) const = default;
  void describe(Description& d, const CommState& state) const {
    const Rooted role(state, root);
    if (role.is_other && !in_place(recvbuf)) d.writes(d.recv, recvcount, recvtype);
    if (!role.is_root) return;
    const MPI_Aint step = static_cast<MPI_Aint>(sendcount) * extent_of(sendtype);
    for (int rank = 0; rank < role.others; ++rank) {
      d.reads(d.send, sendcount, sendtype, rank * step);
    }
  }
};

template <class C, class D>
struct Scatterv {
  const void* sendbuf;
  const C* sendcounts;
  const D* displs;
  MPI_Datatype sendtype;
  void* recvbuf;
  C recvcount;
  MPI_Datatype recvtype;
  int root;
  MPI_Comm comm;
  void describe(Description& d, const CommState& state) const {
    const Rooted role(state, root);
    if (role.is_other && !in_place(recvbuf)) d.writes(d.recv, recvcount, recvtype);
    if (!role.is_root) return;
    const MPI_Aint extent = extent_of(sendtype);
    for (int rank = 0; rank < role.others; ++rank) {
      d.reads(d.send, sendcounts[rank], sendtype, displs[rank] * extent);
    }
  }
};

template <class C>
struct Allgather {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  C recvcount;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  bool operator==(const Allgather&) const = default;
  void describe(Description& d, const CommState& state) const {
    if (!in_place(sendbuf)) d.reads(d.send, sendcount, sendtype);
    const MPI_Aint step = static_cast<MPI_Aint>(recvcount) * extent_of(recvtype);
    for (int rank = 0; rank < state.remote_size; ++rank) {
      if (in_place(sendbuf) && rank == state.rank) {
        d.reads(d.recv, recvcount, recvtype, rank * step);
      } else {
        d.writes(d.recv, recvcount, recvtype, rank * step);
      }
    }
  }
};

template <class C, class D>
struct Allgatherv {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  const C* recvcounts;
  const D* displs;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  void describe(Description& d, const CommState& state) const {
    if (!in_place(sendbuf)) d.reads(d.send, sendcount, sendtype);
    const MPI_Aint extent = extent_of(recvtype);
    for (int rank = 0; rank < state.remote_size; ++rank) {
      if (in_place(sendbuf) && rank == state.rank) {
        d.reads(d.recv, recvcounts[rank], recvtype, displs[rank] * extent);
      } else {
        d.writes(d.recv, recvcounts[rank], recvtype, displs[rank] * extent);
      }
    }
  }
};

template <class C>
struct Alltoall {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  C recvcount;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  bool operator==(const Alltoall&) const = default;
  void describe(Description& d, const CommState& state) const {
    const MPI_Count peers = state.remote_size;
    if (in_place(sendbuf)) {
      d.reads(d.recv, recvcount * peers, recvtype);
    } else {
      d.reads(d.send, sendcount * peers, sendtype);
    }
    d.writes(d.recv, recvcount * peers, recvtype);
  }
};

template <class C, class D>
struct Alltoallv {
  const void* sendbuf;
  const C* sendcounts;
  const D* sdispls;
  MPI_Datatype sendtype;
  void* recvbuf;
  const C* recvcounts;
  const D* rdispls;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  void describe(Description& d, const CommState& state) const {
    const MPI_Aint send_extent = in_place(sendbuf) ? 0 : extent_of(sendtype);
    const MPI_Aint recv_extent = extent_of(recvtype);
    for (int rank = 0; rank < state.remote_size; ++rank) {
      if (in_place(sendbuf)) {
        d.reads(d.recv, recvcounts[rank], recvtype, rdispls[rank] * recv_extent);
      } else {
        d.reads(d.send, sendcounts[rank], sendtype, sdispls[rank] * send_extent);
      }
      d.writes(d.recv, recvcounts[rank], recvtype, rdispls[rank] * recv_extent);
    }
  }
};

template <class C, class D>
struct Alltoallw {
  const void* sendbuf;
  const C* sendcounts;
  const D* sdispls;  // bytes
  const MPI_Datatype* sendtypes;
  void* recvbuf;
  const C* recvcounts;
  const D* rdispls;  // bytes
  const MPI_Datatype* recvtypes;
  MPI_Comm comm;
  void describe(Description& d, const CommState& state) const {
    for (int rank = 0; rank < state.remote_size; ++rank) {
      if (in_place(sendbuf)) {
        d.reads(d.recv, recvcounts[rank], recvtypes[rank], rdispls[rank]);
      } else {
        d.reads(d.send, sendcounts[rank], sendtypes[rank], sdispls[rank]);
      }
      d.writes(d.recv, recvcounts[rank], recvtypes[rank], rdispls[rank]);
    }
  }
};

template <class C>
struct Reduce {
  const void* sendbuf;
  void* recvbuf;
  C count;
  MPI_Datatype datatype;
  MPI_Op op;
  int root;
  MPI_Comm comm;
  bool operator==(const Reduce&) const = default;
  void describe(Description& d, const CommState& state) const {
    const Rooted role(state, root);
    if (role.is_other && !in_place(sendbuf)) d.reads(d.send, count, datatype);
    if (!role.is_root) return;
    if (in_place(sendbuf)) d.reads(d.recv, count, datatype);
    d.writes(d.recv, count, datatype);
  }
};

template <class C>
struct Allreduce {
  const void* sendbuf;
  void* recvbuf;
  C count;
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Comm comm;
  bool operator==(const Allreduce&) const = default;
  void describe(Description& d, const CommState&) const {
    if (in_place(sendbuf)) {
      d.reads(d.recv, count, datatype);
    } else {
      d.reads(d.send, count, datatype);
    }
    d.writes(d.recv, count, datatype);
  }
};

template <class C>
struct Reduce_scatter {
  const void* sendbuf;
  void* recvbuf;
  const C* recvcounts;
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Comm comm;
  void describe(Description& d, const CommState& state) const {
    MPI_Count total = 0;
    for (int rank = 0; rank < state.size; ++rank) total += recvcounts[rank];
    if (in_place(sendbuf)) {
      d.reads(d.recv, total, datatype);
    } else {
      d.reads(d.send, total, datatype);
    }
    d.writes(d.recv, recvcounts[state.rank], datatype);
  }
};

template <class C>
struct Reduce_scatter_block {
  const void* sendbuf;
  void* recvbuf;
  C recvcount;
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Comm comm;
  bool operator==(const Reduce_scatter_block&) const = default;
  void describe(Description& d, const CommState& state) const {
    const MPI_Count total = static_cast<MPI_Count>(recvcount) * state.size;
    if (in_place(sendbuf)) {
      d.reads(d.recv, total, datatype);
    } else {
      d.reads(d.send, total, datatype);
    }
    d.writes(d.recv, recvcount, datatype);
  }
};

template <class C>
struct Scan : Allreduce<C> {};
template <class C>
Scan(const void*, void*, C, MPI_Datatype, MPI_Op, MPI_Comm) -> Scan<C>;

template <class C>
struct Exscan {
  const void* sendbuf;
  void* recvbuf;
  C count;
  MPI_Datatype datatype;
  MPI_Op op;
  MPI_Comm comm;
  bool operator==(const Exscan&) const = default;
  void describe(Description& d, const CommState& state) const {
    if (in_place(sendbuf)) {
      d.reads(d.recv, count, datatype);
    } else {
      d.reads(d.send, count, datatype);
    }
    if (state.rank > 0) d.writes(d.recv, count, datatype);  // rank 0 gets nothing
  }
};

}  // namespace accord::shim::shape
