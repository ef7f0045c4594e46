// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kExchangeTag = 31;

enum class Call { sendrecv, replace, isendrecv, ireplace, pairs, chain };
constexpr int kCalls = 6;

// Neighbours at a distance; at the ends there is nobody unless the line is closed.
struct Shift {
  int to;
  int from;
};

Shift shift(const Comm& comm, int distance, bool closed) {
  if (comm.inter) {
    const int partner = comm.rank < comm.remote_size ? comm.rank : MPI_PROC_NULL;
    return {partner, partner};
  }
  const int up = comm.rank + distance;
  const int down = comm.rank - distance;
  if (closed) return {up % comm.size, (down % comm.size + comm.size) % comm.size};
  return {up < comm.size ? up : MPI_PROC_NULL, down >= 0 ? down : MPI_PROC_NULL};
}

struct Exchange {
  Run& run;
  const Comm& comm;
  Payload payload;
  std::int64_t units;
  std::int64_t extra;
  bool large;

  void sendrecv(Call call, Shift way, bool any) {
    const Api& api = run.api();
    const Blocks send = make_blocks(run, "send", payload, std::vector{units}, Spread::one);
    const Blocks receive =
        make_blocks(run, "receive", payload, std::vector{units + extra}, Spread::one);
    const int source = any && way.from != MPI_PROC_NULL ? MPI_ANY_SOURCE : way.from;
    const void* from = send.pointer;
    MPI_Status status{};
    if (call == Call::sendrecv) {
      run.check(api.Sendrecv(large, from, send.count, send.type, way.to, kExchangeTag,
                             receive.pointer, receive.count, receive.type, source,
                             any ? MPI_ANY_TAG : kExchangeTag, comm.handle, &status),
                "Sendrecv");
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      run.check(api.Isendrecv(large, from, send.count, send.type, way.to, kExchangeTag,
                              receive.pointer, receive.count, receive.type, source,
                              any ? MPI_ANY_TAG : kExchangeTag, comm.handle, &request),
                "Isendrecv");
      run.check(complete_one(run, request, &status, run.local.fork()), "completion of Isendrecv");
      if (!works(run, "status of Isendrecv")) return;
    }
    log_status(run, status, receive.type);
  }

  void replace(Call call, Shift way) {
    const Api& api = run.api();
    const Blocks data = make_blocks(run, "receive", payload, std::vector{units}, Spread::one);
    MPI_Status status{};
    if (call == Call::replace) {
      run.check(api.Sendrecv_replace(large, data.pointer, data.count, data.type, way.to,
                                     kExchangeTag, way.from, kExchangeTag, comm.handle, &status),
                "Sendrecv_replace");
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      run.check(api.Isendrecv_replace(large, data.pointer, data.count, data.type, way.to,
                                      kExchangeTag, way.from, kExchangeTag, comm.handle, &request),
                "Isendrecv_replace");
      run.check(complete_one(run, request, &status, run.local.fork()),
                "completion of Isendrecv_replace");
    }
    log_status(run, status, data.type);
  }

  void send_blocking(const Blocks& data, int to, bool synchronous) {
    const void* pointer = data.pointer;
    const auto& function = synchronous ? run.api().Ssend : run.api().Send;
    run.check(function(large, pointer, data.count, data.type, to, kExchangeTag, comm.handle),
              "Send");
  }

  void receive_blocking(const Blocks& data, int from, bool probe) {
    MPI_Status status{};
    if (probe) {
      run.check(run.api().Probe(from, MPI_ANY_TAG, comm.handle, &status), "Probe");
      log_status(run, status, data.type);
    }
    run.check(run.api().Recv(large, data.pointer, data.count, data.type, from, kExchangeTag,
                             comm.handle, &status),
              "Recv");
    log_status(run, status, data.type);
  }

  // Blocking calls only, in an order that needs no buffering: partners meet, the lower rank speaks
  // first.
  void pairs(bool synchronous, int rounds) {
    const int partner = comm.inter ? shift(comm, 0, false).to : comm.rank ^ 1;
    if (partner == MPI_PROC_NULL || partner >= comm.peers()) return;
    const Blocks send = make_blocks(run, "send", payload, std::vector{units}, Spread::one);
    const Blocks receive =
        make_blocks(run, "receive", payload, std::vector{units + extra}, Spread::one);
    const bool first = comm.inter ? comm.group == 0 : comm.rank < partner;
    const bool probe = run.local.chance(40);
    for (int round = 0; round < rounds; ++round) {
      if (first) send_blocking(send, partner, synchronous);
      receive_blocking(receive, partner, probe);
      if (!first) send_blocking(send, partner, synchronous);
    }
  }

  // A message handed from rank to rank through one buffer, each in its own layout.
  void chain(bool synchronous) {
    const Shift way = shift(comm, 1, false);
    const Blocks data = make_blocks(run, "receive", payload, std::vector{units}, Spread::one);
    if (comm.inter) return;
    receive_blocking(data, way.from, run.local.chance(40) && way.from != MPI_PROC_NULL);
    send_blocking(data, way.to, synchronous);
  }
};

}  // namespace

void case_exchange(Run& run) {
  const int which = run.global.pick(run.comms().plain());
  const Comm& comm = run.comms().all()[static_cast<std::size_t>(which)];
  Call call = static_cast<Call>(run.global.below(kCalls));
  const Api& oracle = run.oracle_api();
  if (call == Call::isendrecv && oracle.Isendrecv.small == nullptr) call = Call::sendrecv;
  if (call == Call::ireplace && oracle.Isendrecv_replace.small == nullptr) call = Call::replace;
  static constexpr const char* kNames[kCalls] = {
      "Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace", "pairs", "chain"};
  const char* name = kNames[static_cast<int>(call)];
  require(run, name);
  Exchange exchange{run, comm, random_payload(run), 0, 0, false};
  exchange.units = random_units(run, exchange.payload, 1);
  exchange.extra = run.global.below(3);
  exchange.large = run.global.chance(30) && oracle.Sendrecv.large != nullptr;
  const int distance = run.global.between(0, 3);
  const bool closed = run.global.chance(60);
  const bool any = run.global.chance(30);
  const bool synchronous = run.global.chance(40);
  const int rounds = run.global.between(1, 3);
  run.describe(std::string(name) + " of " + std::to_string(exchange.units) + " x " +
               std::to_string(exchange.payload.signature.size()) + " " +
               exchange.payload.signature.front()->name + " on " + comm.name + ", shift " +
               std::to_string(distance) + (any ? ", any source" : ""));
  if (comm.member) {
    const Shift way = shift(comm, distance, closed);
    if (call == Call::sendrecv || call == Call::isendrecv)
      exchange.sendrecv(call, way, any);
    else if (call == Call::replace || call == Call::ireplace)
      exchange.replace(call, way);
    else if (call == Call::pairs)
      exchange.pairs(synchronous, rounds);
    else
      exchange.chain(synchronous);
  }
  run.world_barrier();  // a wild receive must not see the next case's message
}

}  // namespace accord::conformance
