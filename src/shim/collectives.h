// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One collective call, three forms. The generated wrappers (wrappers.inc) name the arguments; what
// happens to them is said here once. A call without device memory goes straight to the host MPI.
// Those that make a request are issued with a shape, for its arrays, and with the buffers.
#pragma once

#include <mpi.h>

#include <utility>

#include "shim/check.h"
#include "shim/kept_call.h"
#include "shim/kept_handles.h"
#include "shim/neighbor_exchanges.h"
#include "shim/rank_order.h"
#include "shim/story.h"
#include "shim/uneven_exchanges.h"

namespace accord::shim {

// The host MPI must not be given this pointer as it is. MPI_BOTTOM may stand for addresses on a
// device.
inline bool needs_us(const void* pointer) {
  if (pointer == MPI_IN_PLACE) return false;
  return device::must_stage(pointer) || (pointer == MPI_BOTTOM && device::any_active());
}

template <class Shape>
inline constexpr char function_of = 0;  // its address stands for the kind of call

template <class Shape>
LastCollective as_last(const Shape& call, std::size_t size_bytes, const CommState& state) {
  LastCollective last;
  last.function = &function_of<Shape>;
  last.size_bytes = size_bytes;
  if constexpr (requires { call.op; }) {
    last.op = call.op;
    last.datatype = call.datatype;
  }
  if constexpr (requires { call.root; }) last.root = call.root;
  last.blocks = hash_of(uneven_blocks(call, state));
  return last;
}

inline core::CallMark mark_of_key(bool has_key, const core::Key& key, std::size_t size_bytes) {
  return has_key ? core::CallMark::of(key)
                 : core::CallMark{.what = size_bytes, .size_bytes = size_bytes};
}

// Whether the ranks have voted that calls like this one are for the host MPI; then counts it.
template <class Shape>
bool voted_plain(const Shape& call, std::size_t size_bytes) {
  CommState* const state = comm_state(call.comm);
  if (state == nullptr) return true;  // it will say why
  if (state->queue->owed) return false;
  if (LastCollective next = as_last(call, size_bytes, *state); !state->last.is_same(next)) {
    const auto sketch = outline(call, *state);
    next.has_ways = sketch && has_ways(*sketch, *state);
    if (sketch) next.key = key_of(*sketch);
    next.mark = mark_of_key(sketch.has_value(), next.key, size_bytes);
    state->last = next;
  }
  const bool plain = !state->last.has_ways || state->queue->modes.next_is_of_host(state->last.key);
  if (plain) (void)state->queue->watch.begin(state->last.mark, core::CallWatch::By::host);
  return plain;
}

enum class Form { blocking, nonblocking, persistent };

// Whether calls of this form are voted on: the same on all ranks, or they would count differently.
inline bool is_voted(Form form) { return form == Form::blocking || engine().threads_allowed(); }

// By what the ranks tell whether they make the same call; nothing where these are not counted. The
// same whatever this rank's buffers are.
template <class Shape>
std::optional<core::CallMark> call_mark(const Shape& call, const CommState& state, Form form) {
  const std::size_t size_bytes = pipeline_bytes(call);
  if (size_bytes == 0 || form == Form::persistent || !is_voted(form)) return std::nullopt;
  const auto sketch = outline(call, state);
  return mark_of_key(sketch.has_value(), sketch ? key_of(*sketch) : core::Key(), size_bytes);
}

// Whether the host MPI may take this call as it is: nothing of ours is under way that it could
// overtake or starve, no buffer needs staging, and the call is not one that all ranks must vote on.
template <class Shape>
bool passes(const Shape& call, Form form) {
  if (!engine().idle() || needs_us(send_pointer(call)) || needs_us(recv_pointer(call)))
    return false;
  if (refuses_calls(call.comm)) return false;
  if constexpr (Reduction<Shape>) {
    if (job.wants_rank_order) return false;
  }
  if (!is_voted(form)) return true;
  const std::size_t size_bytes = pipeline_bytes(call);
  return size_bytes == 0 || (form != Form::persistent && voted_plain(call, size_bytes));
}

// Whether a rank sends from where it receives its own block. All ranks of an allgather may do so
// by the same mistake, of which only rank 0 has one address for both buffers.
template <class Shape>
constexpr bool sends_own_place(const Shape&, const CommState&) {
  return false;
}
template <class C>
bool sends_own_place(const shape::Allgather<C>& call, const CommState& state) {
  if (state.inter || call.sendcount == 0) return false;
  if (call.sendcount != call.recvcount || call.sendtype != call.recvtype) return false;
  return call.sendbuf == core::at(call.recvbuf, static_cast<MPI_Aint>(call.recvcount) * state.rank *
                                                    extent_of(call.recvtype));
}
template <class C, class D>
bool sends_own_place(const shape::Allgatherv<C, D>& call, const CommState& state) {
  if (state.inter || call.sendcount == 0 || call.sendbuf == MPI_IN_PLACE) return false;
  if (call.sendcount != call.recvcounts[state.rank] || call.sendtype != call.recvtype) return false;
  return call.sendbuf == core::at(call.recvbuf, call.displs[state.rank] * extent_of(call.recvtype));
}

// Whether both buffers mean something on this rank, where they have one address: rank 0 of an
// exscan receives nothing, and all blocks of an allgatherv may lie behind what it sends.
template <class C>
bool overlaps(const shape::Exscan<C>&, int me) {
  return me > 0;
}
template <class C, class D>
bool overlaps(const shape::Allgatherv<C, D>& call, int me) {
  return overlap({call.sendcount, call.sendtype, 0},
                 {call.recvcounts[me], call.recvtype, call.displs[me]});
}

// One address for both buffers, which is an error that the host MPI shall report where both mean
// something on this rank.
template <class Shape>
bool is_aliased(const Shape& call, const CommState& state) {
  if (send_pointer(call) == nullptr || send_pointer(call) == MPI_IN_PLACE) return false;
  if (sends_own_place(call, state)) return true;
  bool aliased = send_pointer(call) == recv_pointer(call);
  if constexpr (requires { overlaps(call, state.rank); })
    aliased = aliased && !state.inter && overlaps(call, state.rank);
  else if constexpr (requires { call.root; })
    aliased = aliased && call.root == state.rank;
  else if constexpr (requires { call.recvcounts; })
    aliased = aliased && (state.inter || call.recvcounts[state.rank] != 0);
  return aliased;
}

template <class Shape>
constexpr check::Names names_of(const Shape& call) {
  if constexpr (requires { call.buffer; }) return {.send = "buffer", .recv = "buffer"};
  return check::kBoth;
}

// The call as the core wants it; false when an argument is wrong, which the host MPI shall report.
template <class Shape>
bool describe(const Shape& call, CommState& state, coll::CollectiveCall& described,
              check::Call& checked) {
  Description d;
  d.send = Description::buffer(send_pointer(call));
  d.recv = Description::buffer(recv_pointer(call));
  call.describe(d, state);
  if (!d.valid) return false;
  checked.look(d);
  if (d.recv.is_staged() && has_error_function(call.comm)) d.recv.preserve();
  if (!is_aliased(call, state)) described.args = coll_args(call, d, state);
  // Not of absolute addresses: one shadow for both were one pointer to host MPIs, as in place.
  described.sends_from_recv = d.send.is_staged() && d.recv.is_staged() &&
                              d.recv.user() != MPI_BOTTOM &&
                              (d.send.user() == d.recv.user() || sends_own_place(call, state));
  if (described.sends_from_recv) d.recv.absorb(d.send);
  if (described.story) {
    tell(described.story, call, d, state);
    described.why_no_exchange = why_no_exchange(call, state, described.args);
  }
  described.send = std::move(d.send);
  described.recv = std::move(d.recv);
  described.context = to_bits(call.comm);
  return true;
}

// The core's form of a host call that makes a request.
template <class Issue>
auto with_bits(Issue issue) {
  return [issue](const void* send, void* recv, core::HostRequest& bits) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = issue(send, recv, &request);
    bits = to_bits(request);
    return code;
  };
}

