// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/operation.h"

#include <tuple>

namespace accord::bench {
namespace {

template <class Function, class Arguments>
class BlockingCall : public Invocation {
 public:
  BlockingCall(Function* function, Arguments arguments)
      : function_(function), arguments_(std::move(arguments)) {}
  int run() override { return std::apply(function_, arguments_); }

 private:
  Function* function_;
  Arguments arguments_;
};

template <class Function, class Arguments>
class NonblockingCall : public Invocation {
 public:
  NonblockingCall(const MpiTable& mpi, Function* function, Arguments arguments)
      : wait_(mpi.Wait), function_(function), arguments_(std::move(arguments)) {}
  int run() override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = std::apply(
        [&](auto... arguments) { return function_(arguments..., &request); }, arguments_);
    return code != MPI_SUCCESS ? code : wait_(&request, MPI_STATUS_IGNORE);
  }

 private:
  decltype(MpiTable::Wait) wait_;
  Function* function_;
  Arguments arguments_;
};

class PersistentCall : public Invocation {
 public:
  template <class Function, class Arguments>
  PersistentCall(const MpiTable& mpi, Function* function, const Arguments& arguments) : mpi_(mpi) {
    std::apply([&](auto... values) { return function(values..., MPI_INFO_NULL, &request_); },
               arguments);
  }
  ~PersistentCall() override { mpi_.Request_free(&request_); }
  int run() override {
    const int code = mpi_.Start(&request_);
    return code != MPI_SUCCESS ? code : mpi_.Wait(&request_, MPI_STATUS_IGNORE);
  }

