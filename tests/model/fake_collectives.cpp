// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The fake MPI's collectives and communicators.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "fake_mpi.h"
#include "fake_mpi_state.h"

namespace accord::model {
namespace {

std::byte* block_of(const Buffer& buffer, std::size_t index) {
  return static_cast<std::byte*>(buffer.data) + index * buffer.type.stride_bytes;
}

// Calls visit(address, length) for the first size_bytes bytes of the buffer's blocks.
template <class Visit>
void for_each_block(const Buffer& buffer, std::size_t size_bytes, Visit&& visit) {
  for (std::size_t i = 0; i < buffer.count && size_bytes > 0; ++i) {
    const std::size_t length = std::min(buffer.type.block_bytes, size_bytes);
    visit(block_of(buffer, i), length);
    size_bytes -= length;
  }
}

void fold(Op op, std::vector<std::byte>& into, const std::vector<std::byte>& other) {
  for (std::size_t at = 0; at + sizeof(std::int64_t) <= into.size(); at += sizeof(std::int64_t)) {
    std::int64_t a = 0;
    std::int64_t b = 0;
    std::memcpy(&a, into.data() + at, sizeof a);
    std::memcpy(&b, other.data() + at, sizeof b);
    a = combine(op, a, b);
    std::memcpy(into.data() + at, &a, sizeof a);
  }
}

bool is_root(const CollectiveArgs& args, std::size_t member) {
  return member == static_cast<std::size_t>(args.root);
}

// Where the block of a member begins, where blocks differ.
std::size_t sum_before(const std::vector<std::size_t>& blocks_bytes, std::size_t member) {
  return std::accumulate(blocks_bytes.begin(),
                         blocks_bytes.begin() + static_cast<std::ptrdiff_t>(member),
                         std::size_t{0});
}
std::size_t first_byte_of(const CollectiveArgs& args, std::size_t member) {
  return sum_before(args.blocks_bytes, member);
}

// What a member sends each of the others, where pairs differ: in place as much as it gets.
const std::vector<std::size_t>& sent_by(const CollectiveArgs& args) {
  return args.in_place ? args.blocks_bytes : args.sent_bytes;
}

// Bytes [first, first + size_bytes) of a buffer: whole blocks of its type.
Buffer part_of(const Buffer& buffer, std::size_t first_byte, std::size_t size_bytes) {
  return {block_of(buffer, first_byte / buffer.type.block_bytes), buffer.type,
          size_bytes / buffer.type.block_bytes};
}

// What a member reads and writes, MPI_IN_PLACE resolved.
Buffer input_of(const CollectiveArgs& args, std::size_t member, std::size_t members) {
  switch (args.kind) {
    case Collective::bcast:
      return is_root(args, member) ? args.recv : Buffer{};
    case Collective::reduce:
      return args.in_place && is_root(args, member) ? args.recv : args.send;
    case Collective::gather:
    case Collective::allgather:
      if (args.in_place && (args.kind == Collective::allgather || is_root(args, member))) {
        const std::size_t count = args.recv.count / members;
        return {block_of(args.recv, member * count), args.recv.type, count};
      }
      return args.send;
    case Collective::scatter:
    case Collective::scatterv:
      return is_root(args, member) ? args.send : Buffer{};
    case Collective::gatherv:
    case Collective::allgatherv:
      if (args.kind == Collective::gatherv && !is_root(args, member)) return args.send;
      return args.in_place && args.recv.count > 0
                 ? part_of(args.recv, first_byte_of(args, member), args.blocks_bytes[member])
                 : args.send;
    case Collective::allreduce:
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::reduce_scatter_block:
    case Collective::scan:
    case Collective::exscan:
    case Collective::reduce_scatter:
      return args.in_place ? args.recv : args.send;
    default:
      return {};
  }
}
Buffer output_of(const CollectiveArgs& args, std::size_t member, std::size_t members) {
  switch (args.kind) {
    case Collective::bcast:
      return is_root(args, member) ? Buffer{} : args.recv;
    case Collective::reduce:
    case Collective::gather:
    case Collective::gatherv:
      return is_root(args, member) ? args.recv : Buffer{};
    case Collective::scatter:
    case Collective::scatterv:
      return is_root(args, member) && args.in_place ? Buffer{} : args.recv;
    case Collective::reduce_scatter_block:
      return {args.recv.data, args.recv.type, args.recv.count / (args.in_place ? members : 1)};
    case Collective::reduce_scatter:
      return args.recv.count > 0 ? part_of(args.recv, 0, args.blocks_bytes[member]) : Buffer{};
    case Collective::exscan:
      return member == 0 ? Buffer{} : args.recv;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::allreduce:
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::scan:
      return args.recv;
    default:
      return {};
  }
}

Signature signature_of(Form form, const CollectiveArgs& args, std::size_t member,
                       std::size_t members) {
  Signature signature{form, args.kind, args.op, args.root, 0};
  const bool is_of_pairs = args.kind == Collective::gatherv || args.kind == Collective::scatterv ||
                           args.kind == Collective::alltoallv;
  if (is_of_pairs) return signature;  // no size is common to all
  signature.size_bytes = input_of(args, member, members).size_bytes();
  if (args.kind == Collective::bcast || args.kind == Collective::allgatherv)
    signature.size_bytes = args.recv.size_bytes();
  if (args.kind == Collective::scatter)
    signature.size_bytes =
        is_root(args, member) ? args.send.size_bytes() / members : args.recv.size_bytes();
  return signature;
}

}  // namespace

std::string Signature::text() const {
  return std::string(name_of(form)) + " " + name_of(kind) + " op " +
         std::to_string(static_cast<int>(op)) + " root " + std::to_string(root) + " of " +
         std::to_string(size_bytes) + " bytes";
}

std::vector<std::byte> pack(const Buffer& buffer) {
  std::vector<std::byte> bytes;
  for_each_block(buffer, buffer.size_bytes(), [&](std::byte* block, std::size_t length) {
    note_read(block, length);
    bytes.insert(bytes.end(), block, block + length);
  });
  return bytes;
}

void unpack(const Buffer& buffer, const std::byte* bytes, std::size_t size_bytes) {
  for_each_block(buffer, size_bytes, [&](std::byte* block, std::size_t length) {
    note_write(block, length);
    std::memcpy(block, bytes, length);
    bytes += length;
  });
}

void scribble(const Buffer& buffer, std::size_t size_bytes) {
  for_each_block(buffer, size_bytes, [](std::byte* block, std::size_t length) {
    note_write(block, length);
    std::memset(block, 0xc3, length);
  });
}

Comm FakeMpi::create_comm(std::vector<int> members) {
  auto info = std::make_unique<CommInfo>();
  info->freed.assign(members.size(), false);
  info->calls.assign(members.size(), 0);
  info->members = std::move(members);
  comms_.push_back(std::move(info));
  return static_cast<Comm>(comms_.size()) - 1;
}

FakeMpi::CommInfo& FakeMpi::comm_info(Comm comm, int world_rank) {
  CommInfo& info = *comms_.at(static_cast<std::size_t>(comm));
  const auto member =
      std::find(info.members.begin(), info.members.end(), world_rank) - info.members.begin();
  if (static_cast<std::size_t>(member) == info.members.size() ||
      info.freed[static_cast<std::size_t>(member)]) {
    scheduler_.fail("rank " + std::to_string(world_rank) + " used communicator " +
                    std::to_string(comm) + ", which is freed or not its own");
  }
  return info;
}

std::shared_ptr<FakeMpi::Instance> FakeMpi::new_instance(Comm comm, const Signature& signature,
                                                         const CollectiveArgs& args) {
  auto instance = std::make_shared<Instance>();
  instance->comm = comm;
  instance->signature = signature;
  instance->first = args;
  instance->members = comms_[static_cast<std::size_t>(comm)]->members;
  instance->parts.resize(instance->members.size());
  const bool may_leave_early = has_root(args.kind) || is_prefix(args.kind);
  instance->synchronizing = !may_leave_early || options_.perfect || scheduler_.random(2) == 0;
  if (signature.form == Form::persistent)
    instance->synchronizing = options_.synchronizing_init || options_.perfect;
  if (instance->synchronizing && !options_.perfect)
    instance->rounds = 1 + static_cast<int>(scheduler_.random(3));
  return instance;
}

// Takes this rank's place in the next collective of the communicator.
std::shared_ptr<FakeMpi::Instance> FakeRank::join(Form form, Comm comm,
                                                  const CollectiveArgs& args) {
  FakeMpi::CommInfo& info = mpi_.comm_info(comm, rank_);
  const auto me = static_cast<std::size_t>(
      std::find(info.members.begin(), info.members.end(), rank_) - info.members.begin());
  const Signature signature = signature_of(form, args, me, info.members.size());
  const std::size_t call = info.calls[me]++;
  if (call == info.instances.size()) {
    info.instances.push_back(mpi_.new_instance(comm, signature, args));
    if (form == Form::persistent) {
      info.instances.back()->group = std::make_shared<FakeMpi::PersistentGroup>();
      info.instances.back()->group->starts.assign(info.members.size(), 0);
    }
  }
  const auto instance = info.instances[call];
  if (!(instance->signature == signature)) {
    mpi_.scheduler_.fail("the ranks matched different calls: collective number " +
                         std::to_string(call + 1) + " of communicator " + std::to_string(comm) +
                         " is " + signature.text() + " on rank " + std::to_string(rank_) +
                         ", but " + instance->signature.text() + " on another");
  }
  add(*instance, me, args, nullptr);
  return instance;
}

void FakeRank::add(FakeMpi::Instance& instance, std::size_t member, const CollectiveArgs& args,
                   State* request) {
  auto& part = instance.parts[member];
  part.joined = true;
  part.args = args;
  part.request = request;
  part.at = pokes_ + mpi_.delay();
  passes_on(&instance);
  mpi_.scheduler_.event();
}

namespace {
std::size_t index_of(const std::vector<int>& members, int rank) {
  return static_cast<std::size_t>(std::find(members.begin(), members.end(), rank) -
                                  members.begin());
}
}  // namespace

Request FakeRank::collective(Form form, Comm comm, const CollectiveArgs& args) {
  std::shared_ptr<FakeMpi::Instance> instance;
  std::size_t me = 0;
  Request handle = kNoRequest;
  {
    const auto lock = enter(false);
    require_host(args.send, "a send buffer");
    require_host(args.recv, "a receive buffer");
    instance = join(form, comm, args);
    me = index_of(instance->members, rank_);
    // An initialisation moves no data.
    if (form == Form::persistent) instance->parts[me].args = CollectiveArgs();
    if (form != Form::persistent && !args.in_place) {
      const Buffer out = output_of(args, me, instance->members.size());
      scribble(out, out.size_bytes());
    }
    collectives_.push_back(instance);
    if (form != Form::blocking) {
      auto state = std::make_unique<State>();
      state->kind = State::Kind::collective;
      state->comm = comm;
      state->args = args;
      state->persistent = form == Form::persistent;
      state->active = !state->persistent;
      state->group = instance->group;
      if (form == Form::nonblocking) instance->parts[me].request = state.get();
      handle = new_request(std::move(state));
    }
    if (form == Form::nonblocking && instance->members.size() == 1 &&
        mpi_.scheduler_.random(2) == 0) {
      // Complete at birth.
      instance->parts[me].request = nullptr;
      instance->parts[me].input = pack(input_of(args, me, 1));
      mpi_.complete_instance(*this, *instance, me);
      collectives_.remove(instance);
      release(handle);
      return kDoneRequest;
    }
  }
  const bool waits =
      form == Form::blocking || (form == Form::persistent && instance->synchronizing);
  if (waits) block_until([&] { return instance->parts[me].complete; });
  return handle;
}

// A persistent collective starts: rounds match by their number, whatever else is started in
// between.
void FakeRank::start_round(State& state) {
  FakeMpi::PersistentGroup& group = *state.group;
  const std::size_t me =
      index_of(mpi_.comms_[static_cast<std::size_t>(state.comm)]->members, rank_);
  const std::size_t round = group.starts[me]++;
  if (round == group.rounds.size()) {
    const std::size_t members = group.starts.size();
    group.rounds.push_back(mpi_.new_instance(
        state.comm, signature_of(Form::nonblocking, state.args, me, members), state.args));
  }
  const auto instance = group.rounds[round];
  if (!state.args.in_place) {
    const Buffer out = output_of(state.args, me, group.starts.size());
    scribble(out, out.size_bytes());
  }
  add(*instance, me, state.args, &state);
  collectives_.push_back(instance);
}

// Whether what `me` does in the call has to wait for `other`.
bool FakeMpi::depends_on(const Instance& instance, std::size_t me, std::size_t other) {
  if (instance.synchronizing) return true;
  switch (instance.first.kind) {
    case Collective::bcast:
    case Collective::scatter:
    case Collective::scatterv:
      return is_root(instance.first, other);
    case Collective::scan:
    case Collective::exscan:
      return other < me;
    default:
      return is_root(instance.first, me);
  }
}

// Takes what steps are due for this rank: its contribution becomes visible round by round, each
// round only once all have shown the one before; then the completion.
bool FakeMpi::advance_instance(FakeRank& rank, Instance& instance) {
  const std::size_t me = index_of(instance.members, rank.rank_);
  Instance::Member& part = instance.parts[me];
  if (part.complete || rank.pokes_ < part.at) return false;
  const auto all_reached = [&](int round) {
    return std::all_of(instance.parts.begin(), instance.parts.end(),
                       [&](const Instance::Member& other) { return other.round >= round; });
  };
  if (part.round < instance.rounds) {
    if (part.round > 0 && !all_reached(part.round)) return false;
    if (part.round == 0) part.input = pack(input_of(part.args, me, instance.members.size()));
    ++part.round;
    part.at = rank.pokes_ + delay();
    return true;
  }
  if (!part.due) {
    // The initialisation of a persistent one is local, where it does not synchronise.
    const bool local = instance.signature.form == Form::persistent && !instance.synchronizing;
    for (std::size_t other = 0; other < instance.parts.size() && !local; ++other) {
      if (depends_on(instance, me, other) && instance.parts[other].round < instance.rounds)
        return false;
    }
    part.due = true;
    takes_over(&instance);
    part.at = rank.pokes_ + delay();
    return true;
  }
  complete_instance(rank, instance, me);
  return true;
}

void FakeMpi::complete_instance(FakeRank& rank, Instance& instance, std::size_t member) {
  Instance::Member& part = instance.parts[member];
  if (pack(input_of(part.args, member, instance.members.size())) != part.input) {
    scheduler_.fail("a collective's send buffer was changed while the host MPI owned it");
  }
  const std::vector<std::byte> result = result_of(instance, member);
  unpack(output_of(part.args, member, instance.members.size()), result.data(), result.size());
  if (instance.signature.form != Form::persistent) {
    if (part.args.created != nullptr) {
      create_children(instance);
      *part.args.created =
          part.args.color == kUndefined ? kNoComm : instance.children.at(part.args.color);
    }
    if (part.args.kind == Collective::free)
      comms_[static_cast<std::size_t>(instance.comm)]->freed[member] = true;
  }
  part.complete = true;
  if (part.request != nullptr) {
    part.request->due = true;
    part.request->due_at = rank.pokes_;
  }
  scheduler_.event();
}

// Of all members or, in a prefix, of those up to or before this one: of none nothing.
std::vector<std::byte> FakeMpi::reduced(const Instance& instance, std::size_t member) {
  const Collective kind = instance.first.kind;
  const std::size_t end = kind == Collective::scan     ? member + 1
                          : kind == Collective::exscan ? member
                                                       : instance.parts.size();
  std::vector<std::byte> result;
  for (std::size_t i = 0; i < end; ++i) {
    if (i == 0)
      result = instance.parts[i].input;
    else
      fold(instance.first.op, result, instance.parts[i].input);
  }
  return result;
}

std::vector<std::byte> FakeMpi::result_of(Instance& instance, std::size_t member) {
  const CollectiveArgs& args = instance.parts[member].args;
  std::vector<std::byte> result;
  const auto append = [&result](const std::vector<std::byte>& bytes, std::size_t first,
                                std::size_t size_bytes) {
    result.insert(result.end(), bytes.begin() + static_cast<std::ptrdiff_t>(first),
                  bytes.begin() + static_cast<std::ptrdiff_t>(first + size_bytes));
  };
  const std::size_t wanted_bytes = output_of(args, member, instance.parts.size()).size_bytes();
  switch (args.kind) {
    case Collective::bcast:
      if (!is_root(args, member))
        result = instance.parts[static_cast<std::size_t>(args.root)].input;
      break;
    case Collective::reduce:
      if (!is_root(args, member)) break;
      [[fallthrough]];
    case Collective::allreduce:
    case Collective::reduce_scatter_block:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
      result = reduced(instance, member);
      if (args.kind == Collective::reduce_scatter_block ||
          args.kind == Collective::reduce_scatter) {
        const std::vector<std::byte> all = std::move(result);
        result.clear();
        append(all,
               args.kind == Collective::reduce_scatter ? first_byte_of(args, member)
                                                       : member * wanted_bytes,
               wanted_bytes);
      }
      break;
    case Collective::scatter:
      append(instance.parts[static_cast<std::size_t>(args.root)].input, member * wanted_bytes,
             wanted_bytes);
      break;
    case Collective::scatterv:
      append(instance.parts[static_cast<std::size_t>(args.root)].input, first_byte_of(args, member),
             args.blocks_bytes[member]);
      if (is_root(args, member) && args.in_place) result.clear();
      break;
    case Collective::gather:
    case Collective::gatherv:
      if (!is_root(args, member)) break;
      [[fallthrough]];
    case Collective::allgather:
    case Collective::allgatherv:
      for (const auto& part : instance.parts) append(part.input, 0, part.input.size());
      break;
    case Collective::alltoall: {
      const std::size_t block_bytes = wanted_bytes / instance.parts.size();
      for (const auto& part : instance.parts) append(part.input, member * block_bytes, block_bytes);
      break;
    }
    case Collective::alltoallv:
      for (const auto& part : instance.parts) {
        const std::vector<std::size_t>& sent = sent_by(part.args);
        append(part.input, sum_before(sent, member), sent[member]);
      }
      break;
    default:
      break;
  }
  if (result.size() > wanted_bytes) scheduler_.fail("a collective's receive buffer is too small");
  return result;
}

// All have joined: the new communicators are the same for all, whoever completes first.
void FakeMpi::create_children(Instance& instance) {
  if (!instance.children.empty()) return;
  std::map<int, std::vector<int>> groups;
  for (std::size_t i = 0; i < instance.members.size(); ++i) {
    if (instance.parts[i].args.color != kUndefined)
      groups[instance.parts[i].args.color].push_back(instance.members[i]);
  }
  for (auto& [color, members] : groups) instance.children[color] = create_comm(std::move(members));
}

}  // namespace accord::model
