// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "communicators.h"

#include <stdexcept>
#include <string>

#include "random.h"

namespace accord::conformance {
namespace {

constexpr int kLeaderTag = 11;

void check_comm_call(int code, const char* what) {
  if (code != MPI_SUCCESS)
    throw std::runtime_error(std::string(what) + " returned " + std::to_string(code));
}

}  // namespace

Comm describe_comm(const Api& api, const char* name, MPI_Comm handle) {
  Comm comm;
  comm.name = name;
  comm.handle = handle;
  comm.member = handle != MPI_COMM_NULL;
  if (!comm.member) return comm;
  check_comm_call(api.Comm_set_errhandler(handle, MPI_ERRORS_RETURN), "Comm_set_errhandler");
  check_comm_call(api.Comm_rank(handle, &comm.rank), "Comm_rank");
  check_comm_call(api.Comm_size(handle, &comm.size), "Comm_size");
  int inter = 0;
  check_comm_call(api.Comm_test_inter(handle, &inter), "Comm_test_inter");
  comm.inter = inter != 0;
  if (comm.inter)
    check_comm_call(api.Comm_remote_size(handle, &comm.remote_size), "Comm_remote_size");
  return comm;
}

Comm& Communicators::add(const char* name, MPI_Comm handle) {
  comms_.push_back(describe_comm(api_, name, handle));
  return comms_.back();
}

void Communicators::add_splits() {
  const int rank = world().rank;
  const int size = world().size;
  MPI_Comm handle = MPI_COMM_NULL;
  const auto split = [&](const char* name, int color, int key) {
    check_comm_call(api_.Comm_split(world().handle, color, key, &handle), name);
    add(name, handle);
    if (handle != MPI_COMM_NULL) owned_.push_back(handle);
  };
  split("split_parity", rank % 2, -rank);
  split("split_uneven", rank < (size + 2) / 3 ? 0 : 1, rank);
  split("reversed", 0, -rank);
  split("all_but_one", size > 1 && rank == size / 2 ? MPI_UNDEFINED : 0, rank);

  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group upper = MPI_GROUP_NULL;
  std::vector<int> members;
  for (int r = size - 1; r >= size / 3; --r) members.push_back(r);
  check_comm_call(api_.Comm_group(world().handle, &group), "Comm_group");
  check_comm_call(api_.Group_incl(group, static_cast<int>(members.size()), members.data(), &upper),
                  "Group_incl");
  check_comm_call(api_.Comm_create(world().handle, upper, &handle), "Comm_create");
  add("created", handle);
  if (handle != MPI_COMM_NULL) owned_.push_back(handle);
  handle = MPI_COMM_NULL;
  if (rank >= size / 3)
    check_comm_call(api_.Comm_create_group(world().handle, upper, 5, &handle), "Comm_create_group");
  add("created_group", handle);
  if (handle != MPI_COMM_NULL) owned_.push_back(handle);
  check_comm_call(api_.Group_free(&upper), "Group_free");
  check_comm_call(api_.Group_free(&group), "Group_free");
}

// Two groups by colour; each group's leader is its first rank.
void Communicators::add_inter(const char* name, int color) {
  const int rank = world().rank;
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm handle = MPI_COMM_NULL;
  check_comm_call(api_.Comm_split(world().handle, color, rank, &local), name);
  int leader = rank;  // the smallest world rank of the other colour
  std::vector<int> colors(static_cast<std::size_t>(world().size));
  check_comm_call(
      api_.Allgather.blocking.small(&color, 1, MPI_INT, colors.data(), 1, MPI_INT, world().handle),
      name);
  for (int r = world().size - 1; r >= 0; --r)
    if (colors[static_cast<std::size_t>(r)] != color) leader = r;
  check_comm_call(api_.Intercomm_create(local, 0, world().handle, leader, kLeaderTag, &handle),
                  name);
  add(name, handle).group = color;
  owned_.push_back(handle);
  check_comm_call(api_.Comm_free(&local), "Comm_free");
}

void Communicators::add_cart(const char* name, std::vector<int> dims, std::vector<int> periods) {
  MPI_Comm handle = MPI_COMM_NULL;
  const int dimensions = static_cast<int>(dims.size());
  check_comm_call(
      api_.Cart_create(world().handle, dimensions, dims.data(), periods.data(), 0, &handle), name);
  Comm& comm = add(name, handle);
  if (handle == MPI_COMM_NULL) return;
  owned_.push_back(handle);
  comm.topology = true;
  for (int d = 0; d < dimensions; ++d) {
    const auto i = static_cast<std::size_t>(d);
    comm.doubled_sides = comm.doubled_sides || (periods[i] != 0 && dims[i] <= 2);
    int source = 0;
    int destination = 0;
    check_comm_call(api_.Cart_shift(handle, d, 1, &source, &destination), "Cart_shift");
    comm.sources.push_back(source);
    comm.sources.push_back(destination);
  }
  comm.destinations = comm.sources;
}

void Communicators::add_graphs(std::uint64_t seed) {
  const int size = world().size;
  const int rank = world().rank;
  MPI_Comm handle = MPI_COMM_NULL;
  Rng rng(mix(seed, 0x67726170));
  std::vector<std::vector<int>> out(static_cast<std::size_t>(size)), in(out), both(out);
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < size; ++b) {
      const auto i = static_cast<std::size_t>(a);
      const auto j = static_cast<std::size_t>(b);
      if (rng.chance(60)) {
        out[i].push_back(b);
        in[j].push_back(a);
      }
      if (a < b && rng.chance(60)) {
        both[i].push_back(b);
        both[j].push_back(a);
      }
    }
  }
  const auto me = static_cast<std::size_t>(rank);
  rng = Rng(mix(seed, static_cast<std::uint64_t>(rank)));
  rng.shuffle(out[me]);
  rng.shuffle(in[me]);
  check_comm_call(api_.Dist_graph_create_adjacent(world().handle, static_cast<int>(in[me].size()),
                                                  in[me].data(), MPI_UNWEIGHTED,
                                                  static_cast<int>(out[me].size()), out[me].data(),
                                                  MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &handle),
                  "Dist_graph_create_adjacent");
  Comm& directed = add("dist_graph", handle);
  owned_.push_back(handle);
  directed.topology = true;
  directed.distinct_edges = true;
  directed.sources = in[me];
  directed.destinations = out[me];

  std::vector<int> index;
  std::vector<int> edges;
  for (const auto& neighbours : both) {
    edges.insert(edges.end(), neighbours.begin(), neighbours.end());
    index.push_back(static_cast<int>(edges.size()));
  }
  edges.push_back(0);  // a pointer that is valid without edges too
  check_comm_call(api_.Graph_create(world().handle, size, index.data(), edges.data(), 0, &handle),
                  "Graph_create");
  Comm& graph = add("graph", handle);
  owned_.push_back(handle);
  graph.topology = true;
  graph.distinct_edges = true;
  graph.sources = graph.destinations = both[me];
}

