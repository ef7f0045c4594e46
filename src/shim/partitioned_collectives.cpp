// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/partitioned_collectives.h"

#include <utility>
#include <vector>

#include "shim/partitioned_draft.h"
#include "shim/topology.h"

namespace accord::shim {
namespace {

using node::Kind;
using partitioned::Area;
using partitioned::Incoming;
using partitioned::Outgoing;
using partitioned::Place;
using Draft = PartitionedDraft;
using Frame = PartitionedDraft::Frame;
using Ranks = device::PartitionShape::Ranks;

Place contribution(int block) { return {.area = Area::contribution, .block = block}; }
Place result(int block) { return {.area = Area::result, .block = block}; }

bool in_place(const void* buffer) { return buffer == MPI_IN_PLACE; }

// describe(draft) gives the schedule.
template <class Describe>
int make(const Frame& frame, Describe describe) {
  Draft draft(frame);
  if (!draft.good()) return draft.fail();
  partitioned::Schedule schedule = describe(draft);
  return draft.finish(std::move(schedule));
}

// One block to all; a block of each.
partitioned::Schedule allgather(Draft& draft, const Cells& send, const Cells& receive) {
  draft.results(receive);
  draft.by_kernels({.givers = Ranks::own});
  const bool own_is_there = in_place(send.buffer);
  if (own_is_there) {
    draft.contributes({receive.buffer, {receive.cells[static_cast<std::size_t>(draft.rank())]}});
  } else {
    draft.contributes(send);
  }
  return partitioned::block_schedule({.kind = Kind::allgather, .size = draft.size()}, draft.rank(),
                                     own_is_there);
}

partitioned::Schedule alltoall(Draft& draft, const Cells& send, const Cells& receive) {
  draft.results(receive);
  const bool all_is_there = in_place(send.buffer);
  draft.by_kernels({.givers = Ranks::own, .in_pairs = true}, !all_is_there);
  draft.contributes(all_is_there ? receive : send);
  return partitioned::block_schedule({.kind = Kind::alltoall, .size = draft.size()}, draft.rank(),
                                     all_is_there);
}

// `at_root` is asked at the root only, where alone its arguments mean something.
template <class AtRoot>
partitioned::Schedule gather(Draft& draft, const Cells& send, int root, AtRoot at_root) {
  draft.check_root(root);
  if (!draft.good()) return {};
  const bool is_root = draft.rank() == root;
  draft.by_kernels({.givers = Ranks::own, .getters = Ranks::root, .root = root});
  const bool own_is_there = is_root && in_place(send.buffer);
  if (!own_is_there) draft.contributes(send);
  if (is_root) {
    draft.results(at_root());
  } else {
    draft.gets_nothing();
  }
  return partitioned::block_schedule({.kind = Kind::gather, .size = draft.size(), .root = root},
                                     draft.rank(), own_is_there);
}

template <class AtRoot>
partitioned::Schedule scatter(Draft& draft, AtRoot at_root, const Cells& receive, int root) {
  draft.check_root(root);
  if (!draft.good()) return {};
  const bool is_root = draft.rank() == root;
  draft.by_kernels({.givers = Ranks::root, .getters = Ranks::own, .root = root});
  const bool own_stays = is_root && in_place(receive.buffer);
  if (!own_stays) draft.results(receive);
  if (is_root) {
    draft.contributes(at_root());
  } else {
    draft.gives_nothing();
  }
  return partitioned::block_schedule({.kind = Kind::scatter, .size = draft.size(), .root = root},
                                     draft.rank(), own_stays);
}

// Blocks in the order of the neighbours, of which those beyond the edge of a grid have none.
// send(count) and receive(count) give the cells of so many.
template <class Send, class Receive>
partitioned::Schedule among_neighbours(Draft& draft, MPI_Comm comm, Send send, Receive receive,
                                       bool one_for_all) {
  const Neighbours neighbours(comm);
  if (!neighbours.out().empty()) draft.contributes(send(neighbours.out_count()));
  if (!neighbours.in().empty()) draft.results(receive(neighbours.in_count()));
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (const auto& edge : neighbours.out())
    outgoing.push_back({edge.rank, contribution(one_for_all ? 0 : edge.block)});
  for (const auto& edge : neighbours.in()) incoming.push_back({edge.rank, result(edge.block)});
  return direct_schedule(draft.rank(), outgoing, incoming);
}

// One block of `count` elements on each rank, reduced; `scheduled` turns the outline into what
// happens.
struct Reduced {
  const void* send;
  void* receive;
  MPI_Count count;
  MPI_Datatype datatype;
  MPI_Op op;
};

template <class Scheduled>
partitioned::Schedule reduction(Draft& draft, const Reduced& call, bool has_result,
                                Draft::Made made, Scheduled scheduled) {
  draft.agree_on_bytes(call.count, call.datatype);
  draft.contributes(
      draft.one(in_place(call.send) ? call.receive : call.send, call.count, call.datatype));
  if (has_result) draft.results(draft.one(call.receive, call.count, call.datatype));
  if (!draft.good()) return {};
  const auto outline =
      draft.reduces(static_cast<std::size_t>(call.count), call.datatype, call.op, made);
  return draft.good() ? scheduled(outline) : partitioned::Schedule();
}

// A block for each rank, of so many elements.
partitioned::Schedule reduce_scatter(Draft& draft, const void* sendbuf, void* recvbuf,
                                     const std::vector<MPI_Count>& counts, MPI_Datatype datatype,
                                     MPI_Op op) {
  const MPI_Count own = counts[static_cast<std::size_t>(draft.rank())];
  for (const MPI_Count count : counts) draft.agree_on_bytes(count, datatype);
  draft.contributes(draft.consecutive(in_place(sendbuf) ? recvbuf : sendbuf, counts, datatype));
  draft.results(draft.one(recvbuf, own, datatype));
  draft.by_kernels({.getters = Ranks::own}, !in_place(sendbuf));
  if (!draft.good()) return {};
  (void)draft.reduces(static_cast<std::size_t>(own), datatype, op,
                      in_place(sendbuf) ? Draft::Made::apart : Draft::Made::in_result);
  return partitioned::reduce_scatter_schedule(draft.rank(), draft.size(), in_place(sendbuf));
}

}  // namespace

int MPIX_Pallgather_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                         MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                         MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                         MPI_Request* request) {
  return make({"MPIX_Pallgather_init", partitions, comm, info, request}, [&](Draft& draft) {
    draft.agree_on_bytes(recvcount, recvtype);
    return allgather(draft, draft.one(sendbuf, sendcount, sendtype),
                     draft.alike(recvbuf, draft.size(), recvcount, recvtype));
  });
}

