// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The collectives of the model shim: what src/shim/{shapes,collectives}.h do over a real MPI.
#include "coll/run/collective_operation.h"
#include "fake_device.h"
#include "model_shim.h"

namespace accord::model {
namespace {

using core::StagedBuffer;

StagedBuffer describe_buffer(const Buffer& buffer) {
  const device::PointerInfo where = FakeDevice::classify_any(buffer.data);
  return device::needs_staging(where) ? StagedBuffer::staged(buffer.data, where)
                                      : StagedBuffer::untouched(buffer.data);
}

// `count` blocks of `buffer` from block number `first` on.
core::Segment segment_of(const Buffer& buffer, std::size_t first, std::size_t count) {
  auto type =
      std::make_shared<const core::Typemap>(std::vector<core::Run>{{0, buffer.type.block_bytes, 0}},
                                            static_cast<std::ptrdiff_t>(buffer.type.stride_bytes));
  return {std::move(type), count, static_cast<std::ptrdiff_t>(first * buffer.type.stride_bytes)};
}
core::Segment segment_of(const Buffer& buffer) { return segment_of(buffer, 0, buffer.count); }

// Of the receive buffer's type, in the block of a rank.
std::size_t blocks_of(const CollectiveArgs& args, std::size_t rank) {
  const std::size_t size_bytes = args.blocks_bytes[rank];
  return size_bytes == 0 ? 0 : size_bytes / args.recv.type.block_bytes;
}

// Which bytes the host MPI reads and writes on this rank.
void describe_data(const CollectiveArgs& args, std::size_t me, std::size_t members,
                   StagedBuffer& send, StagedBuffer& recv) {
  const bool is_root = static_cast<std::size_t>(args.root) == me;
  switch (args.kind) {
    case Collective::bcast:
      is_root ? recv.reads(segment_of(args.recv)) : recv.writes(segment_of(args.recv));
      return;
    case Collective::reduce:
      if (!is_root || !args.in_place) send.reads(segment_of(args.send));
      if (is_root && args.in_place) recv.reads(segment_of(args.recv));
      if (is_root) recv.writes(segment_of(args.recv));
      return;
    case Collective::allgather: {
      if (!args.in_place) send.reads(segment_of(args.send));
      const std::size_t count = args.recv.count / members;
      for (std::size_t rank = 0; rank < members; ++rank) {
        const core::Segment block = segment_of(args.recv, rank * count, count);
        args.in_place&& rank == me ? recv.reads(block) : recv.writes(block);
      }
      return;
    }
    case Collective::gather: {
      const std::size_t count = args.recv.count / members;
      if (!is_root || !args.in_place) send.reads(segment_of(args.send));
      for (std::size_t rank = 0; rank < members && is_root; ++rank) {
        const core::Segment block = segment_of(args.recv, rank * count, count);
        args.in_place&& rank == me ? recv.reads(block) : recv.writes(block);
      }
      return;
    }
    case Collective::scatter:
    case Collective::scatterv:
      if (is_root) send.reads(segment_of(args.send));
      if (!is_root || !args.in_place) recv.writes(segment_of(args.recv));
      return;
    case Collective::gatherv:
    case Collective::allgatherv: {
      const bool gathers_to_root = args.kind == Collective::gatherv;
      if (!args.in_place || (gathers_to_root && !is_root)) send.reads(segment_of(args.send));
      std::size_t first = 0;
      for (std::size_t rank = 0; rank < members && (is_root || !gathers_to_root); ++rank) {
        const std::size_t count = blocks_of(args, rank);
        const core::Segment block = segment_of(args.recv, first, count);
        args.in_place&& rank == me ? recv.reads(block) : recv.writes(block);
        first += count;
      }
      return;
    }
    case Collective::exscan:
      args.in_place ? recv.reads(segment_of(args.recv)) : send.reads(segment_of(args.send));
      if (me > 0) recv.writes(segment_of(args.recv));
      return;
    case Collective::reduce_scatter:
      args.in_place ? recv.reads(segment_of(args.recv)) : send.reads(segment_of(args.send));
      recv.writes(segment_of(args.recv, 0, blocks_of(args, me)));
      return;
    case Collective::scan:
    case Collective::allreduce:
    case Collective::alltoall:
    case Collective::alltoallv:
      args.in_place ? recv.reads(segment_of(args.recv)) : send.reads(segment_of(args.send));
      recv.writes(segment_of(args.recv));
      return;
    case Collective::reduce_scatter_block:
      args.in_place ? recv.reads(segment_of(args.recv)) : send.reads(segment_of(args.send));
      recv.writes(segment_of(args.recv, 0, args.recv.count / (args.in_place ? members : 1)));
      return;
    default:
      return;
  }
}

// An operation as the user's request sees it, for the mutations that bypass start_collective.
class TrackedOutcome final : public core::Tracked {
 public:
  explicit TrackedOutcome(std::shared_ptr<core::Operation> operation)
      : operation_(std::move(operation)) {}
  Status finish(const core::Completion&) override { return operation_->status(); }

