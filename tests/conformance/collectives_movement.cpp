// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives that only move data: bcast, gather(v), scatter(v), allgather(v), alltoall(v,w), also
// between two groups.
#include <algorithm>

#include "collectives.h"
#include "exclusions.h"

namespace accord::conformance {
namespace {

// What all ranks agree on about one operation.
struct Motion {
  Kind kind;
  int index;
  Payload payload;
  std::int64_t units[2];  // of a block, by the sending side's group
  bool varied;            // v and w kinds: whether counts differ by pair at all
  int root_draw;
  int root_group;
  bool in_place;
};

bool has_counts(Kind kind) {
  return kind == Kind::gatherv || kind == Kind::scatterv || kind == Kind::allgatherv ||
         kind == Kind::alltoallv || kind == Kind::alltoallw;
}

Motion draw_plan(Run& run, const Comm& comm, const CollectiveCall& call) {
  const Kind kind = call.kind;
  Motion plan{.kind = kind,
              .index = call.index,
              .payload = random_payload(run),
              .units = {},
              .varied = true,
              .root_draw = 0,
              .root_group = 0,
              .in_place = false};
  for (std::int64_t& units : plan.units) units = random_units(run, plan.payload, run.world_size());
  plan.varied = run.global.chance(80);
  plan.root_draw = run.global.below(1 << 20);
  plan.root_group = run.global.below(2);
  plan.in_place =
      run.global.chance(25) && kind != Kind::bcast && !comm.inter && in_place_works(run, call);
  // A MPI that chooses its algorithm by the local type must find the same size everywhere.
  plan.payload.unit_types = kind == Kind::allgatherv && !works(run, "allgatherv of unlike types");
  plan.payload.apart = kind == Kind::gather && !works(run, "gather of columns");
  if (kind == Kind::allgatherv && !works(run, "large allgatherv")) {
    constexpr std::size_t kSmallBytes = 8192;
    for (std::int64_t& units : plan.units)
      units = std::min(units, static_cast<std::int64_t>(
                                  kSmallBytes / std::max<std::size_t>(1, plan.payload.unit_bytes)) /
                                  run.partitions());
  }
  return plan;
}

// A rank of either group, by one number.
int global_id(const Comm& comm, int rank, bool remote) {
  const int group = comm.inter && remote ? 1 - comm.group : comm.group;
  return group * 1024 + rank;
}

class Movement {
 public:
  Movement(Run& run, const Comm& comm, const Motion& plan) : run_(run), comm_(comm), plan_(plan) {
    const bool ours = !comm.inter || comm.group == plan.root_group;
    const int root_rank = plan.root_draw % (ours ? comm.size : comm.remote_size);
    is_root_ = ours && comm.rank == root_rank;
    takes_part_ = !comm.inter || !ours || is_root_;
    root_ = comm.inter && ours ? (is_root_ ? MPI_ROOT : MPI_PROC_NULL) : root_rank;
    root_id_ =
        comm.inter && !ours ? global_id(comm, root_rank, true) : global_id(comm, root_rank, false);
    // In an inter-communicator the root talks to the other group only.
    leaf_ = comm.inter ? !ours : true;
  }

  Prepared bcast() {
    if (!takes_part_) {
      const Unused nothing = unused(run_);
      if (works(run_, "bcast count of a MPI_PROC_NULL rank"))
        return call_bcast(nothing.pointer, nothing.count, nothing.type);
      return call_bcast(nothing.pointer, {one_way(0)}, nothing.type);
    }
    const Blocks data = blocks(is_root_ ? "send" : "receive", {one_way(0)}, Spread::one);
    return call_bcast(data.pointer, data.count, data.type);
  }

  Prepared gather() {
    Unused send = unused(run_);
    Unused receive = unused(run_);
    ArrayRef counts, displacements;
    if (is_root_ && plan_.in_place) {
      send.pointer = MPI_IN_PLACE;
    } else if (leaf_) {
      const Blocks data = blocks("send", {to_root(comm_.rank, false)}, Spread::one);
      send = {data.pointer, data.count, data.type};
    }
    if (is_root_) {
      const Blocks data =
          blocks("receive", for_peers([&](int p) { return to_root(p, comm_.inter); }),
                 spread(Spread::equal, Spread::v));
      receive = {data.pointer, data.count, data.type};
      counts = data.counts;
      displacements = data.displacements;
    }
    if (plan_.kind == Kind::gather)
      return bind(run_, &Api::Gather, constant(send.pointer), send.count, send.type,
                  receive.pointer, receive.count, receive.type, root_, comm_.handle);
    return bind(run_, &Api::Gatherv, constant(send.pointer), send.count, send.type, receive.pointer,
                counts, displacements, receive.type, root_, comm_.handle);
  }

  Prepared scatter() {
    Unused send = unused(run_);
    Unused receive = unused(run_);
    ArrayRef counts, displacements;
    if (is_root_) {
      const Blocks data = blocks("send", for_peers([&](int p) { return to_root(p, comm_.inter); }),
                                 spread(Spread::equal, Spread::v));
      send = {data.pointer, data.count, data.type};
      counts = data.counts;
      displacements = data.displacements;
    }
    if (is_root_ && plan_.in_place) {
      receive.pointer = MPI_IN_PLACE;
    } else if (leaf_) {
      const Blocks data = blocks("receive", {to_root(comm_.rank, false)}, Spread::one);
      receive = {data.pointer, data.count, data.type};
    }
    if (plan_.kind == Kind::scatter)
      return bind(run_, &Api::Scatter, constant(send.pointer), send.count, send.type,
                  receive.pointer, receive.count, receive.type, root_, comm_.handle);
    return bind(run_, &Api::Scatterv, constant(send.pointer), counts, displacements, send.type,
                receive.pointer, receive.count, receive.type, root_, comm_.handle);
  }

