// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Each partitioned collective and the ordinary one that does the same, on what has been drawn.
#pragma once

#include "partitioned_drawn.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {

inline Collective allreduce(const Drawn& d) {
  Collective made = reduction("allreduce", d, d.total(), d.total());
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pallreduce_init(send, recv, d.partitions, d.count, d.operation.datatype,
                                d.operation.op, d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Allreduce(send, recv, d.total(), d.operation.datatype, d.operation.op, d.comm);
  };
  return made;
}

inline Collective scan(const Drawn& d) {
  Collective made = reduction("scan", d, d.total(), d.total());
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pscan_init(send, recv, d.partitions, d.count, d.operation.datatype, d.operation.op,
                           d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Scan(send, recv, d.total(), d.operation.datatype, d.operation.op, d.comm);
  };
  return made;
}

// Rank 0 gets nothing, and the buffer that it names is not looked at; but some MPIs write there.
inline Collective exscan(const Drawn& d) {
  Collective made = reduction("exscan", d, d.total(), d.own > 0 ? d.total() : 0);
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pexscan_init(send, recv, d.partitions, d.count, d.operation.datatype,
                             d.operation.op, d.comm, MPI_INFO_NULL, request);
  };
  const std::size_t bytes = made.send_bytes;
  made.ordinary = [=](const void* send, void* recv) {
    std::vector<std::byte> unused(d.own == 0 ? bytes + 1 : 0);
    if (d.own == 0 && send == MPI_IN_PLACE) std::memcpy(unused.data(), recv, bytes);
    return MPI_Exscan(send, d.own == 0 ? unused.data() : recv, d.total(), d.operation.datatype,
                      d.operation.op, d.comm);
  };
  return made;
}

inline Collective reduce(const Drawn& d) {
  Collective made = reduction("reduce", d, d.total(), d.own == d.root ? d.total() : 0);
  made.gets = d.own == d.root;
  made.in_place = d.in_place && made.gets;
  if (!made.gets) made.recv_bytes = 0;
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Preduce_init(send, recv, d.partitions, d.count, d.operation.datatype,
                             d.operation.op, d.root, d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Reduce(send, recv, d.total(), d.operation.datatype, d.operation.op, d.root, d.comm);
  };
  return made;
}

// This rank's part of an allreduce: MPICH 5.0.2 crashes in reductions that scatter by an operation
// that does not commute, on types with gaps.
inline int part_of_allreduce(const Drawn& d, const void* send, void* recv, int first, int count,
                             int total) {
  const std::size_t element = d.operation.element_bytes;
  std::vector<std::byte> all(static_cast<std::size_t>(total) * element + 1);
  if (send == MPI_IN_PLACE) std::memcpy(all.data(), recv, all.size() - 1);
  const int code =
      MPI_Allreduce(send, all.data(), total, d.operation.datatype, d.operation.op, d.comm);
  std::memcpy(recv, all.data() + static_cast<std::size_t>(first) * element,
              static_cast<std::size_t>(count) * element);
  return code;
}

// In place, what lies behind the result is used up.
inline Collective reduce_scatter(const Drawn& d) {
  const int total = std::accumulate(d.whole.begin(), d.whole.end(), 0);
  const int own = d.whole[static_cast<std::size_t>(d.own)];
  Collective made = reduction("reduce_scatter", d, total, own);
  made.compared_bytes = static_cast<std::size_t>(own) * d.operation.element_bytes;
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Preduce_scatter_init(send, recv, d.partitions, d.counts.data(),
                                     d.operation.datatype, d.operation.op, d.comm, MPI_INFO_NULL,
                                     request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    if (d.operation.of_users) {
      const int first = std::accumulate(d.whole.begin(), d.whole.begin() + d.own, 0);
      return part_of_allreduce(d, send, recv, first, own, total);
    }
    return MPI_Reduce_scatter(send, recv, d.whole.data(), d.operation.datatype, d.operation.op,
                              d.comm);
  };
  return made;
}