// The host's part of a reduction that goes in rank order; null for any other call.
template <class Shape>
std::shared_ptr<RankOrderReduction> make_rank_order(const Shape& call, const CommState& state) {
  auto ordered = is_aliased(call, state) ? std::nullopt : in_rank_order(call, state);
  return ordered ? std::make_shared<RankOrderReduction>(*std::move(ordered)) : nullptr;
}

inline void put_in_rank_order(coll::CollectiveCall& described,
                              std::shared_ptr<RankOrderReduction> ordered,
                              decltype(&RankOrderReduction::start) issue) {
  described.block = [ordered](const void* send, void* recv) { return ordered->block(send, recv); };
  described.issue = with_bits([ordered, issue](const void* send, void* recv, MPI_Request* request) {
    return ((*ordered).*issue)(send, recv, request);
  });
  described.conclude = [ordered](void* recv) { return ordered->reduce_into(recv); };
}

// One that the host MPI gets as it is, but others may not.
inline void count_by_host(CommState* state, const coll::CollectiveCall& described) {
  if (state != nullptr && described.mark)
    (void)state->queue->watch.begin(*described.mark, core::CallWatch::By::host);
}

inline void hand_to_host(const stages::Story& story, const char* why) {
  if (!story) return;
  story->took("host", why);
  stages::enter(stages::Stage::host_mpi);
}