  Prepared allgather() {
    Unused send = unused(run_);
    if (plan_.in_place) {
      send.pointer = MPI_IN_PLACE;
    } else {
      const Blocks data = blocks("send", {pair(me(), 0)}, Spread::one);
      send = {data.pointer, data.count, data.type};
    }
    const Blocks to = blocks("receive", for_peers([&](int p) { return pair(peer(p), 0); }),
                             spread(Spread::equal, Spread::v));
    if (plan_.kind == Kind::allgather)
      return bind(run_, &Api::Allgather, constant(send.pointer), send.count, send.type, to.pointer,
                  to.count, to.type, comm_.handle);
    return bind(run_, &Api::Allgatherv, constant(send.pointer), send.count, send.type, to.pointer,
                to.counts, to.displacements, to.type, comm_.handle);
  }

  Prepared alltoall() {
    const Spread shape =
        plan_.kind == Kind::alltoallw ? Spread::w : spread(Spread::equal, Spread::v);
    Blocks from;
    if (plan_.in_place)
      from.pointer = MPI_IN_PLACE;
    else
      from = blocks("send", for_peers([&](int p) { return pair(me(), peer(p)); }), shape);
    const Blocks to =
        blocks("receive", for_peers([&](int p) { return pair(peer(p), me()); }), shape);
    if (plan_.kind == Kind::alltoall)
      return bind(run_, &Api::Alltoall, constant(from.pointer), from.count, from.type, to.pointer,
                  to.count, to.type, comm_.handle);
    if (plan_.kind == Kind::alltoallv)
      return bind(run_, &Api::Alltoallv, constant(from.pointer), from.counts, from.displacements,
                  from.type, to.pointer, to.counts, to.displacements, to.type, comm_.handle);
    return bind(run_, &Api::Alltoallw, constant(from.pointer), from.counts, from.displacements,
                from.types, to.pointer, to.counts, to.displacements, to.types, comm_.handle);
  }

 private:
  static const void* constant(void* pointer) { return pointer; }

  Prepared call_bcast(void* pointer, Count count, MPI_Datatype type) {
    return bind(run_, &Api::Bcast, pointer, count, type, root_, comm_.handle);
  }

  Blocks blocks(const char* role, std::vector<std::int64_t> units, Spread spread) {
    return make_blocks(run_, role, plan_.payload, units, spread);
  }

  template <class F>
  std::vector<std::int64_t> for_peers(F units_of) const {
    std::vector<std::int64_t> units;
    for (int p = 0; p < comm_.peers(); ++p) units.push_back(units_of(p));
    return units;
  }

  Spread spread(Spread plain, Spread counted) const {
    return has_counts(plan_.kind) ? counted : plain;
  }
  int me() const { return global_id(comm_, comm_.rank, false); }
  int peer(int rank) const { return global_id(comm_, rank, true); }

  std::int64_t one_way(int group) const { return plan_.units[group]; }

  // Units between the root and a leaf.
  std::int64_t to_root(int rank, bool remote) const {
    return has_counts(plan_.kind) ? pair(global_id(comm_, rank, remote), root_id_) : one_way(0);
  }

  // Units from one rank to another, known to both. In place both directions must carry the same.
  std::int64_t pair(int source, int destination) const {
    const std::int64_t base = one_way(comm_.inter ? source / 1024 : 0);
    if (!has_counts(plan_.kind) || !plan_.varied) return base;
    if (plan_.in_place && plan_.kind >= Kind::alltoall && source > destination)
      std::swap(source, destination);
    const std::uint64_t hash = mix(run_.salt(), plan_.index, source, destination);
    switch (hash % 8) {
      case 0:
      case 1:
        return 0;
      case 2:
        return base;
      case 3:
        return base / 2;
      default:
        return static_cast<std::int64_t>((hash >> 8) % 7);
    }
  }

  Run& run_;
  const Comm& comm_;
  const Motion& plan_;
  bool is_root_ = false;
  bool takes_part_ = true;
  bool leaf_ = true;
  int root_ = 0;
  int root_id_ = 0;
};

}  // namespace

Prepared prepare_movement(Run& run, const Comm& comm, const CollectiveCall& call) {
  const Motion plan = draw_plan(run, comm, call);
  const Kind kind = call.kind;
  run.describe(std::string(kind_name(kind)) + " of " + std::to_string(plan.units[0]) + " x " +
               std::to_string(plan.payload.signature.size()) + " " +
               plan.payload.signature.front()->name + (plan.in_place ? " in place" : ""));
  Prepared prepared;
  if (!comm.member) return prepared;
  Movement movement(run, comm, plan);
  switch (kind) {
    case Kind::bcast:
      prepared = movement.bcast();
      break;
    case Kind::gather:
    case Kind::gatherv:
      prepared = movement.gather();
      break;
    case Kind::scatter:
    case Kind::scatterv:
      prepared = movement.scatter();
      break;
    case Kind::allgather:
    case Kind::allgatherv:
      prepared = movement.allgather();
      break;
    default:
      prepared = movement.alltoall();
  }
  prepared.in_place = plan.in_place;
  return prepared;
}

}  // namespace accord::conformance