inline Collective reduce_scatter_block(const Drawn& d) {
  Collective made = reduction("reduce_scatter_block", d, d.ranks * d.total(), d.total());
  made.compared_bytes = static_cast<std::size_t>(d.total()) * d.operation.element_bytes;
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Preduce_scatter_block_init(send, recv, d.partitions, d.count, d.operation.datatype,
                                           d.operation.op, d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    if (d.operation.of_users)
      return part_of_allreduce(d, send, recv, d.own * d.total(), d.total(), d.ranks * d.total());
    return MPI_Reduce_scatter_block(send, recv, d.total(), d.operation.datatype, d.operation.op,
                                    d.comm);
  };
  return made;
}

// The root's buffer, and the others'.
inline Collective bcast(const Drawn& d) {
  Collective made = base("bcast", d, 0, bytes_of(d, d.total()));
  made.gives = d.own == d.root;
  made.init = [=](const void*, void* buffer, MPI_Request* request) {
    return MPIX_Pbcast_init(buffer, d.partitions, d.count, d.datatype, d.root, d.comm,
                            MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void*, void* buffer) {
    return MPI_Bcast(buffer, d.total(), d.datatype, d.root, d.comm);
  };
  return made;
}

inline Collective allgather(const Drawn& d) {
  Collective made = base("allgather", d, bytes_of(d, d.total()), bytes_of(d, d.ranks * d.total()));
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pallgather_init(send, d.partitions, d.count, d.datatype, recv, d.count, d.datatype,
                                d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Allgather(send, d.total(), d.datatype, recv, d.total(), d.datatype, d.comm);
  };
  return made;
}

inline Collective allgatherv(const Drawn& d) {
  const auto own = static_cast<std::size_t>(d.own);
  Collective made = base("allgatherv", d, bytes_of(d, d.whole[own]), d.blocks_bytes());
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pallgatherv_init(send, d.partitions, d.counts[own], d.datatype, recv,
                                 d.counts.data(), d.offsets.data(), d.datatype, d.comm,
                                 MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Allgatherv(send, d.whole[own], d.datatype, recv, d.whole.data(), d.offsets.data(),
                          d.datatype, d.comm);
  };
  return made;
}

inline Collective gather(const Drawn& d) {
  Collective made = base("gather", d, bytes_of(d, d.total()),
                         d.own == d.root ? bytes_of(d, d.ranks * d.total()) : 0);
  made.gets = d.own == d.root;
  made.in_place = d.in_place && made.gets;
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pgather_init(send, d.partitions, d.count, d.datatype, recv, d.count, d.datatype,
                             d.root, d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Gather(send, d.total(), d.datatype, recv, d.total(), d.datatype, d.root, d.comm);
  };
  return made;
}

inline Collective gatherv(const Drawn& d) {
  const auto own = static_cast<std::size_t>(d.own);
  Collective made =
      base("gatherv", d, bytes_of(d, d.whole[own]), d.own == d.root ? d.blocks_bytes() : 0);
  made.gets = d.own == d.root;
  made.in_place = d.in_place && made.gets;
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pgatherv_init(send, d.partitions, d.counts[own], d.datatype, recv, d.counts.data(),
                              d.offsets.data(), d.datatype, d.root, d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Gatherv(send, d.whole[own], d.datatype, recv, d.whole.data(), d.offsets.data(),
                       d.datatype, d.root, d.comm);
  };
  return made;
}

// The buffer of which each rank gets a part is the one that is sent, which need not be in place.
inline Collective scatter(const Drawn& d) {
  const bool is_root = d.own == d.root;
  Collective made =
      base("scatter", d, is_root ? bytes_of(d, d.ranks * d.total()) : 0, bytes_of(d, d.total()));
  made.gives = is_root;
  made.in_place = false;
  const bool stays = d.in_place && is_root;
  if (stays) made.recv_bytes = 0;
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pscatter_init(send, d.partitions, d.count, d.datatype, stays ? MPI_IN_PLACE : recv,
                              d.count, d.datatype, d.root, d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Scatter(send, d.total(), d.datatype, stays ? MPI_IN_PLACE : recv, d.total(),
                       d.datatype, d.root, d.comm);
  };
  return made;
}

inline Collective scatterv(const Drawn& d) {
  const auto own = static_cast<std::size_t>(d.own);
  const bool is_root = d.own == d.root;
  Collective made = base("scatterv", d, is_root ? d.blocks_bytes() : 0, bytes_of(d, d.whole[own]));
  made.gives = is_root;
  made.in_place = false;
  const bool stays = d.in_place && is_root;
  if (stays) made.recv_bytes = 0;
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pscatterv_init(send, d.partitions, d.counts.data(), d.offsets.data(), d.datatype,
                               stays ? MPI_IN_PLACE : recv, d.counts[own], d.datatype, d.root,
                               d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Scatterv(send, d.whole.data(), d.offsets.data(), d.datatype,
                        stays ? MPI_IN_PLACE : recv, d.whole[own], d.datatype, d.root, d.comm);
  };
  return made;
}

inline Collective alltoall(const Drawn& d) {
  const std::size_t bytes = bytes_of(d, d.ranks * d.total());
  Collective made = base("alltoall", d, bytes, bytes);
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Palltoall_init(send, d.partitions, d.count, d.datatype, recv, d.count, d.datatype,
                               d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Alltoall(send, d.total(), d.datatype, recv, d.total(), d.datatype, d.comm);
  };
  return made;
}

// What two ranks exchange follows from both of their numbers, alike both ways.
struct Uneven {
  std::vector<int> counts;
  std::vector<int> whole;
  std::vector<int> offsets;
  std::vector<int> offsets_bytes;
  std::vector<MPI_Datatype> types;
  std::size_t bytes = 0;

  explicit Uneven(const Drawn& d) : types(static_cast<std::size_t>(d.ranks), d.datatype) {
    int next = 0;
    const int own = d.counts[static_cast<std::size_t>(d.own)];
    for (const int other : d.counts) {
      counts.push_back((own * other) % 23);
      whole.push_back(counts.back() * d.partitions);
      offsets.push_back(next);
      offsets_bytes.push_back(next * static_cast<int>(d.extent));
      next += whole.back() + 1;
    }
    bytes = bytes_of(d, next);
  }
};

inline Collective alltoallv(const Drawn& d) {
  const Uneven u(d);
  Collective made = base("alltoallv", d, u.bytes, u.bytes);
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Palltoallv_init(send, d.partitions, u.counts.data(), u.offsets.data(), d.datatype,
                                recv, u.counts.data(), u.offsets.data(), d.datatype, d.comm,
                                MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Alltoallv(send, u.whole.data(), u.offsets.data(), d.datatype, recv, u.whole.data(),
                         u.offsets.data(), d.datatype, d.comm);
  };
  return made;
}

inline Collective alltoallw(const Drawn& d) {
  const Uneven u(d);
  Collective made = base("alltoallw", d, u.bytes, u.bytes);
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Palltoallw_init(send, d.partitions, u.counts.data(), u.offsets_bytes.data(),
                                u.types.data(), recv, u.counts.data(), u.offsets_bytes.data(),
                                u.types.data(), d.comm, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Alltoallw(send, u.whole.data(), u.offsets_bytes.data(), u.types.data(), recv,
                         u.whole.data(), u.offsets_bytes.data(), u.types.data(), d.comm);
  };
  return made;
}

// Neighbours: the number of an edge says how much it carries, for neighbourhoods that look alike
// from everywhere.
struct Edges {
  int in = 0;
  int out = 0;
  std::vector<int> counts;
  std::vector<int> whole;
  std::vector<int> offsets;
  std::vector<MPI_Aint> offsets_bytes;
  std::vector<MPI_Datatype> types;
  std::size_t bytes = 0;

  explicit Edges(const Drawn& d) {
    int kind = MPI_UNDEFINED;
    MPI_Topo_test(d.neighbours, &kind);
    if (kind == MPI_CART) {
      MPI_Cartdim_get(d.neighbours, &in);
      in = out = 2 * in;
    } else {
      int weighted = 0;
      MPI_Dist_graph_neighbors_count(d.neighbours, &in, &out, &weighted);
    }
    int next = 0;
    for (int i = 0; i < in; ++i) {
      // What goes one way along a dimension comes from the other side; along both it is as much.
      counts.push_back(kind == MPI_CART ? 3 * (i / 2) + 2 : d.count % 50);
      whole.push_back(counts.back() * d.partitions);
      offsets.push_back(next);
      offsets_bytes.push_back(next * static_cast<MPI_Aint>(d.extent));
      types.push_back(d.datatype);
      next += whole.back() + 1;
    }
    bytes = bytes_of(d, next);
  }
};

inline Collective among_neighbours(const char* name, const Drawn& d, std::size_t send_bytes,
                                   std::size_t recv_bytes) {
  Collective made = base(name, d, send_bytes, recv_bytes);
  made.in_place = false;
  return made;
}

inline Collective neighbor_allgather(const Drawn& d) {
  const Edges e(d);
  Collective made = among_neighbours("neighbor_allgather", d, bytes_of(d, d.total()),
                                     bytes_of(d, e.in * d.total()));
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pneighbor_allgather_init(send, d.partitions, d.count, d.datatype, recv, d.count,
                                         d.datatype, d.neighbours, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Neighbor_allgather(send, d.total(), d.datatype, recv, d.total(), d.datatype,
                                  d.neighbours);
  };
  return made;
}

// As much from each: a rank gives all the same.
inline Collective neighbor_allgatherv(const Drawn& d) {
  const Edges e(d);
  const std::vector<int> counts(static_cast<std::size_t>(e.in), 4);
  const std::vector<int> whole(static_cast<std::size_t>(e.in), 4 * d.partitions);
  std::vector<int> offsets;
  for (int i = 0; i < e.in; ++i) offsets.push_back(i * (4 * d.partitions + 2));
  Collective made = among_neighbours("neighbor_allgatherv", d, bytes_of(d, 4 * d.partitions),
                                     bytes_of(d, e.in * (4 * d.partitions + 2)));
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pneighbor_allgatherv_init(send, d.partitions, 4, d.datatype, recv, counts.data(),
                                          offsets.data(), d.datatype, d.neighbours, MPI_INFO_NULL,
                                          request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Neighbor_allgatherv(send, 4 * d.partitions, d.datatype, recv, whole.data(),
                                   offsets.data(), d.datatype, d.neighbours);
  };
  return made;
}

inline Collective neighbor_alltoall(const Drawn& d) {
  const Edges e(d);
  Collective made = among_neighbours("neighbor_alltoall", d, bytes_of(d, e.out * d.total()),
                                     bytes_of(d, e.in * d.total()));
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pneighbor_alltoall_init(send, d.partitions, d.count, d.datatype, recv, d.count,
                                        d.datatype, d.neighbours, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Neighbor_alltoall(send, d.total(), d.datatype, recv, d.total(), d.datatype,
                                 d.neighbours);
  };
  return made;
}

inline Collective neighbor_alltoallv(const Drawn& d) {
  const Edges e(d);
  Collective made = among_neighbours("neighbor_alltoallv", d, e.bytes, e.bytes);
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pneighbor_alltoallv_init(send, d.partitions, e.counts.data(), e.offsets.data(),
                                         d.datatype, recv, e.counts.data(), e.offsets.data(),
                                         d.datatype, d.neighbours, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Neighbor_alltoallv(send, e.whole.data(), e.offsets.data(), d.datatype, recv,
                                  e.whole.data(), e.offsets.data(), d.datatype, d.neighbours);
  };
  return made;
}

inline Collective neighbor_alltoallw(const Drawn& d) {
  const Edges e(d);
  Collective made = among_neighbours("neighbor_alltoallw", d, e.bytes, e.bytes);
  made.init = [=](const void* send, void* recv, MPI_Request* request) {
    return MPIX_Pneighbor_alltoallw_init(send, d.partitions, e.counts.data(),
                                         e.offsets_bytes.data(), e.types.data(), recv,
                                         e.counts.data(), e.offsets_bytes.data(), e.types.data(),
                                         d.neighbours, MPI_INFO_NULL, request);
  };
  made.ordinary = [=](const void* send, void* recv) {
    return MPI_Neighbor_alltoallw(send, e.whole.data(), e.offsets_bytes.data(), e.types.data(),
                                  recv, e.whole.data(), e.offsets_bytes.data(), e.types.data(),
                                  d.neighbours);
  };
  return made;
}

}  // namespace accord::test

#endif
