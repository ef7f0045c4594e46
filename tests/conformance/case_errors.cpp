// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Wrong arguments with buffers of any memory: the error class must be the host MPI's, through the
// error handler of the call's own communicator, once, and nothing may be written or hang.
#include <array>

#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kErrorTag = 71;

struct Handled {
  int calls = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  int code = MPI_SUCCESS;
};
Handled handled;  // by the error handler below; errors are raised on the calling thread

void count_error(MPI_Comm* comm, int* code, ...) {
  ++handled.calls;
  handled.comm = *comm;
  handled.code = *code;
}

// One wrong call. All ranks make it, and none communicates.
struct Mistake {
  const char* name;
  int (*call)(Run& run, const Comm& comm, Buffer& in, Buffer& out);
};

const void* constant(const Buffer& buffer) { return buffer.pointer(); }
void* pointer(const Buffer& buffer) { return buffer.pointer(); }

#define MISTAKE(text, expression)                                     \
  Mistake {                                                           \
    text, [](Run& run, const Comm& comm, [[maybe_unused]] Buffer& in, \
             [[maybe_unused]] Buffer& out) {                          \
      [[maybe_unused]] const Api& api = run.api();                    \
      [[maybe_unused]] const MPI_Comm c = comm.handle;                \
      [[maybe_unused]] MPI_Request request = MPI_REQUEST_NULL;        \
      [[maybe_unused]] MPI_Status status;                             \
      return expression;                                              \
    }                                                                 \
  }