int MPIX_Pallgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                          const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                          MPI_Request* request) {
  return make({"MPIX_Pallgatherv_init", partitions, comm, info, request}, [&](Draft& draft) {
    return allgather(draft, draft.one(sendbuf, sendcount, sendtype),
                     draft.by_counts(recvbuf, draft.size(), recvcounts, displs, recvtype));
  });
}

int MPIX_Pallreduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                         MPI_Request* request) {
  return make({"MPIX_Pallreduce_init", partitions, comm, info, request}, [&](Draft& draft) {
    draft.by_kernels({});
    return reduction(draft, {sendbuf, recvbuf, count, datatype, op}, true, Draft::Made::in_result,
                     partitioned::allreduce_schedule);
  });
}

int MPIX_Palltoall_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                        MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                        MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return make({"MPIX_Palltoall_init", partitions, comm, info, request}, [&](Draft& draft) {
    draft.agree_on_bytes(recvcount, recvtype);
    return alltoall(draft, draft.alike(sendbuf, draft.size(), sendcount, sendtype),
                    draft.alike(recvbuf, draft.size(), recvcount, recvtype));
  });
}

int MPIX_Palltoallv_init(const void* sendbuf, int partitions, const int sendcounts[],
                         const int sdispls[], MPI_Datatype sendtype, void* recvbuf,
                         const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return make({"MPIX_Palltoallv_init", partitions, comm, info, request}, [&](Draft& draft) {
    const int blocks = in_place(sendbuf) ? 0 : draft.size();
    return alltoall(draft, draft.by_counts(sendbuf, blocks, sendcounts, sdispls, sendtype),
                    draft.by_counts(recvbuf, draft.size(), recvcounts, rdispls, recvtype));
  });
}