 private:
  const MpiTable& mpi_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

template <class... Args>
std::unique_ptr<Invocation> make_invocation(const CollectiveForms<int(Args...)>& forms,
                                            const MpiTable& mpi, Form form,
                                            const std::tuple<Args...>& arguments) {
  using Arguments = std::tuple<Args...>;
  switch (form) {
    case Form::blocking:
      return std::make_unique<BlockingCall<int(Args...), Arguments>>(forms.blocking, arguments);
    case Form::nonblocking:
      if (forms.nonblocking == nullptr) return nullptr;
      return std::make_unique<NonblockingCall<int(Args..., MPI_Request*), Arguments>>(
          mpi, forms.nonblocking, arguments);
    case Form::persistent:
      if (forms.persistent == nullptr) return nullptr;
      return std::make_unique<PersistentCall>(mpi, forms.persistent, arguments);
  }
  return nullptr;
}

// The `bind` of a collective: `arguments` makes the tuple of the blocking call's arguments from a
// Call.
template <class... Args, class MakeArguments>
auto collective(CollectiveForms<int(Args...)> MpiTable::*forms, MakeArguments make_arguments) {
  return [forms, make_arguments](const MpiTable& mpi, Form form,
                                 const Call& call) -> std::optional<Steps> {
    const std::tuple<Args...> arguments = make_arguments(call);
    auto invocation = make_invocation(mpi.*forms, mpi, form, arguments);
    if (invocation == nullptr) return std::nullopt;
    Steps steps;
    steps.push_back({.invocation = std::move(invocation)});
    return steps;
  };
}

int count_of(const Call& call) { return call.shape.counts[0]; }

Segment copied(std::size_t recv_first, std::size_t count, int rank, std::size_t source_first) {
  return {recv_first, count, rank, rank + 1, source_first};
}

// The blocks of all ranks one after the other, from `source_first` of each.
std::vector<Segment> gathered(const Shape& shape, std::size_t source_first) {
  std::vector<Segment> segments;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    segments.push_back(
        copied(shape.displs[at], static_cast<std::size_t>(shape.counts[at]), rank, source_first));
  }
  return segments;
}

std::vector<Segment> reduced(std::size_t count, int rank_last, std::size_t source_first) {
  return {{0, count, 0, rank_last, source_first}};
}

// Extents and results shared by an operation and its v-form.
Extent gather_extent(const Shape& s) { return {s.own_count(), s.is_root() ? s.total() : 0}; }
std::vector<Segment> gather_expected(const Shape& s) {
  return s.is_root() ? gathered(s, 0) : std::vector<Segment>{};
}
Extent scatter_extent(const Shape& s) { return {s.is_root() ? s.total() : 0, s.own_count()}; }
std::vector<Segment> scatter_expected(const Shape& s) {
  return {copied(0, s.own_count(), s.root, s.own_displ())};
}
Extent allgather_extent(const Shape& s) { return {s.own_count(), s.total()}; }
std::vector<Segment> allgather_expected(const Shape& s) { return gathered(s, 0); }
Extent alltoall_extent(const Shape& s) { return {s.total(), s.total()}; }
std::vector<Segment> alltoall_expected(const Shape& s) { return gathered(s, s.own_displ()); }
Extent reduce_scatter_extent(const Shape& s) { return {s.total(), s.own_count()}; }
std::vector<Segment> reduce_scatter_expected(const Shape& s) {
  return reduced(s.own_count(), s.ranks, s.own_displ());
}
Extent both_extent(const Shape& s) { return {s.count(), s.count()}; }

std::vector<Operation> rooted() {
  return {
      {.name = "barrier",
       .has_data = false,
       .synchronises = true,
       .bandwidth = Bandwidth::none,
       .bind = collective(&MpiTable::Barrier, [](const Call& c) { return std::tuple(c.comm); })},
      {.name = "bcast",
       .extent =
           [](const Shape& s) {
             return s.is_root() ? Extent{s.count(), 0} : Extent{0, s.count()};
           },
       .expected =
           [](const Shape& s) {
             if (s.is_root()) return std::vector<Segment>{};
             return std::vector<Segment>{copied(0, s.count(), s.root, 0)};
           },
       .bind = collective(&MpiTable::Bcast,
                          [](const Call& c) {
                            return std::tuple(c.shape.is_root() ? c.send : c.recv, count_of(c),
                                              c.type, c.shape.root, c.comm);
                          })},
      {.name = "gather",
       .bandwidth = Bandwidth::per_rank,
       .extent = gather_extent,
       .expected = gather_expected,
       .bind = collective(&MpiTable::Gather,
                          [](const Call& c) {
                            return std::tuple(c.send, count_of(c), c.type, c.recv, count_of(c),
                                              c.type, c.shape.root, c.comm);
                          })},
      {.name = "gatherv",
       .bandwidth = Bandwidth::per_rank,
       .displacements = Displacements::elements,
       .extent = gather_extent,
       .expected = gather_expected,
       .bind = collective(&MpiTable::Gatherv,
                          [](const Call& c) {
                            return std::tuple(c.send, count_of(c), c.type, c.recv,
                                              c.shape.counts.data(), c.displs.data(), c.type,
                                              c.shape.root, c.comm);
                          })},
      {.name = "scatter",
       .bandwidth = Bandwidth::per_rank,
       .extent = scatter_extent,
       .expected = scatter_expected,
       .bind = collective(&MpiTable::Scatter,
                          [](const Call& c) {
                            return std::tuple(c.send, count_of(c), c.type, c.recv, count_of(c),
                                              c.type, c.shape.root, c.comm);
                          })},
      {.name = "scatterv",
       .bandwidth = Bandwidth::per_rank,
       .displacements = Displacements::elements,
       .extent = scatter_extent,
       .expected = scatter_expected,
       .bind = collective(&MpiTable::Scatterv,
                          [](const Call& c) {
                            return std::tuple(c.send, c.shape.counts.data(), c.displs.data(),
                                              c.type, c.recv, count_of(c), c.type, c.shape.root,
                                              c.comm);
                          })},
  };
}

std::vector<Operation> exchanges() {
  return {
      {.name = "allgather",
       .synchronises = true,
       .bandwidth = Bandwidth::per_rank,
       .extent = allgather_extent,
       .expected = allgather_expected,
       .bind = collective(&MpiTable::Allgather,
                          [](const Call& c) {
                            return std::tuple(c.send, count_of(c), c.type, c.recv, count_of(c),
                                              c.type, c.comm);
                          })},
      {.name = "allgatherv",
       .synchronises = true,
       .bandwidth = Bandwidth::per_rank,
       .displacements = Displacements::elements,
       .extent = allgather_extent,
       .expected = allgather_expected,
       .bind = collective(&MpiTable::Allgatherv,
                          [](const Call& c) {
                            return std::tuple(c.send, count_of(c), c.type, c.recv,
                                              c.shape.counts.data(), c.displs.data(), c.type,
                                              c.comm);
                          })},
      {.name = "alltoall",
       .synchronises = true,
       .bandwidth = Bandwidth::per_rank,
       .extent = alltoall_extent,
       .expected = alltoall_expected,
       .bind = collective(&MpiTable::Alltoall,
                          [](const Call& c) {
                            return std::tuple(c.send, count_of(c), c.type, c.recv, count_of(c),
                                              c.type, c.comm);
                          })},
      {.name = "alltoallv",
       .synchronises = true,
       .bandwidth = Bandwidth::per_rank,
       .displacements = Displacements::elements,
       .extent = alltoall_extent,
       .expected = alltoall_expected,
       .bind = collective(&MpiTable::Alltoallv,
                          [](const Call& c) {
                            return std::tuple(c.send, c.shape.counts.data(), c.displs.data(),
                                              c.type, c.recv, c.shape.counts.data(),
                                              c.displs.data(), c.type, c.comm);
                          })},
      {.name = "alltoallw",
       .synchronises = true,
       .bandwidth = Bandwidth::per_rank,
       .displacements = Displacements::bytes,
       .extent = alltoall_extent,
       .expected = alltoall_expected,
       .bind = collective(&MpiTable::Alltoallw,
                          [](const Call& c) {
                            return std::tuple(c.send, c.shape.counts.data(), c.displs_bytes.data(),
                                              c.types.data(), c.recv, c.shape.counts.data(),
                                              c.displs_bytes.data(), c.types.data(), c.comm);
                          })},
  };
}

std::vector<Operation> reductions() {
  return {
      {.name = "reduce",
       .reduces = true,
       .extent =
           [](const Shape& s) {
             return Extent{s.count(), s.is_root() ? s.count() : 0};
           },
       .expected =
           [](const Shape& s) {
             return s.is_root() ? reduced(s.count(), s.ranks, 0) : std::vector<Segment>{};
           },
       .bind = collective(&MpiTable::Reduce,
                          [](const Call& c) {
                            return std::tuple(c.send, c.recv, count_of(c), c.type, c.op,
                                              c.shape.root, c.comm);
                          })},
      {.name = "allreduce",
       .reduces = true,
       .synchronises = true,
       .bandwidth = Bandwidth::allreduce,
       .extent = both_extent,
       .expected = [](const Shape& s) { return reduced(s.count(), s.ranks, 0); },
       .bind = collective(&MpiTable::Allreduce,
                          [](const Call& c) {
                            return std::tuple(c.send, c.recv, count_of(c), c.type, c.op, c.comm);
                          })},
      {.name = "reduce_scatter",
       .reduces = true,
       .synchronises = true,
       .bandwidth = Bandwidth::scattered,
       .blocks = Blocks::split,
       .extent = reduce_scatter_extent,
       .expected = reduce_scatter_expected,
       .bind = collective(&MpiTable::Reduce_scatter,
                          [](const Call& c) {
                            return std::tuple(c.send, c.recv, c.shape.counts.data(), c.type, c.op,
                                              c.comm);
                          })},
      {.name = "reduce_scatter_block",
       .reduces = true,
       .synchronises = true,
       .bandwidth = Bandwidth::scattered,
       .blocks = Blocks::split_equal,
       .extent = reduce_scatter_extent,
       .expected = reduce_scatter_expected,
       .bind = collective(&MpiTable::Reduce_scatter_block,
                          [](const Call& c) {
                            return std::tuple(c.send, c.recv, count_of(c), c.type, c.op, c.comm);
                          })},
      {.name = "scan",
       .reduces = true,
       .extent = both_extent,
       .expected = [](const Shape& s) { return reduced(s.count(), s.rank + 1, 0); },
       .bind = collective(&MpiTable::Scan,
                          [](const Call& c) {
                            return std::tuple(c.send, c.recv, count_of(c), c.type, c.op, c.comm);
                          })},
      // What exscan leaves on rank 0 is undefined.
      {.name = "exscan",
       .reduces = true,
       .extent =
           [](const Shape& s) {
             return Extent{s.count(), s.rank == 0 ? 0 : s.count()};
           },
       .expected =
           [](const Shape& s) {
             return s.rank == 0 ? std::vector<Segment>{} : reduced(s.count(), s.rank, 0);
           },
       .bind = collective(&MpiTable::Exscan,
                          [](const Call& c) {
                            return std::tuple(c.send, c.recv, count_of(c), c.type, c.op, c.comm);
                          })},
  };
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> rows = [] {
    std::vector<Operation> all = point_to_point_operations();
    for (auto make : {rooted, exchanges, reductions, stencil_operations, one_sided_operations}) {
      for (Operation& row : make()) all.push_back(std::move(row));
    }
    return all;
  }();
  return rows;
}

const Operation* find_operation(std::string_view name) {
  for (const Operation& operation : operations()) {
    if (name == operation.name) return &operation;
  }
  return nullptr;
}

}  // namespace accord::bench