MPI_Datatype uncommitted(Run& run) {
  static MPI_Datatype type = MPI_DATATYPE_NULL;  // one for the whole process is enough
  if (type == MPI_DATATYPE_NULL)
    run.oracle_api().Type_vector(false, Count{2}, Count{1}, Count{3}, MPI_INT, &type);
  return type;
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> list = {
      MISTAKE("Send, count -1",
              api.Send(false, constant(in), Count{-1}, MPI_INT, comm.rank, kErrorTag, c)),
      MISTAKE("Isend, count -1", api.Isend(false, constant(in), Count{-1}, MPI_INT, comm.rank,
                                           kErrorTag, c, &request)),
      MISTAKE("Recv, count -1",
              api.Recv(false, pointer(out), Count{-1}, MPI_INT, comm.rank, kErrorTag, c, &status)),
      MISTAKE("Irecv, count -1", api.Irecv(false, pointer(out), Count{-1}, MPI_INT, comm.rank,
                                           kErrorTag, c, &request)),
      MISTAKE("Send_init, count -1", api.Send_init(false, constant(in), Count{-1}, MPI_INT,
                                                   comm.rank, kErrorTag, c, &request)),
      MISTAKE("Send, bad rank",
              api.Send(false, constant(in), Count{1}, MPI_INT, comm.size, kErrorTag, c)),
      MISTAKE("Ssend, bad rank",
              api.Ssend(false, constant(in), Count{1}, MPI_INT, -77, kErrorTag, c)),
      MISTAKE("Irecv, bad rank",
              api.Irecv(false, pointer(out), Count{1}, MPI_INT, comm.size, kErrorTag, c, &request)),
      MISTAKE("Recv, bad rank",
              api.Recv(false, pointer(out), Count{1}, MPI_INT, -77, kErrorTag, c, &status)),
      MISTAKE("Send, bad tag", api.Send(false, constant(in), Count{1}, MPI_INT, comm.rank, -5, c)),
      MISTAKE("Isend, bad tag",
              api.Isend(false, constant(in), Count{1}, MPI_INT, comm.rank, -5, c, &request)),
      MISTAKE("Recv, bad tag",
              api.Recv(false, pointer(out), Count{1}, MPI_INT, comm.rank, -50, c, &status)),
      MISTAKE("Send, null type",
              api.Send(false, constant(in), Count{1}, MPI_DATATYPE_NULL, comm.rank, kErrorTag, c)),
      MISTAKE("Irecv, null type", api.Irecv(false, pointer(out), Count{1}, MPI_DATATYPE_NULL,
                                            comm.rank, kErrorTag, c, &request)),
      MISTAKE("Send, type not committed",
              api.Send(false, constant(in), Count{1}, uncommitted(run), comm.rank, kErrorTag, c)),
      MISTAKE("Sendrecv, count -1",
              api.Sendrecv(false, constant(in), Count{1}, MPI_INT, comm.rank, kErrorTag,
                           pointer(out), Count{-1}, MPI_INT, comm.rank, kErrorTag, c, &status)),
      MISTAKE("Sendrecv_replace, bad rank",
              api.Sendrecv_replace(false, pointer(out), Count{1}, MPI_INT, comm.size, kErrorTag,
                                   comm.rank, kErrorTag, c, &status)),
      MISTAKE("Send, null communicator", api.Send(false, constant(in), Count{1}, MPI_INT, comm.rank,
                                                  kErrorTag, MPI_COMM_NULL)),
      MISTAKE("Bcast, null communicator",
              api.Bcast.blocking(false, pointer(out), Count{1}, MPI_INT, 0, MPI_COMM_NULL)),
      MISTAKE("Bcast, count -1", api.Bcast.blocking(false, pointer(out), Count{-1}, MPI_INT, 0, c)),
      MISTAKE("Bcast, bad root",
              api.Bcast.blocking(false, pointer(out), Count{1}, MPI_INT, comm.size, c)),
      MISTAKE("Ibcast, bad root",
              api.Bcast.nonblocking(false, pointer(out), Count{1}, MPI_INT, -9, c, &request)),
      MISTAKE("Bcast, null type",
              api.Bcast.blocking(false, pointer(out), Count{1}, MPI_DATATYPE_NULL, 0, c)),
      MISTAKE("Allreduce, count -1", api.Allreduce.blocking(false, constant(in), pointer(out),
                                                            Count{-1}, MPI_INT, MPI_SUM, c)),
      MISTAKE("Allreduce, null op", api.Allreduce.blocking(false, constant(in), pointer(out),
                                                           Count{1}, MPI_INT, MPI_OP_NULL, c)),
      MISTAKE("Allreduce, MPI_BAND of MPI_DOUBLE",
              api.Allreduce.blocking(false, constant(in), pointer(out), Count{1}, MPI_DOUBLE,
                                     MPI_BAND, c)),
      MISTAKE("Iallreduce, MPI_MINLOC of MPI_INT",
              api.Allreduce.nonblocking(false, constant(in), pointer(out), Count{1}, MPI_INT,
                                        MPI_MINLOC, c, &request)),
      MISTAKE("Allreduce, null type",
              api.Allreduce.blocking(false, constant(in), pointer(out), Count{1}, MPI_DATATYPE_NULL,
                                     MPI_SUM, c)),
      MISTAKE("Allreduce, send buffer is receive buffer",
              api.Allreduce.blocking(false, constant(out), pointer(out), Count{4}, MPI_INT, MPI_SUM,
                                     c)),
      MISTAKE("Reduce, bad root", api.Reduce.blocking(false, constant(in), pointer(out), Count{1},
                                                      MPI_INT, MPI_SUM, comm.size, c)),
      MISTAKE("Gather, bad root",
              api.Gather.blocking(false, constant(in), Count{1}, MPI_INT, pointer(out), Count{1},
                                  MPI_INT, comm.size + 3, c)),
      MISTAKE("Allgather, count -1", api.Allgather.blocking(false, constant(in), Count{-1}, MPI_INT,
                                                            pointer(out), Count{1}, MPI_INT, c)),
      MISTAKE("Ialltoall, count -1",
              api.Alltoall.nonblocking(false, constant(in), Count{-1}, MPI_INT, pointer(out),
                                       Count{-1}, MPI_INT, c, &request)),
      MISTAKE("Scan, MPI_LAND of MPI_FLOAT", api.Scan.blocking(false, constant(in), pointer(out),
                                                               Count{1}, MPI_FLOAT, MPI_LAND, c)),
      MISTAKE("Reduce_scatter_block, count -1",
              api.Reduce_scatter_block.blocking(false, constant(in), pointer(out), Count{-1},
                                                MPI_INT, MPI_SUM, c)),
      MISTAKE("Reduce_local, null op",
              api.Reduce_local(false, constant(in), pointer(out), Count{1}, MPI_INT, MPI_OP_NULL)),
      MISTAKE("Reduce_local, MPI_BOR of MPI_FLOAT",
              api.Reduce_local(false, constant(in), pointer(out), Count{1}, MPI_FLOAT, MPI_BOR)),
      MISTAKE("Probe, bad rank", api.Probe(comm.size, kErrorTag, c, &status)),
  };
  return list;
}

