// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Shapes, as in shapes.h, of the collectives among the neighbours of a topology (MPI 4.1, chapter
// 8).
#pragma once

#include <mpi.h>

#include "shim/shapes.h"
#include "shim/topology.h"

namespace accord::shim::shape {

template <class C>
struct Neighbor_allgather {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  C recvcount;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  void describe(Description& d, const CommState&) const {
    d.reads(d.send, sendcount, sendtype);
    const Neighbours neighbours(comm);
    const MPI_Aint step = static_cast<MPI_Aint>(recvcount) * extent_of(recvtype);
    neighbours.each_in([&](int i) { d.writes(d.recv, recvcount, recvtype, i * step); });
  }
};

template <class C, class D>
struct Neighbor_allgatherv {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  const C* recvcounts;
  const D* displs;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  void describe(Description& d, const CommState&) const {
    d.reads(d.send, sendcount, sendtype);
    const MPI_Aint extent = extent_of(recvtype);
    const Neighbours neighbours(comm);
    neighbours.each_in(
        [&](int i) { d.writes(d.recv, recvcounts[i], recvtype, displs[i] * extent); });
  }
};

template <class C>
struct Neighbor_alltoall {
  const void* sendbuf;
  C sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  C recvcount;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  void describe(Description& d, const CommState&) const {
    const Neighbours neighbours(comm);
    const MPI_Aint send_step = static_cast<MPI_Aint>(sendcount) * extent_of(sendtype);
    const MPI_Aint recv_step = static_cast<MPI_Aint>(recvcount) * extent_of(recvtype);
    neighbours.each_out([&](int i) { d.reads(d.send, sendcount, sendtype, i * send_step); });
    neighbours.each_in([&](int i) { d.writes(d.recv, recvcount, recvtype, i * recv_step); });
  }
};

template <class C, class D>
struct Neighbor_alltoallv {
  const void* sendbuf;
  const C* sendcounts;
  const D* sdispls;
  MPI_Datatype sendtype;
  void* recvbuf;
  const C* recvcounts;
  const D* rdispls;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  void describe(Description& d, const CommState&) const {
    const Neighbours neighbours(comm);
    const MPI_Aint send_extent = extent_of(sendtype);
    const MPI_Aint recv_extent = extent_of(recvtype);
    neighbours.each_out(
        [&](int i) { d.reads(d.send, sendcounts[i], sendtype, sdispls[i] * send_extent); });
    neighbours.each_in(
        [&](int i) { d.writes(d.recv, recvcounts[i], recvtype, rdispls[i] * recv_extent); });
  }
};

template <class C, class D>
struct Neighbor_alltoallw {
  const void* sendbuf;
  const C* sendcounts;
  const D* sdispls;  // bytes
  const MPI_Datatype* sendtypes;
  void* recvbuf;
  const C* recvcounts;
  const D* rdispls;  // bytes
  const MPI_Datatype* recvtypes;
  MPI_Comm comm;
  void describe(Description& d, const CommState&) const {
    const Neighbours neighbours(comm);
    neighbours.each_out([&](int i) { d.reads(d.send, sendcounts[i], sendtypes[i], sdispls[i]); });
    neighbours.each_in([&](int i) { d.writes(d.recv, recvcounts[i], recvtypes[i], rdispls[i]); });
  }
};

}  // namespace accord::shim::shape
