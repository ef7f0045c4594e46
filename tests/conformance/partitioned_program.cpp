// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include <algorithm>
#include <numeric>

#include "case_p2p.h"
#include "case_partitioned.h"
#include "exclusions.h"

namespace accord::conformance {
namespace {

using Settings = PartitionedSettings;

constexpr int kWorksMax = 5;
constexpr int kTries = 20;
constexpr int kTags = 2;
constexpr int kOrdinaryTag = 77;
constexpr std::array<int, 10> kPartitions = {1, 2, 2, 3, 4, 4, 7, 8, 16, 35};

struct Length {
  int send_partitions = 1;
  int receive_partitions = 1;
  std::int64_t send_units = 0;  // of a partition
  std::int64_t receive_units = 0;
  bool truncated = false;
};

// As much on both ends, or less than there is room for, or more.
Length draw_length(Run& run, const Payload& payload) {
  Rng& rng = run.global;
  Length length;
  length.send_partitions = rng.pick(kPartitions);
  length.receive_partitions = rng.chance(30) ? length.send_partitions : rng.pick(kPartitions);
  const int way = rng.below(100);
  static constexpr std::array<int, 4> kExtra = {0, 0, 1, 5};
  const int extra = rng.pick(kExtra);
  const int both = std::lcm(length.send_partitions, length.receive_partitions);
  run.set_partitions(way < 60 ? both : length.send_partitions);
  const std::int64_t units = random_units(run, payload, 2);
  run.set_partitions(1);
  if (way < 60) {
    length.send_units = units * (both / length.send_partitions);
    length.receive_units = units * (both / length.receive_partitions);
    return length;
  }
  const std::int64_t total = units * length.send_partitions;
  length.send_units = units;
  length.truncated = way >= 95 && total > length.receive_partitions;
  length.receive_units =
      length.truncated
          ? (total - 1) / length.receive_partitions
          : (total + length.receive_partitions - 1) / length.receive_partitions + extra;
  return length;
}

Settings draw_settings(Run& run) {
  static constexpr std::array<int, 5> kMarks = {1, 1, 1, 2, 3};
  static constexpr std::array<int, 6> kTransfers = {1, 1, 1, 2, 3, 100};
  static constexpr std::array<const char*, 4> kCopies = {"", "kernel", "kernel", "engine"};
  Settings settings;
  settings.marks = run.global.pick(kMarks);
  settings.transfer_partitions = run.global.pick(kTransfers);
  settings.copy = run.global.pick(kCopies);
  settings.prepared = run.global.chance(50);
  return settings;
}

class Maker {
 public:
  Maker(Run& run, PartitionedProgram& program) : run_(run), api_(run.api()), program_(program) {}

  void add_message(int number) {
    Rng& rng = run_.global;
    const int which = rng.pick(run_.comms().plain());
    const Comm& comm = run_.comms().all()[static_cast<std::size_t>(which)];
    run_.set_partitions(2);
    const Payload payload = random_payload(run_);
    run_.set_partitions(1);
    Settings settings = draw_settings(run_);
    const Length length = draw_length(run_, payload);
    settings.truncated = length.truncated;
    const int group = rng.below(2);
    const int source = rng.below(1 << 16);
    const int destination = rng.below(1 << 16);
    const int tag = rng.below(kTags);
    const bool to_nobody = rng.chance(3);
    run_.describe("message " + std::to_string(number) + " on " + comm.name + ", " +
                  std::to_string(length.send_partitions) + " to " +
                  std::to_string(length.receive_partitions) + " partitions of " +
                  std::to_string(length.send_units) + " and " +
                  std::to_string(length.receive_units) + " x " +
                  std::to_string(payload.signature.size()) + " " + payload.signature.front()->name +
                  (length.truncated ? " truncated" : "") + (to_nobody ? " to nobody" : "") + ",");
    if (!comm.member) return;
    const int from_group = comm.inter ? group : 0;
    const int to_group = comm.inter ? 1 - group : 0;
    const auto size_of = [&](int of) {
      return comm.inter && of != comm.group ? comm.remote_size : comm.size;
    };
    const Endpoint from{from_group, source % size_of(from_group)};
    const Endpoint to{to_group, destination % size_of(to_group)};
    const Endpoint me{comm.inter ? comm.group : 0, comm.rank};
    settings.truncated = settings.truncated && !to_nobody;
    const std::string key = std::to_string(which) + " " + std::to_string(from.rank) + " " +
                            std::to_string(from_group) + " " + std::to_string(to.rank) + " " +
                            std::to_string(tag);
    if (from == me) {
      settings.end = Settings::End::send;
      settings.partitions = length.send_partitions;
      add_end(settings, comm, payload, length.send_units, to_nobody ? MPI_PROC_NULL : to.rank, tag,
              "send " + std::to_string(number), "send " + key);
    }
    if (to == me) {
      settings.end = Settings::End::receive;
      settings.partitions = length.receive_partitions;
      add_end(settings, comm, payload, length.receive_units, to_nobody ? MPI_PROC_NULL : from.rank,
              tag, "receive " + std::to_string(number), "receive " + key);
    }
  }