void wrong_argument(Run& run) {
  const Mistake& mistake = run.global.pick(mistakes());
  const bool with_handler = run.global.chance(40);
  run.describe(mistake.name);
  require(run, mistake.name);
  Comm& comm = run.fresh_comm(run.comms().world());
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (with_handler) {
    run.check(run.api().Comm_create_errhandler(count_error, &handler), "Comm_create_errhandler");
    run.check(run.api().Comm_set_errhandler(comm.handle, handler), "Comm_set_errhandler");
    run.check(run.api().Errhandler_free(&handler), "Errhandler_free");
  }
  Buffer& in = run.buffer("send", Span{0, 256}, 16);
  Buffer& out = run.buffer("receive", Span{0, 256}, 16);
  handled = {};
  const int code = mistake.call(run, comm, in, out);
  run.log("error class", run.error_class(code));
  run.log("error handler calls", handled.calls);
  run.log("error handler's communicator is the call's", handled.comm == comm.handle);
  run.log("error handler's class", run.error_class(handled.code));
  // The communicator is as good as before.
  run.check(run.api().Comm_set_errhandler(comm.handle, MPI_ERRORS_RETURN), "Comm_set_errhandler");
  run.check(run.api().Barrier.blocking(false, comm.handle), "Barrier");
}

enum class Receive { recv, irecv, persistent, mrecv, sendrecv, waitall };
constexpr int kReceives = 6;

int receive_short(Run& run, const Comm& comm, Receive how, const Buffer& target, std::int64_t count,
                  int from, MPI_Status& status) {
  const Api& api = run.api();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;
  void* data = target.pointer();
  const Count room{count};
  switch (how) {
    case Receive::recv:
      return api.Recv(false, data, room, MPI_INT, from, kErrorTag, comm.handle, &status);
    case Receive::mrecv:
      run.check(api.Mprobe(from, kErrorTag, comm.handle, &message, &status), "Mprobe");
      return api.Mrecv(false, data, room, MPI_INT, &message, &status);
    case Receive::sendrecv:
      return api.Sendrecv(false, nullptr, Count{0}, MPI_INT, MPI_PROC_NULL, kErrorTag, data, room,
                          MPI_INT, from, kErrorTag, comm.handle, &status);
    case Receive::persistent: {
      run.check(api.Recv_init(false, data, room, MPI_INT, from, kErrorTag, comm.handle, &request),
                "Recv_init");
      run.check(api.Start(&request), "Start");
      const int code = api.Wait(&request, &status);
      run.log("error class of Request_free", run.error_class(api.Request_free(&request)));
      return code;
    }
    case Receive::irecv:
      run.check(api.Irecv(false, data, room, MPI_INT, from, kErrorTag, comm.handle, &request),
                "Irecv");
      return api.Wait(&request, &status);
    default: {
      MPI_Request two[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      MPI_Status statuses[2];
      run.check(api.Irecv(false, data, room, MPI_INT, from, kErrorTag, comm.handle, &two[1]),
                "Irecv");
      const int code = api.Waitall(2, two, statuses);
      run.log("status error class", run.error_class(statuses[1].MPI_ERROR));
      status = statuses[1];
      return code;
    }
  }
}

// A message longer than its receive. What it writes inside the receive buffer is open; outside,
// nothing.
void truncation(Run& run) {
  const Receive how = static_cast<Receive>(run.global.below(kReceives));
  static constexpr std::array<int, 5> kCounts = {4, 100, 3000, 20000, 60000};
  std::int64_t sent = run.global.pick(kCounts);
  if (sent > kCounts[1] && !works(run, "truncation of a large message")) sent = kCounts[1];
  const std::int64_t received = sent / run.global.between(2, 4);
  static constexpr const char* kNames[kReceives] = {"Recv",  "Irecv",    "Recv_init",
                                                    "Mrecv", "Sendrecv", "Waitall"};
  const char* name = kNames[static_cast<int>(how)];
  run.describe("truncation of " + std::to_string(sent) + " to " + std::to_string(received) +
               " MPI_INT in " + name);
  require(run, (std::string("truncation in ") + name).c_str());
  Comm& comm = run.fresh_comm(run.comms().world());
  const int to = (comm.rank + 1) % comm.size;
  const int from = (comm.rank + comm.size - 1) % comm.size;
  Buffer& source = run.buffer("send", Span{0, sent * 4}, 4);
  Buffer& target = run.buffer("receive", Span{0, received * 4}, 4);
  run.set_loose(target, 0, received * 4);
  MPI_Request request = MPI_REQUEST_NULL;
  run.check(run.api().Isend(false, constant(source), Count{sent}, MPI_INT, to, kErrorTag,
                            comm.handle, &request),
            "Isend");
  MPI_Status status{};
  const int code = receive_short(run, comm, how, target, received, from, status);
  run.log("error class", run.error_class(code));
  run.check(complete_one(run, request, nullptr, run.local.fork()), "completion of the send");
  run.check(run.api().Barrier.blocking(false, comm.handle), "Barrier");
}

}  // namespace

void case_errors(Run& run) {
  if (run.global.chance(30))
    truncation(run);
  else
    wrong_argument(run);
}

}  // namespace accord::conformance