 private:
  std::shared_ptr<core::Operation> operation_;
};

}  // namespace

coll::CollectiveCall ModelShim::describe(Form form, Comm comm, const CollectiveArgs& args) {
  coll::CollectiveCall call;
  call.send = describe_buffer(args.send);
  call.recv = describe_buffer(args.recv);
  describe_data(args, static_cast<std::size_t>(host_.rank_in(comm)),
                static_cast<std::size_t>(host_.size_of(comm)), call.send, call.recv);
  call.args = coll_args(comm, args, call);
  if (call.args && form != Form::persistent) call.mark = core::CallMark::of(call.args->key);
  const auto with_pointers = [args](const void* send, void* recv) {
    CollectiveArgs issued = args;
    issued.send.data = const_cast<void*>(send);
    issued.recv.data = recv;
    return issued;
  };
  const Form issued_form = form == Form::persistent ? form : Form::nonblocking;
  call.issue = [=, this](const void* send, void* recv, core::HostRequest& request) {
    if (const int code = host_code(); code != 0) return code;
    request = host_.collective(issued_form, comm, with_pointers(send, recv));
    return 0;
  };
  call.block = [=, this](const void* send, void* recv) {
    if (const int code = host_code(); code != 0) return code;
    (void)host_.collective(Form::blocking, comm, with_pointers(send, recv));
    return 0;
  };
  return call;
}

void ModelShim::drain(Comm comm) {
  const auto queue = queue_of(comm);
  engine_.wait_until([&] { return !engine_.busy(*queue); });
}

Request ModelShim::collective(Form form, Comm comm, const CollectiveArgs& args) {
  coll::CollectiveCall call = describe(form, comm, args);
  if (is(Mutation::skip_queue) || is(Mutation::latest_mode) || is(Mutation::local_form)) {
    return run_mutated(form, comm, std::move(call));
  }
  const bool staged = call.send.is_staged() || call.recv.is_staged();
  auto queue = queue_of(comm);
  const bool makes_comms = args.created != nullptr || args.kind == Collective::free;
  check(queue->watch.refusal());
  Request request = kNoRequest;
  if (form == Form::nonblocking) {
    if (!staged && !call.args && !engine_.busy(*queue)) {
      engine_.progress();
      return host_.collective(form, comm, args);
    }
    check(coll::start_collective(engine_, requests_, queue, std::move(call), request));
  } else if (form == Form::persistent && (staged || call.args)) {
    check(coll::init_collective(engine_, requests_, queue, std::move(call), request));
  } else if (form == Form::persistent || makes_comms) {
    drain(comm);
    check(queue->watch.refusal());
    if (args.kind == Collective::free) {
      queue.reset();
      end_queue(comm);
    }
    const core::Engine::BlockingRegion region(engine_);
    request = host_.collective(form, comm, args);
  } else if (engine_.idle() && !staged && !call.args) {
    const core::Engine::BlockingRegion region(engine_);
    (void)host_.collective(form, comm, args);
  } else {
    // As the MPI shim does with calls that it has kept; these are described anew.
    const bool by_pairs =
        call.args && call.args->exchange && node::goes_by_pairs(call.args->exchange->kind);
    const bool simple =
        call.args && !call.args->in.shadowed && !call.args->out.shadowed && !by_pairs;
    if (auto status = simple ? coll::run_again(engine_, *queue, *call.args) : std::nullopt) {
      check(*status);
      return request;
    }
    bool repeatable = false;
    check(coll::run_collective(engine_, queue, call, repeatable));
  }
  return request;
}

// The same with one mistake: see Mutation.
Request ModelShim::run_mutated(Form form, Comm comm, coll::CollectiveCall call) {
  const auto queue = queue_of(comm);
  Request request = kNoRequest;
  using CoreForm = coll::CollectiveOperation::Form;
  if (form == Form::persistent) {
    check(coll::init_collective(engine_, requests_, queue, std::move(call), request));
    return request;
  }
  std::optional<core::Turn> turn;
  if (call.args) {
    turn = engine_.next_turn(*queue, call.args->key);
    if (is(Mutation::latest_mode)) {
      auto& heard = latest_[{comm, call.args->key.hash()}];
      if (turn->votes) {
        heard.push_back(turn->result);
      } else {
        for (const auto& result : heard) {
          if (result->known) turn->result = std::make_shared<core::VoteResult>(*result);
        }
      }
    }
  }
  const bool whole =
      !turn || (!turn->votes && turn->result->known && turn->result->algorithm == nullptr);
  if (form == Form::blocking) {
    const bool native = is(Mutation::skip_queue) ? !turn : whole && engine_.idle();
    if (is(Mutation::latest_mode)) drain(comm);
    const auto call_host = [&](coll::CollectiveCall& left) {
      check(left.open());
      check(left.copy_in());
      {
        const core::Engine::BlockingRegion region(engine_);
        (void)left.block(left.send_host(), left.recv.host());
      }
      check(left.recv.copy_out());
    };
    if (native || (whole && !is(Mutation::local_form))) {
      call_host(call);
      return request;
    }
    auto operation = std::make_shared<coll::CollectiveOperation>(
        std::move(call), turn, queue, whole ? CoreForm::nonblocking : CoreForm::blocking);
    engine_.submit(operation, queue);
    engine_.wait(*operation);
    check(operation->status());
    if (coll::CollectiveCall* left = operation->left_to_waiter()) call_host(*left);
    return request;
  }
  // skip_queue: an operation that is on its own, so that nothing holds it back.
  const auto order =
      is(Mutation::skip_queue) && !turn ? std::make_shared<core::CommQueue>() : queue;
  auto operation = std::make_shared<coll::CollectiveOperation>(std::move(call), turn, queue,
                                                               CoreForm::nonblocking);
  check(engine_.submit(operation, order, request));
  requests_.track(request, std::make_shared<TrackedOutcome>(std::move(operation)));
  return request;
}

}  // namespace accord::model
