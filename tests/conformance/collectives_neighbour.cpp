// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Neighbourhood collectives on Cartesian, graph and distributed graph communicators.
#include "collectives.h"

namespace accord::conformance {
namespace {

struct EdgePlan {
  Kind kind;
  int index;
  Payload payload;
  std::int64_t units;
  bool varied;
};

// Units from one neighbour to another. Where two processes may share two edges, which of them a
// block travels on is for the MPI to choose, so counts must not depend on it.
std::int64_t edge_units(const Run& run, const Comm& comm, const EdgePlan& plan, int source,
                        int destination) {
  const bool counted =
      plan.kind != Kind::neighbor_allgather && plan.kind != Kind::neighbor_alltoall;
  if (!counted || !plan.varied || !comm.distinct_edges) return plan.units;
  const std::uint64_t hash = mix(run.salt(), plan.index, source, destination);
  return hash % 4 == 0   ? 0
         : hash % 4 == 1 ? plan.units
                         : static_cast<std::int64_t>((hash >> 8) % 7);
}

std::vector<std::int64_t> incoming(const Run& run, const Comm& comm, const EdgePlan& plan,
                                   bool gather) {
  std::vector<std::int64_t> units;
  for (int source : comm.sources) {
    const int destination = gather ? 0 : comm.rank;
    units.push_back(edge_units(run, comm, plan, source, destination));
  }
  return units;
}

Prepared allgather(Run& run, const Comm& comm, const EdgePlan& plan) {
  const std::int64_t mine = edge_units(run, comm, plan, comm.rank, 0);
  const bool v = plan.kind == Kind::neighbor_allgatherv;
  const Blocks send = make_blocks(run, "send", plan.payload, std::vector{mine}, Spread::one);
  const Blocks to = make_blocks(run, "receive", plan.payload, incoming(run, comm, plan, true),
                                v ? Spread::v : Spread::equal);
  const void* from = send.pointer;
  if (!v)
    return bind(run, &Api::Neighbor_allgather, from, send.count, send.type, to.pointer, to.count,
                to.type, comm.handle);
  return bind(run, &Api::Neighbor_allgatherv, from, send.count, send.type, to.pointer, to.counts,
              to.displacements, to.type, comm.handle);
}

Prepared alltoall(Run& run, const Comm& comm, const EdgePlan& plan) {
  std::vector<std::int64_t> outgoing;
  for (int destination : comm.destinations)
    outgoing.push_back(edge_units(run, comm, plan, comm.rank, destination));
  const Spread spread = plan.kind == Kind::neighbor_alltoall    ? Spread::equal
                        : plan.kind == Kind::neighbor_alltoallv ? Spread::v
                                                                : Spread::w;
  const Blocks send = make_blocks(run, "send", plan.payload, outgoing, spread);
  const Blocks to =
      make_blocks(run, "receive", plan.payload, incoming(run, comm, plan, false), spread);
  const void* from = send.pointer;
  if (spread == Spread::equal)
    return bind(run, &Api::Neighbor_alltoall, from, send.count, send.type, to.pointer, to.count,
                to.type, comm.handle);
  if (spread == Spread::v)
    return bind(run, &Api::Neighbor_alltoallv, from, send.counts, send.displacements, send.type,
                to.pointer, to.counts, to.displacements, to.type, comm.handle);
  return bind(run, &Api::Neighbor_alltoallw, from, send.counts, send.displacements, send.types,
              to.pointer, to.counts, to.displacements, to.types, comm.handle);
}

}  // namespace

Prepared prepare_neighbour(Run& run, const Comm& comm, const CollectiveCall& call) {
  const Kind kind = call.kind;
  EdgePlan plan{.kind = kind,
                .index = call.index,
                .payload = random_payload(run),
                .units = 0,
                .varied = true};
  plan.units = random_units(run, plan.payload, run.world_size());
  plan.varied = run.global.chance(70);
  run.describe(std::string(kind_name(kind)) + " of " + std::to_string(plan.units) + " x " +
               std::to_string(plan.payload.signature.size()) + " " +
               plan.payload.signature.front()->name);
  if (!comm.member) return {};
  const bool gather = kind == Kind::neighbor_allgather || kind == Kind::neighbor_allgatherv;
  return gather ? allgather(run, comm, plan) : alltoall(run, comm, plan);
}

}  // namespace accord::conformance