int MPIX_Palltoallw_init(const void* sendbuf, int partitions, const int sendcounts[],
                         const int sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
                         const int recvcounts[], const int rdispls[],
                         const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                         MPI_Request* request) {
  return make({"MPIX_Palltoallw_init", partitions, comm, info, request}, [&](Draft& draft) {
    const int blocks = in_place(sendbuf) ? 0 : draft.size();
    return alltoall(draft, draft.by_types(sendbuf, blocks, sendcounts, sdispls, sendtypes),
                    draft.by_types(recvbuf, draft.size(), recvcounts, rdispls, recvtypes));
  });
}

int MPIX_Pbcast_init(void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int root,
                     MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return make({"MPIX_Pbcast_init", partitions, comm, info, request}, [&](Draft& draft) {
    draft.check_root(root);
    draft.by_kernels({.givers = Ranks::root, .root = root});
    draft.agree_on_bytes(count, datatype);
    const Cells cells = draft.one(buffer, count, datatype);
    if (draft.rank() == root) {
      draft.contributes(cells);
    } else {
      draft.results(cells);
      draft.gives_nothing();
    }
    return partitioned::broadcast_schedule(draft.rank(), draft.size(), root);
  });
}

int MPIX_Pexscan_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  return make({"MPIX_Pexscan_init", partitions, comm, info, request}, [&](Draft& draft) {
    draft.by_kernels({.givers = Ranks::before_own, .getters = Ranks::own}, !in_place(sendbuf));
    return reduction(draft, {sendbuf, recvbuf, count, datatype, op}, draft.rank() > 0,
                     Draft::Made::apart, partitioned::exscan_schedule);
  });
}

int MPIX_Pgather_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                      MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                      MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  return make({"MPIX_Pgather_init", partitions, comm, info, request}, [&](Draft& draft) {
    if (in_place(sendbuf)) {
      draft.agree_on_bytes(recvcount, recvtype);
    } else {
      draft.agree_on_bytes(sendcount, sendtype);
    }
    return gather(draft, draft.one(sendbuf, sendcount, sendtype), root,
                  [&] { return draft.alike(recvbuf, draft.size(), recvcount, recvtype); });
  });
}

int MPIX_Pgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                       MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                       const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
                       MPI_Info info, MPI_Request* request) {
  return make({"MPIX_Pgatherv_init", partitions, comm, info, request}, [&](Draft& draft) {
    return gather(draft, draft.one(sendbuf, sendcount, sendtype), root, [&] {
      return draft.by_counts(recvbuf, draft.size(), recvcounts, displs, recvtype);
    });
  });
}

int MPIX_Preduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                      MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  return make({"MPIX_Preduce_init", partitions, comm, info, request}, [&](Draft& draft) {
    draft.check_root(root);
    if (!draft.good()) return partitioned::Schedule();
    const bool is_root = draft.rank() == root;
    draft.by_kernels({.getters = Ranks::root, .root = root});
    if (!is_root) draft.gets_nothing();
    return reduction(
        draft, {sendbuf, is_root ? recvbuf : MPI_IN_PLACE, count, datatype, op}, is_root,
        is_root ? Draft::Made::in_result : Draft::Made::apart,
        [root](const auto& outline) { return partitioned::reduce_schedule(outline, root); });
  });
}

int MPIX_Preduce_scatter_init(const void* sendbuf, void* recvbuf, int partitions,
                              const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return make({"MPIX_Preduce_scatter_init", partitions, comm, info, request}, [&](Draft& draft) {
    const std::vector<MPI_Count> counts(recvcounts, recvcounts + draft.size());
    return reduce_scatter(draft, sendbuf, recvbuf, counts, datatype, op);
  });
}

int MPIX_Preduce_scatter_block_init(const void* sendbuf, void* recvbuf, int partitions,
                                    MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return make(
      {"MPIX_Preduce_scatter_block_init", partitions, comm, info, request}, [&](Draft& draft) {
        const std::vector<MPI_Count> counts(static_cast<std::size_t>(draft.size()), recvcount);
        return reduce_scatter(draft, sendbuf, recvbuf, counts, datatype, op);
      });
}