  void add_collective(int number) {
    const bool neighbours = run_.global.chance(20);
    const auto& comms = run_.comms();
    const int which = run_.global.pick(neighbours ? comms.topologies() : comms.intra());
    const Comm* comm = &comms.all()[static_cast<std::size_t>(which)];
    const bool fresh = run_.global.chance(6) && !neighbours && program_.fresh == nullptr;
    const Kind kind = draw_kind(*comm, neighbours);
    Settings settings = draw_settings(run_);
    settings.partitions = run_.global.pick(kPartitions);
    if (fresh) run_.describe(std::string("on a duplicate of ") + comm->name);
    if (fresh) comm = program_.fresh = &run_.fresh_comm(*comm);
    run_.set_partitions(settings.partitions);
    run_.describe(std::to_string(settings.partitions) + " partitions of");
    Prepared prepared =
        prepare(run_, *comm, {.kind = kind, .form = Form::blocking, .index = number});
    run_.set_partitions(1);
    if (!comm->member) return;
    PartitionedWork& work = program_.works.emplace_back(
        run_, settings, std::string(kind_name(kind)) + " " + std::to_string(number));
    work.key = "collective " + std::to_string(which) + (fresh ? " fresh" : "");
    work.end.buffers = prepared.buffers;
    work.end.rank = comm->rank;
    work.end.has_edges = is_neighbour(kind);
    find_roles(work.end, kind, prepared);
    if (kind == Kind::exscan && comm->rank == 0) work.end.outputs.clear();  // it gets nothing
    work.end.init = std::move(prepared.partitioned);
    work.call = [call = std::move(prepared.call)] { return call(Form::blocking, false, nullptr); };
  }

  // What goes on meanwhile.
  void add_ordinary() {
    static constexpr std::array<Kind, 4> kKinds = {Kind::allreduce, Kind::bcast, Kind::allgather,
                                                   Kind::alltoall};
    const Kind kind = run_.global.pick(kKinds);
    const Comm& world = run_.comms().world();
    program_.collective =
        prepare(run_, world, {.kind = kind, .form = Form::nonblocking, .index = 100});
    const Payload payload = random_payload(run_);
    const std::int64_t units = random_units(run_, payload, 1);
    const Blocks from = make_blocks(run_, "send", payload, std::vector{units}, Spread::one);
    const Blocks to = make_blocks(run_, "receive", payload, std::vector{units}, Spread::one);
    const int next = (world.rank + 1) % world.size;
    const int before = (world.rank + world.size - 1) % world.size;
    program_.send.buffers = {from.buffer};
    program_.receive.buffers = {to.buffer};
    program_.send.call = [&api = api_, from, next, &world](Form, bool, MPI_Request* request) {
      return api.Isend(false, static_cast<const void*>(from.pointer), from.count, from.type, next,
                       kOrdinaryTag, world.handle, request);
    };
    program_.receive.call = [&api = api_, to, before, &world](Form, bool, MPI_Request* request) {
      return api.Irecv(false, to.pointer, to.count, to.type, before, kOrdinaryTag, world.handle,
                       request);
    };
  }

