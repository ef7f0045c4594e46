// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Reductions: reduce, allreduce, reduce_scatter(_block), scan and exscan, with predefined and
// user-defined operations, also between two groups.
#include <algorithm>
#include <numeric>

#include "collectives.h"
#include "exclusions.h"
#include "reduction.h"

namespace accord::conformance {
namespace {

constexpr std::int64_t kPairCountMax = 300;

struct ReductionPlan {
  Kind kind;
  int index;
  Reduction reduction;
  std::int64_t count;
  int root_draw;
  int root_group;
  bool in_place;
};

// Counts of a reduce_scatter that add up to `total`, unequal, some zero, the same on all ranks of a
// group.
std::vector<std::int64_t> scatter_counts(const Run& run, const ReductionPlan& plan, int ranks,
                                         int group) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), plan.count / ranks);
  Rng rng(mix(run.salt(), plan.index, group, 0x7363));
  counts[static_cast<std::size_t>(rng.below(ranks))] += plan.count % ranks;
  for (std::size_t i = 0; i + 1 < counts.size(); i += 2) {
    if (!rng.chance(60)) continue;
    const std::int64_t moved = rng.chance(30) ? counts[i] : counts[i] / 2;
    counts[i] -= moved;
    counts[i + 1] += moved;
  }
  return counts;
}

class Reducer {
 public:
  Reducer(Run& run, const Comm& comm, const ReductionPlan& plan)
      : run_(run), comm_(comm), plan_(plan) {}

  Prepared reduce() {
    const bool ours = !comm_.inter || comm_.group == plan_.root_group;
    const int root_rank = plan_.root_draw % (ours ? comm_.size : comm_.remote_size);
    const bool is_root = ours && comm_.rank == root_rank;
    const int root = comm_.inter && ours ? (is_root ? MPI_ROOT : MPI_PROC_NULL) : root_rank;
    const bool sends = comm_.inter ? !ours : true;
    void* send = unused(run_).pointer;
    void* receive = unused(run_).pointer;
    if (is_root && plan_.in_place)
      send = MPI_IN_PLACE;
    else if (sends)
      send = input({total()});
    // Programs often name one buffer twice where the second is not significant. (Not between
    // groups: Open MPI takes that for in place, and sends nothing.)
    if (!comm_.inter && !is_root && run_.local.chance(30)) receive = send;
    if (is_root) receive = output(total(), total());
    return bind(run_, &Api::Reduce, constant(send), receive, Count{total()}, type(), op(), root,
                comm_.handle);
  }

  Prepared allreduce() {
    void* send = plan_.in_place ? MPI_IN_PLACE : input({total()});
    return bind(run_, &Api::Allreduce, constant(send), output(total(), total()), Count{total()},
                type(), op(), comm_.handle);
  }

  Prepared scan() {
    void* send = plan_.in_place ? MPI_IN_PLACE : input({total()});
    void* receive = output(total(), total());
    if (plan_.kind == Kind::scan)
      return bind(run_, &Api::Scan, constant(send), receive, Count{total()}, type(), op(),
                  comm_.handle);
    if (comm_.rank == 0) undefined_from(0, total());  // the standard leaves rank 0's result open
    return bind(run_, &Api::Exscan, constant(send), receive, Count{total()}, type(), op(),
                comm_.handle);
  }

  Prepared reduce_scatter() {
    std::vector<std::int64_t> counts =
        scatter_counts(run_, plan_, comm_.size, comm_.inter ? comm_.group : 0);
    for (std::int64_t& count : counts) count *= run_.partitions();
    const std::int64_t mine = counts[static_cast<std::size_t>(comm_.rank)];
    void* send = plan_.in_place ? MPI_IN_PLACE : input(counts);
    void* receive = output(plan_.in_place ? total() : mine, mine);
    if (plan_.in_place) undefined_from(mine, total());
    return bind(run_, &Api::Reduce_scatter, constant(send), receive, run_.keep(counts), type(),
                op(), comm_.handle);
  }

