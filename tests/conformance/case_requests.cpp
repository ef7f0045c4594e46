// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What programs do with requests besides waiting: cancel, free, ask without completing, mix active
// ones with null and inactive ones, mix device and host buffers in one array.
#include <sched.h>

#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kCancelledTag = 777;
constexpr int kRequestTag = 41;

// Receives nobody sends to, cancelled: they must complete as cancelled and leave their buffers
// alone.
void cancel_unmatched(Run& run, const Comm& comm, const Payload& payload, std::int64_t units) {
  const Api& api = run.api();
  const int number = run.local.between(1, 3);
  for (int i = 0; i < number; ++i) {
    const Blocks data = make_blocks(run, "untouched", payload, std::vector{units}, Spread::one);
    const bool persistent = run.local.chance(40);
    MPI_Request request = MPI_REQUEST_NULL;
    const auto& function = persistent ? api.Recv_init : api.Irecv;
    run.check(function(false, data.pointer, data.count, data.type, MPI_ANY_SOURCE, kCancelledTag,
                       comm.handle, &request),
              "Irecv");
    if (persistent) run.check(api.Start(&request), "Start");
    int flag = 0;
    if (run.local.chance(50)) run.check(api.Test(&request, &flag, MPI_STATUS_IGNORE), "Test");
    run.log("an unmatched receive is complete", flag);
    run.check(api.Cancel(&request), "Cancel");
    MPI_Status status{};
    run.check(complete_one(run, request, &status, run.local.fork()),
              "completion of a cancelled receive");
    int cancelled = 0;
    run.check(api.Test_cancelled(&status, &cancelled), "Test_cancelled");
    run.log("cancelled", cancelled);
    run.log("request is null", request == MPI_REQUEST_NULL);
    if (persistent) run.check(api.Request_free(&request), "Request_free");
  }
}

// The forms of MPI 4.1 that look at many requests and complete none.
void look_at_all(Run& run, const std::vector<MPI_Request>& requests) {
  const Api& oracle = run.oracle_api();
  const int number = static_cast<int>(requests.size());
  std::vector<MPI_Status> statuses(requests.size() + 1);
  std::vector<int> indices(requests.size() + 1);
  int flag = 0;
  int index = 0;
  if (oracle.Request_get_status_all != nullptr)
    run.check(run.api().Request_get_status_all(number, requests.data(), &flag, statuses.data()),
              "Request_get_status_all");
  if (oracle.Request_get_status_any != nullptr)
    run.check(
        run.api().Request_get_status_any(number, requests.data(), &index, &flag, statuses.data()),
        "Request_get_status_any");
  if (oracle.Request_get_status_some != nullptr)
    run.check(run.api().Request_get_status_some(number, requests.data(), &index, indices.data(),
                                                statuses.data()),
              "Request_get_status_some");
}

// A ring of several messages, completed among null and inactive requests; a receive that was
// started and one that never is.
void mixed_array(Run& run, const Comm& comm, const Payload& payload, std::int64_t units) {
  const Api& api = run.api();
  const int messages = run.global.between(1, 4);
  const int to = (comm.rank + 1) % comm.size;
  const int from = (comm.rank + comm.size - 1) % comm.size;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Datatype> types;
  for (int i = 0; i < messages; ++i) {
    const Blocks data = make_blocks(run, "receive", payload, std::vector{units}, Spread::one);
    run.check(api.Irecv(false, data.pointer, data.count, data.type, from, kRequestTag + i,
                        comm.handle, &requests.emplace_back(MPI_REQUEST_NULL)),
              "Irecv");
    types.push_back(data.type);
  }
  Buffer& idle = run.buffer("untouched", Span{0, 64}, 8);
  MPI_Request inactive = MPI_REQUEST_NULL;
  run.check(api.Recv_init(false, idle.pointer(), Count{8}, MPI_DOUBLE, from, kCancelledTag,
                          comm.handle, &inactive),
            "Recv_init");
  requests.push_back(inactive);
  requests.push_back(MPI_REQUEST_NULL);
  for (int i = 0; i < messages; ++i) {
    const Blocks data = make_blocks(run, "send", payload, std::vector{units}, Spread::one);
    const void* pointer = data.pointer;
    run.check(api.Isend(false, pointer, data.count, data.type, to, kRequestTag + i, comm.handle,
                        &requests.emplace_back(MPI_REQUEST_NULL)),
              "Isend");
  }
  look_at_all(run, requests);
  std::vector<MPI_Status> statuses;
  run.check(complete(run, random_completion(run.local), requests, &statuses, run.local.fork()),
            "completion");
  for (std::size_t i = 0; i < types.size(); ++i) log_status(run, statuses[i], types[i]);
  run.log("inactive request is kept", requests[types.size()] == inactive);
  run.check(api.Request_free(&requests[types.size()]), "Request_free");
}