 private:
  void add_end(const Settings& settings, const Comm& comm, const Payload& payload,
               std::int64_t units, int peer, int tag, std::string name, std::string key) {
    const bool sends = settings.end == Settings::End::send;
    run_.set_partitions(settings.partitions);
    const std::size_t before = run_.stretches().size();
    const Blocks blocks =
        make_blocks(run_, sends ? "send" : "receive", payload, std::vector{units}, Spread::one);
    run_.set_partitions(1);
    PartitionedWork& work = program_.works.emplace_back(run_, settings, std::move(name));
    work.key = std::move(key);
    work.end.buffers = {blocks.buffer};
    (sends ? work.end.inputs : work.end.outputs)
        .assign(run_.stretches().begin() + static_cast<std::ptrdiff_t>(before),
                run_.stretches().end());
    work.end.gives = sends;
    work.end.gets = !sends && !settings.truncated;
    const MPI_Count each = blocks.count.value / settings.partitions;
    work.end.init = [=, &api = api_, &comm](MPI_Info info, MPI_Request* request) {
      return sends ? api.Psend_init(blocks.pointer, settings.partitions, each, blocks.type, peer,
                                    tag, comm.handle, info, request)
                   : api.Precv_init(blocks.pointer, settings.partitions, each, blocks.type, peer,
                                    tag, comm.handle, info, request);
    };
    if (settings.truncated) return;
    work.post = [=, &api = api_, &comm, &work] {
      return sends ? api.Isend(false, static_cast<const void*>(blocks.pointer), blocks.count,
                               blocks.type, peer, tag, comm.handle, &work.ordinary)
                   : api.Irecv(false, blocks.pointer, blocks.count, blocks.type, peer, tag,
                               comm.handle, &work.ordinary);
    };
  }

  Kind draw_kind(const Comm& comm, bool neighbours) {
    for (int i = 0; i < kTries; ++i) {
      const Kind kind = random_kind(run_, comm, neighbours);
      if (kind == Kind::barrier) continue;
      try {
        require_call(run_, comm, kind, Form::blocking);
      } catch (const Skip&) {
        continue;
      }
      return kind;
    }
    if (neighbours) return draw_kind(comm, false);
    throw Skip{"no collective that the host MPI can do there"};
  }

  // Who gives and who gets follows from the buffers, but where ranks that have no bytes take part.
  static void find_roles(PartitionedEnd& end, Kind kind, const Prepared& prepared) {
    bool in_send = false;
    bool in_receive = false;
    for (const Stretch& stretch : prepared.stretches) {
      const bool is_send = stretch.buffer->role == std::string_view("send");
      (is_send ? end.inputs : end.outputs).push_back(stretch);
      (is_send ? in_send : in_receive) = true;
    }
    end.gives = end.gets = true;
    if (kind == Kind::bcast) {
      end.gives = in_send;
      if (in_send) end.outputs = end.inputs;
    }
    if (kind == Kind::scatter || kind == Kind::scatterv) end.gives = in_send;
    if (kind == Kind::gather || kind == Kind::gatherv || kind == Kind::reduce)
      end.gets = in_receive;
  }

  Run& run_;
  const Api& api_;
  PartitionedProgram& program_;
};

}  // namespace

void draw_partitioned(Run& run, PartitionedProgram& program) {
  if (run.oracle_api().Psend_init == nullptr)
    throw Skip{"the host MPI has no partitioned communication"};
  if (!run.memory().has_accord() || partitioned_calls().create == nullptr ||
      run.memory().device_count() == 0)
    throw Skip{"partitioned requests are not Accord's"};
  Rng& rng = run.global;
  Maker maker(run, program);
  program.lives = rng.between(1, 3);
  program.rounds = rng.between(1, 3);
  const int works = rng.between(1, kWorksMax);
  const int messages_percent = rng.chance(30) ? 100 : rng.chance(40) ? 0 : 50;
  const bool with_ordinary = rng.chance(30);
  program.freed_early = rng.chance(20) && !with_ordinary;
  run.describe(std::to_string(program.lives) + " times " + std::to_string(program.rounds) +
               " rounds of");
  for (int i = 0; i < works; ++i) {
    if (rng.chance(messages_percent))
      maker.add_message(i);
    else
      maker.add_collective(i);
  }
  if (with_ordinary) maker.add_ordinary();
  if (program.freed_early || program.fresh != nullptr) program.lives = 1;
}

}  // namespace accord::conformance