template <class Shape>
RepeatedCalls::Places places_of(const Shape& call) {
  const auto place = [](const void* pointer) {
    return pointer == MPI_IN_PLACE ? device::PointerInfo() : device::classify(pointer);
  };
  return {.send = place(send_pointer(call)), .recv = place(recv_pointer(call))};
}

// Its buffers, for errors.
template <class Shape>
core::CallSite::Argument send_argument(const Shape& call) {
  if constexpr (requires { call.sendbuf; })
    return {"sendbuf", call.sendbuf};
  else
    return {};
}
template <class Shape>
core::CallSite::Argument recv_argument(const Shape& call) {
  if constexpr (requires { call.recvbuf; })
    return {"recvbuf", call.recvbuf};
  else if constexpr (requires { call.buffer; })
    return {"buffer", call.buffer};
  else
    return {};
}

// Whether the handles of the types that this rank moves are never reused for others. The others
// mean nothing here, and may be anything.
template <class Shape>
bool named_types(const Shape& call, const coll::CollArgs& args) {
  if constexpr (requires { call.datatype; }) {
    return is_named(call.datatype);
  } else {
    const auto named = [](const core::CallEnd& end, const void* pointer, MPI_Datatype type) {
      return !end.present() || pointer == MPI_IN_PLACE || is_named(type);
    };
    return named(args.in, send_pointer(call), call.sendtype) &&
           named(args.out, recv_pointer(call), call.recvtype);
  }
}

template <class Shape>
RepeatedCalls::Mark mark_of(const Shape& call) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  RepeatedCalls::Mark mark = bits(send_pointer(call)) ^ bits(recv_pointer(call)) << 7;
  if constexpr (requires { call.count; }) mark += static_cast<std::uint64_t>(call.count) << 1;
  if constexpr (requires { call.recvcount; })
    mark += static_cast<std::uint64_t>(call.recvcount) << 1;
  return mark | 1;  // never 0
}

// The call as it went before, if it is one that is kept and it goes the same way: then `code` is
// its outcome.
template <class Shape>
bool again(const Shape& call, int& code) {
  if constexpr (std::equality_comparable<Shape>) {
    if (!device::any_active() || stages::listening || check::on) return false;
    CommState* const state = comm_state(call.comm);
    const RepeatedCalls::Call* const kept =
        state == nullptr ? nullptr : state->repeated.find(mark_of(call), call);
    if (kept == nullptr || kept->places != places_of(call)) return false;
    if (!kept->stays_in_order) device::order_behind_program(kept->places.send, kept->places.recv);
    const auto status = coll::run_again(engine(), *state->queue, kept->args);
    if (status)
      code =
          raise(call.comm, *status, {kept->function, {send_argument(call), recv_argument(call)}});
    return status.has_value();
  } else {
    return false;
  }
}

template <class Shape>
void keep(const char* name, const Shape& call, CommState& state, coll::CollectiveCall& went) {
  if constexpr (std::equality_comparable<Shape>) {
    const RepeatedCalls::Mark mark = mark_of(call);
    if (!state.repeated.comes_again(mark) || !named_types(call, *went.args)) return;
    const RepeatedCalls::Places places = places_of(call);
    const auto stays = [](const device::PointerInfo& place) {
      return !device::needs_staging(place) || place.runtime->keep_in_order(place);
    };
    state.repeated.keep(mark, call,
                        {.shape = {},
                         .function = name,
                         .places = places,
                         .stays_in_order = stays(places.send) && stays(places.recv),
                         .args = *std::move(went.args)});
  }
}

