// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The collectives of a program over a real MPI, in each of their forms.
#include <accord/accord.h>
#include <fmt/format.h>

#include <memory>
#include <numeric>

#include "callbacks.h"
#include "job.h"
#include "named_reach.h"
#include "real_mpi.h"

// The call in the form wanted: MPI_<name>, MPI_<iname>, MPI_<name>_init.
#if MPI_VERSION >= 4
#define ACCORD_CALL(name, iname, ...)                                                \
  (form_ == Form::blocking ? check(MPI_##name(__VA_ARGS__, comm_), "MPI_" #name)     \
   : form_ == Form::nonblocking                                                      \
       ? check(MPI_##iname(__VA_ARGS__, comm_, &state_.handle), "MPI_" #iname)       \
       : check(MPI_##name##_init(__VA_ARGS__, comm_, MPI_INFO_NULL, &state_.handle), \
               "MPI_" #name "_init"))
#else
#define ACCORD_CALL(name, iname, ...)                        \
  (form_ == Form::blocking                                   \
       ? check(MPI_##name(__VA_ARGS__, comm_), "MPI_" #name) \
       : check(MPI_##iname(__VA_ARGS__, comm_, &state_.handle), "MPI_" #iname))
#endif

namespace accord::programs {

using model::Collective;
using model::CollectiveArgs;
using model::Form;
using model::Op;
using model::Random;
using Choice = Typed::Choice;

// One collective call of one rank. `shared` draws alike on all ranks, `own` for this one.
class CollectiveCall {
 public:
  CollectiveCall(Form form, MPI_Comm comm, const CollectiveArgs& args, RealMpi::State& state,
                 Random& shared, Random& own)
      : form_(form), comm_(comm), args_(args), state_(state), arrays_(state.arrays) {
    check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
    check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    variant_ = shared.below(100);
    const bool dense = is_dense(args.send) && is_dense(args.recv);
    // Predefined operations take numbers alone.
    if (model::is_reduction(args.kind)) choose_operation(shared, dense);
    Random& random = model::is_reduction(args.kind) ? shared : own;
    Choice choice = !model::is_reduction(args.kind) ? Choice::any
                    : is_user_operation_            ? Choice::same
                                                    : Choice::numbers;
    by_counts_ = is_by_counts();
    const bool alike = is_allgather() && by_counts_ && !works("allgatherv of unlike types");
    if (alike) choice = Choice::blocks;
    const std::uint64_t seed = random.next();
    Random for_send(seed);
    Random for_recv(model::is_reduction(args.kind) ? seed : random.next());
    const bool uneven = !args.blocks_bytes.empty();
    send_ = std::make_shared<Typed>(args.send, uneven ? 0 : portion_of(args.send, sends_blocks()),
                                    choice, for_send);
    recv_ = std::make_shared<Typed>(
        args.recv, uneven ? 0 : portion_of(args.recv, receives_blocks()), choice, for_recv);
    if (!works("types freed while in use"))
      state.types =
          std::make_shared<std::pair<std::shared_ptr<Typed>, std::shared_ptr<Typed>>>(send_, recv_);
  }
  ~CollectiveCall() {
    if (fresh_op_ != MPI_OP_NULL) check(MPI_Op_free(&fresh_op_), "MPI_Op_free");
  }
  CollectiveCall(const CollectiveCall&) = delete;
  CollectiveCall& operator=(const CollectiveCall&) = delete;

  void make();

 private:
  static bool is_dense(const model::Buffer& buffer) {
    return buffer.data == nullptr || buffer.type.block_bytes == buffer.type.stride_bytes;
  }
  bool sends_blocks() const {
    return args_.kind == Collective::alltoall || args_.kind == Collective::scatter ||
           args_.kind == Collective::reduce_scatter_block;
  }
  bool receives_blocks() const {
    return args_.kind == Collective::alltoall || args_.kind == Collective::allgather ||
           args_.kind == Collective::gather ||
           (args_.kind == Collective::reduce_scatter_block && args_.in_place);
  }
  std::size_t portion_of(const model::Buffer& buffer, bool by_rank) const {
    return buffer.count / (by_rank ? static_cast<std::size_t>(size_) : 1);
  }
  bool is_allgather() const {
    return args_.kind == Collective::allgather || args_.kind == Collective::allgatherv;
  }
  bool in_place_works(const char* kind) const {
    return !args_.in_place || works((std::string(form_ == Form::blocking      ? "blocking"
                                                 : form_ == Form::nonblocking ? "nonblocking"
                                                                              : "persistent") +
                                     " " + kind + " in place")
                                        .c_str());
  }
  bool has_blocks_of_its_own() const {
    return args_.kind == Collective::allgatherv || args_.kind == Collective::gatherv ||
           args_.kind == Collective::scatterv || args_.kind == Collective::alltoallv;
  }
  bool is_scatter() const {
    return args_.kind == Collective::scatter || args_.kind == Collective::scatterv;
  }
  // Whether the call has a count for each rank, though that of all may be the same.
  bool is_by_counts() const {
    if (args_.kind == Collective::alltoall)
      return variant_ < 45 && in_place_works(variant_ < 22 ? "alltoallv" : "alltoallw");
    return has_blocks_of_its_own() || (args_.kind != Collective::bcast && variant_ < 45);
  }
  void choose_operation(Random& shared, bool dense);
  void make_reduction();
  void make_movement();
  void make_by_counts();
  void fill_counts(const Typed& data, const std::vector<std::size_t>& blocks_bytes,
                   std::vector<int>& counts, std::vector<int>& places,
                   std::vector<MPI_Datatype>* types);

  // What the call names as the buffer: MPI_IN_PLACE where this rank has none of its own.
  const void* send_data() const {
    const bool in_place = args_.in_place && !is_scatter();
    return in_place && args_.send.data == nullptr ? MPI_IN_PLACE : send_->data();
  }
  void* recv_data() const {
    const bool in_place = is_scatter() && args_.in_place && is_root();
    return in_place ? MPI_IN_PLACE : recv_->data();
  }
  bool is_root() const { return rank_ == args_.root; }
  // Of the block between two ranks.
  int send_count() const { return send_->count_of(portion_of(args_.send, sends_blocks())); }
  int recv_count() const { return recv_->count_of(portion_of(args_.recv, receives_blocks())); }

  const Form form_;
  const MPI_Comm comm_;
  const CollectiveArgs& args_;
  RealMpi::State& state_;
  RealMpi::Arrays& arrays_;
  std::uint64_t variant_ = 0;
  int size_ = 0;
  int rank_ = 0;
  bool by_counts_ = false;
  bool is_user_operation_ = false;
  MPI_Op op_ = MPI_OP_NULL;
  MPI_Op fresh_op_ = MPI_OP_NULL;  // freed once the call is made
  std::shared_ptr<Typed> send_;
  std::shared_ptr<Typed> recv_;
};

void CollectiveCall::choose_operation(Random& shared, bool dense) {
  op_ = args_.op == Op::min ? MPI_MIN : MPI_SUM;
  is_user_operation_ = !dense || args_.op == Op::compose || shared.percent(30);
  if (!is_user_operation_) return;
  const bool commutes = args_.op != Op::compose && shared.percent(60);
  op_ = user_operation(args_.op, commutes);
  if (shared.percent(80)) return;
  op_ = fresh_op_ = make_user_operation(args_.op, commutes);
}

void CollectiveCall::make() {
  if (args_.kind == Collective::barrier) {
    if (form_ == Form::blocking) return check(MPI_Barrier(comm_), "MPI_Barrier");
#if MPI_VERSION >= 4
    if (form_ == Form::persistent)
      return check(MPI_Barrier_init(comm_, MPI_INFO_NULL, &state_.handle), "MPI_Barrier_init");
#endif
    return check(MPI_Ibarrier(comm_, &state_.handle), "MPI_Ibarrier");
  }
  if (model::is_reduction(args_.kind)) return make_reduction();
  by_counts_ ? make_by_counts() : make_movement();
}

void CollectiveCall::make_reduction() {
  const void* const send = send_data();
  void* const recv = recv_data();
  // In place the receive buffer tells what a rank contributes.
  const Typed& data = args_.send.data != nullptr ? *send_ : *recv_;
  const MPI_Datatype type = data.type();
  switch (args_.kind) {
    case Collective::reduce:
      return ACCORD_CALL(Reduce, Ireduce, send, recv, data.count(), type, op_, args_.root);
    case Collective::allreduce:
      return ACCORD_CALL(Allreduce, Iallreduce, send, recv, data.count(), type, op_);
    case Collective::scan:
      return ACCORD_CALL(Scan, Iscan, send, recv, data.count(), type, op_);
    case Collective::exscan:
      return ACCORD_CALL(Exscan, Iexscan, send, recv, data.count(), type, op_);
    default:
      break;
  }
  fill_counts(data, args_.blocks_bytes, arrays_.send_counts, arrays_.send_places, nullptr);
  const bool even = args_.kind == Collective::reduce_scatter_block;
  if (even && variant_ >= 30)
    return ACCORD_CALL(Reduce_scatter_block, Ireduce_scatter_block, send, recv,
                       arrays_.send_counts[0], type, op_);
  ACCORD_CALL(Reduce_scatter, Ireduce_scatter, send, recv, arrays_.send_counts.data(), type, op_);
}

void CollectiveCall::make_movement() {
  const void* const send = send_data();
  void* const recv = recv_data();
  const MPI_Datatype from = send_->type();
  const MPI_Datatype into = recv_->type();
  switch (args_.kind) {
    case Collective::bcast:
      return ACCORD_CALL(Bcast, Ibcast, recv, recv_->count(), into, args_.root);
    case Collective::allgather:
      return ACCORD_CALL(Allgather, Iallgather, send, send_count(), from, recv, recv_count(), into);
    case Collective::alltoall:
      return ACCORD_CALL(Alltoall, Ialltoall, send, send_count(), from, recv, recv_count(), into);
    case Collective::gather:
      return ACCORD_CALL(Gather, Igather, send, send_count(), from, recv, recv_count(), into,
                         args_.root);
    case Collective::scatter:
      return ACCORD_CALL(Scatter, Iscatter, send, send_count(), from, recv, recv_count(), into,
                         args_.root);
    default:
      fail(Symptom::error, "a collective that accord_programs does not know");
  }
}

// The forms that name a count, and perhaps a datatype, for each rank.
void CollectiveCall::make_by_counts() {
  const void* const send = send_data();
  void* const recv = recv_data();
  // In place, where none counts, it must not differ from the others' all the same.
  const MPI_Datatype from = args_.send.data == nullptr ? recv_->type() : send_->type();
  const MPI_Datatype into = recv_->type();
  RealMpi::Arrays& a = arrays_;
  const auto& sent = args_.sent_bytes.empty() ? args_.blocks_bytes : args_.sent_bytes;
  fill_counts(*send_, sent, a.send_counts, a.send_places, nullptr);
  fill_counts(*recv_, args_.blocks_bytes, a.recv_counts, a.recv_places, nullptr);
  switch (args_.kind) {
    case Collective::allgather:
    case Collective::allgatherv:
      model::reached("call", "allgatherv");
      return ACCORD_CALL(Allgatherv, Iallgatherv, send, send_->count(), from, recv,
                         a.recv_counts.data(), a.recv_places.data(), into);
    case Collective::gather:
    case Collective::gatherv:
      model::reached("call", "gatherv");
      return ACCORD_CALL(Gatherv, Igatherv, send, send_->count(), from, recv, a.recv_counts.data(),
                         a.recv_places.data(), into, args_.root);
    case Collective::scatter:
    case Collective::scatterv:
      model::reached("call", "scatterv");
      return ACCORD_CALL(Scatterv, Iscatterv, send, a.send_counts.data(), a.send_places.data(),
                         from, recv, recv_->count(), into, args_.root);
    default:
      break;
  }
  if (variant_ < 22) {
    model::reached("call", "alltoallv");
    return ACCORD_CALL(Alltoallv, Ialltoallv, send, a.send_counts.data(), a.send_places.data(),
                       from, recv, a.recv_counts.data(), a.recv_places.data(), into);
  }
  model::reached("call", "alltoallw");
  fill_counts(*send_, sent, a.send_counts, a.send_places, &a.send_types);
  fill_counts(*recv_, args_.blocks_bytes, a.recv_counts, a.recv_places, &a.recv_types);
  ACCORD_CALL(Alltoallw, Ialltoallw, send, a.send_counts.data(), a.send_places.data(),
              a.send_types.data(), recv, a.recv_counts.data(), a.recv_places.data(),
              a.recv_types.data());
}

// The blocks of a buffer that has one for each rank, of one size where no sizes are given: counts
// and places in elements, or, with datatypes, places in bytes.
void CollectiveCall::fill_counts(const Typed& data, const std::vector<std::size_t>& blocks_bytes,
                                 std::vector<int>& counts, std::vector<int>& places,
                                 std::vector<MPI_Datatype>* types) {
  counts.clear();
  places.clear();
  const auto ranks = static_cast<std::size_t>(size_);
  std::size_t before = 0;
  for (std::size_t member = 0; member < ranks; ++member) {
    const std::size_t blocks =
        blocks_bytes.empty() ? data.blocks() / ranks : blocks_bytes[member] / data.block_bytes();
    counts.push_back(data.count_of(blocks));
    places.push_back(types == nullptr ? data.count_of(before) : data.bytes_before(before));
    before += blocks;
  }
  if (types != nullptr) types->assign(ranks, data.type());
}

void RealMpi::call_collective(Form form, CommState& comm, const CollectiveArgs& args, State& state,
                              Random& shared) {
  Random own = draw();
  CollectiveCall(form, comm.handle, args, state, shared, own).make();
  if (form == Form::blocking && job.on_devices)
    model::reached("way", fmt::format("{} by {}", model::name_of(args.kind), accord_last_path()));
}

}  // namespace accord::programs
