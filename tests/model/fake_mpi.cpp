// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_mpi.h"

#include <algorithm>
#include <cstring>

#include "fake_device.h"
#include "fake_mpi_state.h"

namespace accord::model {

FakeMpi::FakeMpi(Scheduler& scheduler, Options options) : scheduler_(scheduler), options_(options) {
  std::vector<int> everyone;
  for (int rank = 0; rank < options.ranks; ++rank) {
    ranks_.push_back(std::make_unique<FakeRank>(*this, rank));
    everyone.push_back(rank);
  }
  create_comm(everyone);
}

FakeMpi::~FakeMpi() = default;
FakeRank::FakeRank(FakeMpi& mpi, int world_rank) : mpi_(mpi), rank_(world_rank) {}
FakeRank::~FakeRank() = default;

const std::vector<int>& FakeMpi::members(Comm comm) {
  const HiddenLock locked(mutex_);
  return comms_[static_cast<std::size_t>(comm)]->members;
}

int FakeRank::rank_in(Comm comm) {
  const std::vector<int>& members = mpi_.members(comm);
  return static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
}

Comm FakeRank::own_comm() {
  const HiddenLock locked(mpi_.mutex_);
  if (own_comm_ == kNoComm) own_comm_ = mpi_.create_comm({rank_});
  return own_comm_;
}

int FakeRank::size_of(Comm comm) { return static_cast<int>(mpi_.members(comm).size()); }

// One call of `caller`: its own delays run on. With perfect progress all ranks' do, at once.
void FakeMpi::poke(FakeRank& caller) {
  ++caller.pokes_;
  if (!options_.perfect) {
    caller.process();
    return;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& rank : ranks_) changed = rank->process() || changed;
  }
}

// The calls of one rank follow each other for a sanitizer, too.
HiddenLock FakeRank::enter(bool progresses) {
  mpi_.scheduler_.yield();
  HiddenLock lock(mpi_.mutex_, this);
  if (finalized_) mpi_.scheduler_.fail("an MPI call after MPI_Finalize");
  if (progresses || mpi_.options_.perfect || mpi_.scheduler_.random(2) == 0) mpi_.poke(*this);
  return lock;
}

void FakeRank::progress() { (void)enter(true); }

void FakeRank::block_until(const std::function<bool()>& done) {
  for (;;) {
    {
      const auto lock = enter(true);
      if (done()) return;
    }
    if (background && mpi_.scheduler_.random(3) == 0) background();
  }
}

bool FakeRank::process() {
  bool changed = process_messages();
  for (auto it = requests_.begin(); it != requests_.end();) {
    State& state = *(it++)->second;
    if (!state.active || !state.due || state.complete || pokes_ < state.due_at) continue;
    if (state.message) takes_over(state.message.get());
    if (state.kind == State::Kind::recv && !state.cancelled) {
      unpack(state.buffer, state.message->payload.data(), state.message->size_bytes);
    }
    if (state.kind == State::Kind::send && state.message->eager &&
        pack(state.buffer) != state.message->payload) {
      mpi_.scheduler_.fail("a send buffer was changed while the host MPI owned it");
    }
    state.message.reset();
    state.complete = true;
    changed = true;
    if (state.freed) release(state.handle);
  }
  for (auto it = collectives_.begin(); it != collectives_.end();) {
    const auto instance = *it;
    const auto member = static_cast<std::size_t>(
        std::find(instance->members.begin(), instance->members.end(), rank_) -
        instance->members.begin());
    changed = mpi_.advance_instance(*this, *instance) || changed;
    it = instance->parts[member].complete ? collectives_.erase(it) : std::next(it);
  }
  if (changed) mpi_.scheduler_.event();
  return changed;
}

