// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One buffer, written in interleaved parts at the same time: columns of a row-major table are
// received by several operations that are in flight together, while the program itself writes other
// columns. A library that copies whole ranges back, gap bytes included, loses one of the writes.
#include <algorithm>

#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kColumnTag = 51;

struct Table {
  const Element* element;
  int rows;
  int columns;
  Buffer* buffer;

  std::byte* at(int row, int column) const {
    return buffer->pointer() +
           (row * columns + column) * static_cast<std::ptrdiff_t>(element->size_bytes);
  }
};

Table make_table(Run& run, const char* role) {
  Table table{};
  table.element = &random_element(run, true);
  table.rows = run.global.between(1, 200);
  table.columns = run.global.between(2, 8);
  table.buffer = &run.buffer(role, *run.types.predefined(*table.element),
                             std::int64_t{table.rows} * table.columns, table.element->align_bytes);
  return table;
}

std::string shape(const Table& table) {
  return std::to_string(table.rows) + " x " + std::to_string(table.columns) + " " +
         table.element->name;
}

// Each column comes from some rank, all at once, started and completed in any order.
void many_receives(Run& run, const Comm& comm) {
  const Api& api = run.api();
  const Table table = make_table(run, "receive");
  run.describe("columns of " + shape(table) + " received at once on " + comm.name);
  const int stride = run.global.between(0, 3);
  if (!comm.member) return;
  const bool persistent = run.local.chance(30);
  std::vector<int> order(static_cast<std::size_t>(table.columns));
  for (int column = 0; column < table.columns; ++column)
    order[static_cast<std::size_t>(column)] = column;
  run.local.shuffle(order);
  std::vector<MPI_Request> requests;
  const TypeModel* type = run.types.column(*table.element, table.rows, table.columns, false);
  for (int column : order) {
    const int from = (comm.rank + comm.size - (column * stride) % comm.size) % comm.size;
    MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
    const auto& function = persistent ? api.Recv_init : api.Irecv;
    run.check(function(false, static_cast<void*>(table.at(0, column)), Count{1}, type->handle, from,
                       kColumnTag + column, comm.handle, &request),
              "Irecv");
  }
  if (persistent) run.check(api.Startall(table.columns, requests.data()), "Startall");
  const std::size_t receives = requests.size();
  for (int column = 0; column < table.columns; ++column) {
    const int to = (comm.rank + column * stride) % comm.size;
    Buffer& data = run.buffer("send", *run.types.predefined(*table.element), table.rows,
                              table.element->align_bytes);
    const void* pointer = data.pointer();
    run.check(api.Isend(false, pointer, Count{table.rows}, table.element->handle, to,
                        kColumnTag + column, comm.handle, &requests.emplace_back(MPI_REQUEST_NULL)),
              "Isend");
  }
  if (!persistent) run.local.shuffle(requests);
  run.check(complete(run, random_completion(run.local), requests, nullptr, run.local.fork()),
            "completion");
  for (std::size_t i = 0; persistent && i < receives; ++i)
    run.check(api.Request_free(&requests[i]), "Request_free");
}

// While a receive into one column is outstanding, this program writes the other columns: only then
// may the sender send. The receive must not bring the old values back.
void writes_while_receiving(Run& run, const Comm& comm) {
  const Api& api = run.api();
  const Table table = make_table(run, "receive");
  run.describe("writes to " + shape(table) + " while a column is received on " + comm.name);
  const int column = run.global.below(table.columns);
  const bool collective = run.global.chance(40);
  if (!comm.member) return;
  const int to = (comm.rank + 1) % comm.size;
  const int from = (comm.rank + comm.size - 1) % comm.size;
  const TypeModel* type = run.types.column(*table.element, table.rows, table.columns, false);
  Buffer& data = run.buffer("send", *run.types.predefined(*table.element), table.rows,
                            table.element->align_bytes);
  const void* pointer = data.pointer();
  void* target = table.at(0, column);
  const bool root = comm.rank == 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (!collective)
    run.check(
        api.Irecv(false, target, Count{1}, type->handle, from, kColumnTag, comm.handle, &request),
        "Irecv");
  else if (!root)  // the root joins later
    run.check(
        api.Bcast.nonblocking(false, target, Count{1}, type->handle, 0, comm.handle, &request),
        "Ibcast");

  std::vector<std::byte> mark(table.element->size_bytes, std::byte{0xa5});
  for (int row = 0; row < table.rows; row += std::max(1, table.rows / 8))
    for (int other = 0; other < table.columns; ++other)
      if (other != column) run.memory().write(table.at(row, other), mark.data(), mark.size());
  run.world_barrier();  // everybody has written before anybody sends

  if (!collective)
    run.check(api.Send(false, pointer, Count{table.rows}, table.element->handle, to, kColumnTag,
                       comm.handle),
              "Send");
  else if (root)
    run.check(
        api.Bcast.nonblocking(false, target, Count{1}, type->handle, 0, comm.handle, &request),
        "Ibcast");
  run.check(complete_one(run, request, nullptr, run.local.fork()), "completion");
}

// Non-blocking collectives into different columns of one table.
void many_collectives(Run& run, const Comm& comm) {
  const Table table = make_table(run, "receive");
  run.describe("collectives into columns of " + shape(table) + " on " + comm.name);
  const int blocks = comm.member ? comm.size : 1;
  if (!comm.member) return;
  const Api& api = run.api();
  // An allgather needs as many columns as ranks; what is left goes to broadcasts.
  const bool gather = table.columns >= blocks;
  const TypeModel* type = run.types.column(*table.element, table.rows, table.columns, false);
  std::vector<MPI_Request> requests;
  int column = 0;
  if (gather) {
    Buffer& data = run.buffer("send", *run.types.predefined(*table.element), table.rows,
                              table.element->align_bytes);
    const void* pointer = data.pointer();
    run.check(api.Allgather.nonblocking(false, pointer, Count{table.rows}, table.element->handle,
                                        static_cast<void*>(table.at(0, 0)), Count{1}, type->handle,
                                        comm.handle, &requests.emplace_back(MPI_REQUEST_NULL)),
              "Iallgather");
    column = blocks;
  }
  for (; column < table.columns; ++column)
    run.check(api.Bcast.nonblocking(false, static_cast<void*>(table.at(0, column)), Count{1},
                                    type->handle, column % comm.size, comm.handle,
                                    &requests.emplace_back(MPI_REQUEST_NULL)),
              "Ibcast");
  run.local.shuffle(requests);
  run.check(complete(run, random_completion(run.local), requests, nullptr, run.local.fork()),
            "completion");
}

}  // namespace

void case_columns(Run& run) {
  const int kind = run.global.below(3);
  // The barrier in the second kind needs all ranks, so it runs where all are members.
  const Comm& world = run.comms().world();
  const int which = run.global.pick(run.comms().intra());
  const Comm& comm = kind == 1 ? world : run.comms().all()[static_cast<std::size_t>(which)];
  if (kind == 0)
    many_receives(run, comm);
  else if (kind == 1)
    writes_while_receiving(run, comm);
  else
    many_collectives(run, comm);
}

}  // namespace accord::conformance