// An empty status from requests that are null or inactive, and from arrays without any active one.
void nothing_active(Run& run, const Comm& comm) {
  const Api& api = run.api();
  Buffer& idle = run.buffer("untouched", Span{0, 64}, 8);
  MPI_Request inactive = MPI_REQUEST_NULL;
  const void* pointer = idle.pointer();
  run.check(api.Send_init(false, pointer, Count{8}, MPI_DOUBLE, comm.rank, kCancelledTag,
                          comm.handle, &inactive),
            "Send_init");
  std::vector<MPI_Request> requests = {MPI_REQUEST_NULL, inactive, MPI_REQUEST_NULL};
  std::vector<MPI_Status> statuses(3);
  int index = 0;
  int flag = 0;
  int number = 0;
  int indices[3];
  run.check(api.Waitany(3, requests.data(), &index, &statuses[0]), "Waitany");
  run.log("Waitany index is undefined", index == MPI_UNDEFINED);
  log_status(run, statuses[0], MPI_INT);
  run.check(api.Testany(3, requests.data(), &index, &flag, &statuses[0]), "Testany");
  run.log("Testany index is undefined", index == MPI_UNDEFINED);
  run.log("Testany flag", flag);
  run.check(api.Waitsome(3, requests.data(), &number, indices, statuses.data()), "Waitsome");
  run.log("Waitsome count is undefined", number == MPI_UNDEFINED);
  run.check(api.Testsome(3, requests.data(), &number, indices, statuses.data()), "Testsome");
  run.log("Testsome count is undefined", number == MPI_UNDEFINED);
  run.check(api.Waitall(3, requests.data(), statuses.data()), "Waitall");
  for (const MPI_Status& status : statuses) log_status(run, status, MPI_INT);
  run.check(api.Testall(3, requests.data(), &flag, statuses.data()), "Testall");
  run.log("Testall flag", flag);
  run.check(api.Wait(&requests[1], &statuses[0]), "Wait");
  log_status(run, statuses[0], MPI_INT);
  run.check(api.Request_get_status(requests[0], &flag, &statuses[0]), "Request_get_status");
  run.log("Request_get_status flag", flag);
  run.check(api.Waitall(0, nullptr, MPI_STATUSES_IGNORE), "Waitall");
  run.check(api.Request_free(&requests[1]), "Request_free");
}

// Sends whose requests are freed at once; a receive that is freed while active; the acknowledgement
// of the peer says when the buffers are free again.
void freed_requests(Run& run, const Comm& comm, const Payload& payload, std::int64_t units) {
  const Api& api = run.api();
  const int to = (comm.rank + 1) % comm.size;
  const int from = (comm.rank + comm.size - 1) % comm.size;
  const Blocks receive = make_blocks(run, "receive", payload, std::vector{units}, Spread::one);
  const Blocks send = make_blocks(run, "send", payload, std::vector{units}, Spread::one);
  const void* pointer = send.pointer;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Request incoming = MPI_REQUEST_NULL;
  const bool persistent = run.local.chance(40);
  run.check(api.Irecv(false, receive.pointer, receive.count, receive.type, from, kRequestTag,
                      comm.handle, &incoming),
            "Irecv");
  const auto& function = persistent ? api.Send_init : run.local.chance(50) ? api.Isend : api.Issend;
  run.check(function(false, pointer, send.count, send.type, to, kRequestTag, comm.handle, &request),
            "Isend");
  if (persistent) run.check(api.Start(&request), "Start");
  run.check(api.Request_free(&request), "Request_free");
  run.log("freed request is null", request == MPI_REQUEST_NULL);
  run.check(complete_one(run, incoming, nullptr, run.local.fork()), "completion");
  run.check(api.Sendrecv(false, nullptr, Count{0}, MPI_BYTE, from, kRequestTag + 1, nullptr,
                         Count{0}, MPI_BYTE, to, kRequestTag + 1, comm.handle, MPI_STATUS_IGNORE),
            "Sendrecv");
}

}  // namespace

void case_requests(Run& run) {
  const int which = run.global.pick(run.comms().intra());
  const Comm& comm = run.comms().all()[static_cast<std::size_t>(which)];
  const int kind = run.global.below(4);
  static constexpr const char* kNames[] = {"cancelled receives", "mixed array", "nothing active",
                                           "freed requests"};
  require(run, kNames[kind]);
  const Payload payload = random_payload(run);
  const std::int64_t units = random_units(run, payload, 1);
  run.describe(std::string(kNames[kind]) + " of " + std::to_string(units) + " x " +
               std::to_string(payload.signature.size()) + " " + payload.signature.front()->name +
               " on " + comm.name);
  if (!comm.member) return;
  if (kind == 0)
    cancel_unmatched(run, comm, payload, units);
  else if (kind == 1)
    mixed_array(run, comm, payload, units);
  else if (kind == 2)
    nothing_active(run, comm);
  else
    freed_requests(run, comm, payload, units);
}

}  // namespace accord::conformance