bool FakeRank::process_messages() {
  bool changed = false;
  const auto same_way = [](const MessagePtr& a, const MessagePtr& b) {
    return a->src == b->src && a->dst == b->dst && a->comm == b->comm;
  };
  for (auto it = outgoing_.begin(); it != outgoing_.end();) {
    const MessagePtr message = *it;
    const bool overtakes = std::any_of(outgoing_.begin(), it, [&](const MessagePtr& earlier) {
      return !earlier->visible && same_way(earlier, message);
    });
    if (!message->visible && !overtakes && pokes_ >= message->visible_at) {
      FakeRank& receiver = mpi_.rank(message->dst);
      message->visible = true;
      message->arrive_at = receiver.pokes_ + mpi_.delay();
      receiver.arriving_.push_back(message);
      changed = true;
    }
    if (message->visible && !message->eager && message->receiver != nullptr &&
        pokes_ >= message->transfer_at) {
      message->payload = pack(message->buffer);
      message->transferred = true;
      message->sender->due = true;
      message->sender->due_at = pokes_ + mpi_.delay();
      message->receiver->due = true;
      message->receiver->due_at = mpi_.rank(message->dst).pokes_ + mpi_.delay();
      changed = true;
    }
    const bool gone = message->transferred || (message->eager && message->visible);
    it = gone ? outgoing_.erase(it) : std::next(it);
  }
  for (auto it = arriving_.begin(); it != arriving_.end();) {
    const MessagePtr message = *it;
    const bool overtakes = std::any_of(arriving_.begin(), it, [&](const MessagePtr& earlier) {
      return same_way(earlier, message);
    });
    if (overtakes || pokes_ < message->arrive_at) {
      ++it;
      continue;
    }
    it = arriving_.erase(it);
    changed = true;
    const auto recv = std::find_if(posted_.begin(), posted_.end(), [&](const State* state) {
      return state->comm == message->comm && state->tag == message->tag &&
             (state->peer == kAnySource || state->peer == message->src_in_comm);
    });
    if (recv == posted_.end()) {
      unexpected_.push_back(message);
    } else {
      State& state = **recv;
      posted_.erase(recv);
      match(message, state);
    }
  }
  return changed;
}

void FakeRank::match(const MessagePtr& message, State& recv) {
  if (message->size_bytes > recv.buffer.size_bytes()) {
    mpi_.scheduler_.fail("a message of " + std::to_string(message->size_bytes) +
                         " bytes was truncated");
  }
  recv.message = message;
  recv.status = {message->src_in_comm, message->tag, message->size_bytes, false};
  scribble(recv.buffer, message->size_bytes);
  passes_on(message.get());
  message->receiver = &recv;
  if (message->eager) {
    recv.due = true;
    recv.due_at = pokes_ + mpi_.delay();
  } else {
    message->transfer_at = mpi_.rank(message->src).pokes_ + mpi_.delay();
  }
}

void FakeRank::require_host(const Buffer& buffer, const char* what) {
  if (buffer.count > 0 && FakeDevice::owner(buffer.data) != nullptr) {
    mpi_.scheduler_.fail(std::string("a device pointer was given to the host MPI as ") + what);
  }
}

void FakeRank::post_send(State& state, Send mode) {
  auto message = std::make_shared<FakeMpi::Message>();
  message->src = rank_;
  FakeMpi::CommInfo& info = mpi_.comm_info(state.comm, rank_);
  message->dst = info.members.at(static_cast<std::size_t>(state.peer));
  message->src_in_comm = static_cast<int>(
      std::find(info.members.begin(), info.members.end(), rank_) - info.members.begin());
  message->comm = state.comm;
  message->tag = state.tag;
  message->size_bytes = state.buffer.size_bytes();
  message->buffer = state.buffer;
  message->sender = &state;
  message->visible_at = pokes_ + mpi_.delay();
  message->eager = mode == Send::standard && !mpi_.options_.perfect &&
                   mpi_.scheduler_.random(100) < mpi_.options_.eager_percent;
  if (message->eager) {
    message->payload = pack(state.buffer);
    state.due = true;
    state.due_at = pokes_ + mpi_.delay();
  }
  passes_on(message.get());
  state.message = message;
  outgoing_.push_back(message);
  mpi_.scheduler_.event();
}