  Prepared reduce_scatter_block() {
    // Both groups must reduce vectors of the same length.
    const int both = comm_.inter ? std::lcm(comm_.size, comm_.remote_size) : comm_.size;
    const std::int64_t total = (plan_.count + both - 1) / both * both * run_.partitions();
    const std::int64_t mine = total / comm_.size;
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(comm_.size), mine);
    void* send = plan_.in_place ? MPI_IN_PLACE : input(counts);
    void* receive = output(plan_.in_place ? total : mine, mine);
    if (plan_.in_place) undefined_from(mine, total);
    return bind(run_, &Api::Reduce_scatter_block, constant(send), receive, Count{mine}, type(),
                op(), comm_.handle);
  }

 private:
  static const void* constant(void* pointer) { return pointer; }
  MPI_Datatype type() const { return plan_.reduction.type->handle; }
  MPI_Op op() const { return plan_.reduction.op; }

  std::int64_t total() const { return plan_.count * run_.partitions(); }

  // Of blocks one after the other.
  void* input(const std::vector<std::int64_t>& counts) {
    const auto count = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    Buffer& buffer = reduction_buffer(run_, "send", plan_.reduction, count, comm_.rank);
    std::ptrdiff_t at_bytes = 0;
    for (const std::int64_t of_block : counts) {
      run_.note_stretch({&buffer, plan_.reduction.type, at_bytes, of_block});
      at_bytes += of_block * plan_.reduction.type->extent_bytes;
    }
    return count == 0 && run_.local.chance(30) ? nullptr : buffer.pointer();
  }

  // The result takes the first `mine` elements.
  void* output(std::int64_t count, std::int64_t mine) {
    output_ = &reduction_buffer(run_, "receive", plan_.reduction, count, comm_.rank);
    run_.note_stretch({output_, plan_.reduction.type, 0, mine});
    set_padding_loose(run_, *output_, plan_.reduction, count);
    return output_->pointer();
  }

  // Elements that the standard lets the MPI leave in any state.
  void undefined_from(std::int64_t first, std::int64_t last) {
    const TypeModel& model = *plan_.reduction.type;
    for (std::int64_t i = first; i < last; ++i) {
      for (const Piece& piece : model.pieces) {
        const std::ptrdiff_t at = i * model.extent_bytes + piece.offset_bytes;
        run_.set_loose(*output_, at, at + static_cast<std::ptrdiff_t>(piece.element->size_bytes));
      }
    }
  }

  Run& run_;
  const Comm& comm_;
  const ReductionPlan& plan_;
  Buffer* output_ = nullptr;
};

}  // namespace

Reduction random_reduction(Run& run) {
  Rng& rng = run.global;
  Reduction reduction;
  const bool user = rng.chance(22);
  const Element* element = &rng.pick(run.elements());
  std::vector<const Operation*> choices;
  while (choices.empty()) {
    const bool sums_only = element->element_class == ElementClass::bfloat &&
                           !works(run, "bfloat16 reductions but sums");
    for (const Operation& operation : run.operations())
      if (legal(operation, *element) && (!sums_only || operation.values == Values::sum))
        choices.push_back(&operation);
    if (choices.empty()) element = &rng.pick(run.elements());
  }
  const Operation& operation = *rng.pick(choices);
  if (user) {
    const UserReduction made = make_user_reduction(run);
    reduction = {made.op, made.type, Values::bits, made.name, true};
  } else {
    reduction = {operation.handle, run.types.predefined(*element), operation.values, operation.name,
                 false};
  }
  return reduction;
}

Buffer& reduction_buffer(Run& run, const char* role, const Reduction& reduction, std::int64_t count,
                         int rank) {
  const TypeModel& type = *reduction.type;
  Buffer& buffer = run.buffer(role, type, count, type.align_bytes);
  buffer.paint = [&type, values = reduction.values, count, rank](std::byte* origin, Rng& rng) {
    for (std::int64_t i = 0; i < count; ++i)
      for (const Piece& piece : type.pieces)
        write_value(*piece.element, values, rank, rng,
                    origin + i * type.extent_bytes + piece.offset_bytes);
  };
  run.fill(buffer, 0);
  return buffer;
}

void set_padding_loose(Run& run, Buffer& buffer, const Reduction& reduction, std::int64_t count) {
  const TypeModel& type = *reduction.type;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Piece& piece : type.pieces) {
      const std::ptrdiff_t at = i * type.extent_bytes + piece.offset_bytes;
      for_each_padding(*piece.element, [&](std::size_t first, std::size_t last) {
        run.set_loose(buffer, at + static_cast<std::ptrdiff_t>(first),
                      at + static_cast<std::ptrdiff_t>(last));
      });
    }
  }
}

Prepared prepare_reduction(Run& run, const Comm& comm, const CollectiveCall& call) {
  const Kind kind = call.kind;
  ReductionPlan plan{.kind = kind,
                     .index = call.index,
                     .reduction = random_reduction(run),
                     .count = 0,
                     .root_draw = 0,
                     .root_group = 0,
                     .in_place = false};
  plan.count = random_units(run, plan.reduction.type->size_bytes, 1);
  if (plan.reduction.values == Values::location && !works(run, "large messages of mixed types"))
    plan.count = std::min<std::int64_t>(plan.count, kPairCountMax);
  plan.root_draw = run.global.below(1 << 20);
  plan.root_group = run.global.below(2);
  plan.in_place = run.global.chance(30) && !comm.inter && in_place_works(run, call);
  run.describe(std::string(kind_name(kind)) + " " + plan.reduction.name + " of " +
               std::to_string(plan.count) + " " + plan.reduction.type->text +
               (plan.in_place ? " in place" : ""));
  Prepared prepared;
  if (!comm.member) return prepared;
  Reducer reducer(run, comm, plan);
  switch (kind) {
    case Kind::reduce:
      prepared = reducer.reduce();
      break;
    case Kind::allreduce:
      prepared = reducer.allreduce();
      break;
    case Kind::reduce_scatter:
      prepared = reducer.reduce_scatter();
      break;
    case Kind::reduce_scatter_block:
      prepared = reducer.reduce_scatter_block();
      break;
    default:
      prepared = reducer.scan();
  }
  prepared.in_place = plan.in_place;
  prepared.user_op = plan.reduction.user;
  return prepared;
}

}  // namespace accord::conformance