Communicators::Communicators(const Api& api, MPI_Comm world_handle, MPI_Comm self,
                             std::uint64_t seed)
    : api_(api) {
  add("world", world_handle);
  add("self", self);
  const int size = world().size;
  MPI_Comm handle = MPI_COMM_NULL;
  check_comm_call(api_.Comm_dup(world_handle, &handle), "Comm_dup");
  add("dup", handle);
  owned_.push_back(handle);
  MPI_Request request = MPI_REQUEST_NULL;
  check_comm_call(api_.Comm_idup(world_handle, &handle, &request), "Comm_idup");
  check_comm_call(api_.Wait(&request, MPI_STATUS_IGNORE), "Wait");
  add("idup", handle);
  owned_.push_back(handle);
  add_splits();
  if (size > 1) {
    add_inter("inter_parity", world().rank % 2);
    add_inter("inter_uneven", world().rank < (size + 2) / 3 ? 0 : 1);
    check_comm_call(api_.Intercomm_merge(comms_.back().handle, comms_.back().group, &handle),
                    "Intercomm_merge");
    add("merged", handle);
    owned_.push_back(handle);
  }
  const int rows = size % 2 == 0 ? 2 : 1;
  add_cart("cart_line", {size}, {0});
  add_cart("cart_ring", {size}, {1});
  add_cart("cart_grid", {rows, size / rows}, {0, 1});
  if (size > 1) add_cart("cart_part", {size - 1}, {0});
  add_graphs(seed);

  for (int i = 0; i < static_cast<int>(comms_.size()); ++i) {
    const Comm& comm = comms_[static_cast<std::size_t>(i)];
    const std::string name = comm.name;
    plain_.push_back(i);
    if (!name.starts_with("inter")) intra_.push_back(i);
    if (name.starts_with("cart") || name.ends_with("graph")) topologies_.push_back(i);
  }
}

Communicators::~Communicators() {
  for (auto handle = owned_.rbegin(); handle != owned_.rend(); ++handle) api_.Comm_free(&*handle);
}

}  // namespace accord::conformance