int MPIX_Pscan_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count,
                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                    MPI_Request* request) {
  return make({"MPIX_Pscan_init", partitions, comm, info, request}, [&](Draft& draft) {
    draft.by_kernels({.givers = Ranks::up_to_own, .getters = Ranks::own}, !in_place(sendbuf));
    return reduction(draft, {sendbuf, recvbuf, count, datatype, op}, true, Draft::Made::in_result,
                     partitioned::scan_schedule);
  });
}

int MPIX_Pscatter_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request) {
  return make({"MPIX_Pscatter_init", partitions, comm, info, request}, [&](Draft& draft) {
    if (draft.rank() == root) {
      draft.agree_on_bytes(sendcount, sendtype);
    } else {
      draft.agree_on_bytes(recvcount, recvtype);
    }
    return scatter(
        draft, [&] { return draft.alike(sendbuf, draft.size(), sendcount, sendtype); },
        draft.one(recvbuf, recvcount, recvtype), root);
  });
}

int MPIX_Pscatterv_init(const void* sendbuf, int partitions, const int sendcounts[],
                        const int displs[], MPI_Datatype sendtype, void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                        MPI_Info info, MPI_Request* request) {
  return make({"MPIX_Pscatterv_init", partitions, comm, info, request}, [&](Draft& draft) {
    return scatter(
        draft, [&] { return draft.by_counts(sendbuf, draft.size(), sendcounts, displs, sendtype); },
        draft.one(recvbuf, recvcount, recvtype), root);
  });
}

int MPIX_Pneighbor_allgather_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                  MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  return make({"MPIX_Pneighbor_allgather_init", partitions, comm, info, request},
              [&](Draft& draft) {
                return among_neighbours(
                    draft, comm, [&](int) { return draft.one(sendbuf, sendcount, sendtype); },
                    [&](int n) { return draft.alike(recvbuf, n, recvcount, recvtype); }, true);
              });
}

int MPIX_Pneighbor_allgatherv_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                   MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                                   const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                   MPI_Info info, MPI_Request* request) {
  return make(
      {"MPIX_Pneighbor_allgatherv_init", partitions, comm, info, request}, [&](Draft& draft) {
        return among_neighbours(
            draft, comm, [&](int) { return draft.one(sendbuf, sendcount, sendtype); },
            [&](int n) { return draft.by_counts(recvbuf, n, recvcounts, displs, recvtype); }, true);
      });
}

int MPIX_Pneighbor_alltoall_init(const void* sendbuf, int partitions, MPI_Count sendcount,
                                 MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                 MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                 MPI_Request* request) {
  return make({"MPIX_Pneighbor_alltoall_init", partitions, comm, info, request}, [&](Draft& draft) {
    return among_neighbours(
        draft, comm, [&](int n) { return draft.alike(sendbuf, n, sendcount, sendtype); },
        [&](int n) { return draft.alike(recvbuf, n, recvcount, recvtype); }, false);
  });
}

int MPIX_Pneighbor_alltoallv_init(const void* sendbuf, int partitions, const int sendcounts[],
                                  const int sdispls[], MPI_Datatype sendtype, void* recvbuf,
                                  const int recvcounts[], const int rdispls[],
                                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  return make(
      {"MPIX_Pneighbor_alltoallv_init", partitions, comm, info, request}, [&](Draft& draft) {
        return among_neighbours(
            draft, comm,
            [&](int n) { return draft.by_counts(sendbuf, n, sendcounts, sdispls, sendtype); },
            [&](int n) { return draft.by_counts(recvbuf, n, recvcounts, rdispls, recvtype); },
            false);
      });
}

int MPIX_Pneighbor_alltoallw_init(const void* sendbuf, int partitions, const int sendcounts[],
                                  const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                  void* recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
                                  const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  return make(
      {"MPIX_Pneighbor_alltoallw_init", partitions, comm, info, request}, [&](Draft& draft) {
        return among_neighbours(
            draft, comm,
            [&](int n) { return draft.by_types(sendbuf, n, sendcounts, sdispls, sendtypes); },
            [&](int n) { return draft.by_types(recvbuf, n, recvcounts, rdispls, recvtypes); },
            false);
      });
}

}  // namespace accord::shim