template <class Shape, class Block, class Issue>
int blocking(const char* name, const Shape& call, Block block, Issue issue) {
  coll::CollectiveCall described;
  const core::CallScope scope(name, send_argument(call), recv_argument(call));
  described.story = begin_story(name);
  const stages::Active active(described.story);
  CommState* state = comm_state(call.comm);
  if (refuses_calls(call.comm)) return raise(call.comm, state->queue->watch.refusal());
  if (state != nullptr) described.mark = call_mark(call, *state, Form::blocking);
  check::Call checked(name, call.comm, names_of(call));
  if (state == nullptr || !describe(call, *state, described, checked)) {
    count_by_host(state, described);
    hand_to_host(described.story, coll::reason::kRefused);
    return block(send_pointer(call), const_cast<void*>(recv_pointer(call)));
  }
  const auto issue_bits = with_bits(issue);
  described.block = std::ref(block);  // both outlive the call
  described.issue = std::ref(issue_bits);
  if (auto ordered = make_rank_order(call, *state))
    put_in_rank_order(described, std::move(ordered), &RankOrderReduction::start);
  bool repeatable = false;
  const Status status = coll::run_collective(engine(), state->queue, described, repeatable);
  if (repeatable) keep(name, call, *state, described);
  return raise(call.comm, status);
}

template <class Shape, class Issue>
int nonblocking(const char* name, const Shape& call, Issue issue, MPI_Request* request) {
  coll::CollectiveCall described;
  const core::CallScope scope(name, send_argument(call), recv_argument(call));
  described.story = begin_story(name);
  const stages::Active active(described.story);
  free_kept_handles();
  CommState* state = comm_state(call.comm);
  if (refuses_calls(call.comm)) return raise(call.comm, state->queue->watch.refusal());
  if (state != nullptr) described.mark = call_mark(call, *state, Form::nonblocking);
  check::Call checked(name, call.comm, names_of(call), request);
  const bool valid =
      request != nullptr && state != nullptr && describe(call, *state, described, checked);
  auto ordered = valid ? make_rank_order(call, *state) : nullptr;
  if (!valid || (!ordered && !described.send.is_staged() && !described.recv.is_staged() &&
                 !described.args && !engine().busy(*state->queue))) {
    count_by_host(state, described);
    hand_to_host(described.story, valid ? coll::reason::kNothingStaged : coll::reason::kRefused);
    engine().progress();
    return issue(call, send_pointer(call), const_cast<void*>(recv_pointer(call)), request);
  }
  described.issue = with_bits(
      [issue, kept = KeptCall(call, *state)](const void* send, void* recv, MPI_Request* made) {
        return issue(*kept, send, recv, made);
      });
  if (ordered) put_in_rank_order(described, std::move(ordered), &RankOrderReduction::start);
  core::HostRequest bits = to_bits(MPI_REQUEST_NULL);
  const Status status =
      coll::start_collective(engine(), requests(), state->queue, std::move(described), bits);
  *request = from_bits<MPI_Request>(bits);
  return raise(call.comm, status);
}

template <class Shape, class Issue>
int persistent(const char* name, const Shape& call, Issue issue, MPI_Request* request) {
  coll::CollectiveCall described;
  const core::CallScope scope(name, send_argument(call), recv_argument(call));
  described.story = begin_story(name);
  const stages::Active active(described.story);
  CommState* state = comm_state(call.comm);
  if (refuses_calls(call.comm)) return raise(call.comm, state->queue->watch.refusal());
  check::Call checked(name, call.comm, names_of(call), request, check::Lifetime::persistent);
  if (request == nullptr || state == nullptr || !describe(call, *state, described, checked)) {
    hand_to_host(described.story, coll::reason::kRefused);
    return issue(call, send_pointer(call), const_cast<void*>(recv_pointer(call)), request);
  }
  auto ordered = make_rank_order(call, *state);
  if (!ordered && !described.send.is_staged() && !described.recv.is_staged() && !described.args) {
    hand_to_host(described.story, coll::reason::kNothingStaged);
    if (const int code = wait_for_turn(call.comm); code != MPI_SUCCESS) return code;
    return issue(call, send_pointer(call), const_cast<void*>(recv_pointer(call)), request);
  }
  described.issue = with_bits([issue, call](const void* send, void* recv, MPI_Request* made) {
    return issue(call, send, recv, made);
  });
  if (ordered) put_in_rank_order(described, std::move(ordered), &RankOrderReduction::init);
  core::HostRequest bits = to_bits(MPI_REQUEST_NULL);
  const Status status =
      coll::init_collective(engine(), requests(), state->queue, std::move(described), bits);
  *request = from_bits<MPI_Request>(bits);
  return raise(call.comm, status);
}

}  // namespace accord::shim