void FakeRank::post_recv(State& state) {
  mpi_.scheduler_.event();
  const auto found =
      std::find_if(unexpected_.begin(), unexpected_.end(), [&](const MessagePtr& message) {
        return state.comm == message->comm && state.tag == message->tag &&
               (state.peer == kAnySource || state.peer == message->src_in_comm);
      });
  if (found == unexpected_.end()) {
    posted_.push_back(&state);
    return;
  }
  const MessagePtr message = *found;
  unexpected_.erase(found);
  match(message, state);
}

namespace {
template <class State>
std::unique_ptr<State> message_state(typename State::Kind kind, Comm comm, int peer, int tag,
                                     const Buffer& buffer) {
  auto state = std::make_unique<State>();
  state->kind = kind;
  state->comm = comm;
  state->peer = peer;
  state->tag = tag;
  state->buffer = buffer;
  return state;
}
}  // namespace

Request FakeRank::isend(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  const auto lock = enter(false);
  require_host(buffer, "a send buffer");
  auto state = message_state<State>(State::Kind::send, comm, dst, tag, buffer);
  State& posted = *state;
  const Request handle = new_request(std::move(state));
  post_send(posted, mode);
  if (posted.due && posted.due_at <= pokes_ && mpi_.scheduler_.random(2) == 0) {
    posted.message->sender = nullptr;  // complete at birth
    release(handle);
    return kDoneRequest;
  }
  return handle;
}

Request FakeRank::irecv(Comm comm, int src, int tag, const Buffer& buffer) {
  const auto lock = enter(false);
  require_host(buffer, "a receive buffer");
  auto state = message_state<State>(State::Kind::recv, comm, src, tag, buffer);
  State& posted = *state;
  const Request handle = new_request(std::move(state));
  post_recv(posted);
  return handle;
}

Request FakeRank::send_init(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  const auto lock = enter(false);
  require_host(buffer, "a send buffer");
  auto state = message_state<State>(State::Kind::send, comm, dst, tag, buffer);
  state->persistent = true;
  state->active = false;
  state->mode = mode;
  return new_request(std::move(state));
}

Request FakeRank::recv_init(Comm comm, int src, int tag, const Buffer& buffer) {
  const auto lock = enter(false);
  require_host(buffer, "a receive buffer");
  auto state = message_state<State>(State::Kind::recv, comm, src, tag, buffer);
  state->persistent = true;
  state->active = false;
  return new_request(std::move(state));
}

void FakeRank::send(Comm comm, int dst, int tag, const Buffer& buffer, Send mode) {
  Request request = isend(comm, dst, tag, buffer, mode);
  wait(request);
}

MessageStatus FakeRank::recv(Comm comm, int src, int tag, const Buffer& buffer) {
  MessageStatus status;
  Request request = irecv(comm, src, tag, buffer);
  wait(request, &status);
  return status;
}

bool FakeRank::iprobe(Comm comm, int src, int tag, MessageStatus& status) {
  const auto lock = enter(true);
  for (const MessagePtr& message : unexpected_) {
    if (message->comm != comm || message->tag != tag ||
        (src != kAnySource && src != message->src_in_comm))
      continue;
    status = {message->src_in_comm, message->tag, message->size_bytes, false};
    return true;
  }
  return false;
}

MessageStatus FakeRank::probe(Comm comm, int src, int tag) {
  MessageStatus status;
  while (!iprobe(comm, src, tag, status)) {
    if (background && mpi_.scheduler_.random(3) == 0) background();
  }
  return status;
}

void FakeRank::cancel(Request request) {
  const auto lock = enter(false);
  State& state = state_of(request, "MPI_Cancel");
  if (state.kind != State::Kind::recv || state.message) return;
  posted_.remove(&state);
  state.cancelled = true;
  state.status.cancelled = true;
  state.due = true;
  state.due_at = pokes_ + mpi_.delay();
}

}  // namespace accord::model
